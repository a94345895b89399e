"""Apache Kafka, and what speaks its protocol: sets whose elements are records, and logs.

Promised is that no record that was acknowledged is lost, and none is there twice: not that a read
sees the newest. A leader that was replaced and does not know it yet answers readers, too; nothing
is lost for that: at the end the brokers must agree on leaders before anything is read. Brokers
are known by the addresses that the harness has, never by those that they advertise: each is asked
whether it leads.
"""

import asyncio
import time
import uuid
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Final

from splitbrain.contracts.errors import HarnessError, UsageError, in_one_line
from splitbrain.contracts.groups import GROUPS
from splitbrain.contracts.log import LOG, LOGS
from splitbrain.contracts.names import NodeName
from splitbrain.contracts.runtime import Address
from splitbrain.contracts.share_groups import SHARE_GROUPS
from splitbrain.contracts.system import AllowedAnomaly, LeaderView, ReadsSpeakFor, Tempo
from splitbrain.contracts.transforms import TRANSFORM
from splitbrain.systems.compose_file.drivers.driver import Driver
from splitbrain.systems.kafka.access import OPEN
from splitbrain.systems.kafka.client import KafkaClient, Topic
from splitbrain.systems.kafka.cluster import USUAL_TOPIC, count_of
from splitbrain.systems.kafka.coordinator import (
    OFFSETS,
    GroupKind,
    committed_offsets,
    find_coordinator,
    partition_of,
)
from splitbrain.systems.kafka.errors import (
    NO_ERROR,
    NOT_CONTROLLER,
    TOPIC_ALREADY_EXISTS,
    NotKafkaError,
    RefusedError,
    error_name,
)
from splitbrain.systems.kafka.exchange import (
    READ_COMMITTED,
    READ_UNCOMMITTED,
    End,
    KafkaConnection,
    Partition,
    View,
    opened,
)
from splitbrain.systems.kafka.group_settings import (
    APART,
    CLASSIC,
    GROUP_PROTOCOL,
    OF_TRANSFORMS,
    OFFSETS_GO,
    OFFSETS_READ,
    PLAIN,
    SESSION_MS,
)
from splitbrain.systems.kafka.groups import GroupClient
from splitbrain.systems.kafka.producer import (
    TRANSACTION_TIMEOUT_MS,
    TRANSACTION_VERSIONS,
    ProducerKind,
)
from splitbrain.systems.kafka.properties import CLIENT_RACK, OWN_RACK, RACKS
from splitbrain.systems.kafka.share_groups import ShareGroupClient
from splitbrain.systems.kafka.share_sessions import begin_at_the_start
from splitbrain.systems.kafka.transforms import TransformClient
from splitbrain.systems.questions import not_yet

_TIMEOUT_S: Final = 5.0
_CREATE_TIMEOUT_MS: Final = 4000
_REPLICAS_MAX: Final = 3
_ACKS: Final = {"all": -1, "1": 1}
_IDEMPOTENCE: Final = "enable.idempotence"
_TRANSACTIONS: Final = "transaction.version"
_TRANSACTION_STATE: Final = "__transaction_state"
_LATE_ENDS: Final = "late.ends"
_LATE_RECORDS: Final = "late.records"
_CHOICES: Final = {
    "acks": ("all", "1"),
    _IDEMPOTENCE: ("false", "true"),
    _TRANSACTIONS: TRANSACTION_VERSIONS,
    _LATE_ENDS: ("no", "yes"),
    _LATE_RECORDS: ("no", "yes"),
    **OF_TRANSFORMS,
    CLIENT_RACK: RACKS,
}
#: After its timeout a transaction is ended within ten seconds, by default, of a coordinator's time;
#: as long again for one that has just become it.
_TRANSACTIONS_END_S: Final = TRANSACTION_TIMEOUT_MS / 1000 + 2 * 10
_PARTITIONS_MAX: Final = 1000
_GROUP: Final = "splitbrain-group"
_CLIENTS: Final = {GROUPS: GroupClient, TRANSFORM: TransformClient, SHARE_GROUPS: ShareGroupClient}
_NOBODY: Final = LeaderView(None, None)
#: Members whose clients are gone have a session from whoever coordinates them now.
_MEMBERS_GONE_S: Final = 2 * SESSION_MS / 1000


