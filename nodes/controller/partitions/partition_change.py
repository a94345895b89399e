"""Change of one partition as a record: its leader, who is in sync, where its replicas lie.

The one place where leaders are elected. Written for clusters without eligible leader replicas
(``eligible.leader.replicas.version`` 0): the ISR never becomes empty, its last member stays in it
dead or alive, and only an unclean election takes a leader from outside. A record names a leader
where a new leader epoch shall begin: at an election, and when a replica goes; a shrinking ISR alone
begins none since ``metadata.version`` 3.6. Must never change two partitions at once.

Source: a real controller's partition change builder; KIP-106 (unclean election), KIP-455
(reassignment), KIP-704 (leader recovery state), KIP-858 (directories).
"""

from collections.abc import Callable, Mapping
from enum import Enum
from types import MappingProxyType
from typing import Any, Final

import msgspec

from splitbrain.nodes.controller.basis.leaderships import PartitionAt
from splitbrain.nodes.controller.basis.registrations import default_directory, is_active, is_online
from splitbrain.nodes.controller.partitions.reassignment import completed
from splitbrain.nodes.metadata.image import MetadataImage
from splitbrain.nodes.metadata.records import LEADER_UNCHANGED, NO_LEADER, PartitionChangeRecord

RECOVERED: Final = 0
RECOVERING: Final = 1
_NOWHERE: Final[Mapping[int, str]] = MappingProxyType({})


class Election(Enum):
    """Rule for who may become the leader."""

    #: The present leader if it can, else the first replica in sync that can.
    ONLINE = 0
    #: The first replica if it can, else as ``ONLINE``.
    PREFERRED = 1
    #: As ``ONLINE``, else any replica that can: what the others had more is lost.
    UNCLEAN = 2


class Target(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Target state of a partition; None leaves a field as it is."""

    #: Empty: only the last member is left, and it cannot lead.
    isr: tuple[int, ...] | None = None
    replicas: tuple[int, ...] | None = None
    removing: tuple[int, ...] | None = None
    adding: tuple[int, ...] | None = None
    leader_recovery_state: int | None = None
    #: Where the replicas on these brokers lie.
    directories: Mapping[int, str] = _NOWHERE
    election: Election = Election.ONLINE


class _Assignment(msgspec.Struct, frozen=True, gc=False):
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    removing: tuple[int, ...]
    adding: tuple[int, ...]


AS_IT_IS: Final = Target()


def partition_change(
    image: MetadataImage,
    at: PartitionAt,
    target: Target = AS_IT_IS,
    may_lead: Callable[[int], bool] | None = None,
) -> PartitionChangeRecord | None:
    """Return the record that makes the partition what it shall be; None if it is that already.

    A broker may lead if ``may_lead`` says so (by default, if it is active) and its replica's
    directory is online.
    """
    state = at.state

    def can_lead(broker_id: int) -> bool:
        accepted = is_active(image, broker_id) if may_lead is None else may_lead(broker_id)
        if not accepted:
            return False
        directory = state.directories[state.replicas.index(broker_id)]
        return is_online(image.brokers[broker_id], directory)

    goal = _assignment(at, target)
    said: dict[str, Any] = {}
    leader, is_clean = _elect(state.leader, goal, target.election, can_lead)
    if leader != state.leader:
        said["leader"] = leader
        if not is_clean:
            said["isr"] = (leader,)
            if state.leader_recovery_state != RECOVERING:
                said["leader_recovery_state"] = RECOVERING
    elif not set(goal.replicas) >= set(state.replicas):
        # A replica goes: the same leader, in a new epoch.
        said["leader"] = leader
    if "isr" not in said and goal.isr and goal.isr != state.isr:
        said["isr"] = goal.isr
    if state.elr:
        said["eligible_leader_replicas"] = ()
    said |= _placement(image, at, goal, target.directories)
    recovery = target.leader_recovery_state
    if recovery is not None and recovery != state.leader_recovery_state:
        said["leader_recovery_state"] = recovery
    if not said:
        return None
    return PartitionChangeRecord(partition_id=at.number, topic_id=at.topic.topic_id, **said)


def names_leader(record: PartitionChangeRecord) -> bool:
    """Whether a new leader epoch begins."""
    return record.leader != LEADER_UNCHANGED


def _assignment(at: PartitionAt, target: Target) -> _Assignment:
    """Return the target, or its outcome where it ends a reassignment."""
    state = at.state
    replicas = state.replicas if target.replicas is None else target.replicas
    isr = state.isr if target.isr is None else target.isr
    removing = state.removing_replicas if target.removing is None else target.removing
    adding = state.adding_replicas if target.adding is None else target.adding
    done = completed(replicas, isr, removing, adding)
    if done is None:
        return _Assignment(replicas, isr, removing, adding)
    return _Assignment(done.replicas, done.isr, (), ())


def _elect(
    present: int, goal: _Assignment, election: Election, can_lead: Callable[[int], bool]
) -> tuple[int, bool]:
    """Return the leader, and whether it has everything that was committed."""

    def is_in_sync(broker_id: int) -> bool:
        return broker_id in goal.isr and can_lead(broker_id)

    if election is Election.PREFERRED and is_in_sync(goal.replicas[0]):
        return goal.replicas[0], True
    if is_in_sync(present):
        return present, True
    for broker_id in goal.replicas:
        if is_in_sync(broker_id):
            return broker_id, True
    if election is Election.UNCLEAN:
        for broker_id in goal.replicas:
            if can_lead(broker_id):
                return broker_id, False
    return NO_LEADER, True


def _placement(
    image: MetadataImage, at: PartitionAt, goal: _Assignment, chosen: Mapping[int, str]
) -> dict[str, Any]:
    state = at.state
    said: dict[str, Any] = {}
    if chosen or goal.replicas != state.replicas:
        known = {**dict(zip(state.replicas, state.directories, strict=True)), **chosen}
        directories = tuple(
            known.get(broker_id) or default_directory(image, broker_id)
            for broker_id in goal.replicas
        )
        if directories != state.directories:
            said["directories"] = directories
    if goal.replicas != state.replicas:
        said["replicas"] = goal.replicas
    if goal.removing != state.removing_replicas:
        said["removing_replicas"] = goal.removing
    if goal.adding != state.adding_replicas:
        said["adding_replicas"] = goal.adding
    return said
