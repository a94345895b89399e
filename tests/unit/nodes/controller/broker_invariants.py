"""Invariants of brokers and partitions after each step of a course, whatever was asked.

Each invariant is a function that gives what is wrong, by a step and by what the witness remembers.
The witness knows requests, answers and images; it never asks a controller what it thinks.
"""

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Final

from splitbrain.nodes.metadata.image import MetadataImage
from splitbrain.nodes.metadata.partitions import (
    LOST_DIRECTORY,
    UNASSIGNED_DIRECTORY,
    PartitionState,
)
from splitbrain.nodes.metadata.records import (
    BrokerRegistrationChangeRecord,
    PartitionChangeRecord,
    RegisterBrokerRecord,
)
from tests.unit.nodes.controller.broker_courses import Step
from tests.unit.nodes.controller.led_cluster import SESSION


class Witness:
    """Events so far, and their problems."""

    def __init__(self) -> None:
        #: When each incarnation was last heard of, as its session counts.
        self.heard: dict[tuple[int, int], int] = {}
        #: How far each broker said to be, since its last change.
        self.reported: dict[int, int] = {}
        #: Offset that others must have applied before a broker may go.
        self.leaving: dict[int, int] = {}
        self.registered_at: dict[int, int] = {}
        self.ids_given: int = 0

    def problems(self, step: Step) -> list[str]:
        """Names of the invariants that the step breaks."""
        broken = [name for name, check in INVARIANTS.items() if any(check(self, step))]
        self._remember(step)
        return broken

    def _remember(self, step: Step) -> None:
        if step.what == "new leader":
            self.heard = {
                (each, broker.broker_epoch): step.now
                for each, broker in step.after.brokers.items()
                if not broker.fenced
            }
            self.reported, self.leaving = {}, {}
        if step.what == "beat":
            self._remember_heartbeat(step)
        if step.what == "allocate" and step.answer.error_code == 0:
            self.ids_given = step.answer.producer_id_start + step.answer.producer_id_len
        for at, record in enumerate(step.records):
            if isinstance(record, RegisterBrokerRecord):
                self.registered_at[record.broker_id] = step.next_offset + at
                self.reported.pop(record.broker_id, None)
                self.leaving.pop(record.broker_id, None)
            elif isinstance(record, BrokerRegistrationChangeRecord):
                self.reported.pop(record.broker_id, None)
                if record.fenced == 1:
                    self.leaving.pop(record.broker_id, None)

    def _remember_heartbeat(self, step: Step) -> None:
        broker_id = step.request.broker_id
        self.heard[broker_id, step.request.broker_epoch] = step.now
        if step.answer.error_code:
            return
        self.reported[broker_id] = step.request.current_metadata_offset
        begins = [
            each
            for each in step.records
            if isinstance(each, BrokerRegistrationChangeRecord) and each.in_controlled_shutdown
        ]
        if begins:
            self.leaving.setdefault(broker_id, step.next_offset + len(step.records) - 1)


Check = Callable[[Witness, Step], Iterator[str]]


def _partitions(image: MetadataImage) -> Iterator[tuple[str, int, PartitionState]]:
    for topic in image.topics.by_id.values():
        for number, state in enumerate(topic.partitions):
            yield topic.topic_id, number, state


def _changes(step: Step) -> Iterator[tuple[PartitionState, PartitionState, bool]]:
    """Partitions before and after, and whether the topic prefers any leader to none."""
    for topic_id, number, after in _partitions(step.after):
        before = step.before.topics.partition(topic_id, number)
        if before is not None and before is not after:
            name = step.after.topics.by_id[topic_id].name
            allowed = "unclean.leader.election.enable" in step.after.configs.get((2, name), {})
            yield before, after, allowed


def _serves(image: MetadataImage, broker_id: int) -> bool:
    broker = image.brokers.get(broker_id)
    return broker is not None and not broker.fenced and not broker.in_controlled_shutdown


