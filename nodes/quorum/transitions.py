"""Transitions between roles, as data: read by the code, the tests and the documents.

Sources: KIP-595, KIP-996 (prospective), Kafka's QuorumState. Deviations of ours: a voter that
grants a vote while prospective steps back to unattached; a lost candidate becomes prospective
again, never candidate directly; a resigned leader keeps its epoch and never leads it again.
"""

from enum import StrEnum
from typing import Final

from splitbrain.nodes.quorum.errors import InvariantViolation
from splitbrain.nodes.quorum.identifiers import Epoch


class RoleName(StrEnum):
    """The six roles; an observer is a non-voter and only ever one of the first two."""

    UNATTACHED = "unattached"
    FOLLOWER = "follower"
    PROSPECTIVE = "prospective"
    CANDIDATE = "candidate"
    LEADER = "leader"
    RESIGNED = "resigned"


class EpochChange(StrEnum):
    """How the epoch must move with a change of role."""

    SAME = "same"
    NEXT = "next"
    HIGHER = "higher"
    SAME_OR_HIGHER = "same or higher"


#: (from, to) -> (how the epoch moves, when it happens). Any other is forbidden.
TRANSITIONS: Final[dict[tuple[RoleName, RoleName], tuple[EpochChange, str]]] = {
    (RoleName.UNATTACHED, RoleName.UNATTACHED): (EpochChange.HIGHER, "a peer has a higher epoch"),
    (RoleName.UNATTACHED, RoleName.FOLLOWER): (EpochChange.SAME_OR_HIGHER, "a leader is known"),
    (RoleName.UNATTACHED, RoleName.PROSPECTIVE): (EpochChange.SAME, "election timeout"),
    (RoleName.FOLLOWER, RoleName.UNATTACHED): (
        EpochChange.SAME_OR_HIGHER,
        "a peer has a higher epoch; an observer's fetch timeout",
    ),
    (RoleName.FOLLOWER, RoleName.FOLLOWER): (EpochChange.HIGHER, "a newer leader is known"),
    (RoleName.FOLLOWER, RoleName.PROSPECTIVE): (
        EpochChange.SAME,
        "fetch timeout, or the leader is gone or resigned and it is this voter's turn",
    ),
    (RoleName.PROSPECTIVE, RoleName.UNATTACHED): (
        EpochChange.SAME_OR_HIGHER,
        "a vote granted, the pre-vote lost without a leader, or a higher epoch",
    ),
    (RoleName.PROSPECTIVE, RoleName.FOLLOWER): (
        EpochChange.SAME_OR_HIGHER,
        "a leader is known, or the pre-vote lost and the leader of this epoch is tried again",
    ),
    (RoleName.PROSPECTIVE, RoleName.CANDIDATE): (EpochChange.NEXT, "a majority of pre-votes"),
    (RoleName.CANDIDATE, RoleName.UNATTACHED): (EpochChange.HIGHER, "a peer has a higher epoch"),
    (RoleName.CANDIDATE, RoleName.FOLLOWER): (EpochChange.SAME_OR_HIGHER, "a leader is known"),
    (RoleName.CANDIDATE, RoleName.PROSPECTIVE): (EpochChange.SAME, "lost, and backed off"),
    (RoleName.CANDIDATE, RoleName.LEADER): (EpochChange.SAME, "a majority of votes"),
    (RoleName.LEADER, RoleName.UNATTACHED): (EpochChange.HIGHER, "a peer has a higher epoch"),
    (RoleName.LEADER, RoleName.FOLLOWER): (EpochChange.HIGHER, "a newer leader is known"),
    (RoleName.LEADER, RoleName.RESIGNED): (
        EpochChange.SAME,
        "no fetches from a majority, or a graceful stop",
    ),
    (RoleName.RESIGNED, RoleName.UNATTACHED): (EpochChange.HIGHER, "a peer has a higher epoch"),
    (RoleName.RESIGNED, RoleName.FOLLOWER): (EpochChange.HIGHER, "a newer leader is known"),
    (RoleName.RESIGNED, RoleName.PROSPECTIVE): (EpochChange.SAME, "election timeout"),
}

#: The only roles of a node that is no voter.
OBSERVER_ROLES: Final = (RoleName.UNATTACHED, RoleName.FOLLOWER)


def check_transition(before: RoleName, after: RoleName, old: Epoch, new: Epoch) -> None:
    """Raise InvariantViolation (INV-20) for a change of role that the table does not allow."""
    rule = TRANSITIONS.get((before, after))
    if rule is None:
        raise InvariantViolation("INV-20", f"{before} may not become {after}")
    allowed = {
        EpochChange.SAME: new == old,
        EpochChange.NEXT: new == old + 1,
        EpochChange.HIGHER: new > old,
        EpochChange.SAME_OR_HIGHER: new >= old,
    }[rule[0]]
    if not allowed:
        raise InvariantViolation(
            "INV-20", f"{before} to {after} wants the {rule[0]} epoch, not {old} to {new}"
        )
