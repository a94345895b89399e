"""Checker of leaders that go on after they were deposed. Pure.

Two leaders in different epochs are legal for a while: the older one learns late that a majority has
elected another. It must learn, though: whoever reaches it alone is stuck for as long as it goes on.
A leader that hears nothing of a majority resigns, so that links which are cut are no excuse. A
process that was frozen, starved or hindered in another way has its time anew once that is over.

Reigns are told by the nodes' own events. Must never ask who was right. Source: Ongaro's thesis,
section 6.2 (a leader that no majority answers steps down).
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from splitbrain.checker.evidence import Evidence
from splitbrain.checker.findings import NAMED_MAX
from splitbrain.checker.verdict import CheckResult, Verdict
from splitbrain.contracts.budget import Budget
from splitbrain.contracts.state_event import PART, PART_EPOCH, PART_ROLE, Resigning, StateEvent
from splitbrain.contracts.words import counted
from splitbrain.history.fault_windows import FaultWindow, fault_windows
from splitbrain.history.leadership import Overlap, overlaps, reigns

NAME: Final = "deposed-leaders"
_GOES_ON: Final = "deposed-leader-goes-on"
_NS_PER_MS: Final = 1_000_000
_NS_PER_S: Final = 1_000_000_000


class _Late(NamedTuple):
    """Deposed leader, and the longest time for which nothing kept it from noticing, ns."""

    pair: Overlap
    start: int
    end: int


def check(evidence: Evidence, budget: Budget) -> CheckResult:
    """Judge how long each leader went on while another one led a later epoch."""
    promise = evidence.resigning
    if promise is None:
        return CheckResult(NAME, Verdict.UNKNOWN, "The plan does not say when a leader resigns.")
    if not any(evidence.state_events.values()):
        return CheckResult(NAME, Verdict.UNKNOWN, "No state event tells who led.")
    if (exhausted := budget.exhausted()) is not None:
        return CheckResult(NAME, Verdict.UNKNOWN, f"Not finished: {exhausted}.")
    limit = promise.within_ms * _NS_PER_MS
    events = _events_of(evidence.state_events, promise.part)
    windows = fault_windows(evidence.faults)
    deposed = overlaps(reigns(events, windows), _end_of(events))
    free = [_unhindered(pair, windows) for pair in deposed]
    late = [each for each in free if each.end - each.start > limit]
    longest = max((each.end - each.start for each in free), default=0)
    figures = {
        "deposed": len(deposed),
        "longest-unhindered-ms": round(longest / _NS_PER_MS, 3),
        _GOES_ON: len(late),
    }
    violations = tuple(_described(each, promise) for each in late[:NAMED_MAX])
    if violations:
        more = f" ({len(late):,} in all)" if len(late) > 1 else ""
        reason = f"{violations[0]['sentence']}{more}"
        return CheckResult(NAME, Verdict.INVALID, reason, figures, violations)
    reason = f"{counted(len(deposed), 'leader')} went on beside a later one, none for too long."
    return CheckResult(NAME, Verdict.VALID, reason, figures)


def _events_of(
    state_events: Mapping[str, Sequence[StateEvent]], part: str | None
) -> Mapping[str, Sequence[StateEvent]]:
    """Return the events of whoever leads a part as if faults were aimed by it; None: they are."""
    if part is None:
        return state_events
    return {node: [*_as_roles(events, part)] for node, events in state_events.items()}


def _as_roles(events: Sequence[StateEvent], part: str) -> Iterator[StateEvent]:
    for event in events:
        if event.kind == "part" and event.detail[PART] == part:
            role, epoch = event.detail[PART_ROLE], event.detail[PART_EPOCH]
            yield msgspec.structs.replace(event, kind="role", role=role, epoch=epoch)
        elif event.kind not in ("part", "role"):
            yield event


def _end_of(state_events: Mapping[str, Sequence[StateEvent]]) -> int:
    times = (event.time for events in state_events.values() for event in events)
    return max((time for time in times if time is not None), default=0)


def _unhindered(pair: Overlap, windows: Sequence[FaultWindow]) -> _Late:
    """Return the longest part of an overlap without a fault on the older leader's process."""
    begin, end = pair.start, pair.start + pair.duration_ns
    older, _ = pair.by_epoch
    hindering = sorted(
        (window.start, window.end)
        for window in windows
        if older.node in window.nodes and window.traits.silences != "links"
    )
    best = _Late(pair, begin, begin)
    for start, stop in [*hindering, (end, end)]:
        free_until = min(start, end)
        if free_until - begin > best.end - best.start:
            best = _Late(pair, begin, free_until)
        begin = min(max(begin, stop), end)
    return best


def _described(late: _Late, promise: Resigning) -> dict[str, Any]:
    older, newer = late.pair.by_epoch
    length_ms = (late.end - late.start) // _NS_PER_MS
    of_part = "" if promise.part is None else f" of {promise.part}"
    return {
        "kind": _GOES_ON,
        "node": older.node,
        "epoch": older.epoch,
        "successor": newer.node,
        "sentence": (
            f"{older.node} still led epoch {older.epoch}{of_part} at {late.end / _NS_PER_S:.3f} s. "
            f"For {length_ms:,} ms {newer.node} had led epoch {newer.epoch}, and no fault but cut "
            f"links had hindered {older.node}, which was to resign within "
            f"{promise.within_ms:,} ms."
        ),
    }