class KafkaDriver(Driver):
    """Sets and logs in a topic, which it makes where there is none."""

    name = "kafka"
    workloads: Sequence[str] = ("set", LOG)
    settings: Mapping[str, str] = {
        "acks": "all or 1; by default all",
        _IDEMPOTENCE: "true or false: whether producers of a log send again; by default false",
        _TRANSACTIONS: "2 or 1, as the cluster has it; by default 2",
        _LATE_ENDS: "yes or no: whether a request that ends a transaction comes once more, in the "
        "next one; by default no",
        _LATE_RECORDS: "yes or no: whether the last record of a transaction that is aborted comes "
        "behind its end; by default no",
        "topic": "made unless it is there; by default splitbrain",
        "partitions": "of the topic; by default 12",
        "replicas": "of a topic that is made; by default one at each broker, at most 3",
    }
    reads_speak_for: ReadsSpeakFor = "converged"
    allowed: Sequence[AllowedAnomaly] = (
        AllowedAnomaly(
            "set-full", "stale", "a leader that was replaced and does not know it answers, too"
        ),
    )
    #: A broker is gone for its controller after ``broker.session.timeout.ms``, 9 s by default.
    tempo = Tempo(ready_s=180, converged_s=90, started_s=45, resumed_s=45, notices_s=9)

    def __init__(
        self, options: Mapping[str, str], environment: Mapping[str, str], workload: str
    ) -> None:
        super().__init__(options, environment, workload)
        chosen = {name: options.get(name, choices[0]) for name, choices in _CHOICES.items()}
        for name, choices in _CHOICES.items():
            if chosen[name] not in choices:
                raise UsageError(
                    f"--setting {name} cannot be {chosen[name]!r}", f"Choose {' or '.join(choices)}"
                )
        producers = ProducerKind(
            is_idempotent=chosen[_IDEMPOTENCE] == "true",
            transaction_version=chosen[_TRANSACTIONS],
            has_late_ends=chosen[_LATE_ENDS] == "yes",
            has_late_records=chosen[_LATE_RECORDS] == "yes",
            commits_offsets_apart=chosen[OFFSETS_GO] == APART,
            reads_offsets_plainly=chosen[OFFSETS_READ] == PLAIN,
        )
        of_offsets = workload in _CLIENTS
        usual = len(LOGS) if of_offsets else 12
        partitions = count_of(options, "partitions", _PARTITIONS_MAX) or usual
        if (workload == LOG or of_offsets) and partitions < len(LOGS):
            raise UsageError(
                f"--setting partitions={partitions} leaves no place for {len(LOGS)} logs",
                f"Give {len(LOGS)} or more",
            )
        self._topic = Topic(
            options.get("topic") or USUAL_TOPIC,
            partitions,
            _ACKS[chosen["acks"]],
            producers,
            reads_committed=workload in (LOG, TRANSFORM),
            reads_in_rack=chosen[CLIENT_RACK] == OWN_RACK,
        )
        protocol = options.get(GROUP_PROTOCOL, CLASSIC)
        self._group = GroupKind(_GROUP, self._topic.name, protocol) if of_offsets else None
        self._workload = workload
        #: Transactional ids that no client has: the next one to take it ends what was left open.
        self._free_ids: list[str] = []
        self.access = OPEN
        self._settled_at: float | None = None
        self._replicas = count_of(options, "replicas", _REPLICAS_MAX)

    async def prepare(self, there: Address) -> None:
        """Make the topic; raises HarnessError unless this broker knows it, with its leaders."""
        async with asyncio.timeout(_TIMEOUT_S):
            try:
                async with opened(there, self.access) as connection:
                    await connection.require_versions()
                    view = await connection.view(self._topic.name)
                    self._require_brokers(view)
                    if view.partitions is None:
                        await self._create([*view.brokers])
                        view = await connection.view(self._topic.name)
                    if self._group:
                        await find_coordinator(connection, self._group.name)
                        if self._workload == SHARE_GROUPS:
                            await begin_at_the_start(connection, self._group.name)
            except RefusedError as error:
                raise _unfit(f"it names no coordinator of groups yet: {error.name}") from error
            except EOFError as error:
                raise _unfit(
                    "it ends the connection, as no plain listener of Kafka does"
                ) from error
            except NotKafkaError as error:
                raise _unfit(str(error) or "it does not answer as Kafka does") from error
        self._require_partitions(view.partitions)

    def _require_brokers(self, view: View) -> None:
        known, asked = len(view.brokers), len(self.targets)
        if known < asked:
            raise _unfit(f"it knows {known} brokers, and clients are to ask {asked}")
        if known > asked:
            raise _unfit(
                f"it knows {known} brokers, and --port names {asked}. Name each, since a partition "
                "is asked at the broker that leads it"
            )

    async def _create(self, brokers: Sequence[int]) -> None:
        replicas = self._replicas or min(len(brokers), _REPLICAS_MAX)
        partitions = self._topic.partitions
        # So that a plan can name the brokers of a partition: the first has the first three.
        turns = [[*brokers[n:], *brokers[:n]][:replicas] for n in range(len(brokers))]
        places: int | list[list[int]] = replicas
        if replicas <= len(brokers):
            places = [turns[number % len(turns)] for number in range(partitions)]
        code = NOT_CONTROLLER
        for node in self.targets:
            async with self._connected(node, _TIMEOUT_S) as connection:
                code = await connection.create(
                    self._topic.name, partitions, places, _CREATE_TIMEOUT_MS
                )
            if code != NOT_CONTROLLER:
                break
        if code not in (NO_ERROR, TOPIC_ALREADY_EXISTS):
            raise _unfit(f"it does not make the topic {self._topic.name!r}: {error_name(code)}")

    def _require_partitions(self, partitions: Sequence[Partition] | None) -> None:
        name, wanted = self._topic.name, self._topic.partitions
        if partitions is None:
            raise _unfit(f"it does not know the topic {name!r} yet")
        if len(partitions) != wanted:
            raise _unfit(
                f"the topic {name!r} has {len(partitions)} partitions, and not {wanted}. "
                f"Give --setting partitions={len(partitions)}"
            )
        if idle := [row.number for row in partitions if row.leader < 0]:
            raise _unfit(f"nobody leads the partitions {idle} of the topic {name!r} yet")

    def open_client(self, node: NodeName, there: Address) -> KafkaClient:
        """Return a fresh client, which asks this node first."""
        targets = {**self.targets, node: there}
        if self._group:
            kind = _CLIENTS[self._workload]
            return kind(node, targets, self._topic, self._group, self.access)
        own_id = self._free_ids.pop(0) if self._free_ids else f"splitbrain-{uuid.uuid4()}"
        return KafkaClient(node, targets, self._topic, own_id, self._free_ids.append, self.access)

    def __getstate__(self) -> dict[str, object]:
        """Return what another process gets: it takes ids of its own."""
        return {**self.__dict__, "_free_ids": []}

    @property
    def names_leaders(self) -> bool:
        """Whether one broker leads all, since there is one partition."""
        return self._topic.partitions == 1

    async def leader(self, timeout_s: float) -> LeaderView:
        """Return who says that it leads the one partition; of several the newest."""
        return await self.leader_of_first(timeout_s) if self.names_leaders else _NOBODY

    async def leader_of_first(self, timeout_s: float) -> LeaderView:
        """Return who says that it leads the first partition, or coordinates the group."""
        return await self._leader_of(*self.first, timeout_s)

    @property
    def first(self) -> tuple[str, int]:
        """The first partition, or the one of the topic of offsets that the group is in."""
        return (OFFSETS, partition_of(self._group.name)) if self._group else (self._topic.name, 0)

    async def controllers(
        self, timeout_s: float, *, has_zookeeper: bool
    ) -> dict[NodeName, tuple[int, int]]:
        """Return epoch and number of the node that decides about metadata, as each broker has it.

        A number below 0 is nobody. Brokers that do not answer, or refuse, are left out.
        """

        async def asked(node: NodeName) -> tuple[int, int] | None:
            with suppress(OSError, EOFError, NotKafkaError, RefusedError):
                async with self._connected(node, timeout_s) as connection:
                    if has_zookeeper:
                        return 0, (await connection.view(self._topic.name)).controller
                    return await connection.controller()
            return None

        told = await asyncio.gather(*map(asked, self.targets))
        return {node: each for node, each in zip(self.targets, told, strict=True) if each}

    async def _leader_of(self, topic: str, partition: int, timeout_s: float) -> LeaderView:
        """Return who says that it leads a partition; of several the newest."""
        ends = await asyncio.gather(
            *(self._end_at(node, topic, partition, timeout_s) for node in self.targets)
        )
        found = [
            LeaderView(node, end.epoch)
            for node, end in zip(self.targets, ends, strict=True)
            if end is not None
        ]
        return max(found, key=lambda view: view.epoch or 0, default=_NOBODY)

    async def _end_at(
        self,
        node: NodeName,
        topic: str,
        partition: int,
        timeout_s: float,
        isolation: int = READ_UNCOMMITTED,
    ) -> End | None:
        with suppress(OSError, EOFError, NotKafkaError, RefusedError):
            async with self._connected(node, timeout_s) as connection:
                return await connection.end(topic, partition, isolation)
        return None

    async def _require_no_transactions(self) -> None:
        """Raise HarnessError while transactions are open that may be."""
        if self._settled_at is None:
            self._settled_at = time.monotonic()
        may_be_open = time.monotonic() - self._settled_at < _TRANSACTIONS_END_S
        for log in LOGS if may_be_open else ():
            for node in self.targets:
                high, stable = [
                    await self._end_at(node, self._topic.name, int(log), _TIMEOUT_S, isolation)
                    for isolation in (READ_UNCOMMITTED, READ_COMMITTED)
                ]
                if high and stable and stable.offset < high.offset:
                    raise _unfit(f"a transaction is open at offset {stable.offset} of log {log}")

    async def recovered(self) -> None:
        """Return when all brokers name the same leaders, and all replicas are in sync.

        Of the clients' topic, and of those that coordinators keep, once they are made.
        """
        for topic in (self._topic.name, OFFSETS, _TRANSACTION_STATE):
            await self._require_in_sync(topic)

    async def _require_in_sync(self, topic: str) -> None:
        views = await asyncio.gather(*(self._partitions_at(node, topic) for node in self.targets))
        first = views[0]
        for node, view in zip(self.targets, views, strict=True):
            if not view and topic in (self._topic.name, OFFSETS if self._group else None):
                raise _unfit(f"{node} does not know the topic {topic!r}")
            for row in view:
                place = f"partition {row.number} of {topic}"
                if row.leader < 0:
                    raise _unfit(f"{node} knows nobody that leads {place}")
                if row.in_sync != row.replicas:
                    in_sync = f"{len(row.in_sync)} of {len(row.replicas)} replicas are in sync"
                    raise _unfit(f"{node}: {in_sync} of {place}")
            if view != first:
                raise _unfit(f"{node} and {next(iter(self.targets))} name different leaders")

    async def converged(self) -> None:
        """Return when that is so, and no transaction of the load is open, or member left."""
        await self.recovered()
        if self._topic.reads_committed:
            await self._require_no_transactions()
        if self._group:
            await self._require_no_members(self._group)

    async def _require_no_members(self, group: GroupKind) -> None:
        """Raise HarnessError unless one broker coordinates, and no client of the load is left."""
        found: list[NodeName] = []
        for node in self.targets:
            try:
                async with self._connected(node, _TIMEOUT_S) as connection:
                    await committed_offsets(connection, group)
            except RefusedError:
                continue
            except (OSError, EOFError, NotKafkaError) as error:
                raise _unfit(f"{node} does not answer: {in_one_line(error)}") from error
            found.append(node)
        if len(found) != 1:
            raise _unfit(f"{' and '.join(found) or 'nobody'} would coordinate the group")
        if self._settled_at is None:
            self._settled_at = time.monotonic()
        has_members = self._workload != TRANSFORM
        if has_members and time.monotonic() - self._settled_at < _MEMBERS_GONE_S:
            raise _unfit("members that are gone may be in the group yet")

    async def _partitions_at(self, node: NodeName, topic: str) -> Sequence[Partition]:
        """Return a topic's partitions, by one broker; none of a topic that it does not know."""
        try:
            async with self._connected(node, _TIMEOUT_S) as connection:
                return (await connection.view(topic)).partitions or ()
        except (OSError, EOFError, NotKafkaError) as error:
            raise _unfit(f"{node} does not answer: {in_one_line(error)}") from error

    @asynccontextmanager
    async def _connected(self, node: NodeName, timeout_s: float) -> AsyncGenerator[KafkaConnection]:
        async with (
            asyncio.timeout(timeout_s),
            opened(self.targets[node], self.access) as connection,
        ):
            yield connection


def _unfit(problem: str) -> HarnessError:
    return not_yet("kafka", "use the brokers", problem)
