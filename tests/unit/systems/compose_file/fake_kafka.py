"""Brokers of a pretended Kafka: one log each, and errors as a test wants them.

The module is longer than 400 lines because a broker is one state behind all of its answers.
"""

import asyncio
import struct
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, ClassVar

import msgspec
from kafka.protocol.admin import (
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DescribeConfigsRequest,
    DescribeConfigsResponse,
)
from kafka.protocol.consumer import (
    FetchRequest,
    FetchResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
)
from kafka.protocol.metadata import MetadataRequest, MetadataResponse
from kafka.protocol.metadata.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kafka.protocol.metadata.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from kafka.protocol.producer import ProduceRequest, ProduceResponse
from kafka.protocol.producer.transaction import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    EndTxnRequest,
    EndTxnResponse,
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from kafka.protocol.sasl import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)
from kafka.record import MemoryRecords, MemoryRecordsBuilder

from splitbrain.contracts.names import NodeName
from splitbrain.contracts.runtime import Address

UNKNOWN_TOPIC = 3
NOT_LEADER = 6
NOT_COORDINATOR = 16
_AUTHENTICATION_FAILED = 58
_FIRST_ID = 70
_ELSEWHERE = Address("elsewhere", 9092)
ANSWERS: dict[Any, Any] = {
    AddPartitionsToTxnRequest: AddPartitionsToTxnResponse,
    DeleteTopicsRequest: DeleteTopicsResponse,
    DescribeConfigsRequest: DescribeConfigsResponse,
    EndTxnRequest: EndTxnResponse,
    FindCoordinatorRequest: FindCoordinatorResponse,
    InitProducerIdRequest: InitProducerIdResponse,
    ApiVersionsRequest: ApiVersionsResponse,
    CreateTopicsRequest: CreateTopicsResponse,
    FetchRequest: FetchResponse,
    ListOffsetsRequest: ListOffsetsResponse,
    MetadataRequest: MetadataResponse,
    ProduceRequest: ProduceResponse,
    SaslAuthenticateRequest: SaslAuthenticateResponse,
    SaslHandshakeRequest: SaslHandshakeResponse,
}


class Shared(msgspec.Struct):
    """The cluster as its brokers know it; the values are a test's to change."""

    brokers: int
    topics: dict[str, int] = {}
    #: Node id of who leads each partition.
    leader: int = 1
    epoch: int = 4
    in_sync: tuple[int, ...] | None = None
    #: Node id of who coordinates all transactions, and ids given out so far.
    coordinator: int = 1
    ids: int = 0
    #: Where brokers say that they are, by number; nothing: somewhere else.
    advertised: dict[int, Address] = {}
    #: Configuration of topics besides what they were created with, and levels of features.
    configs: dict[str, str] = {}
    features: dict[str, int] = {}
    #: PLAIN's words of the only user; None: everybody is let in.
    words: bytes | None = None


