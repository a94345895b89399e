"""The jobs of ``spark_analysis`` in plain Python, from their definitions and as slow as they like.

Nothing of the jobs is imported: the two are held equal by tests, on run folders read twice.
"""

from collections import Counter, defaultdict
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec

from splitbrain.contracts.committed import CommittedRecord
from splitbrain.contracts.fault import FaultEvent
from splitbrain.contracts.state_event import StateEvent
from splitbrain.history import leadership
from splitbrain.history.fault_windows import FaultWindow
from splitbrain.history.fault_windows import fault_windows as windows_of
from splitbrain.history.pairing import pair
from splitbrain.history.reader import HistoryReader
from splitbrain.history.records import PairedOperation
from splitbrain.history.run_folder import RunFolder

SLOT = 100_000_000
CONTEXT = 5_000_000_000
MS = 1e6


class Run:
    """A run folder in memory."""

    def __init__(self, root: Path) -> None:
        folder = RunFolder(root)
        self.operations = pair(HistoryReader(folder.history))
        self.load = [operation for operation in self.operations if not operation.final]
        self.faults = _lines(folder.faults, FaultEvent)
        self.nodes = folder.node_names()
        self.state_events = {
            str(node): _lines(folder.state_events(node), StateEvent) for node in self.nodes
        }
        #: Node to its start offset and records; nodes without a log are left out.
        self.logs: dict[str, tuple[int, list[CommittedRecord]]] = {}
        for node in self.nodes:
            if folder.committed_log(node).exists():
                header, *records = folder.committed_log(node).read_bytes().splitlines()
                start = msgspec.json.decode(header)["start_offset"]
                decoded = [msgspec.json.decode(line, type=CommittedRecord) for line in records]
                self.logs[str(node)] = (start, decoded)


def _lines(path: Path, kind: type[Any]) -> list[Any]:
    if not path.exists():
        return []
    # A line behind the last line feed is torn.
    return [msgspec.json.decode(line, type=kind) for line in path.read_bytes().split(b"\n")[:-1]]


def _is_write(operation: PairedOperation) -> bool:
    return operation.f != "read"


def _seen_ns(operation: PairedOperation) -> int:
    return operation.start if operation.end is None else operation.end


def _acknowledgements(operations: Sequence[PairedOperation]) -> list[PairedOperation]:
    return [
        operation for operation in operations if operation.type == "ok" and _is_write(operation)
    ]


# --- latency --------------------------------------------------------------------------------


def quantile(values: list[int], p: float) -> float:
    ordered = sorted(values)
    rank = p * (len(ordered) - 1)
    below = int(rank)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (rank - below) * (ordered[above] - ordered[below])


