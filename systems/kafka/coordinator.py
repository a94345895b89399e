"""A consumer group's coordinator: which broker it is by its own word, and what it has committed.

Requests of a member go to one broker until it says that it is not the one. Versions are those of
Kafka 3.4 or, of members with epochs, of Kafka 4.0. Source: KIP-62, KIP-394, KIP-848; the message
definitions and ``GroupCoordinator``, ``GroupCoordinatorService`` of Kafka 3.4 and 4.3.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

import msgspec
from kafka.protocol.consumer.group import OffsetCommitRequest, OffsetFetchRequest
from kafka.protocol.metadata.find_coordinator import FindCoordinatorRequest

from splitbrain.contracts.log import LOGS
from splitbrain.contracts.names import NodeName
from splitbrain.systems.kafka.brokers import Brokers
from splitbrain.systems.kafka.errors import NO_ERROR, RefusedError, require_none
from splitbrain.systems.kafka.exchange import KafkaConnection
from splitbrain.systems.kafka.group_settings import OFFSETS_PARTITIONS
from splitbrain.systems.servers import Refused

#: Topic of committed offsets; who leads a group's partition of it coordinates the group.
OFFSETS: Final = "__consumer_offsets"
#: The coordinator is another, or none yet, or has yet to read what it has of its groups.
LOADING: Final = 14
_ELSEWHERE: Final = frozenset({LOADING, 15, 16})
#: Errors of a coordinator that looks at a commit before it appends it. The others leave it open,
#: above all ``NOT_COORDINATOR``, ``COORDINATOR_NOT_AVAILABLE`` and ``REQUEST_TIMED_OUT``: they are
#: answered, too, once the commit is in the log and waits for followers, and a later coordinator may
#: have it. Source: ``GroupMetadataManager.storeOffsets`` of Kafka 3.4, ``OffsetMetadataManager``,
#: ``CoordinatorRuntime`` and ``handleOperationException`` of Kafka 4.3.
CERTAINLY_NOT_COMMITTED: Final = frozenset(
    {
        3,  # UNKNOWN_TOPIC_OR_PARTITION
        12,  # OFFSET_METADATA_TOO_LARGE
        LOADING,
        22,  # ILLEGAL_GENERATION
        24,  # INVALID_GROUP_ID
        25,  # UNKNOWN_MEMBER_ID
        27,  # REBALANCE_IN_PROGRESS
        30,  # GROUP_AUTHORIZATION_FAILED
        69,  # GROUP_ID_NOT_FOUND
        82,  # FENCED_INSTANCE_ID
        110,  # FENCED_MEMBER_EPOCH
        113,  # STALE_MEMBER_EPOCH
    }
)
_FETCH_VERSION: Final = 7
_COMMIT_VERSION: Final = 7
#: Of members with epochs.
_VERSION_OF_EPOCHS: Final = 9
_FIND_VERSION: Final = 2
_OF_GROUPS: Final = 0
_NO_LEADER_EPOCH: Final = -1
_NO_GENERATION: Final = -1
#: Values of Java's whole numbers.
_WORD: Final = 1 << 32


class GroupKind(msgspec.Struct, frozen=True):
    """A group, the topic that it reads, and its protocol."""

    name: str
    topic: str
    protocol: str


class Standing(msgspec.Struct, frozen=True):
    """Name of a member and number of its generation or epoch, as its requests tell them."""

    member: str
    number: int
    has_epoch: bool


def partition_of(group: str) -> int:
    """Return a group's partition of the topic of offsets, by the hash of Java's strings."""
    number = 0
    for letter in group:
        number = (31 * number + ord(letter)) % _WORD
    # The least number has no counterpart above zero, and counts as zero.
    return min(number, _WORD - number) % (_WORD // 2) % OFFSETS_PARTITIONS


async def find_coordinator(connection: KafkaConnection, group: str) -> None:
    """Have a coordinator settled, whose own word then counts; raises RefusedError."""
    answer = await connection.ask(
        FindCoordinatorRequest(version=_FIND_VERSION, key=group, key_type=_OF_GROUPS)
    )
    require_none(answer.error_code)


async def committed_offsets(
    connection: KafkaConnection,
    group: GroupKind,
    logs: Sequence[str] = LOGS,
    standing: Standing | None = None,
    *,
    stable: bool = False,
) -> dict[str, int | None]:
    """Ask for committed offsets, as a member or as nobody; raises RefusedError.

    ``stable``: only where no transaction is open that would commit others (KIP-447).
    """
    partitions = [*map(int, logs)]
    if standing is None or not standing.has_epoch:
        topic = OffsetFetchRequest.OffsetFetchRequestTopic(
            name=group.topic, partition_indexes=partitions
        )
        answer = await connection.ask(
            OffsetFetchRequest(
                version=_FETCH_VERSION, group_id=group.name, topics=[topic], require_stable=stable
            )
        )
    else:
        kind = OffsetFetchRequest.OffsetFetchRequestGroup
        asked = kind(
            group_id=group.name,
            member_id=standing.member,
            member_epoch=standing.number,
            topics=[kind.OffsetFetchRequestTopics(name=group.topic, partition_indexes=partitions)],
        )
        whole = await connection.ask(
            OffsetFetchRequest(version=_VERSION_OF_EPOCHS, groups=[asked], require_stable=False)
        )
        (answer,) = whole.groups
    require_none(answer.error_code)
    found: dict[str, int | None] = {}
    for row in answer.topics[0].partitions:
        require_none(row.error_code)
        found[str(row.partition_index)] = None if row.committed_offset < 0 else row.committed_offset
    return found


async def commit_as_nobody(
    connection: KafkaConnection, group: GroupKind, log: str, offset: int
) -> None:
    """Commit an offset of a group that has no members; raises RefusedError."""
    answer = await connection.ask(
        _commit_of(group, {log: offset}, Standing("", _NO_GENERATION, has_epoch=False))
    )
    require_none(answer.topics[0].partitions[0].error_code)


def _commit_of(group: GroupKind, offsets: Mapping[str, int], standing: Standing) -> Any:
    kind = OffsetCommitRequest.OffsetCommitRequestTopic
    rows = [
        kind.OffsetCommitRequestPartition(
            partition_index=int(log),
            committed_offset=offset,
            committed_leader_epoch=_NO_LEADER_EPOCH,
            committed_metadata="",
        )
        for log, offset in offsets.items()
    ]
    return OffsetCommitRequest(
        version=_VERSION_OF_EPOCHS if standing.has_epoch else _COMMIT_VERSION,
        group_id=group.name,
        generation_id_or_member_epoch=standing.number,
        member_id=standing.member,
        group_instance_id=None,
        topics=[kind(name=group.topic, partitions=rows)],
    )


class Coordinator:
    """Way of one client to the broker that coordinates its group.

    A join may take longer than an operation, so that a member has connections of its own.
    """

    def __init__(self, anybody: Brokers, own: Brokers, group: GroupKind) -> None:
        self._anybody, self._own, self.group = anybody, own, group
        #: Broker that is asked; None: the next question finds it out.
        self.node: NodeName | None = None

    async def told(self, timeout_s: float) -> tuple[NodeName, dict[str, int | None]]:
        """Ask whoever says that it is the coordinator for all offsets; raises Refused."""
        try:
            self.node, found = await self._anybody.first(
                lambda connection: committed_offsets(connection, self.group),
                timeout_s,
                before=self.node,
            )
        except Refused:
            self.node = None
            with suppress(Refused):
                await self._anybody.first(
                    lambda connection: find_coordinator(connection, self.group.name), timeout_s
                )
            raise
        return self.node, found

    async def settled(self, timeout_s: float) -> NodeName:
        """Return the coordinator, by its own word; raises Refused."""
        return self.node or (await self.told(timeout_s))[0]

    async def offsets(self, logs: Sequence[str], standing: Standing) -> dict[str, int | None]:
        """Ask the very broker that told a member its standing: another may know less."""
        try:
            return await committed_offsets(await self._connection(), self.group, logs, standing)
        except RefusedError as error:
            self._note(error.code)
            raise

    async def ask(self, request: Any) -> Any:
        """Return the answer to a request; raises RefusedError where the broker is not the one."""
        answer = await (await self._connection()).ask(request)
        self._note(answer.error_code)
        if answer.error_code in _ELSEWHERE:
            raise RefusedError(answer.error_code)
        return answer

    async def commit(self, standing: Standing, offsets: Mapping[str, int]) -> frozenset[int]:
        """Commit offsets, with one request; returns the codes that it is answered with."""
        connection = await self._connection()
        answer = await connection.ask(_commit_of(self.group, offsets, standing))
        codes = frozenset(row.error_code for row in answer.topics[0].partitions)
        for code in codes:
            self._note(code)
        return codes

    async def _connection(self) -> KafkaConnection:
        if self.node is None:
            raise Refused("no-coordinator")
        return await self._own.connection(self.node)

    def forget(self) -> None:
        """Close the member's connections: a late answer must never meet a later request."""
        self._own.close()
        self.node = None

    def _note(self, code: int) -> None:
        if code != NO_ERROR and code in _ELSEWHERE:
            self.node = None
