"""Reigns: leaders by epoch and time, by the nodes' own events, else as seen from outside; pure.

The one reading of it: the checker of split-brain, the figures of a judgement and the lanes of the
report take it from here. A node's belief begins with its event ``role: leader`` and ends with its
next role, its end, its next start, or a fault that was seen to end its process, whatever the kind:
a killed node cannot say that it stopped, so the request for the kill counts. Times are those of
arrival at the harness, so a paused node's belief ends when it is heard again: durations are upper
bounds. Must never join two incarnations into one belief, nor judge.
"""

from collections.abc import Mapping, Sequence

import msgspec

from splitbrain.contracts.state_event import StateEvent
from splitbrain.history.course import LeaderSighting
from splitbrain.history.fault_windows import FaultWindow

#: Events after which a node no longer leads.
_ENDS = frozenset({"started", "stopped", "fatal"})


class Reign(msgspec.Struct, frozen=True):
    """Belief of one node to lead."""

    node: str
    epoch: int
    incarnation: int
    #: Nanoseconds since the run's start; None where the event was never stamped.
    start: int | None
    #: None if the node still believed to lead at its last event.
    end: int | None


class Overlap(msgspec.Struct, frozen=True):
    """Two nodes believing to lead at once, in different epochs."""

    first: Reign
    second: Reign
    duration_ns: int

    @property
    def start(self) -> int:
        """When the later of the two began, ns since the run's start."""
        return self.second.start or 0

    @property
    def by_epoch(self) -> tuple[Reign, Reign]:
        """The one that was deposed, and its successor."""
        older, newer = sorted((self.first, self.second), key=lambda reign: reign.epoch)
        return older, newer


def reigns(
    state_events: Mapping[str, Sequence[StateEvent]], windows: Sequence[FaultWindow] = ()
) -> list[Reign]:
    """Return every belief to lead, by its start, those never stamped last; overlaps are kept.

    The events of a node may come in any order.
    """
    found: list[Reign] = []
    for node, events in state_events.items():
        found.extend(_reigns_of(node, events, [reign for reign in windows if node in reign.nodes]))
    return sorted(
        found, key=lambda reign: (reign.start is None, reign.start or 0, reign.epoch, reign.node)
    )


def _reigns_of(
    node: str, events: Sequence[StateEvent], windows: Sequence[FaultWindow]
) -> list[Reign]:
    found: list[Reign] = []
    current: StateEvent | None = None

    def close(began: StateEvent, end: int | None) -> None:
        start = began.time
        if start is not None:
            ends = [end, *(window.ends_life_begun(start) for window in windows)]
            end = min((time for time in ends if time is not None), default=None)
            end = None if end is None else max(start, end)
        found.append(Reign(node, began.epoch, began.incarnation, start, end))

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
    """Return pairs of beliefs in different epochs that overlap in time, the longest first.

    Beliefs that were never stamped are left out; those that never ended last to the run's end.
    """
    # Beliefs of one batch have equal times, and beliefs themselves have no order.
    spans = [
        (reign.start, end_of_run if reign.end is None else reign.end, reign)
        for reign in found
        if reign.start is not None
    ]
    stamped = sorted(spans, key=lambda span: span[:2])
    pairs: list[Overlap] = []
    for place, (_, end, first) in enumerate(stamped):
        for start, other_end, second in stamped[place + 1 :]:
            if start >= end:
                break
            duration = min(end, other_end) - start
            if duration > 0 and second.epoch != first.epoch and second.node != first.node:
                pairs.append(Overlap(first, second, duration))
    return sorted(pairs, key=lambda pair: -pair.duration_ns)


def sighted_reigns(sightings: Sequence[LeaderSighting], end_time: int) -> list[Reign]:
    """Return leaders seen from outside, each until the next sight; never two at a time.

    Sightings without an epoch are left out.
    """
    ends = [*(later.time for later in sightings[1:]), end_time]
    return [
        Reign(seen.leader, seen.epoch, 0, seen.time, max(seen.time, end))
        for seen, end in zip(sightings, ends, strict=False)
        if seen.leader is not None and seen.epoch is not None
    ]
