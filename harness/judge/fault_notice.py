"""Signs of whether the system noticed a fault: changed roles, late requests, slow peers. Pure.

A fault that took effect unnoticed has not been survived: it proves as little as one that never
came. The fault's window and ``MARGIN_NS`` behind it are compared with the *quiet* time of the run,
in which no fault was in force: some requests fail there too, such as those of clients pinned to a
follower. Without quiet time, or without news of roles, missing signs mean nothing, and the notice
says so. Judges nothing. Definitions: ``docs/faults/coverage.md``.
"""

import math
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, pairwise
from typing import Final

import msgspec

from splitbrain.contracts.state_event import StateEvent
from splitbrain.harness.judge.evidence_loader import RunRecord
from splitbrain.harness.judge.outcome_counts import UNNAMED_ERROR
from splitbrain.history.course import LeaderSighting, Phase
from splitbrain.history.fault_windows import FaultWindow
from splitbrain.history.records import PairedOperation

_NS_PER_MS: Final = 1_000_000
_NS_PER_S: Final = 1_000_000_000
#: Time behind a heal in which effects still show, by a client's timeout or an election.
MARGIN_NS: Final = 1_000_000_000
#: Least operations of the quiet time for a comparison.
QUIET_MIN: Final = 20
#: Least gap in a node's log that is a stall, and least delay that makes an answer slow: a busy
#: machine does less by itself.
_STALL_NS: Final = 250_000_000
#: Factor over the longest of the quiet time.
_LONGER: Final = 2
#: Standard deviations by which a failure must be more frequent than in the quiet time.
_SIGMAS: Final = 3.0
_NAMED_MAX: Final = 3
NOTHING_NOTICED: Final = (
    "no role changed, no request failed or took longer than usual, no peer fell behind"
)


class Notice(msgspec.Struct, frozen=True):
    """Signs that the system noticed one fault."""

    #: None: unknown.
    noticed: bool | None
    #: The signs, or why it is unknown, in words.
    text: str


def notices(windows: Sequence[FaultWindow], record: RunRecord) -> dict[int, Notice]:
    """Return how the system noticed each fault that took effect, by the fault's index."""
    spans = [(window.start, window.end + MARGIN_NS) for window in windows]
    timeout_s = 0.0 if record.plan is None else record.plan.experiment.operation_timeout_s
    requests = _Requests(
        spans,
        [operation for operation in record.operations if not operation.final],
        round(timeout_s * _NS_PER_S),
    )
    logs = {node: _growth(events) for node, events in record.state_events.items()}
    found: dict[int, Notice] = {}
    for place, window in enumerate(windows):
        if not window.verified or window.spared:
            continue
        seen = [
            *_exits(window, record.phases),
            *_roles(window, record),
            *requests.signs(place),
            *_stalls(window, logs, spans),
        ]
        if seen:
            more = f" and {len(seen) - _NAMED_MAX} more" if len(seen) > _NAMED_MAX else ""
            found[window.index] = Notice(True, "; ".join(seen[:_NAMED_MAX]) + more)
            continue
        why_unknown = requests.why_unknown(place) or _unknown_roles(record)
        found[window.index] = (
            Notice(False, NOTHING_NOTICED) if why_unknown is None else Notice(None, why_unknown)
        )
    return found


def too_short(record: RunRecord, noticed: Collection[str]) -> dict[str, str]:
    """Return the kinds that took effect and of which none lasted until the system notices one.

    Each comes with a sentence. Empty where nothing says how long the system takes; kinds that were
    ``noticed`` lasted long enough, whatever it says.
    """
    plan = record.plan
    if plan is None or plan.noticing is None:
        return {}
    longest: dict[str, int] = {}
    for window in record.windows:
        may_be_late = window.kind in plan.noticing.kinds and window.kind not in noticed
        if window.verified and not window.spared and may_be_late:
            lasted = window.end - window.start
            longest[window.kind] = max(lasted, longest.get(window.kind, 0))
    noticing, system = plan.noticing, plan.experiment.system
    remedy = "only longer ones show what it does then"
    if noticing.time_limit_s is not None:
        remedy = f"--time-limit {noticing.time_limit_s:g} draws longer ones"
    return {
        kind: f"No fault of kind {kind} was longer than the {noticing.after_s:g} s that {system} "
        f"takes to notice one, the longest took {lasted / 1e9:.1f} s; {remedy}."
        for kind, lasted in sorted(longest.items())
        if lasted <= noticing.after_s * 1e9
    }


# --- roles ----------------------------------------------------------------------------------


def _exits(window: FaultWindow, phases: Iterable[Phase]) -> Iterator[str]:
    for phase in phases:
        if phase.phase == "node-exited" and _is_inside(window, phase.time):
            yield f"{phase.node} ended by itself {_after(window, phase.time)}"


def _roles(window: FaultWindow, record: RunRecord) -> Iterator[str]:
    """Yield changes of role, epoch or leader, except the restart of a node that the fault ended."""
    if not any(record.state_events.values()):
        yield from _leader_changes(window, record.sightings)
        return
    found: list[tuple[int, str]] = []
    for node, events in record.state_events.items():
        before: tuple[int, object] | None = None
        began: dict[int, int] = {}
        for event in events:
            if event.time is not None:
                began.setdefault(event.incarnation, event.time)
            if event.time is None or event.kind not in ("started", "role", "stopped", "fatal"):
                continue
            now = (event.role, event.epoch, event.leader)
            is_new_life = before is not None and before[0] != event.incarnation
            is_change = before is not None and not is_new_life and before[1] != now
            before = (event.incarnation, now)
            if not _is_inside(window, event.time):
                continue
            if event.kind in ("stopped", "fatal") and node not in window.nodes:
                found.append((event.time, f"{node} stopped"))
            elif event.kind == "role" and is_change:
                # A node ended by the fault takes some role when it starts again.
                if node in window.nodes and began[event.incarnation] >= window.start:
                    continue
                found.append((event.time, f"{node} became {event.role} in epoch {event.epoch}"))
    if found:
        time, change = min(found)
        more = f", the first of {len(found)} changes of role" if len(found) > 1 else ""
        yield f"{change} {_after(window, time)}{more}"


