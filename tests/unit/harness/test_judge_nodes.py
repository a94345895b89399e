"""Exits that nobody asked for and tracebacks are failures of the system; asked-for ends are not."""

from pathlib import Path

import msgspec
import pytest

from checker.verdict import Verdict
from contracts.fault import FaultEvent, FaultPhase
from contracts.names import NodeName
from contracts.state_event import StateEvent, StateEventKind
from harness.evidence_loader import RunRecord
from harness.node_health import first_traceback, judge_nodes
from harness.phases import Phase
from history.records import Event
from history.run_folder import RunFolder

S = 1_000_000_000


def event(kind: StateEventKind, at: int, incarnation: int = 0, **more: object) -> StateEvent:
    return msgspec.structs.replace(StateEvent("n1", at, incarnation, kind, 1, time=at * S), **more)


def kill(start: int, end: int, node: str = "n1", kind: str = "kill") -> tuple[FaultEvent, ...]:
    story: tuple[tuple[int, FaultPhase], ...] = (
        (start, "invoked"),
        (start, "verified"),
        (end, "removed"),
    )
    return tuple(FaultEvent(at * S, 0, kind, phase, node, (NodeName(node),)) for at, phase in story)


def record(
    root: Path,
    events: list[StateEvent],
    *,
    faults: tuple[FaultEvent, ...] = (),
    phases: tuple[Phase, ...] = (),
) -> RunRecord:
    (root / "nodes" / "n1").mkdir(parents=True, exist_ok=True)
    return RunRecord(
        folder=RunFolder(root),
        plan=None,
        events=[Event(0, 100 * S, 0, "invoke", "read")],
        operations=[],
        scheduled=(),
        faults=faults,
        state_events={"n1": events},
        committed_logs={},
        phases=phases,
        living=False,
        problems=(),
    )


def kinds(found: RunRecord) -> list[str]:
    return [violation["kind"] for violation in judge_nodes(found).violations]


def test_a_node_that_runs_to_the_end_is_in_order(tmp_path: Path) -> None:
    ended = [event("started", 1), event("stopped", 120)]
    assert judge_nodes(record(tmp_path, ended)).verdict is Verdict.VALID


def test_a_killed_node_may_start_again(tmp_path: Path) -> None:
    restarted = [event("started", 1), event("started", 20, 1)]
    assert kinds(record(tmp_path, restarted, faults=kill(10, 20))) == []


def test_a_restart_without_a_fault_is_a_violation(tmp_path: Path) -> None:
    restarted = [event("started", 1), event("started", 20, 1)]
    assert kinds(record(tmp_path, restarted)) == ["node-exited"]


@pytest.mark.parametrize("fault", [kill(10, 20, "n2"), kill(10, 20, kind="pause"), kill(50, 60)])
def test_a_fault_elsewhere_excuses_no_restart(
    tmp_path: Path, fault: tuple[FaultEvent, ...]
) -> None:
    restarted = [event("started", 1), event("started", 20, 1)]
    assert kinds(record(tmp_path, restarted, faults=fault)) == ["node-exited"]


def test_a_node_that_stops_during_the_load_is_a_violation(tmp_path: Path) -> None:
    stopped = [event("started", 1), event("stopped", 30, reason="disk full")]
    result = judge_nodes(record(tmp_path, stopped))
    assert result.verdict is Verdict.INVALID
    assert "disk full" in result.reason


def test_a_fatal_error_is_a_violation_whenever_it_comes(tmp_path: Path) -> None:
    fatal = [event("started", 1), event("fatal", 110, reason="invariant broken")]
    assert kinds(record(tmp_path, fatal)) == ["node-fatal"]


def test_the_watch_over_the_nodes_is_believed(tmp_path: Path) -> None:
    exited = Phase(30 * S, "node-exited", node="n1", exit_code=3)
    result = judge_nodes(record(tmp_path, [event("started", 1)], phases=(exited,)))
    assert result.reason == "Node n1 ended by itself with exit code 3 30.000 s into the run."


def test_a_traceback_in_a_log_is_a_violation(tmp_path: Path) -> None:
    found = record(tmp_path, [event("started", 1)])
    log = tmp_path / "nodes" / "n1" / "container.log"
    log.write_text(
        "starting\nTraceback (most recent call last):\n"
        '  File "a.py", line 1, in f\n    g()\nKeyError: 7\nafter\n'
    )
    (violation,) = judge_nodes(found).violations
    assert violation["kind"] == "traceback"
    assert violation["sentence"].endswith("KeyError: 7")
    assert "after" not in violation["text"]


def test_a_traceback_inside_a_json_line_is_found(tmp_path: Path) -> None:
    log = tmp_path / "node.log"
    log.write_text(
        r'{"level":"error","trace":"Traceback (most recent call last):\n  File x\nKeyError: 7"}'
    )
    assert first_traceback(log) == [
        "Traceback (most recent call last)",
        "  File x",
        "KeyError: 7",
    ]


def test_a_log_without_a_traceback_has_none(tmp_path: Path) -> None:
    log = tmp_path / "node.log"
    log.write_bytes(b"all is well\n\xff\xfe\n")
    assert first_traceback(log) is None


def test_a_node_without_any_trace_is_unknown(tmp_path: Path) -> None:
    silent = record(tmp_path, [])
    result = judge_nodes(silent)
    assert result.verdict is Verdict.UNKNOWN
    assert "n1" in result.reason


def test_data_folders_are_not_searched(tmp_path: Path) -> None:
    found = record(tmp_path, [event("started", 1)])
    data = tmp_path / "nodes" / "n1" / "data"
    data.mkdir()
    (data / "00.log").write_text("Traceback (most recent call last):\nKeyError: 7\n")
    assert kinds(found) == []
