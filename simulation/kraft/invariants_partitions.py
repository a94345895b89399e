"""Invariants of what may change a partition: who may lead it, and who may join and leave its ISR.

Judged by the committed records and by the proposals that reached controllers. Nobody in a world
asks for an unclean election: the configuration alone allows one. Must never ask a controller, nor a
broker.
"""
# ruff: noqa: D102 - the moments are documented once, in Invariant

from collections.abc import Iterator
from typing import Any, NamedTuple

from splitbrain.nodes.metadata.records import NO_LEADER, PartitionChangeRecord, PartitionRecord
from splitbrain.nodes.wire.families.partitions import AlterPartitionRequest
from splitbrain.simulation.kraft.ghost import Ghost, Machine
from splitbrain.simulation.kraft.invariants_metadata import CommittedBatches
from splitbrain.simulation.kraft.metadata.ledger import Batch
from splitbrain.simulation.kraft.metadata.state import Metadata

_ELR_VERSION = "eligible.leader.replicas.version"


class _Change(NamedTuple):
    """A partition comes, or changes, by one record."""

    offset: int
    #: None: it is new.
    before: PartitionRecord | None
    after: PartitionRecord
    #: Metadata before the record, before its whole batch, and after that.
    earlier: Metadata
    first: Metadata
    later: Metadata

    @property
    def name(self) -> str:
        """In a sentence."""
        return self.later.name_of(self.after)

    @property
    def is_unclean(self) -> bool:
        """Whether a leader came that may lack what others have."""
        before, after = self.before, self.after
        return (
            before is not None
            and after.leader not in (NO_LEADER, before.leader)
            and after.isr == (after.leader,)
            and after.leader not in _eligible(before)
        )


class _Proposal(NamedTuple):
    """The state of a partition that a broker proposed another ISR for."""

    topic_id: str
    number: int
    leader: int
    leader_epoch: int
    partition_epoch: int


class PartitionChanges(CommittedBatches):
    """Looks at every change of a partition, and knows what leaders have proposed."""

    def __init__(self, ghost: Ghost) -> None:
        super().__init__(ghost)
        self._proposed: dict[_Proposal, list[tuple[int, ...]]] = {}

    def called(self, machine: Machine, message: Any) -> None:
        if not isinstance(message, AlterPartitionRequest):
            return
        for topic in message.topics:
            for each in topic.partitions:
                proposal = _Proposal(
                    topic.topic_id,
                    each.partition_index,
                    message.broker_id,
                    each.leader_epoch,
                    each.partition_epoch,
                )
                with_epochs = tuple([member.broker_id for member in each.new_isr_with_epochs])
                isrs = self._proposed.setdefault(proposal, [])
                isrs.append(with_epochs or each.new_isr)

    def look(self, machine: Machine, batch: Batch) -> None:
        for change in self._changes(batch):
            self.changed(machine, change)

    def changed(self, machine: Machine, change: _Change) -> None:
        """Note that a change of a partition is committed."""

    def proposals(self, before: PartitionRecord) -> list[tuple[int, ...]]:
        """Return the ISRs that the partition's leader proposed for it as it was."""
        return self._proposed.get(
            _Proposal(
                before.topic_id,
                before.partition_id,
                before.leader,
                before.leader_epoch,
                before.partition_epoch,
            ),
            [],
        )

    def _changes(self, batch: Batch) -> Iterator[_Change]:
        if batch.after.partitions is batch.before.partitions:
            return
        for offset, record in enumerate(batch.records, batch.base_offset):
            if not isinstance(record, PartitionRecord | PartitionChangeRecord):
                continue
            earlier, topic_id, number = self.ledger.at(offset), record.topic_id, record.partition_id
            after = self.ledger.at(offset + 1).partition(topic_id, number)
            # A topic may come and go in one batch.
            if after is not None and batch.after.partition(topic_id, number) is not None:
                before = earlier.partition(topic_id, number)
                yield _Change(offset, before, after, earlier, batch.before, batch.after)


class PartitionsAreWhole(PartitionChanges):
    """A partition has replicas, an ISR among them and a directory for each; a new one begins at 0.

    The ISR is empty nowhere: eligible leaders are not kept at this level of features.
    """

    id = "INV-58"

    def changed(self, machine: Machine, change: _Change) -> None:
        problem = _malformation(change)
        if problem is not None:
            raise self.violated(f"at {change.offset} {change.name} has {problem}", machine)