def leader_is_in_sync(_: Witness, step: Step) -> Iterator[str]:
    for _topic, _number, state in _partitions(step.after):
        if state.leader >= 0 and state.leader not in state.isr:
            yield f"{state}"


def leader_serves(_: Witness, step: Step) -> Iterator[str]:
    for _topic, _number, state in _partitions(step.after):
        if state.leader >= 0 and not _serves(step.after, state.leader):
            yield f"{state}"


def leader_has_its_directory(_: Witness, step: Step) -> Iterator[str]:
    for _topic, _number, state in _partitions(step.after):
        if state.leader in step.after.brokers and state.leader in state.replicas:
            lies = state.directories[state.replicas.index(state.leader)]
            if not _is_online(step.after, state.leader, lies):
                yield f"{state}"


def isr_is_sound(_: Witness, step: Step) -> Iterator[str]:
    for _topic, _number, state in _partitions(step.after):
        members = set(state.isr)
        if not members or len(members) < len(state.isr) or not members <= set(state.replicas):
            yield f"{state}"


def who_is_dead_is_in_sync_alone(_: Witness, step: Step) -> Iterator[str]:
    for _topic, _number, state in _partitions(step.after):
        if len(state.isr) > 1 and not all(_serves(step.after, each) for each in state.isr):
            yield f"{state}"


def who_can_lead_does(_: Witness, step: Step) -> Iterator[str]:
    """A leader is lost only where nobody in sync can lead; whoever is unfenced leads such ones."""
    for topic_id, number, state in _partitions(step.after):
        before = step.before.topics.partition(topic_id, number)
        if before is None or state.leader >= 0:
            continue
        for member in state.isr:
            known = step.before.brokers.get(member)
            is_news = before.leader >= 0 or known is None or known.fenced
            lies = state.directories[state.replicas.index(member)]
            is_able = _serves(step.after, member) and _is_online(step.after, member, lies)
            if is_news and is_able:
                yield f"{state}"


def _is_online(image: MetadataImage, broker_id: int, directory: str) -> bool:
    if directory == LOST_DIRECTORY:
        return False
    return directory == UNASSIGNED_DIRECTORY or directory in image.brokers[broker_id].log_dirs


def epochs_tell_changes(_: Witness, step: Step) -> Iterator[str]:
    for before, after, _allowed in _changes(step):
        if after.partition_epoch <= before.partition_epoch:
            yield f"{before} {after}"
        if after.leader_epoch < before.leader_epoch:
            yield f"{before} {after}"
        if after.leader != before.leader and after.leader_epoch == before.leader_epoch:
            yield f"{before} {after}"


def nothing_is_lost_unasked(_: Witness, step: Step) -> Iterator[str]:
    """A leader from outside the ISR is taken only where that is allowed, and has to recover."""
    requested = step.what == "elect" and step.request.election_type == 1
    for before, after, allowed in _changes(step):
        if after.leader >= 0 and after.leader not in before.isr:
            joined = step.what == "alter"
            if not joined and not (requested or allowed):
                yield f"{before} {after}"
            if not joined and after.leader_recovery_state != 1:
                yield f"{before} {after}"


def proposals_are_of_the_present(_: Witness, step: Step) -> Iterator[str]:
    if step.what != "alter" or not step.records:
        return
    (topic,) = step.request.topics
    (proposal,) = topic.partitions
    before = step.before.topics.partition(topic.topic_id, proposal.partition_index)
    if before is None or proposal.partition_epoch != before.partition_epoch:
        yield "of an older partition epoch"
    elif proposal.leader_epoch != before.leader_epoch or step.request.broker_id != before.leader:
        yield "not of the leader"


def who_joins_is_alive_and_the_same(_: Witness, step: Step) -> Iterator[str]:
    if step.what != "alter" or not step.records:
        return
    (topic,) = step.request.topics
    for member in topic.partitions[0].new_isr_with_epochs:
        broker = step.before.brokers.get(member.broker_id)
        if broker is None or not _serves(step.before, member.broker_id):
            yield "dead"
        elif member.broker_epoch not in (-1, broker.broker_epoch):
            yield "of an earlier incarnation"