class FakeBroker:
    #: Kinds of requests and of their answers.
    kinds: ClassVar[dict[Any, Any]] = ANSWERS

    def __init__(self, number: int, shared: Shared) -> None:
        self.number, self.shared = number, shared
        self.address = Address("127.0.0.1", 0)
        #: Names of requests, in order, and what was created.
        self.heard: list[str] = []
        self.created: list[Any] = []
        #: Value of each record; a batch each.
        self.log: list[bytes] = []
        self.high_watermark: int | None = None
        #: Records per fetch, and whether they come in one batch with those before them.
        self.fetch_count = 2
        self.has_large_batches = False
        #: Error and offset in answer to a produce; None: appended and acknowledged.
        self.produce_error: tuple[int, int] | None = None
        #: The same of the next produces, before all others; ends of transactions, likewise.
        self.produce_errors: list[tuple[int, int] | None] = []
        self.end_txn_errors: list[int] = []
        #: Batches as they came: producer's id, epoch, sequence, whether in a transaction.
        self.stamps: list[tuple[int, int, int, bool]] = []
        #: Transactions as they ended: epoch, whether it committed.
        self.ended: list[tuple[int, bool]] = []
        self.stable: int | None = None
        #: Producer and first offset of aborted transactions.
        self.aborted: list[tuple[int, int]] = []
        self.end_error = 0
        self.fetch_error = 0
        self.create_error = 0
        self.versions_max: dict[int, int] = {}
        #: Names of requests that are never answered, or with the end of the connection.
        self.silent: set[str] = set()
        self.broken: set[str] = set()
        #: Names of requests to what is awaited before they are answered.
        self.waits: dict[str, asyncio.Event] = {}
        self.damages = False
        #: Own view of who leads; None: the cluster's.
        self.believes: int | None = None

    @property
    def leads(self) -> bool:
        return (self.believes or self.shared.leader) == self.number

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                (size,) = struct.unpack(">i", await reader.readexactly(4))
                frame = await reader.readexactly(size)
                key, version, correlation = struct.unpack(">hhi", frame[:8])
                kind = next(kind for kind in self.kinds if key == kind.API_KEY)
                name = kind.__name__.removesuffix("Request")
                self.heard.append(name)
                if name in self.silent:
                    continue
                if name in self.broken:
                    break
                if name in self.waits:
                    await self.waits[name].wait()
                request = kind.decode(frame, version=version, header=True)
                answer = getattr(self, f"_{name.lower()}")(request, self.kinds[kind])
                answer.API_VERSION = version
                answer.with_header(correlation_id=correlation)
                writer.write(answer.encode(framed=True, header=True))
        except asyncio.IncompleteReadError:
            pass
        finally:
            writer.close()

    def _apiversions(self, request: Any, answer: Any) -> Any:
        keys = [
            answer.ApiVersion(
                api_key=key, min_version=0, max_version=self.versions_max.get(key, 30)
            )
            for key in (kind.API_KEY for kind in self.kinds)
        ]
        features = [
            answer.FinalizedFeatureKey(name=name, max_version_level=level, min_version_level=0)
            for name, level in self.shared.features.items()
        ]
        return answer(
            error_code=0,
            api_keys=keys,
            throttle_time_ms=0,
            supported_features=[],
            finalized_features_epoch=1,
            finalized_features=features,
            zk_migration_ready=False,
        )

    def _saslhandshake(self, request: Any, answer: Any) -> Any:
        return answer(error_code=0, mechanisms=[request.mechanism])

    def _saslauthenticate(self, request: Any, answer: Any) -> Any:
        is_known = bytes(request.auth_bytes) == self.shared.words
        code = 0 if is_known else _AUTHENTICATION_FAILED
        return answer(error_code=code, error_message=None, auth_bytes=b"")

    def _deletetopics(self, request: Any, answer: Any) -> Any:
        (name,) = request.topic_names
        del self.shared.topics[name]
        told = answer.DeletableTopicResult(name=name, error_code=0)
        return answer(throttle_time_ms=0, responses=[told])

    def _describeconfigs(self, request: Any, answer: Any) -> Any:
        (asked,) = request.resources
        kind = answer.DescribeConfigsResult
        (topic,) = [each for each in self.created if each.name == asked.resource_name]
        given = {row.name: row.value for row in topic.configs} | self.shared.configs
        rows = [
            kind.DescribeConfigsResourceResult(
                name=name,
                value=value,
                read_only=False,
                config_source=1,
                is_sensitive=False,
                synonyms=[],
            )
            for name, value in given.items()
        ]
        told = kind(
            error_code=0,
            error_message=None,
            resource_type=asked.resource_type,
            resource_name=asked.resource_name,
            configs=rows,
        )
        return answer(throttle_time_ms=0, results=[told])

    def _metadata(self, request: Any, answer: Any) -> Any:
        (name,) = [topic.name for topic in request.topics]
        assert not request.allow_auto_topic_creation
        count = self.shared.topics.get(name)
        ids = list(range(1, self.shared.brokers + 1))
        topic = answer.MetadataResponseTopic
        leader = self.believes or self.shared.leader
        partitions = [
            topic.MetadataResponsePartition(
                error_code=0,
                partition_index=number,
                leader_id=leader,
                leader_epoch=self.shared.epoch,
                replica_nodes=ids,
                isr_nodes=list(self.shared.in_sync or ids),
                offline_replicas=[],
            )
            for number in reversed(range(count or 0))
        ]
        code = UNKNOWN_TOPIC if count is None else 0
        found = topic(error_code=code, name=name, is_internal=False, partitions=partitions)
        brokers = [
            answer.MetadataResponseBroker(node_id=n, host=there.host, port=there.port, rack=None)
            for n in ids
            for there in [self.shared.advertised.get(n, _ELSEWHERE)]
        ]
        return answer(
            throttle_time_ms=0, brokers=brokers, cluster_id="c", controller_id=1, topics=[found]
        )

    def _createtopics(self, request: Any, answer: Any) -> Any:
        (topic,) = request.topics
        self.created.append(topic)
        if not self.create_error:
            self.shared.topics[topic.name] = len(topic.assignments) or topic.num_partitions
        told = answer.CreatableTopicResult(
            name=topic.name, error_code=self.create_error, error_message=None
        )
        return answer(throttle_time_ms=0, topics=[told])

    def _listoffsets(self, request: Any, answer: Any) -> Any:
        (topic,) = request.topics
        (asked,) = topic.partitions
        assert asked.timestamp == -1
        code = self.end_error or (0 if self.leads else NOT_LEADER)
        row = answer.ListOffsetsTopicResponse.ListOffsetsPartitionResponse(
            partition_index=asked.partition_index,
            error_code=code,
            timestamp=-1,
            offset=-1 if code else self._end(request.isolation_level),
            leader_epoch=-1 if code else self.shared.epoch - (self.believes is not None),
        )
        told = answer.ListOffsetsTopicResponse(name=topic.name, partitions=[row])
        return answer(throttle_time_ms=0, topics=[told])

    def _end(self, isolation: int) -> int:
        if isolation and self.stable is not None:
            return self.stable
        return len(self.log) if self.high_watermark is None else self.high_watermark

    def _fetch(self, request: Any, answer: Any) -> Any:
        (topic,) = request.topics
        (asked,) = topic.partitions
        assert asked.current_leader_epoch == self.shared.epoch
        start = asked.fetch_offset
        end = start + self.fetch_count
        if self.has_large_batches:
            records = batch(0, *self.log[:end])
        else:
            found = enumerate(self.log[start:end], start)
            records = b"".join(batch(offset, value) for offset, value in found)
        if self.damages:
            records = records[:-2] + b"\xff" + records[-1:]
        row = answer.FetchableTopicResponse.PartitionData(
            partition_index=asked.partition,
            error_code=self.fetch_error,
            high_watermark=len(self.log),
            last_stable_offset=len(self.log),
            log_start_offset=0,
            aborted_transactions=[
                answer.FetchableTopicResponse.PartitionData.AbortedTransaction(
                    producer_id=producer, first_offset=first
                )
                for producer, first in self.aborted
            ],
            records=records,
        )
        told = answer.FetchableTopicResponse(topic=topic.topic, partitions=[row])
        return answer(throttle_time_ms=0, error_code=0, session_id=0, responses=[told])

    def _produce(self, request: Any, answer: Any) -> Any:
        (topic,) = request.topic_data
        (data,) = topic.partition_data
        self.acks, self.timeout_ms = request.acks, request.timeout_ms
        error = self.produce_errors.pop(0) if self.produce_errors else self.produce_error
        code, offset = error or (0, len(self.log))
        batches: Any = MemoryRecords(bytes(data.records))
        for batch in batches:
            in_transaction = request.transactional_id is not None
            assert batch.is_transactional == in_transaction
            stamp = (batch.producer_id, batch.producer_epoch, batch.base_sequence)
            self.stamps.append((*stamp, in_transaction))
            if offset >= 0:
                self.log += [record.value for record in batch]
        row = answer.TopicProduceResponse.PartitionProduceResponse(
            index=data.index,
            error_code=code,
            base_offset=offset,
            log_append_time_ms=-1,
            log_start_offset=0,
        )
        told = answer.TopicProduceResponse(name=topic.name, partition_responses=[row])
        return answer(responses=[told], throttle_time_ms=0)

    def _findcoordinator(self, request: Any, answer: Any) -> Any:
        assert request.key_type == 1
        return answer(
            throttle_time_ms=0,
            error_code=0,
            error_message=None,
            node_id=self.shared.coordinator,
            host="elsewhere",
            port=9092,
        )

    def _initproducerid(self, request: Any, answer: Any) -> Any:
        code = self._code(request.transactional_id)
        self.shared.ids += not code
        return answer(
            throttle_time_ms=0,
            error_code=code,
            producer_id=_FIRST_ID,
            producer_epoch=self.shared.ids,
        )

    def _addpartitionstotxn(self, request: Any, answer: Any) -> Any:
        (topic,) = request.v3_and_below_topics
        kind = answer.AddPartitionsToTxnTopicResult
        row = kind.AddPartitionsToTxnPartitionResult(
            partition_index=topic.partitions[0],
            partition_error_code=self._code(request.v3_and_below_transactional_id),
        )
        told = kind(name=topic.name, results_by_partition=[row])
        return answer(throttle_time_ms=0, results_by_topic_v3_and_below=[told])

    def _endtxn(self, request: Any, answer: Any) -> Any:
        code = self._code(request.transactional_id)
        if self.end_txn_errors:
            code = self.end_txn_errors.pop(0)
        if not code:
            self.ended.append((request.producer_epoch, request.committed))
        raised = {"producer_id": _FIRST_ID, "producer_epoch": request.producer_epoch + 1}
        return answer(throttle_time_ms=0, error_code=code, **raised)

    def _code(self, transactional_id: str | None) -> int:
        elsewhere = transactional_id and self.shared.coordinator != self.number
        return NOT_COORDINATOR if elsewhere else 0


def batch(offset: int, *values: bytes) -> bytes:
    builder: Any = MemoryRecordsBuilder(magic=2, compression_type=0, batch_size=1 << 20)
    for value in values:
        builder.append(timestamp=0, key=value, value=value)
    builder.close()
    return struct.pack(">q", offset) + bytes(builder.buffer())[8:]


@asynccontextmanager
async def brokers(
    count: int = 1, topics: dict[str, int] | None = None, kind: type[FakeBroker] = FakeBroker
) -> AsyncIterator[Sequence[FakeBroker]]:
    """Brokers that listen; the first leads everything."""
    shared = Shared(count, dict(topics or {}))
    found = [kind(number, shared) for number in range(1, count + 1)]
    async with AsyncExitStack() as open_ones:
        for broker in found:
            server = await asyncio.start_server(broker.serve, "127.0.0.1", 0)
            await open_ones.enter_async_context(server)
            broker.address = Address("127.0.0.1", server.sockets[0].getsockname()[1])
        yield found


def targets(found: Sequence[FakeBroker]) -> dict[NodeName, Address]:
    return {NodeName(f"n{broker.number}"): broker.address for broker in found}