class LeadersWereInSync(PartitionChanges):
    """A partition's leader was in its ISR, or eligible, before its election; it is active.

    Or its leader proposed it for the ISR by what ended the election. Only where its topic allows
    unclean elections, and nobody who was in sync can lead, anybody with a replica may. A broker
    that was about to go, and is unfenced by the same decision, counts as active, as in Kafka: an
    old heartbeat can bring that about.
    """

    id = "INV-59"

    def changed(self, machine: Machine, change: _Change) -> None:
        before, after, later = change.before, change.after, change.later
        old = NO_LEADER if before is None else before.leader
        if after.leader in (NO_LEADER, old):
            return
        said = f"at {change.offset} broker {after.leader} is elected for {change.name}"
        final = later.partitions[after.topic_id][after.partition_id]
        absence = _absence(change, final) if final.leader == after.leader else None
        if absence is not None:
            raise self.violated(f"{said}, and {absence}", machine, kind="absent")
        if before is None:
            return
        eligible = _eligible(before)
        if after.leader in eligible or any(after.leader in isr for isr in self.proposals(before)):
            return
        whose = f"whose ISR was {list(before.isr)}"
        if not change.earlier.allows_unclean(after.topic_id):
            raise self.violated(f"{said}, {whose}", machine, kind="unclean")
        better = [each for each in eligible if later.can_serve(final, each)]
        if better:
            raise self.violated(
                f"{said}, {whose}, and broker {better[0]} of it can lead", machine, kind="unclean"
            )
        if not change.is_unclean or after.leader_recovery_state != 1:
            raise self.violated(
                f"{said}, {whose}, and it is not said that it has to recover, alone in sync",
                machine,
                kind="recovery",
            )


class IsrsFollowTheirLeader(PartitionChanges):
    """A broker joins an ISR as its leader proposed, and leaves it so or because it is away.

    Away: fenced, about to go, registered no more, without a replica there. After an unclean
    election the leader is alone in sync.
    """

    id = "INV-60"

    def changed(self, machine: Machine, change: _Change) -> None:
        before, after = change.before, change.after
        if before is None:
            absent = [each for each in after.isr if not change.earlier.can_serve(after, each)]
            if absent:
                raise self.violated(
                    f"at {change.offset} {change.name} is new and has broker {absent[0]} in its"
                    " ISR, which cannot serve",
                    machine,
                    kind="new",
                )
            return
        if before.isr == after.isr or change.is_unclean:
            return
        proposals = self.proposals(before)
        joined = [each for each in after.isr if each not in before.isr]
        if joined and not any(all(each in isr for each in joined) for isr in proposals):
            raise self.violated(
                f"at {change.offset} broker {joined[0]} joins the ISR of {change.name}, and its"
                f" leader {before.leader} has not proposed it at leader epoch"
                f" {before.leader_epoch} and partition epoch {before.partition_epoch}",
                machine,
                kind="joined",
            )
        for broker_id in before.isr:
            is_away = not change.later.can_serve(after, broker_id)
            is_asked = any(broker_id not in isr for isr in proposals)
            if broker_id not in after.isr and not is_away and not is_asked:
                raise self.violated(
                    f"at {change.offset} broker {broker_id} leaves the ISR of {change.name}, is"
                    f" alive, and its leader {before.leader} has not proposed that",
                    machine,
                    kind="left",
                )


class PartitionsAreLed(CommittedBatches):
    """No partition is without a leader while a broker that is in sync can lead it."""

    id = "INV-61"

    def look(self, machine: Machine, batch: Batch) -> None:
        after = batch.after
        for partition in after.affected_since(batch.before):
            if partition.leader != NO_LEADER:
                continue
            able = [each for each in _eligible(partition) if after.can_serve(partition, each)]
            if able:
                raise self.violated(
                    f"at {batch.base_offset} nobody leads {after.name_of(partition)}, and broker"
                    f" {able[0]} is in sync and can",
                    machine,
                )


def _absence(change: _Change, final: PartitionRecord) -> str | None:
    """Return why the leader cannot serve, as things are after the whole batch; None: it can."""
    later, leader = change.later, final.leader
    was, now = change.first.brokers.get(leader), later.brokers.get(leader)
    if now is None:
        return "is not registered"
    if now.fenced:
        return "is fenced"
    if not later.has_replica(final, leader):
        return "has no replica, or has lost it"
    is_back = was is not None and was.fenced
    return "is about to go" if now.in_controlled_shutdown and not is_back else None


def _eligible(partition: PartitionRecord) -> tuple[int, ...]:
    """Return the brokers that have all that was acknowledged (KIP-966)."""
    return (*partition.isr, *(partition.eligible_leader_replicas or ()))


def _malformation(change: _Change) -> str | None:
    """Return what makes it no partition; None: it is one."""
    partition = change.after
    replicas, isr = partition.replicas, partition.isr
    named = (*isr, *partition.adding_replicas, *partition.removing_replicas)
    if not replicas or len(dict.fromkeys(replicas)) < len(replicas):
        return f"the replicas {list(replicas)}"
    if len(dict.fromkeys(isr)) < len(isr) or any(each not in replicas for each in named):
        return f"the ISR {list(isr)} and the replicas {list(replicas)}"
    if not isr and not change.later.level(_ELR_VERSION):
        return "an empty ISR"
    if len(partition.directories) != len(replicas):
        return f"{len(replicas)} replicas in {len(partition.directories)} directories"
    if partition.leader_recovery_state not in (0, 1):
        return f"the recovery state {partition.leader_recovery_state}"
    epochs = partition.leader_epoch, partition.partition_epoch
    if change.before is None and epochs != (0, 0):
        return f"the leader epoch {epochs[0]} and the partition epoch {epochs[1]}, and is new"
    return None
