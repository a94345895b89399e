"""Exits that nobody asked for and tracebacks are failures of the system; asked-for ends are not."""

from pathlib import Path

import msgspec
import pytest

from splitbrain.checker.verdict import Verdict
from splitbrain.contracts.fault import FaultEvent, FaultPhase
from splitbrain.contracts.names import NodeName
from splitbrain.contracts.state_event import StateEvent, StateEventKind
from splitbrain.harness.judge.evidence_loader import RunRecord
from splitbrain.harness.judge.log_defects import tracebacks
from splitbrain.harness.judge.node_health import judge_nodes
from splitbrain.history.course import Phase
from splitbrain.history.records import Event
from splitbrain.history.run_folder import RunFolder

S = 1_000_000_000
LOADED = Phase(S, "load-started")


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
        events=[Event(0, 100 * S, 0, "invoke", "read")],
        faults=faults,
        state_events={"n1": events},
        phases=phases,
    )


def kinds(found: RunRecord) -> list[str]:
    return [violation["kind"] for violation in judge_nodes(found).violations]


def test_a_node_that_runs_to_the_end_is_in_order(tmp_path: Path) -> None:
    ended = [event("started", 1), event("stopped", 120)]
    assert judge_nodes(record(tmp_path, ended)).verdict is Verdict.VALID


def test_a_killed_node_may_start_again(tmp_path: Path) -> None:
    restarted = [event("started", 1), event("started", 20, 1)]
    assert kinds(record(tmp_path, restarted, faults=kill(10, 20))) == []


def test_a_node_that_was_spared_from_forgetting_was_ended_all_the_same(tmp_path: Path) -> None:
    # Seen in a run whose wipe was refused once its node was down.
    restarted = [event("started", 1), event("started", 20, 1)]
    spared = FaultEvent(12 * S, 0, "wipe", "not-applicable", "n1", (NodeName("n1"),))
    story = kill(10, 20, kind="wipe")
    faults = (story[0], spared, story[2])
    assert kinds(record(tmp_path, restarted, faults=faults)) == []
    # One that was refused before it struck explains nothing.
    assert kinds(record(tmp_path, restarted, faults=(spared,))) == ["node-exited"]


def test_a_killed_node_may_take_its_time_to_start_again(tmp_path: Path) -> None:
    # Seen on a busy machine: its first event came 2.1 s after it was seen to run.
    restarted = [event("started", 1), event("role", 9), event("started", 30, 1)]
    assert kinds(record(tmp_path, restarted, faults=kill(10, 20))) == []


def test_a_node_that_the_kernel_killed_for_want_of_memory_may_take_its_time_too(
    tmp_path: Path,
) -> None:
    events = [event("started", 1), event("started", 30, incarnation=1)]
    starved = record(tmp_path, events, faults=kill(10, 20, kind="memory"))
    assert not judge_nodes(starved).violations
    # Others do not end a node that states no reason.
    assert kinds(record(tmp_path, events, faults=kill(10, 20, kind="full-disk"))) == ["node-exited"]


def test_a_restart_long_after_a_fault_that_it_outlived_is_a_violation(tmp_path: Path) -> None:
    restarted = [event("started", 1), event("role", 25), event("started", 30, 1)]
    assert kinds(record(tmp_path, restarted, faults=kill(10, 20))) == ["node-exited"]


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
    loaded = Phase(S, "load-started")
    exited = Phase(30 * S, "node-exited", node="n1", exit_code=3)
    result = judge_nodes(record(tmp_path, [event("started", 1)], phases=(loaded, exited)))
    assert result.reason == "Node n1 ended by itself with exit code 3 30.000 s into the run."


@pytest.mark.parametrize(
    ("kind", "reason", "expected"),
    [
        ("full-disk", "cannot append: No space left on device", []),
        ("disk-error", "fsync of segment 0 failed", []),
        ("flip", "bad checksum at offset 7", []),
        ("memory", "out of memory", []),
        ("memory", None, ["node-fatal"]),  # one that speaks was not killed
        ("full-disk", "invariant broken", ["node-fatal"]),  # another reason than the fault's
        ("full-disk", None, ["node-fatal"]),  # no reason at all
        ("pause", "no space left on device", ["node-fatal"]),  # a fault that does not ask for it
    ],
)
def test_a_node_may_stop_for_the_reason_that_a_fault_gives_it(
    tmp_path: Path, kind: str, reason: str | None, expected: list[str]
) -> None:
    events = [event("started", 1), event("fatal", 15, reason=reason), event("started", 20, 1)]
    assert kinds(record(tmp_path, events, faults=kill(10, 20, kind=kind))) == expected


