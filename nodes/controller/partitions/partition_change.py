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
from splitbrain.nodes.metadata.image import TOPIC_RESOURCE, MetadataImage
from splitbrain.nodes.metadata.records import LEADER_UNCHANGED, NO_LEADER, PartitionChangeRecord

RECOVERED: Final = 0
RECOVERING: Final = 1
_NOWHERE: Final[Mapping[int, str]] = MappingProxyType({})
_UNCLEAN_ELECTION: Final = "unclean.leader.election.enable"
#: The config of all brokers.
_ALL_BROKERS: Final = (4, "")


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


class Assignment(msgspec.Struct, frozen=True, gc=False):
    """Replicas of a partition, and those that come and go while it moves."""

    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    removing: tuple[int, ...] = ()
    adding: tuple[int, ...] = ()


AS_IT_IS: Final = Target()


def automatic_election(image: MetadataImage, topic: str) -> Election:
    """Whether a partition of the topic may lose records rather than have no leader.

    Read of the topic, else of all brokers; not of one broker, as a controller is none of them.
    """
    for resource in ((TOPIC_RESOURCE, topic), _ALL_BROKERS):
        value = image.configs.get(resource, {}).get(_UNCLEAN_ELECTION)
        if value is not None:
            return Election.UNCLEAN if value.lower() == "true" else Election.ONLINE
    return Election.ONLINE


def completed(move: Assignment) -> Assignment | None:
    """Return the partition after its move is done; None while it is not, or there is none.

    Done once all that come are in sync and one that stays is. Where fewer come than go, all that
    stay have to be: else the partition would have fewer replicas in sync than before its move.
    """
    removing, adding = move.removing, move.adding
    if not removing and not adding:
        return None
    staying = tuple([each for each in move.replicas if each not in removing])
    in_sync = tuple([each for each in move.isr if each not in removing])
    if removing and not (staying and in_sync):
        return None
    if not set(adding) <= set(in_sync):
        return None
    if len(adding) < len(removing) and not set(staying) <= set(in_sync):
        return None
    return Assignment(staying, in_sync)


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
    fields: dict[str, Any] = {}
    leader, is_clean = _elect(state.leader, goal, target.election, can_lead)
    if leader != state.leader:
        fields["leader"] = leader
        if not is_clean:
            fields["isr"] = (leader,)
            if state.leader_recovery_state != RECOVERING:
                fields["leader_recovery_state"] = RECOVERING
    elif not set(goal.replicas) >= set(state.replicas):
        # A replica goes: the same leader, in a new epoch.
        fields["leader"] = leader
    if "isr" not in fields and goal.isr and goal.isr != state.isr:
        fields["isr"] = goal.isr
    if state.elr:
        fields["eligible_leader_replicas"] = ()
    fields |= _placement(image, at, goal, target.directories)
    recovery = target.leader_recovery_state
    if recovery is not None and recovery != state.leader_recovery_state:
        fields["leader_recovery_state"] = recovery
    if not fields:
        return None
    return PartitionChangeRecord(partition_id=at.number, topic_id=at.topic.topic_id, **fields)


def names_leader(record: PartitionChangeRecord) -> bool:
    """Whether a new leader epoch begins."""
    return record.leader != LEADER_UNCHANGED


def _assignment(at: PartitionAt, target: Target) -> Assignment:
    """Return the target, or its outcome where it ends a reassignment."""
    state = at.state
    goal = Assignment(
        state.replicas if target.replicas is None else target.replicas,
        state.isr if target.isr is None else target.isr,
        state.removing_replicas if target.removing is None else target.removing,
        state.adding_replicas if target.adding is None else target.adding,
    )
    return completed(goal) or goal


def _elect(
    present: int, goal: Assignment, election: Election, can_lead: Callable[[int], bool]
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
    image: MetadataImage, at: PartitionAt, goal: Assignment, chosen: Mapping[int, str]
) -> dict[str, Any]:
    state = at.state
    fields: dict[str, Any] = {}
    if chosen or goal.replicas != state.replicas:
        known = {**dict(zip(state.replicas, state.directories, strict=True)), **chosen}
        directories = tuple(
            known.get(broker_id) or default_directory(image, broker_id)
            for broker_id in goal.replicas
        )
        if directories != state.directories:
            fields["directories"] = directories
    if goal.replicas != state.replicas:
        fields["replicas"] = goal.replicas
    if goal.removing != state.removing_replicas:
        fields["removing_replicas"] = goal.removing
    if goal.adding != state.adding_replicas:
        fields["adding_replicas"] = goal.adding
    return fields
