"""Ends of failovers by acknowledgements, and statistics of many failovers. Pure.

A failover is over with the first acknowledgement, by the new leader, of a write that was invoked
after the fault (issue 4, item 7). Must never count a write of the old leader, in its old epoch,
nor one that was invoked before the fault: both may still arrive long after it.
"""

import math
from collections.abc import Iterable, Sequence

import msgspec

from splitbrain.contracts.names import NodeName
from splitbrain.contracts.system import LeaderView


class Acknowledgement(msgspec.Struct, frozen=True):
    """One write that a client was told has happened; times in monotonic nanoseconds."""

    invoked_ns: int
    acknowledged_ns: int
    #: Node that answered, where the client knows it.
    node: str | None
    #: Epoch of the write's position; None where the system tells no positions.
    epoch: int | None
    #: Only without ``epoch``: what the system said of its leader right after the acknowledgement.
    view: LeaderView | None = None
    #: Whether the client looks for the leader; else it is pinned to its node.
    follows: bool = False


class TimedFault(msgspec.Struct, frozen=True):
    """One fault; times in monotonic nanoseconds."""

    leader: NodeName
    #: Epoch of that leader just before the fault; None where changes have none.
    epoch_before: int | None
    #: When the runtime was asked to inject: what the figures count from, the longer way.
    asked_ns: int
    #: When the runtime said that it was done.
    returned_ns: int


def invoked_after(acknowledgement: Acknowledgement, fault: TimedFault) -> bool:
    """Whether the write began after the fault."""
    return acknowledgement.invoked_ns >= fault.asked_ns


def by_new_leader(acknowledgement: Acknowledgement, fault: TimedFault) -> bool:
    """Whether the epoch is a new one.

    The write's own epoch tells. Where there is none, the node that acknowledged must itself be
    the leader of a new epoch in the view asked for right afterwards. Where changes have no epochs
    it must have been invoked once the fault was done: a leader that is dead, frozen or alone
    accepts none.
    """
    if fault.epoch_before is None:
        return acknowledgement.invoked_ns >= fault.returned_ns
    if acknowledgement.epoch is not None:
        return acknowledgement.epoch > fault.epoch_before
    view = acknowledgement.view
    return (
        view is not None
        and view.epoch is not None
        and view.epoch > fault.epoch_before
        and view.leader is not None
        and view.leader == acknowledgement.node
    )


def ends(acknowledgement: Acknowledgement, fault: TimedFault) -> bool:
    """Whether the failover is over with this acknowledgement, if it was not before."""
    return invoked_after(acknowledgement, fault) and by_new_leader(acknowledgement, fault)


def leader_changed_before(acknowledgements: Iterable[Acknowledgement], fault: TimedFault) -> bool:
    """Whether the fault met a leader that was deposed already, so that nothing was measured."""
    return any(
        acknowledgement.acknowledged_ns < fault.asked_ns and by_new_leader(acknowledgement, fault)
        for acknowledgement in acknowledgements
    )


class Failover(msgspec.Struct, frozen=True):
    """One measured failover, in milliseconds from the moment the fault was asked for."""

    #: How long the runtime took to inject.
    injection_ms: float
    #: First acknowledgement that counts, whoever got it.
    any_writer_ms: float
    #: First acknowledgement that counts, of a client that has to find the leader itself.
    following_ms: float


def failover(acknowledgements: Iterable[Acknowledgement], fault: TimedFault) -> Failover | None:
    """Return the failover by the acknowledgements so far; None while one of the two is missing."""
    ending = [a for a in acknowledgements if ends(a, fault)]
    following = [a.acknowledged_ns for a in ending if a.follows]
    if not following:
        return None
    return Failover(
        injection_ms=_milliseconds(fault.returned_ns - fault.asked_ns),
        any_writer_ms=_milliseconds(min(a.acknowledged_ns for a in ending) - fault.asked_ns),
        following_ms=_milliseconds(min(following) - fault.asked_ns),
    )


class Spread(msgspec.Struct, frozen=True):
    """Of many figures, in milliseconds."""

    median_ms: float
    p99_ms: float
    max_ms: float


def spread(values: Sequence[float]) -> Spread:
    """Median and 99th percentile by nearest rank: with fewer than 100 values p99 is the worst.

    Raises:
        ValueError: there are no values.
    """
    return Spread(quantile(values, 0.5), quantile(values, 0.99), max(values))


def quantile(values: Sequence[float], share: float) -> float:
    """Return the smallest value that at least this share of the values does not exceed.

    Raises:
        ValueError: there are no values.
    """
    if not values:
        raise ValueError("no values")
    return sorted(values)[max(math.ceil(share * len(values)), 1) - 1]


def _milliseconds(nanoseconds: int) -> float:
    return round(nanoseconds / 1e6, 2)
