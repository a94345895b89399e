"""Further jobs in plain Python, from their definitions and as slow as they like."""

import math
from collections import Counter, defaultdict
from itertools import combinations
from typing import Any

from splitbrain.contracts.state_event import StateEvent
from splitbrain.history.fault_windows import fault_windows
from splitbrain.history.records import PairedOperation
from tests.spark.reference import CONTEXT, MS, Run, reigns

# --- elections ------------------------------------------------------------------------------


def election_timeline(run: Run) -> set[tuple[Any, ...]]:
    """Epoch, leader, start, end, how it ended, ms without a leader before, leaders of the epoch."""
    ordered = sorted(reigns(run), key=lambda reign: (reign[2], reign[1], reign[0]))
    found: set[tuple[Any, ...]] = set()
    for place, (node, epoch, start, end) in enumerate(ordered):
        earlier = [reign[3] for reign in ordered[:place]]
        leaderless = max(0, start - max(earlier)) / MS if earlier else None
        leaders = {reign[0] for reign in ordered if reign[1] == epoch}
        ended = _ended(run, node, epoch, start, end)
        found.add((epoch, node, start, end, ended, leaderless, len(leaders)))
    return found


def without_fault(run: Run) -> set[tuple[Any, ...]]:
    """Reigns of the timeline that no fault explains."""
    timeline = election_timeline(run)
    first = min((row[0] for row in timeline), default=0)
    spans: list[tuple[int, float]] = []
    for index in {event.index for event in run.faults}:
        times = {event.phase: event.time for event in reversed(run.faults) if event.index == index}
        if "invoked" in times:
            spans.append((times["invoked"], times.get("removed", math.inf) + CONTEXT))
    return {
        row
        for row in timeline
        if row[0] != first and not any(begin <= row[2] < end for begin, end in spans)
    }


def _ended(run: Run, node: str, epoch: int, start: int, end: int) -> str:
    told = sorted(run.state_events[node], key=lambda event: (event.incarnation, event.sequence))
    place = next(
        n for n, one in enumerate(told) if _leads(one) and one.epoch == epoch and one.time == start
    )
    first = told[place]
    after = next((one for one in told[place + 1 :] if _ends(first, one)), None)
    # A reign lasts until its node says otherwise; where it is shorter it was cut off by a kill.
    windows = [window for window in fault_windows(run.faults) if node in window.nodes]
    kills = {window.ends_life_begun(start) for window in windows} - {None}
    if any(end == max(start, kill) for kill in kills if kill is not None) and (
        after is None or end < (after.time or 0)
    ):
        return "killed"
    if after is None:
        return "run-ended"
    if after.kind in ("stopped", "fatal"):
        return after.kind
    return "restarted" if after.incarnation > first.incarnation else "resigned"


def _leads(event: StateEvent) -> bool:
    return event.kind == "role" and event.role == "leader"


def _ends(first: StateEvent, event: StateEvent) -> bool:
    if event.incarnation > first.incarnation or event.kind in ("started", "stopped", "fatal"):
        return True
    return event.kind == "role" and not (_leads(event) and event.epoch == first.epoch)


# --- logs -----------------------------------------------------------------------------------


def first_divergences(run: Run) -> set[tuple[Any, ...]]:
    """Two nodes, the offset, and epoch and digest of either."""
    found: set[tuple[Any, ...]] = set()
    # The header's end is not kept by the reference; synthetic dumps end with their last record.
    for a, b in combinations(sorted(run.logs), 2):
        (start_a, records_a), (start_b, records_b) = run.logs[a], run.logs[b]
        by_a = {one.offset: (one.epoch, one.digest) for one in records_a}
        by_b = {one.offset: (one.epoch, one.digest) for one in records_b}
        end = min(max(by_a, default=-1), max(by_b, default=-1)) + 1
        for offset in range(max(start_a, start_b), end):
            left, right = by_a.get(offset), by_b.get(offset)
            if left != right:
                found.add((a, b, offset, *(left or (None, None)), *(right or (None, None))))
                break
    return found


# --- reads ----------------------------------------------------------------------------------


def stale_reads(run: list[PairedOperation]) -> dict[int, tuple[float, int]]:
    """Index of the read to its age in ms and in versions."""
    by_key: dict[str | None, list[PairedOperation]] = defaultdict(list)
    for one in run:
        by_key[one.key].append(one)
    found: dict[int, tuple[float, int]] = {}
    for operations in by_key.values():
        writes = [one for one in operations if _wrote(one)]
        values = Counter(repr(_written(one)) for one in writes)
        acknowledged = [one for one in writes if one.type == "ok"]
        for read in operations:
            if read.f != "read" or read.type != "ok":
                continue
            if read.result is None:
                done: int | None = -1 if not values[repr(None)] else None
            else:
                source = [one for one in writes if _written(one) == read.result]
                done = source[0].end if len(source) == 1 and source[0].type == "ok" else None
            if done is None:
                continue
            between = [
                one.end
                for one in acknowledged
                if one.end is not None and one.start > done and one.end < read.start
            ]
            if between:
                found[read.index] = ((read.start - min(between)) / MS, len(between))
    return found


def _wrote(one: PairedOperation) -> bool:
    refused = one.f == "cas" and one.type == "ok" and one.result[2] is False
    return one.f in ("write", "cas") and one.type != "fail" and not refused


def _written(one: PairedOperation) -> Any:
    return one.argument[1] if one.f == "cas" else one.argument


# --- duplicates and errors ------------------------------------------------------------------


def committed_twice(run: Run) -> dict[tuple[Any, ...], tuple[int, int, int]]:
    """Node, kind, key and value to the count, what is expected at most, and the first offset."""
    asked = Counter(
        (one.f, one.key, repr(one.argument))
        for one in run.operations
        if one.f != "read" and one.type != "fail"
    )
    found: dict[tuple[Any, ...], tuple[int, int, int]] = {}
    for node, (_, records) in run.logs.items():
        places: dict[tuple[Any, ...], list[int]] = defaultdict(list)
        for record in records:
            if record.f is not None:
                places[record.f, record.key, repr(record.value)].append(record.offset)
        for content, offsets in places.items():
            expected = max(1, asked[content])
            if len(offsets) > expected:
                found[(node, *content)] = (len(offsets), expected, min(offsets))
    return found


def read_twice(run: Run) -> list[str]:
    """Elements that one read of a set returned more than once."""
    sets = {one.key for one in run.operations if one.f == "add"}
    reads = [one for one in run.operations if one.f == "read" and one.type == "ok"]
    return [
        element
        for one in reads
        if one.key in sets
        for element, count in Counter(map(repr, one.result)).items()
        if count > 1
    ]


def client_errors(run: Run) -> dict[tuple[Any, ...], tuple[int, int, int]]:
    """Kind, node, outcome and class to the count, first and last invocation."""
    starts: dict[tuple[Any, ...], list[int]] = defaultdict(list)
    for one in run.operations:
        if one.type != "ok":
            starts[one.f, one.node, one.type, one.error or "none"].append(one.start)
    return {name: (len(all_of), min(all_of), max(all_of)) for name, all_of in starts.items()}