@pytest.mark.parametrize(
    ("kind", "expected"), [("disk-error", []), ("roll-back", []), ("disk-stall", ["node-exited"])]
)
def test_a_node_whose_disk_asked_nothing_of_it_is_started_again_by_a_heal_that_kills(
    tmp_path: Path, kind: str, expected: list[str]
) -> None:
    events = [event("started", 1), event("started", 21, 1)]
    assert kinds(record(tmp_path, events, faults=kill(10, 20, kind=kind))) == expected


def test_a_reason_that_does_not_fit_is_said_beside_the_fault(tmp_path: Path) -> None:
    events = [event("started", 1), event("stopped", 15, reason="bored")]
    result = judge_nodes(record(tmp_path, events, faults=kill(10, 20, kind="full-disk")))
    assert "bored, which is not the reason that full-disk gives" in result.reason


@pytest.mark.parametrize(("start", "end"), [(30, 40), (1, 5)])
def test_a_fault_that_is_not_in_force_asks_for_nothing(
    tmp_path: Path, start: int, end: int
) -> None:
    events = [event("started", 1), event("fatal", 15, reason="disk full")]
    fault = kill(start, end, kind="full-disk")
    assert kinds(record(tmp_path, events, faults=fault)) == ["node-fatal"]


@pytest.mark.parametrize("kind", ["flip", "truncate"])
@pytest.mark.parametrize(
    ("at", "reason", "expected"),
    [
        # Seen on a busy machine: the node was slow to start, and met the change after the heal.
        (30, "n1.log is corrupt at byte 1929", []),
        (30, "bored", ["node-exited"]),
        (5, "n1.log is corrupt at byte 1929", ["node-exited"]),
    ],
)
def test_a_changed_disk_is_met_by_a_node_that_starts_late(
    tmp_path: Path, kind: str, at: int, reason: str, expected: list[str]
) -> None:
    course = (
        Phase(S, "load-started"),
        Phase(at * S, "node-exited", node="n1", exit_code=75, detail=reason),
    )
    found = record(tmp_path, [event("started", 1)], faults=kill(10, 20, kind=kind), phases=course)
    assert kinds(found) == expected


@pytest.mark.parametrize(
    ("kind", "exit_code", "expected"),
    [
        ("memory", 137, []),  # the kernel killed it: it could state no reason
        ("memory", None, []),  # the fault had started it again before its code was asked for
        ("full-disk", None, ["node-exited"]),
        ("memory", 1, ["node-exited"]),
        ("full-disk", 137, ["node-exited"]),
    ],
)
def test_a_watched_exit_is_judged_by_the_same_rule(
    tmp_path: Path, kind: str, exit_code: int | None, expected: list[str]
) -> None:
    course = (
        Phase(S, "load-started"),
        Phase(15 * S, "node-exited", node="n1", exit_code=exit_code),
    )
    found = record(tmp_path, [event("started", 1)], faults=kill(10, 20, kind=kind), phases=course)
    assert kinds(found) == expected


def test_a_traceback_is_a_violation_whatever_a_fault_asks_for(tmp_path: Path) -> None:
    found = record(tmp_path, [event("started", 1)], faults=kill(10, 20, kind="full-disk"))
    log = tmp_path / "nodes" / "n1" / "container.log"
    log.write_text("Traceback (most recent call last):\nOSError: No space left on device\n")
    assert kinds(found) == ["traceback"]


def test_a_restart_is_blamed_on_nobody_where_the_faults_are_not_known(tmp_path: Path) -> None:
    restarted = [event("started", 1), event("started", 20, 1)]
    found = msgspec.structs.replace(
        record(tmp_path, restarted), problems=("The last line of run/faults.jsonl is torn.",)
    )
    result = judge_nodes(found)
    assert result.verdict is Verdict.UNKNOWN
    assert "faults.jsonl is damaged" in result.reason


def test_a_traceback_far_inside_a_log_without_lines_is_found(tmp_path: Path) -> None:
    log = tmp_path / "node.log"
    text = b"Traceback (most recent call last):\n  File x\nKeyError: 7\n"
    # Across the border between two blocks that are read.
    log.write_bytes(b"." * ((1 << 22) - 10) + b"\n" + text)
    ((_, excerpt),) = tracebacks(log)
    assert excerpt[-1] == "KeyError: 7"


