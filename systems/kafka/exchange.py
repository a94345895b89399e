"""Requests of Kafka's protocol over one connection, each sent once, and the parts of their answers.

The library encodes and decodes. Its clients are not used: they find brokers by the addresses that
these advertise, which are seldom this machine's, and send again what they see fit. The versions are
those of Kafka 2.1, which all later ones know. Of a consumer's fetch they are the last that a
follower refuses: from version 11 on it answers with what it has by then. Source: the message
definitions of Kafka 4.3 and KIP-207, KIP-320, KIP-392.
"""

import asyncio
import struct
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final, cast

import msgspec
from kafka.errors import KafkaError
from kafka.net.sasl import (  # pyright: ignore[reportMissingTypeStubs]
    get_sasl_mechanism,  # pyright: ignore[reportUnknownVariableType]
)
from kafka.protocol.admin import (
    CreateTopicsRequest,
    DeleteTopicsRequest,
    DescribeConfigsRequest,
    DescribeQuorumRequest,  # pyright: ignore[reportAttributeAccessIssue, reportUnknownVariableType]
)
from kafka.protocol.consumer import (  # pyright: ignore[reportMissingTypeStubs]
    FetchRequest,
    ListOffsetsRequest,
)
from kafka.protocol.metadata import MetadataRequest
from kafka.protocol.metadata.api_versions import ApiVersionsRequest
from kafka.protocol.parser import KafkaProtocol
from kafka.protocol.producer import (  # pyright: ignore[reportMissingTypeStubs]
    ProduceRequest,
)
from kafka.protocol.sasl import (  # pyright: ignore[reportMissingTypeStubs]
    SaslAuthenticateRequest,
    SaslHandshakeRequest,
)

from splitbrain.contracts.errors import UNREADABLE
from splitbrain.contracts.runtime import Address
from splitbrain.systems.kafka.access import Access
from splitbrain.systems.kafka.errors import NO_ERROR, NotKafkaError, require_none
from splitbrain.systems.kafka.records import DamagedError, Stamp, batch_of, records_of

#: Versions asked for, by the request.
VERSIONS: Final = {
    ProduceRequest: 7,
    FetchRequest: 10,
    ListOffsetsRequest: 4,
    MetadataRequest: 7,
    CreateTopicsRequest: 2,
}
_LATEST: Final = -1
_NO_REPLICA: Final = -1
_OF_TOPIC: Final = 2
_METADATA_TOPIC: Final = "__cluster_metadata"
#: Of readers: all below the high watermark, or what is committed, below the last stable offset.
READ_UNCOMMITTED: Final = 0
READ_COMMITTED: Final = 1
_CHUNK_BYTES: Final = 65_536
_FETCH_BYTES: Final = 10_000_000
#: Configuration under which a topic keeps all of its records.
_KEEP_ALL: Final = {"cleanup.policy": "delete", "retention.ms": "-1", "retention.bytes": "-1"}


class End(msgspec.Struct, frozen=True):
    """End of a partition as its leader has it: its high watermark, or its last stable offset."""

    offset: int
    #: -1: the broker does not say.
    epoch: int


class Partition(msgspec.Struct, frozen=True):
    """One broker's view of a partition."""

    number: int
    #: -1: nobody.
    leader: int
    epoch: int
    replicas: frozenset[int]
    in_sync: frozenset[int]


class View(msgspec.Struct, frozen=True):
    """One broker's view of the cluster."""

    #: By their numbers, where they say that they are.
    brokers: Mapping[int, Address]
    #: By its number: with ZooKeeper the controller, else any broker; -1: nobody.
    controller: int
    #: Of the topic, in order; None: there is no such topic.
    partitions: tuple[Partition, ...] | None


@asynccontextmanager
async def opened(there: Address, access: Access) -> AsyncGenerator["KafkaConnection"]:
    """Connect to a broker for as long as the context lasts; raises as ``KafkaConnection.open``."""
    connection = await KafkaConnection.open(there, access)
    try:
        yield connection
    finally:
        connection.close()