def the_dead_ask_nothing(_: Witness, step: Step) -> Iterator[str]:
    """A request of an earlier incarnation is refused and writes nothing."""
    if step.what not in {"beat", "alter", "allocate", "assign"}:
        return
    broker = step.before.brokers.get(step.request.broker_id)
    is_present = broker is not None and broker.broker_epoch == step.request.broker_epoch
    if not is_present and (step.records or step.answer.error_code == 0):
        yield f"{step.request}"


def one_process_per_broker(witness: Witness, step: Step) -> Iterator[str]:
    for record in step.records:
        if not isinstance(record, RegisterBrokerRecord):
            continue
        before = step.before.brokers.get(record.broker_id)
        if before is None or before.incarnation_id == record.incarnation_id:
            continue
        heard = witness.heard.get((record.broker_id, before.broker_epoch))
        if heard is not None and step.now - heard <= SESSION:
            yield f"{record}"


def each_incarnation_has_its_epoch(_: Witness, step: Step) -> Iterator[str]:
    for broker_id, after in step.after.brokers.items():
        before = step.before.brokers.get(broker_id)
        if before is None:
            continue
        is_same = before.incarnation_id == after.incarnation_id
        if is_same != (before.broker_epoch == after.broker_epoch):
            yield f"{after}"


def who_is_unfenced_knows_itself(witness: Witness, step: Step) -> Iterator[str]:
    for broker_id, after in step.after.brokers.items():
        before = step.before.brokers.get(broker_id)
        if before is None or after.fenced or not before.fenced:
            continue
        beat = step.request if step.what == "beat" else None
        own = witness.registered_at[broker_id]
        if beat is None or beat.broker_id != broker_id or beat.current_metadata_offset < own:
            yield f"{after}"


def others_know_before_a_leader_goes(witness: Witness, step: Step) -> Iterator[str]:
    if step.what != "beat" or not step.answer.should_shut_down:
        return
    broker_id = step.request.broker_id
    awaited = witness.leaving.get(broker_id)
    if awaited is None:
        return
    for other, broker in step.before.brokers.items():
        is_asked = other != broker_id and other not in witness.leaving and not broker.fenced
        if is_asked and witness.reported.get(other, -1) < awaited:
            yield f"{other}"


def ids_are_given_once(witness: Witness, step: Step) -> Iterator[str]:
    given = step.what == "allocate" and step.answer.error_code == 0
    if given and step.answer.producer_id_start < witness.ids_given:
        yield f"{step.answer}"


def time_changes_what_it_is_for(_: Witness, step: Step) -> Iterator[str]:
    """One broker is fenced at a time; periodic elections leave every broker as it is."""
    fenced = [
        each
        for each in step.records
        if isinstance(each, BrokerRegistrationChangeRecord) and each.fenced == 1
    ]
    if step.what == "fence" and len(fenced) != bool(step.records):
        yield f"{step.records}"
    if step.what == "periodic" and not all(
        isinstance(each, PartitionChangeRecord) for each in step.records
    ):
        yield f"{step.records}"


INVARIANTS: Final[Mapping[str, Check]] = MappingProxyType(
    {
        check.__name__: check
        for check in (
            leader_is_in_sync,
            leader_serves,
            leader_has_its_directory,
            isr_is_sound,
            who_is_dead_is_in_sync_alone,
            who_can_lead_does,
            epochs_tell_changes,
            nothing_is_lost_unasked,
            proposals_are_of_the_present,
            who_joins_is_alive_and_the_same,
            the_dead_ask_nothing,
            one_process_per_broker,
            each_incarnation_has_its_epoch,
            who_is_unfenced_knows_itself,
            others_know_before_a_leader_goes,
            ids_are_given_once,
            time_changes_what_it_is_for,
        )
    }
)