def _leader_changes(window: FaultWindow, sightings: Iterable[LeaderSighting]) -> Iterator[str]:
    before: tuple[object, object] | None = None
    for seen in sightings:
        now = (seen.leader, seen.epoch)
        if before is not None and now != before and _is_inside(window, seen.time):
            who = "nobody was" if seen.leader is None else f"{seen.leader} was"
            yield f"{who} seen to lead {_after(window, seen.time)}"
        before = now


def _unknown_roles(record: RunRecord) -> str | None:
    silent = [node for node in record.node_names if not record.state_events.get(node)]
    if not silent or (len(silent) == len(record.node_names) and record.sightings):
        return None
    who = "the nodes" if len(silent) == len(record.node_names) else ", ".join(silent)
    return f"{who} stated no role"


# --- requests -------------------------------------------------------------------------------


class _Tally:
    def __init__(self) -> None:
        self.count = 0
        self.failures: Counter[tuple[str, str]] = Counter()
        self.longest_ns = 0

    def add(self, operation: PairedOperation) -> None:
        self.count += 1
        if operation.type != "ok":
            self.failures[operation.type, operation.error or UNNAMED_ERROR] += 1
        elif operation.end is not None:
            self.longest_ns = max(self.longest_ns, operation.end - operation.start)


class _Requests:
    """Operations of the clients by the spans they overlap, and those of the quiet time.

    One of unknown outcome may take effect at any later time, but its client gave it up after
    ``timeout_ns`` at most: faults after that did not hurt it.
    """

    def __init__(
        self,
        spans: Sequence[tuple[int, int]],
        operations: Iterable[PairedOperation],
        timeout_ns: int,
    ) -> None:
        self._quiet = _Tally()
        self._met = [_Tally() for _ in spans]
        starts = [start for start, _ in spans]
        latest_ends = list(accumulate((end for _, end in spans), max))
        for operation in operations:
            is_quiet = True
            end = operation.start + timeout_ns if operation.end is None else operation.end
            last = bisect_left(starts, end)
            for place in range(last - 1, -1, -1):
                if latest_ends[place] <= operation.start:
                    break
                if spans[place][1] > operation.start:
                    is_quiet = False
                    self._met[place].add(operation)
            if is_quiet:
                self._quiet.add(operation)

    def signs(self, place: int) -> Iterator[str]:
        met, quiet = self._met[place], self._quiet
        if quiet.count < QUIET_MIN:
            return
        for (outcome, error), count in met.failures.most_common():
            share = quiet.failures[outcome, error] / quiet.count
            usual = met.count * share
            if count > usual + _SIGMAS * math.sqrt(usual * (1 - share)):
                unusual = "" if not share else f", where {usual:.0f} are usual"
                yield f"{count:,} of {met.count:,} operations ended {outcome} ({error}){unusual}"
        longest, usual_ns = met.longest_ns, quiet.longest_ns
        if longest > max(_LONGER * usual_ns, usual_ns + _STALL_NS):
            yield (
                f"an answer took {longest // _NS_PER_MS:,} ms, "
                f"{usual_ns // _NS_PER_MS:,} ms at most without a fault"
            )

    def why_unknown(self, place: int) -> str | None:
        if not self._met[place].count:
            return "it hit no operation"
        if self._quiet.count < QUIET_MIN:
            return "too few operations were made without a fault to compare with"
        return None


# --- peers ----------------------------------------------------------------------------------


def _growth(events: Iterable[StateEvent]) -> list[int]:
    return sorted(
        event.time for event in events if event.kind == "append" and event.time is not None
    )


def _stalls(
    window: FaultWindow, logs: Mapping[str, Sequence[int]], spans: Sequence[tuple[int, int]]
) -> Iterator[str]:
    last = max((times[-1] for times in logs.values() if times), default=0)
    for node, times in logs.items():
        if not times or (node in window.nodes and window.may_end_processes):
            continue
        gaps = [*pairwise(times), (times[-1], last)]
        quiet = [
            end - start
            for start, end in gaps[:-1]
            if all(end <= begun or start >= over for begun, over in spans)
        ]
        least = max(_STALL_NS, _LONGER * max(quiet, default=0))
        inside = [
            (end - start, start, end)
            for start, end in gaps
            if end > window.start and start < window.end and end - max(start, window.start) >= least
        ]
        longest = max(inside, default=None)
        if longest is None:
            continue
        length, start, end = longest
        if any(_grew(other, start, end) for name, other in logs.items() if name != node):
            yield f"{node} took in nothing for {length / 1e9:.1f} s while others did"


def _grew(times: Sequence[int], start: int, end: int) -> bool:
    return bisect_right(times, start) < bisect_left(times, end)


def _is_inside(window: FaultWindow, time: int) -> bool:
    return window.start <= time <= window.end + MARGIN_NS


def _after(window: FaultWindow, time: int) -> str:
    return f"after {(time - window.start) // _NS_PER_MS:,} ms"