class KafkaConnection:
    """A connection to one broker, used by one request at a time.

    Methods raise OSError or EOFError where the connection broke, NotKafkaError, and RefusedError.
    """

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self._protocol = cast("Any", KafkaProtocol)(client_id="splitbrain")

    @classmethod
    async def open(cls, there: Address, access: Access) -> "KafkaConnection":
        """Connect to a broker and be let in; raises OSError, and as all methods."""
        connection = cls(
            *await asyncio.open_connection(there.host, there.port, ssl=access.context())
        )
        try:
            if access.mechanism is not None:
                await connection._authenticate(access, access.mechanism)
        except BaseException:
            connection.close()
            raise
        return connection

    async def _authenticate(self, access: Access, mechanism: str) -> None:
        """Say who the client is; raises RefusedError where the broker does not let it in."""
        answer = await self.ask(SaslHandshakeRequest(version=1, mechanism=mechanism))
        require_none(answer.error_code)
        kind = cast("Any", get_sasl_mechanism(mechanism))
        dialogue = kind(
            sasl_mechanism=mechanism,
            sasl_plain_username=access.user,
            sasl_plain_password=access.password,
        )
        while not dialogue.is_done():
            words = dialogue.auth_bytes()
            answer = await self.ask(SaslAuthenticateRequest(version=0, auth_bytes=words))
            require_none(answer.error_code)
            try:
                dialogue.receive(bytes(answer.auth_bytes))
            except ValueError as error:
                raise NotKafkaError(str(error)) from error

    def close(self) -> None:
        """Drop the connection."""
        self._writer.close()

    async def ask(self, request: Any) -> Any:
        """Send a request and return its answer, as the library decodes it."""
        self._protocol.send_request(request)
        self._writer.write(self._protocol.send_bytes())
        while True:
            data = await self._reader.read(_CHUNK_BYTES)
            if not data:
                raise EOFError
            try:
                answers = self._protocol.receive_bytes(data)
            except (KafkaError, struct.error, IndexError, *UNREADABLE) as error:
                raise NotKafkaError from error
            if answers:
                return answers[0][1]

    async def require_versions(self) -> None:
        """Ask which requests the broker knows; raises NotKafkaError with the one that it lacks."""
        answer = await self.ask(ApiVersionsRequest(version=0))
        known = {row.api_key: (row.min_version, row.max_version) for row in answer.api_keys}
        for request, version in VERSIONS.items():
            least, most = known.get(request.API_KEY, (0, -1))
            if not least <= version <= most:
                name = request.__name__.removesuffix("Request")
                raise NotKafkaError(f"it lacks version {version} of {name}, which Kafka 2.1 has")

    async def view(self, topic: str) -> View:
        """Ask for brokers and a topic."""
        asked = MetadataRequest.MetadataRequestTopic(name=topic)
        answer = await self.ask(
            MetadataRequest(version=7, topics=[asked], allow_auto_topic_creation=False)
        )
        (found,) = answer.topics
        partitions = tuple(
            Partition(
                number=row.partition_index,
                leader=row.leader_id,
                epoch=row.leader_epoch,
                replicas=frozenset(row.replica_nodes),
                in_sync=frozenset(row.isr_nodes),
            )
            for row in sorted(found.partitions, key=lambda row: row.partition_index)
        )
        brokers = {
            broker.node_id: Address(broker.host, broker.port)
            for broker in sorted(answer.brokers, key=lambda broker: broker.node_id)
        }
        known = partitions if found.error_code == NO_ERROR else None
        return View(brokers, answer.controller_id, known)

    async def create(
        self,
        topic: str,
        partitions: int,
        replicas: int | Sequence[Sequence[int]],
        timeout_ms: int,
        configs: Mapping[str, str] = {},
    ) -> int:
        """Create a topic that keeps all of its records; returns the error's code.

        ``replicas`` is how many each partition has, or the brokers of each; the first of them leads
        until something happens.
        """
        kind = CreateTopicsRequest.CreatableTopic
        is_placed = not isinstance(replicas, int)
        places = enumerate(replicas) if is_placed else ()
        given = {**_KEEP_ALL, **configs}
        rows = [kind.CreatableTopicConfig(name=name, value=text) for name, text in given.items()]
        wanted = kind(
            name=topic,
            num_partitions=-1 if is_placed else partitions,
            replication_factor=-1 if is_placed else replicas,
            assignments=[
                kind.CreatableReplicaAssignment(partition_index=number, broker_ids=[*brokers])
                for number, brokers in places
            ],
            configs=rows,
        )
        answer = await self.ask(
            CreateTopicsRequest(
                version=2, topics=[wanted], timeout_ms=timeout_ms, validate_only=False
            )
        )
        return answer.topics[0].error_code

    async def remove(self, topic: str, timeout_ms: int) -> None:
        """Delete a topic."""
        answer = await self.ask(
            DeleteTopicsRequest(version=1, topic_names=[topic], timeout_ms=timeout_ms)
        )
        require_none(answer.responses[0].error_code)

    async def configs(self, topic: str) -> dict[str, str]:
        """Ask for the configuration in force of a topic."""
        kind = DescribeConfigsRequest.DescribeConfigsResource
        asked = kind(resource_type=_OF_TOPIC, resource_name=topic, configuration_keys=None)
        answer = await self.ask(
            DescribeConfigsRequest(version=1, resources=[asked], include_synonyms=False)
        )
        (found,) = answer.results
        require_none(found.error_code)
        return {row.name: row.value for row in found.configs if row.value is not None}

    async def feature(self, name: str) -> int:
        """Ask for the level of a feature that the cluster has settled; 0: it has none."""
        answer = await self.ask(
            ApiVersionsRequest(
                version=3,
                client_software_name="splitbrain",
                client_software_version="1",
            )
        )
        levels = {row.name: row.max_version_level for row in answer.finalized_features or ()}
        return levels.get(name, 0)

    async def controller(self) -> tuple[int, int]:
        """Have whoever leads the metadata asked (KIP-595): epoch and number of the leader."""
        request = cast("Any", DescribeQuorumRequest)
        kind = request.TopicData
        asked = kind(topic_name=_METADATA_TOPIC, partitions=[kind.PartitionData(partition_index=0)])
        answer = await self.ask(request(version=0, topics=[asked]))
        require_none(answer.error_code)
        row = answer.topics[0].partitions[0]
        require_none(row.error_code)
        return row.leader_epoch, row.leader_id

    async def end(self, topic: str, partition: int, isolation: int = READ_UNCOMMITTED) -> End:
        """Ask for a partition's end; only who believes to lead it answers.

        A new leader refuses until it knows all that was committed before it.
        """
        kind = ListOffsetsRequest.ListOffsetsTopic
        asked = kind.ListOffsetsPartition(
            partition_index=partition, current_leader_epoch=-1, timestamp=_LATEST
        )
        answer = await self.ask(
            ListOffsetsRequest(
                version=4,
                replica_id=_NO_REPLICA,
                isolation_level=isolation,
                topics=[kind(name=topic, partitions=[asked])],
            )
        )
        row = answer.topics[0].partitions[0]
        require_none(row.error_code)
        return End(row.offset, row.leader_epoch)

    async def records(
        self,
        topic: str,
        partition: int,
        end: End,
        *,
        start: int = 0,
        most: int | None = None,
        isolation: int = READ_UNCOMMITTED,
    ) -> tuple[list[tuple[int, bytes]], int]:
        """Fetch records below the end, from a leader that is still the same.

        Returns offsets and values, and the offset behind them: the end, unless there are ``most``
        of them before it. Records of aborted transactions are left out of what is committed.
        """
        found: list[tuple[int, bytes]] = []
        offset = start
        while offset < end.offset and (most is None or len(found) < most):
            row = await self._fetch(topic, partition, offset, end.epoch, isolation)
            before = offset
            try:
                read, offset = records_of(
                    bytes(row.records or b""), row.aborted_transactions or (), offset, end.offset
                )
            except DamagedError as error:
                raise NotKafkaError(str(error)) from error
            found += read
            if offset <= before:
                raise NotKafkaError(f"nothing is at offset {offset}, and the end is {end.offset}")
        if most is not None and len(found) > most:
            # More of the last fetch than was asked for.
            del found[most:]
            offset = found[-1][0] + 1
        return found, max(start, min(offset, end.offset))

    async def _fetch(
        self, topic: str, partition: int, offset: int, epoch: int, isolation: int
    ) -> Any:
        kind = FetchRequest.FetchTopic
        asked = kind.FetchPartition(
            partition=partition,
            current_leader_epoch=epoch,
            fetch_offset=offset,
            log_start_offset=-1,
            partition_max_bytes=_FETCH_BYTES,
        )
        answer = await self.ask(
            FetchRequest(
                version=10,
                replica_id=_NO_REPLICA,
                max_wait_ms=0,
                min_bytes=0,
                max_bytes=_FETCH_BYTES,
                isolation_level=isolation,
                session_id=0,
                session_epoch=-1,
                topics=[kind(topic=topic, partitions=[asked])],
                forgotten_topics_data=[],
            )
        )
        require_none(answer.error_code)
        row = answer.responses[0].partitions[0]
        require_none(row.error_code)
        return row

    async def produce(
        self,
        topic: str,
        partition: int,
        value: bytes,
        acks: int,
        timeout_ms: int,
        stamp: Stamp | None = None,
    ) -> tuple[int, int]:
        """Send one record, with a producer's id if it has one; returns error code and offset.

        The offset is -1 where nothing was appended.
        """
        kind = ProduceRequest.TopicProduceData
        data = kind.PartitionProduceData(index=partition, records=batch_of(value, stamp))
        answer = await self.ask(
            ProduceRequest(
                version=VERSIONS[ProduceRequest] if stamp is None else stamp.produce_version,
                transactional_id=None if stamp is None else stamp.transactional_id,
                acks=acks,
                timeout_ms=timeout_ms,
                topic_data=[kind(name=topic, partition_data=[data])],
            )
        )
        row = answer.responses[0].partition_responses[0]
        return row.error_code, row.base_offset
