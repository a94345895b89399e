"""Judges the nodes' own conduct: exits that nobody asked for, fatal errors, tracebacks.

A node that exits by itself is a failure of the system unless a recorded fault on that node asks for
it; a traceback always is one. Told from the run folder alone: the watch over the nodes
(``phases.jsonl``) is believed first, then state events (restarts, ``fatal``, ``stopped``) and fault
windows, and the text of the nodes' logs. Must never call a node healthy that left no trace at all:
that is ``unknown``. Source: design, section 5 (verdicts).
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from checker.verdict import CheckResult, Verdict
from contracts.state_event import StateEvent
from harness.evidence_loader import RunRecord
from harness.fault_results import ENDING_KINDS, FaultWindow, fault_windows

CHECKER_NAME = "node-health"

#: A state event is stamped when the harness reads it, a fault when it is asked for.
_STAMP_SLACK_NS = 2_000_000_000
_LOG_SUFFIXES = frozenset({".log", ".txt", ".out", ".err"})
_TRACEBACK = b"Traceback (most recent call last)"
#: A log is read up to here; a system under test may fill a disk.
_LOG_BYTES_MAX = 256 * 2**20
_EXCERPT_LINES_MAX = 60
_VIOLATIONS_MAX = 20


def judge_nodes(record: RunRecord) -> CheckResult:
    """Look at every node of a run."""
    windows = fault_windows(record.faults, record.end_time)
    load_end = record.events[-1].time if record.events else 0
    violations: list[dict[str, Any]] = []
    restarts = 0
    for node in record.node_names:
        events = record.state_events.get(node, [])
        restarts += len({event.incarnation for event in events} - {0})
        violations += _watched_exits(record, node) or _exits(node, events, windows, load_end)
        violations += _tracebacks(node, record.folder.root / "nodes" / node)
    silent = [node for node in record.node_names if not _left_a_trace(record, node)]
    return _result(record.node_names, violations, silent, restarts)


def _result(
    nodes: Sequence[str], violations: list[dict[str, Any]], silent: Sequence[str], restarts: int
) -> CheckResult:
    verdict, reason = Verdict.VALID, "No node ended by itself and none wrote a traceback."
    if violations:
        verdict, reason = Verdict.INVALID, str(violations[0]["sentence"])
        if len(violations) > 1:
            reason += f" ({len(violations) - 1} more.)"
    elif not nodes or silent:
        verdict = Verdict.UNKNOWN
        reason = f"Nothing is known of {', '.join(silent) or 'the nodes'}: no log, no state event."
    return CheckResult(
        checker=CHECKER_NAME,
        verdict=verdict,
        reason=reason,
        figures={"nodes": len(nodes), "restarts": restarts},
        violations=tuple(violations[:_VIOLATIONS_MAX]),
    )


def _left_a_trace(record: RunRecord, node: str) -> bool:
    return bool(record.state_events.get(node)) or any(_logs(record.folder.root / "nodes" / node))


def _watched_exits(record: RunRecord, node: str) -> list[dict[str, Any]]:
    """Exits that the harness saw while no fault on the node was in force."""
    fatal = [event for event in record.state_events.get(node, []) if event.kind == "fatal"]
    found: list[dict[str, Any]] = []
    for phase in record.phases:
        if phase.phase != "node-exited" or phase.node != node:
            continue
        why = next((event.reason for event in fatal if event.reason), phase.detail)
        code = "an unknown exit code" if phase.exit_code is None else f"exit code {phase.exit_code}"
        what = f"ended by itself with {code}" + (f" ({why})" if why else "")
        found.append(_violation("node-exited", node, phase.time, what))
    return found


def _exits(
    node: str, events: Sequence[StateEvent], windows: Sequence[FaultWindow], load_end: int
) -> Iterator[dict[str, Any]]:
    """Ends of the node's process that no fault on that node explains."""
    ending = [window for window in windows if node in window.nodes and window.kind in ENDING_KINDS]
    told: set[int] = set()
    previous: StateEvent | None = None
    for event in events:
        if event.kind == "fatal":
            told.add(event.incarnation)
            yield _violation(
                "node-fatal", node, event.time, f"stopped with a fatal error: {event.reason}"
            )
        elif (
            event.kind == "stopped"
            and event.incarnation not in told
            and (event.time or 0) < load_end
            and not _explained(ending, event.time)
        ):
            told.add(event.incarnation)
            why = event.reason or "no reason given"
            yield _violation("node-exited", node, event.time, f"stopped by itself: {why}")
        elif (
            previous is not None
            and event.incarnation > previous.incarnation
            and previous.incarnation not in told
            and not _explained(ending, event.time)
        ):
            what = "was started again though no fault ended it"
            yield _violation("node-exited", node, event.time, what)
        previous = event


def _explained(ending: Sequence[FaultWindow], time: int | None) -> bool:
    return time is None or any(
        window.start - _STAMP_SLACK_NS <= time <= window.end + _STAMP_SLACK_NS for window in ending
    )


def _violation(kind: str, node: str, time: int | None, what: str) -> dict[str, Any]:
    when = "" if time is None else f" {time / 1e9:.3f} s into the run"
    return {"kind": kind, "node": node, "time": time, "sentence": f"Node {node} {what}{when}."}


def _tracebacks(node: str, folder: Path) -> Iterator[dict[str, Any]]:
    for path in _logs(folder):
        excerpt = first_traceback(path)
        if excerpt is None:
            continue
        last = excerpt[-1].strip()
        yield {
            "kind": "traceback",
            "node": node,
            "file": path.name,
            "text": "\n".join(excerpt),
            "sentence": f"Node {node} wrote a traceback to {path.name}: {last}",
        }


def first_traceback(path: Path) -> list[str] | None:
    """The lines of the first Python traceback in a log, up to the line that names the exception."""
    read = 0
    with path.open("rb") as file:
        for line in file:
            read += len(line)
            if _TRACEBACK in line:
                return _excerpt(line, file)
            if read > _LOG_BYTES_MAX:
                return None
    return None


def _excerpt(first: bytes, following: Iterator[bytes]) -> list[str]:
    """From the traceback's first line to its first line that is not indented."""
    if b"\\n" in first:  # a JSON line holds the whole of it
        text = first.decode("utf-8", "replace").split(_TRACEBACK.decode(), 1)[1].lstrip(":")
        parts = [part for part in text.split('"')[0].split("\\n") if part.strip()]
        return [_TRACEBACK.decode(), *parts[: _EXCERPT_LINES_MAX - 1]]
    lines = [first.decode("utf-8", "replace").rstrip()]
    indent = first.index(_TRACEBACK)
    for line in following:
        text = line.decode("utf-8", "replace").rstrip()
        lines.append(text)
        body = text[indent:]
        if (body and not body.startswith(" ")) or len(lines) >= _EXCERPT_LINES_MAX:
            break
    return lines


def _logs(folder: Path) -> Iterator[Path]:
    """Text that the node printed or logged; its data folder is left alone."""
    if not folder.is_dir():
        return
    for path in sorted(folder.iterdir()):
        if path.is_file() and path.suffix in _LOG_SUFFIXES:
            yield path
