"""Who believed to lead when, from the nodes' own state events.

A node's belief begins with its event ``role: leader`` and ends with its next role, its end, its
next start, or the first kill that hit it; a killed node cannot say that it stopped. Times are
those of arrival at the harness, so a paused node's belief ends when it is heard again: durations
are upper bounds. Must never join two incarnations into one belief.
"""

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from splitbrain.contracts.fault import FaultEvent
from splitbrain.contracts.state_event import StateEvent

#: Events after which a node leads no longer, whatever it said before.
_ENDS = frozenset({"started", "stopped", "fatal"})
#: Faults that end a node's process.
_KILLING_FAULTS = frozenset({"kill", "power"})


class Reign(msgspec.Struct, frozen=True):
    """One belief of one node to lead."""

    node: str
    epoch: int
    incarnation: int
    #: Nanoseconds since the run's start; None where the event was never stamped.
    start: int | None
    #: None where the node still believed to lead when it was last heard of.
    end: int | None


class Overlap(msgspec.Struct, frozen=True):
    """Two nodes believing to lead at once, in different epochs."""

    first: Reign
    second: Reign
    duration_ns: int


def reigns(
    state_events: Mapping[str, Sequence[StateEvent]], faults: Iterable[FaultEvent] = ()
) -> list[Reign]:
    """Every belief to lead, by epoch, then node."""
    kills: dict[str, list[int]] = {}
    for fault in faults:
        if fault.kind in _KILLING_FAULTS and fault.phase == "verified":
            for node in fault.nodes:
                kills.setdefault(node, []).append(fault.time)
    found: list[Reign] = []
    for node, events in state_events.items():
        found.extend(_reigns_of(node, events, sorted(kills.get(node, []))))
    return sorted(found, key=lambda reign: (reign.epoch, reign.node, reign.incarnation))


def _reigns_of(node: str, events: Sequence[StateEvent], kills: Sequence[int]) -> list[Reign]:
    found: list[Reign] = []
    current: StateEvent | None = None

    def close(began: StateEvent, end: int | None) -> None:
        if began.time is not None:
            ends = [time for time in kills if time >= began.time]
            if end is not None:
                ends.append(end)
            end = min(ends, default=None)
        found.append(Reign(node, began.epoch, began.incarnation, began.time, end))

    for event in sorted(events, key=lambda event: (event.incarnation, event.sequence)):
        leads = event.kind == "role" and event.role == "leader"
        if current is not None:
            if leads and (event.epoch, event.incarnation) == (current.epoch, current.incarnation):
                continue
            over = event.kind == "role" or event.kind in _ENDS
            if over or event.incarnation != current.incarnation:
                close(current, event.time)
                current = None
        if leads and current is None:
            current = event
    if current is not None:
        close(current, None)
    return found


def overlaps(found: Sequence[Reign], end_of_run: int) -> list[Overlap]:
    """Pairs of beliefs in different epochs that overlap in time, the longest first.

    Args:
        found: stamped beliefs; others are left out.
        end_of_run: when beliefs that never ended are taken to end, ns.
    """
    # Beliefs that are told in one batch have equal times, and no belief is less than another.
    stamped = sorted(
        (
            (reign.start, reign.end if reign.end is not None else end_of_run, reign)
            for reign in found
            if reign.start is not None
        ),
        key=lambda span: span[:2],
    )
    pairs: list[Overlap] = []
    for place, (_, end, first) in enumerate(stamped):
        for start, other_end, second in stamped[place + 1 :]:
            if start >= end:
                break
            duration = min(end, other_end) - start
            if duration > 0 and second.epoch != first.epoch and second.node != first.node:
                pairs.append(Overlap(first, second, duration))
    return sorted(pairs, key=lambda pair: -pair.duration_ns)
