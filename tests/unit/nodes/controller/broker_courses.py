"""Courses of a controller: random brokers, sound and not, ask what they like, and time passes.

A course is a list of actions; each is a list of numbers, out of which its kind takes what it needs.
The events of each step are told to the invariants (``broker_invariants``).
"""

import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import cycle
from typing import Any, Final, NamedTuple

from splitbrain.nodes.controller.basis.contacts import Contacts
from splitbrain.nodes.controller.basis.leaderships import PartitionAt
from splitbrain.nodes.controller.brokers.fencing import fence_stale
from splitbrain.nodes.controller.partitions.leader_elections import balance, elect_unclean
from splitbrain.nodes.controller.partitions.partition_change import Target, partition_change
from splitbrain.nodes.metadata.image import MetadataImage
from splitbrain.nodes.metadata.partitions import (
    LOST_DIRECTORY,
    UNASSIGNED_DIRECTORY,
    PartitionState,
)
from splitbrain.nodes.metadata.records import MetadataRecord
from splitbrain.nodes.metadata.serde import decode_record, encode_record
from splitbrain.nodes.wire.apis import ApiKey
from splitbrain.nodes.wire.families import brokers, partitions
from tests.unit.nodes.controller.led_cluster import SESSION, Cluster, directory, registration

BROKERS: Final = (1, 2, 3, 4)
#: Numbers of one action.
NUMBERS_PER_ACTION: Final = 12
Action = Sequence[int]


class Process(NamedTuple):
    """A process that was once this broker, and may go on as if it were."""

    broker_id: int
    life: int
    epoch: int


class Step(NamedTuple):
    """Effect of one action."""

    what: str
    before: MetadataImage
    after: MetadataImage
    request: Any
    answer: Any
    records: tuple[MetadataRecord, ...]
    next_offset: int
    now: int


