"""One partition as the image holds it, and how records change it. There are a million of them.

Source: Kafka's PartitionRecord and PartitionChangeRecord; KIP-858 for the directories, KIP-966 for
eligible leaders.
"""

from typing import Any, Final

import msgspec

from splitbrain.nodes.metadata.errors import ContradictionError
from splitbrain.nodes.metadata.records import (
    LEADER_UNCHANGED,
    PartitionChangeRecord,
    PartitionRecord,
)

#: Directory of a replica that its broker has not said yet, in a cluster that had none before.
MIGRATING_DIRECTORY: Final = "0" * 32
#: Directory of a replica that its broker has yet to choose.
UNASSIGNED_DIRECTORY: Final = "0" * 31 + "1"
#: Directory of a replica that its broker has lost.
LOST_DIRECTORY: Final = "0" * 31 + "2"
_RECOVERY_UNCHANGED: Final = -1
_RECOVERY_STATES: Final = (0, 1)


class PartitionState(msgspec.Struct, frozen=True, gc=False):
    """A partition; equal tuples in it are one object where they came in one delta."""

    #: Brokers, the preferred leader first.
    replicas: tuple[int, ...]
    #: Where each replica lies on its broker, in the order of ``replicas``.
    directories: tuple[str, ...]
    #: Replicas in sync.
    isr: tuple[int, ...]
    removing_replicas: tuple[int, ...]
    adding_replicas: tuple[int, ...]
    #: -1 for none.
    leader: int
    #: 1 after an unclean election, until the leader has recovered.
    leader_recovery_state: int
    #: Rises with every election.
    leader_epoch: int
    #: Rises with every change.
    partition_epoch: int
    #: Eligible leaders that are not in sync.
    elr: tuple[int, ...] = ()
    last_known_elr: tuple[int, ...] = ()


class Sharing:
    """Makes equal values one object: the partitions of a cluster hold the same few of them."""

    def __init__(self) -> None:
        self._known: dict[Any, Any] = {}

    def number(self, number: int) -> int:
        """Return the first number that was equal to this one."""
        return self._known.setdefault(number, number)

    def numbers(self, numbers: tuple[int, ...]) -> tuple[int, ...]:
        """Return the first tuple that was equal to this one."""
        # Most are empty: nobody is added, nobody removed.
        return numbers and (self._known.get(numbers) or self._shared(numbers))

    def directories(self, directories: tuple[str, ...]) -> tuple[str, ...]:
        """As ``numbers``."""
        return self._known.get(directories) or self._shared(directories)

    def _shared(self, values: tuple[Any, ...]) -> tuple[Any, ...]:
        shared = tuple([self._known.setdefault(value, value) for value in values])
        self._known[shared] = shared
        return shared


def new_partition(record: PartitionRecord, sharing: Sharing) -> PartitionState:
    """Return the partition that the record tells, whole; raises ContradictionError."""
    return PartitionState(
        replicas=(replicas := sharing.numbers(record.replicas)),
        directories=_directories(record, record.directories, replicas, sharing),
        isr=sharing.numbers(record.isr),
        removing_replicas=sharing.numbers(record.removing_replicas),
        adding_replicas=sharing.numbers(record.adding_replicas),
        leader=sharing.number(record.leader),
        leader_recovery_state=_recovery(record, record.leader_recovery_state),
        leader_epoch=sharing.number(record.leader_epoch),
        partition_epoch=sharing.number(record.partition_epoch),
        elr=sharing.numbers(record.eligible_leader_replicas or ()),
        last_known_elr=sharing.numbers(record.last_known_elr or ()),
    )


def changed_partition(
    before: PartitionState, record: PartitionChangeRecord, sharing: Sharing
) -> PartitionState:
    """Return the partition after the change; raises ContradictionError."""

    def chosen(numbers: tuple[int, ...] | None, unchanged: tuple[int, ...]) -> tuple[int, ...]:
        return unchanged if numbers is None else sharing.numbers(numbers)

    replicas = chosen(record.replicas, before.replicas)
    directories = before.directories if record.directories is None else record.directories
    # Naming a leader is an election, also of the one that leads already.
    is_election = record.leader != LEADER_UNCHANGED
    recovery = record.leader_recovery_state
    return PartitionState(
        replicas=replicas,
        directories=_directories(record, directories, replicas, sharing),
        isr=chosen(record.isr, before.isr),
        removing_replicas=chosen(record.removing_replicas, before.removing_replicas),
        adding_replicas=chosen(record.adding_replicas, before.adding_replicas),
        leader=record.leader if is_election else before.leader,
        leader_recovery_state=(
            before.leader_recovery_state
            if recovery == _RECOVERY_UNCHANGED
            else _recovery(record, recovery)
        ),
        leader_epoch=before.leader_epoch + is_election,
        partition_epoch=before.partition_epoch + 1,
        elr=chosen(record.eligible_leader_replicas, before.elr),
        last_known_elr=chosen(record.last_known_elr, before.last_known_elr),
    )


def without_eligible_leaders(before: PartitionState) -> PartitionState:
    """The partition once its eligible leaders are forgotten; a change only if there were any."""
    if not (before.elr or before.last_known_elr):
        return before
    return msgspec.structs.replace(
        before, partition_epoch=before.partition_epoch + 1, elr=(), last_known_elr=()
    )


def partition_record(topic_id: str, partition_id: int, state: PartitionState) -> PartitionRecord:
    """Return the record that tells the partition, as it stands in a snapshot."""
    return PartitionRecord(
        partition_id=partition_id,
        topic_id=topic_id,
        replicas=state.replicas,
        isr=state.isr,
        removing_replicas=state.removing_replicas,
        adding_replicas=state.adding_replicas,
        leader=state.leader,
        leader_recovery_state=state.leader_recovery_state,
        leader_epoch=state.leader_epoch,
        partition_epoch=state.partition_epoch,
        directories=state.directories,
        # Tagged fields: left out where there is nothing to say.
        eligible_leader_replicas=state.elr or None,
        last_known_elr=state.last_known_elr or None,
    )


def _directories(
    record: PartitionRecord | PartitionChangeRecord,
    directories: tuple[str, ...],
    replicas: tuple[int, ...],
    sharing: Sharing,
) -> tuple[str, ...]:
    if len(directories) == len(replicas):
        return sharing.directories(directories)
    if all(each == MIGRATING_DIRECTORY for each in directories):
        return sharing.directories((MIGRATING_DIRECTORY,) * len(replicas))
    raise ContradictionError(
        f"partition {record.partition_id} of topic {record.topic_id} would have "
        f"{len(replicas)} replicas in {len(directories)} directories"
    )


def _recovery(record: PartitionRecord | PartitionChangeRecord, state: int) -> int:
    if state not in _RECOVERY_STATES:
        raise ContradictionError(
            f"partition {record.partition_id} of topic {record.topic_id} has the unknown leader "
            f"recovery state {state}"
        )
    return state