def latency_quantiles(run: Run) -> dict[tuple[str, int, str], tuple[Any, ...]]:
    groups: dict[tuple[str, int, str], list[PairedOperation]] = defaultdict(list)
    for operation in run.load:
        groups[operation.f, operation.start // 10**9, operation.type].append(operation)
    result: dict[tuple[str, int, str], tuple[Any, ...]] = {}
    for key, group in groups.items():
        latencies = [one.end - one.start for one in group if one.end is not None]
        figures = (
            tuple(quantile(latencies, p) / MS for p in (0.5, 0.95, 0.99, 1))
            if latencies
            else (None,) * 4
        )
        result[key] = (len(group), *figures)
    return result


def throughput(run: Run) -> dict[int, tuple[int, int, int]]:
    ended = Counter((_seen_ns(operation) // 10**9, operation.type) for operation in run.load)
    return {
        second: (ended[second, "ok"], ended[second, "fail"], ended[second, "info"])
        for second in {second for second, _ in ended}
    }


# --- availability ---------------------------------------------------------------------------


def windows(run: Run) -> list[FaultWindow]:
    return windows_of(run.faults, max(map(_seen_ns, run.load))) if run.load else []


def fault_windows(run: Run) -> dict[int, dict[str, Any]]:
    every = windows(run)
    result: dict[int, dict[str, Any]] = {}
    for window in every:
        others = [other for other in every if other is not window]
        load_start = min(operation.start for operation in run.load)
        load_end = max(_seen_ns(operation) for operation in run.load)
        before = [window.start - CONTEXT, load_start]
        before += [min(o.end, window.start) for o in others if o.start < window.start]
        after = [window.end + CONTEXT, load_end]
        after += [max(o.start, window.end) for o in others if o.end > window.end]
        figures: dict[str, Any] = {}
        for phase, begin, end in (
            ("before", max(before), window.start),
            ("during", window.start, window.end),
            ("after", window.end, min(after)),
        ):
            figures[f"availability_{phase}"], figures[f"ok_ratio_{phase}"] = _served(
                run, begin, end
            )
        failover, new_epoch = _failover(run, window, others)
        figures |= {
            "failover_ms": failover,
            "new_epoch": new_epoch,
            "recovery_ms": _recovery(run, window, others),
            "kind": window.kind,
            "target": window.target,
            "nodes": list(window.nodes),
            "verified": window.verified,
            "start_ns": window.start,
            "end_ns": window.end,
        }
        result[window.index] = figures
    return result


def _served(run: Run, begin: int, end: int) -> tuple[float | None, float | None]:
    slots = range(-(-begin // SLOT), end // SLOT)
    if not slots:
        return None, None
    serving = {_seen_ns(one) // SLOT for one in _acknowledgements(run.load)} & set(slots)
    invoked = [one for one in run.load if one.start // SLOT in slots]
    ok = sum(one.type == "ok" for one in invoked)
    return len(serving) / len(slots), ok / len(invoked) if invoked else None


def _failover(
    run: Run, window: FaultWindow, others: list[FaultWindow]
) -> tuple[float | None, int | None]:
    acknowledged = [one for one in _acknowledgements(run.load) if one.position is not None]
    known = [
        one.position[0] for one in acknowledged if one.position and _seen_ns(one) <= window.start
    ]
    if not known:
        return None, None
    until = min((o.start for o in others if o.start > window.start), default=None)
    candidates = [
        (_seen_ns(one), one.position[0])
        for one in acknowledged
        if one.position
        and one.position[0] > max(known)
        and one.start > window.start
        and (until is None or _seen_ns(one) < until)
    ]
    if not candidates:
        return None, None
    told, epoch = min(candidates)
    return (told - window.start) / MS, epoch


def _recovery(run: Run, window: FaultWindow, others: list[FaultWindow]) -> float | None:
    if not window.healed:
        return None
    until = min((o.start for o in others if o.start > window.end), default=None)
    told = [
        _seen_ns(one)
        for one in _acknowledgements(run.load)
        if one.start >= window.end and (until is None or _seen_ns(one) < until)
    ]
    return (min(told) - window.end) / MS if told else None


def longest_unavailability(run: Run) -> tuple[int, int] | None:
    """Start and end of the gap."""
    writes = [operation for operation in run.load if _is_write(operation)]
    if not writes:
        return None
    moments = [min(one.start for one in writes), max(_seen_ns(one) for one in writes)]
    moments += [_seen_ns(one) for one in _acknowledgements(writes)]
    gaps = [(end - start, -start, (start, end)) for start, end in pairwise(sorted(moments))]
    return max(gaps)[2]


# --- commits --------------------------------------------------------------------------------


def _content(f: str | None, key: str | None, value: Any) -> tuple[str | None, str | None, str]:
    return f, key, repr(value)


def acknowledged_writes(run: Run) -> list[PairedOperation]:
    acknowledged = _acknowledgements(run.operations)
    return [one for one in acknowledged if not (one.f == "cas" and one.result[2] is False)]


def lost_commits(run: Run) -> dict[int, tuple[int, int]]:
    """Index of the operation to its holders and unknown nodes."""
    places = {
        node: {(r.epoch, r.offset, *_content(r.f, r.key, r.value)) for r in records}
        for node, (_, records) in run.logs.items()
    }
    contents = {node: {place[2:] for place in held} for node, held in places.items()}
    lost: dict[int, tuple[int, int]] = {}
    for one in acknowledged_writes(run):
        content = _content(one.f, one.key, one.argument)
        holders = unknown = 0
        for node in run.nodes:
            if node not in run.logs:
                unknown += 1
            elif one.position is not None:
                behind_snapshot = one.position[1] < run.logs[node][0]
                holders += behind_snapshot or (*one.position, *content) in places[node]
            elif content in contents[node]:
                holders += 1
            elif run.logs[node][0] > 0:
                unknown += 1
        if holders + unknown < len(run.nodes) // 2 + 1:
            lost[one.index] = (holders, unknown)
    return lost


def phantom_commits(run: Run) -> dict[tuple[Any, ...], tuple[str, list[str]]]:
    """Record to its reason and nodes."""
    nodes: dict[tuple[Any, ...], set[str]] = defaultdict(set)
    for node, (_, records) in run.logs.items():
        for record in records:
            if record.f is not None:
                content = _content(record.f, record.key, record.value)
                nodes[record.offset, record.epoch, content].add(node)
    writes = [one for one in run.operations if _is_write(one)]
    explained = {
        (one.position[1], one.position[0], _content(one.f, one.key, one.argument))
        for one in writes
        if one.type == "ok" and one.position
    }
    by_content: dict[Any, Counter[str]] = defaultdict(Counter)
    for one in writes:
        content = _content(one.f, one.key, one.argument)
        by_content[content][one.type] += 1
        if one.type == "info" or (one.type == "ok" and one.position is None):
            by_content[content]["explains"] += 1
    phantom: dict[tuple[Any, ...], tuple[str, list[str]]] = {}
    for record in sorted(set(nodes) - explained):
        outcomes = by_content[record[2]]
        if outcomes["explains"] > 0:
            outcomes["explains"] -= 1
            continue
        reason = (
            "failed" if outcomes["fail"] else "duplicate" if outcomes["ok"] else "never-invoked"
        )
        phantom[record] = (reason, sorted(nodes[record]))
    return phantom


# --- leadership -----------------------------------------------------------------------------


def reigns(run: Run) -> set[tuple[str, int, int, int]]:
    """Node, epoch, start, end."""
    times = [event.time for events in run.state_events.values() for event in events]
    run_end = max([*(_seen_ns(one) for one in run.operations), *times], default=0)
    return {
        (one.node, one.epoch, one.start, run_end if one.end is None else one.end)
        for one in leadership.reigns(run.state_events, windows_of(run.faults))
        if one.start is not None
    }


def leader_overlaps(run: Run) -> set[tuple[int, int, str, str, int, int, bool]]:
    """Epochs, nodes, start, end, same epoch."""
    found: set[tuple[int, int, str, str, int, int, bool]] = set()
    ordered = sorted(reigns(run), key=lambda reign: (reign[1], reign[2], reign[0]))
    for place, (node_a, epoch_a, start_a, end_a) in enumerate(ordered):
        for node_b, epoch_b, start_b, end_b in ordered[place + 1 :]:
            start = max(start_a, start_b)
            end = max(start, min(end_a, end_b))
            if node_a != node_b and (epoch_a == epoch_b or start < end):
                same = epoch_a == epoch_b
                found.add((epoch_a, epoch_b, node_a, node_b, start, end, same))
    return found