class Course:
    """A cluster, and the processes around it."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        #: The last process of each broker comes last.
        self.processes: dict[int, list[Process]] = {each: [] for each in BROKERS}
        #: Older states of partitions, as slow leaders know them.
        self.seen: list[tuple[str, int, PartitionState]] = []
        #: A process that wanted to go goes on wanting it, as brokers do.
        self._leaving: set[Process] = set()
        self._life = 0

    def steps(self, actions: Iterable[Action]) -> Iterator[Step]:
        """Brokers start, some topics are made, and then what the actions say."""
        for broker_id in BROKERS:
            yield self.register(iter((broker_id - 1, 1)))
            if step := self.beat(iter((broker_id - 1, 1, 0, 5, 1, 1))):
                yield step
        for first in range(3):
            if step := self.add_topic(iter((2, first, first))):
                yield step
        for kind, *numbers in actions:
            if step := _KINDS[kind % len(_KINDS)](self, cycle(numbers)):
                yield step

    # --- kinds ---

    def register(self, numbers: Iterator[int]) -> Step:
        broker_id = _one_of(BROKERS, numbers)
        known = self.processes[broker_id]
        if known and next(numbers) % 4 == 0:
            life = known[-1].life
            # It does not name again what it lost.
            broker = self.cluster.image.brokers.get(broker_id)
            log_dirs = broker.log_dirs if broker else _directories(broker_id)
        else:
            self._life += 1
            life, log_dirs = self._life, _directories(broker_id)
        request = registration(broker_id, life, log_dirs=log_dirs)
        step = self._ask("register", ApiKey.BROKER_REGISTRATION, request, 4)
        if step.answer.error_code == 0:
            known.append(Process(broker_id, life, step.answer.broker_epoch))
        return step

    def beat(self, numbers: Iterator[int]) -> Step | None:
        process = self._process(numbers)
        if process is None:
            return None
        lag = (0, 0, 0, 1, 5, 1000)[next(numbers) % 6]
        wants = 2 if process in self._leaving else 0
        wants |= (1, 2, 3)[chosen] if (chosen := next(numbers) % 24) < 3 else 0
        if wants & 2:
            self._leaving.add(process)
        dirs = _directories(process.broker_id)
        request = brokers.BrokerHeartbeatRequest(
            broker_id=process.broker_id,
            broker_epoch=process.epoch,
            current_metadata_offset=max(-1, self.cluster.next_offset - 1 - lag),
            want_fence=bool(wants & 1),
            want_shut_down=bool(wants & 2),
            offline_log_dirs=dirs[:1] if next(numbers) % 24 == 0 else (),
            cordoned_log_dirs=dirs[1:] if next(numbers) % 4 == 0 else None,
        )
        return self._ask("beat", ApiKey.BROKER_HEARTBEAT, request, 2)

    def pass_time(self, numbers: Iterator[int]) -> Step:
        self.cluster.now += (SESSION // 9, SESSION // 9, SESSION // 3, SESSION + 1)[
            next(numbers) % 4
        ]
        before = self.cluster.image
        decision = fence_stale(self.cluster.view)
        return self._step("fence", before, None, decision and self.cluster.act(decision))

    def alter(self, numbers: Iterator[int]) -> Step | None:
        if not self.seen:
            return None
        if next(numbers) % 4 and (leads := self._with_leader()):
            topic_id, number, state = _one_of(leads, numbers)
            self.seen.append((topic_id, number, state))
        else:
            topic_id, number, state = _one_of(self.seen, numbers)
        chosen = next(numbers)
        # Some leaders propose what cannot be: others than replicas, or not themselves.
        wild = next(numbers) % 8 == 0
        isr = [
            each for at, each in enumerate(BROKERS if wild else state.replicas) if chosen >> at & 1
        ]
        isr = isr if wild else [*{*isr, state.leader}]
        members = tuple(self._member(each, numbers) for each in isr)
        request = partitions.AlterPartitionRequest(
            broker_id=state.leader,
            broker_epoch=self._epoch(state.leader, stale=next(numbers) % 8 == 0),
            topics=(
                partitions.TopicToAlter(
                    topic_id=topic_id,
                    partitions=(
                        partitions.PartitionToAlter(
                            partition_index=number,
                            leader_epoch=state.leader_epoch,
                            new_isr_with_epochs=members,
                            leader_recovery_state=0,
                            partition_epoch=state.partition_epoch,
                        ),
                    ),
                ),
            ),
        )
        return self._ask("alter", ApiKey.ALTER_PARTITION, request, 3)

    def elect(self, numbers: Iterator[int]) -> Step:
        request = partitions.ElectLeadersRequest(
            election_type=int(next(numbers) % 4 == 0), topic_partitions=None
        )
        return self._ask("elect", ApiKey.ELECT_LEADERS, request, 2)

    def elect_by_itself(self, numbers: Iterator[int]) -> Step:
        before = self.cluster.image
        decision = (balance, elect_unclean)[next(numbers) % 2](self.cluster.view)
        return self._step("periodic", before, None, decision and self.cluster.act(decision))

    def unregister(self, numbers: Iterator[int]) -> Step | None:
        if next(numbers) % 8:
            return None
        request = brokers.UnregisterBrokerRequest(broker_id=_one_of(BROKERS, numbers))
        return self._ask("unregister", ApiKey.UNREGISTER_BROKER, request, 0)

    def allocate(self, numbers: Iterator[int]) -> Step | None:
        process = self._process(numbers)
        if process is None:
            return None
        request = brokers.AllocateProducerIdsRequest(
            broker_id=process.broker_id, broker_epoch=process.epoch
        )
        return self._ask("allocate", ApiKey.ALLOCATE_PRODUCER_IDS, request, 0)

    def assign(self, numbers: Iterator[int]) -> Step | None:
        process = self._process(numbers)
        if process is None or not self.seen:
            return None
        topic_id, number, _ = _one_of(self.seen, numbers)
        where = _one_of((*_directories(process.broker_id), LOST_DIRECTORY), numbers)
        there = (brokers.PartitionNumber(partition_index=number),)
        request = brokers.AssignReplicasToDirsRequest(
            broker_id=process.broker_id,
            broker_epoch=process.epoch,
            directories=(
                brokers.DirectoryToAssign(
                    id=where, topics=(brokers.TopicToAssign(topic_id=topic_id, partitions=there),)
                ),
            ),
        )
        return self._ask("assign", ApiKey.ASSIGN_REPLICAS_TO_DIRS, request, 0)

    def change_controller(self, numbers: Iterator[int]) -> Step | None:
        if next(numbers) % 4:
            return None
        self.cluster.contacts = Contacts.of_new_leader(self.cluster.image, self.cluster.view.now)
        return self._step("new leader", self.cluster.image, None, None)

    def add_topic(self, numbers: Iterator[int]) -> Step | None:
        """On brokers that serve, as topics are made; some prefer any leader to none."""
        image = self.cluster.image
        serving = [
            each
            for each, broker in sorted(image.brokers.items())
            if not broker.fenced and not broker.in_controlled_shutdown
        ]
        if not serving:
            return None
        count, first = 1 + next(numbers) % len(serving), next(numbers)
        replicas = tuple((serving * 2)[first % len(serving) :][:count])
        name = f"t{len(image.topics.by_id)}"
        self.cluster.add_topic(
            replicas, name=name, directories=(UNASSIGNED_DIRECTORY,) * len(replicas)
        )
        if next(numbers) % 4 == 0:
            self.cluster.allow_unclean(name)
        return self._step("topic", image, None, None)

    def move(self, numbers: Iterator[int]) -> Step | None:
        """A partition begins to move, as a reassignment does it."""
        if not self.seen:
            return None
        topic_id, number, _ = _one_of(self.seen, numbers)
        image = self.cluster.image
        state = image.topics.partition(topic_id, number)
        comes, goes = _one_of(BROKERS, numbers), next(numbers)
        if (
            state is None
            or state.removing_replicas
            or state.adding_replicas
            or comes in state.replicas
            or comes not in image.brokers
        ):
            return None
        target = Target(
            replicas=(comes, *state.replicas),
            adding=(comes,),
            removing=(state.replicas[goes % len(state.replicas)],),
        )
        record = partition_change(
            image, PartitionAt(image.topics.by_id[topic_id], number, state), target
        )
        assert record is not None
        self.cluster.append([record])
        return self._step("move", image, None, None)

    # --- what they are made of ---

    def _ask(self, what: str, api_key: ApiKey, request: Any, version: int) -> Step:
        before = self.cluster.image
        decision = self.cluster.decide(api_key, request, version)
        self.cluster.append(decision.records)
        return self._step(what, before, request, decision)

    def _step(self, what: str, before: MetadataImage, request: Any, decision: Any) -> Step:
        written = () if decision is None else tuple(decision.records)
        for record in written:
            assert decode_record(encode_record(record)) == record
        if before.topics is not self.cluster.image.topics:
            self._see()
        return Step(
            what,
            before,
            self.cluster.image,
            request,
            None if decision is None else decision.answer,
            written,
            self.cluster.next_offset - len(written),
            self.cluster.now,
        )

    def _see(self) -> None:
        for topic_id, topic in self.cluster.image.topics.by_id.items():
            self.seen += [(topic_id, at, state) for at, state in enumerate(topic.partitions)]
        self.seen = self.seen[-40:]

    def _with_leader(self) -> list[tuple[str, int, PartitionState]]:
        return [
            (topic_id, number, state)
            for topic_id, topic in self.cluster.image.topics.by_id.items()
            for number, state in enumerate(topic.partitions)
            if state.leader >= 0
        ]

    def _process(self, numbers: Iterator[int]) -> Process | None:
        """Mostly a broker's last process, sometimes an earlier one."""
        known = self.processes[_one_of(BROKERS, numbers)]
        if not known:
            return None
        return known[-1 - (next(numbers) % 8 == 0 and len(known) > 1)]

    def _epoch(self, broker_id: int, *, stale: bool) -> int:
        known = self.processes.get(broker_id)
        if not known:
            return -1
        return known[-1 - (stale and len(known) > 1)].epoch

    def _member(self, broker_id: int, numbers: Iterator[int]) -> partitions.InSyncBroker:
        which = next(numbers) % 8
        epoch = -1 if which == 7 else self._epoch(broker_id, stale=which == 6)
        return partitions.InSyncBroker(broker_id=broker_id, broker_epoch=epoch)


#: Kinds of actions, and how often each comes beside the others.
_WEIGHTS: Final[Mapping[Callable[[Course, Iterator[int]], Step | None], int]] = {
    Course.register: 2,
    Course.beat: 8,
    Course.pass_time: 1,
    Course.alter: 3,
    Course.elect: 1,
    Course.elect_by_itself: 1,
    Course.unregister: 1,
    Course.allocate: 1,
    Course.assign: 1,
    Course.change_controller: 1,
    Course.add_topic: 1,
    Course.move: 1,
}
_KINDS: Final = tuple(kind for kind, weight in _WEIGHTS.items() for _ in range(weight))


def random_actions(seed: int, count: int) -> list[Action]:
    """Actions of one course."""
    source = random.Random(seed)
    return [
        [source.randrange(1 << 10) for _ in range(NUMBERS_PER_ACTION + 1)] for _ in range(count)
    ]


def _directories(broker_id: int) -> tuple[str, str]:
    return directory(broker_id, 0), directory(broker_id, 1)


def _one_of(choices: Sequence[Any], numbers: Iterator[int]) -> Any:
    return choices[next(numbers) % len(choices)]