def test_each_exit_is_judged_by_the_reason_of_its_own_life(tmp_path: Path) -> None:
    first, second = kill(10, 20, kind="disk-error"), kill(40, 50, kind="full-disk")
    second = tuple(msgspec.structs.replace(phase, index=1) for phase in second)
    events = [
        event("started", 1),
        event("fatal", 15, reason="fsync of segment 0 failed"),
        event("started", 20, 1),
        event("fatal", 45, 1, reason="no space left on device"),
    ]
    course = (
        Phase(S, "load-started"),
        Phase(15 * S, "node-exited", node="n1", exit_code=1),
        Phase(45 * S, "node-exited", node="n1", exit_code=1),
    )
    found = record(tmp_path, events, faults=(*first, *second), phases=course)
    assert kinds(found) == []
    bored = [*events[:3], event("fatal", 45, 1, reason="fsync of segment 0 failed")]
    found = record(tmp_path, bored, faults=(*first, *second), phases=course)
    assert kinds(found) == ["node-exited"]


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
    ((raw, excerpt),) = tracebacks(log)
    assert excerpt == ["Traceback (most recent call last)", "  File x", "KeyError: 7"]
    assert [*raw] == [log.read_bytes()]


def test_a_log_without_a_traceback_has_none(tmp_path: Path) -> None:
    log = tmp_path / "node.log"
    log.write_bytes(b"all is well\n\xff\xfe\n")
    assert [*tracebacks(log)] == []


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


@pytest.mark.parametrize(("at", "verdict"), [(14, Verdict.INVALID), (16, Verdict.UNKNOWN)])
def test_nobody_is_blamed_for_ending_after_the_environment_has_failed(
    tmp_path: Path, at: int, verdict: Verdict
) -> None:
    """A full disk of ours ends the nodes too, since they write their events to it."""
    course = (
        Phase(S, "load-started"),
        Phase(at * S, "node-exited", node="n1", exit_code=74),
        Phase(30 * S, "failed", detail="No space left on device", since=15 * S),
    )
    assert judge_nodes(record(tmp_path, [event("started", 1)], phases=course)).verdict is verdict


def test_what_a_node_said_last_is_told_with_its_line(tmp_path: Path) -> None:
    exited = Phase(time=30 * S, phase="node-exited", node="n1", exit_code=2)
    found = record(tmp_path, [event("started", 1)], phases=(exited, LOADED))
    log = tmp_path / "nodes" / "n1" / "output.log"
    log.write_text("listening\nfatal error: all goroutines are asleep\n")
    result = judge_nodes(found)
    assert result.reason == (
        "Node n1 ended by itself with exit code 2 30.000 s into the run: "
        "fatal error: all goroutines are asleep (nodes/n1/output.log:2)."
    )
    log.write_text("listening\n")
    last = "its log ends with 'listening' (nodes/n1/output.log:1)."
    assert judge_nodes(found).reason.endswith(last)
    # Where the node has lived on, the end of its log is no last word.
    lived = record(tmp_path, [event("started", 1), event("started", 40, 1)], phases=found.phases)
    assert judge_nodes(lived).reason.endswith("30.000 s into the run.")
    # A stated reason needs no last line beside it.
    stated = [event("started", 1), event("fatal", 29, reason="no disk")]
    why = judge_nodes(record(tmp_path, stated, phases=found.phases)).reason
    assert why.endswith("exit code 2 (no disk) 30.000 s into the run.")


def test_a_foreign_node_states_its_reason_in_its_log(tmp_path: Path) -> None:
    exited = Phase(time=15 * S, phase="node-exited", node="n1", exit_code=2)
    full = kill(10, 20, kind="full-disk")
    found = record(tmp_path, [], faults=full, phases=(exited, LOADED))
    log = tmp_path / "nodes" / "n1" / "output.log"
    log.write_text("panic: write wal: no space left on device\n")
    assert judge_nodes(found).verdict is Verdict.VALID
    log.write_text("panic: index out of range\n")
    reason = judge_nodes(found).reason
    assert "which is not the reason that full-disk gives" in reason
    assert "panic: index out of range (nodes/n1/output.log:1)" in reason
