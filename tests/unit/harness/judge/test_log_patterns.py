"""Lines that a system calls defects are violations; what it documents as harmless is none."""

from pathlib import Path

import msgspec
import pytest

from splitbrain.checker.fingerprints import fingerprint_of
from splitbrain.checker.verdict import CheckResult, Verdict
from splitbrain.contracts.fault import FaultEvent
from splitbrain.contracts.log_pattern import LogPattern
from splitbrain.harness.judge.evidence_loader import load_run
from splitbrain.harness.judge.node_health import judge_nodes
from splitbrain.history.course import Phase
from splitbrain.history.plan import decode_plan
from splitbrain.history.run_folder import RunFolder
from splitbrain.nemesis.kinds import fault_kind
from tests.unit.harness.fake_quorum import FakeSystem
from tests.unit.harness.judge.test_judge_nodes import S, event, kill, record
from tests.unit.harness.judged_runs import edit_plan
from tests.unit.harness.run_fake import FakeRun

pytestmark = pytest.mark.usefixtures("in_process")

PANIC = LogPattern("panic:", "A goroutine panicked.")
ABORT = LogPattern(r"^\S+ FATAL\b", "The server gave up.")
TOLD = LogPattern("panic: told to", "Part of its test of itself.", harmless=True)
REMOVED = fault_kind("remove-member").traits
TRACEBACK = 'Traceback (most recent call last):\n  File "a.py", line 1, in f\n'


def judged(
    root: Path,
    text: str | bytes,
    *patterns: LogPattern,
    faults: tuple[FaultEvent, ...] = (),
    phases: tuple[Phase, ...] = (),
) -> CheckResult:
    """Judge a node whose log is this, of a system with these patterns."""
    plan = decode_plan(PLAN)
    found = record(root, [event("started", 1)], faults=faults, phases=phases)
    content = text if isinstance(text, bytes) else text.encode()
    (root / "nodes" / "n1" / "node.log").write_bytes(content)
    plan = msgspec.structs.replace(plan, nodes=("n1",), log_patterns=patterns)
    return judge_nodes(msgspec.structs.replace(found, plan=plan))


PLAN = (
    b'{"run_id":"r","test":"t","system":"s","workload":"register","nemesis":"none","nodes":["n1"],'
    b'"time_limit_s":1,"seed":1,"runtime":"local","concurrency":1,"rate":1,'
    b'"operation_timeout_s":1,"checkers":[],"sub_seeds":{},"started_at":"","tool_version":""}'
)


def test_a_line_that_its_system_calls_a_defect_is_one(tmp_path: Path) -> None:
    text = "10:00 started\n10:01 panic: nil map\n10:02 panic: again\n10:03 FATAL no quorum\n"
    result = judged(tmp_path, text, PANIC, ABORT)
    assert result.verdict is Verdict.INVALID
    assert result.reason == (
        "Node n1 wrote to node.log, line 2: 10:01 panic: nil map (A goroutine panicked.) (1 more.)"
    )
    assert [(each["kind"], each["line"]) for each in result.violations] == [
        ("log-line", 2),
        ("log-line", 4),
    ]
    assert fingerprint_of(result) is not None


@pytest.mark.parametrize(
    "text",
    [
        "all is well\n",
        "",
        "10:00 panic: told to, as ever\n",
        # Not the beginning of a line, not the word.
        "10:00 a FATAL error\n10:00 FATALLY slow\n",
    ],
)
def test_other_lines_and_harmless_ones_are_none(tmp_path: Path, text: str) -> None:
    assert judged(tmp_path, text, PANIC, ABORT, TOLD).verdict is Verdict.VALID


def test_without_patterns_a_panic_in_a_log_is_a_line_like_any_other(tmp_path: Path) -> None:
    assert judged(tmp_path, "10:01 panic: nil map\n").verdict is Verdict.VALID


def test_a_harmless_line_hides_no_other(tmp_path: Path) -> None:
    result = judged(tmp_path, "panic: told to\npanic: nil map\n", PANIC, TOLD)
    assert [each["line"] for each in result.violations] == [2]


def test_a_documented_traceback_is_harmless_and_the_next_one_is_not(tmp_path: Path) -> None:
    harmless = LogPattern("^ConnectionResetError", "A client went away.", harmless=True)
    reset, other = f"{TRACEBACK}ConnectionResetError: 104\n", f"{TRACEBACK}KeyError: 7\n"
    assert judged(tmp_path, 3 * reset, harmless).verdict is Verdict.VALID
    assert judged(tmp_path, 3 * reset).verdict is Verdict.INVALID
    (violation,) = judged(tmp_path, 3 * reset + other, harmless).violations
    assert violation["text"].endswith("KeyError: 7")
    # A line after the traceback is no part of it.
    after = f"{other}ConnectionResetError: 104\n"
    assert judged(tmp_path, after, harmless).verdict is Verdict.INVALID


def test_a_documented_traceback_in_a_json_line_is_known_by_the_whole_line(tmp_path: Path) -> None:
    harmless = LogPattern('"logger":"probe"', "A probe that failed.", harmless=True)
    trace = r'"trace":"Traceback (most recent call last):\n  File x\nKeyError: 7"}'
    assert judged(tmp_path, f'{{"logger":"probe",{trace}\n', harmless).verdict is Verdict.VALID
    assert judged(tmp_path, f'{{"logger":"main",{trace}\n', harmless).verdict is Verdict.INVALID


def test_a_line_that_gives_the_reason_of_a_fault_is_the_faults_doing(tmp_path: Path) -> None:
    text = "10:01 panic: write wal: no space left on device\n"
    assert judged(tmp_path, text, PANIC, faults=kill(5, 9, kind="full-disk")).violations == ()
    # Of another node, or for another reason.
    elsewhere = kill(5, 9, kind="full-disk", node="n2")
    assert judged(tmp_path, text, PANIC, faults=elsewhere).verdict is Verdict.INVALID
    assert judged(tmp_path, text, PANIC, faults=kill(5, 9)).verdict is Verdict.INVALID


def test_an_exit_is_told_by_the_systems_own_words(tmp_path: Path) -> None:
    # Another form that no language has, and a log whose last line is not whole.
    gave_up = LogPattern("gave up", "It gave up.")
    exited = (Phase(S, "load-started"), Phase(50 * S, "node-exited", node="n1", exit_code=3))
    text = "10:01 gave up: disk is full\nbye"
    (exit_, line) = judged(tmp_path, text, gave_up, phases=exited).violations
    assert (exit_["words"], line["kind"]) == ("10:01 gave up: disk is full", "log-line")
    faults = kill(40, 60, kind="full-disk")
    assert judged(tmp_path, text, gave_up, faults=faults, phases=exited).violations == ()


def test_a_removed_member_may_end_in_order_by_its_own_words(tmp_path: Path) -> None:
    removed = LogPattern("permanently removed", "The others removed it.")
    exited = (Phase(S, "load-started"), Phase(50 * S, "node-exited", node="n1", exit_code=0))
    # Its reason stands behind more than a sentence shows of a line.
    text = f"10:00 started\n10:01 {'.' * 300} permanently removed\n10:02 stopped\n"
    faults = kill(40, 60, kind="remove-member")
    faults = tuple(msgspec.structs.replace(each, traits=REMOVED) for each in faults)
    assert judged(tmp_path, text, removed, faults=faults, phases=exited).violations == ()
    (exit_, line) = judged(tmp_path, text, removed, phases=exited).violations
    assert (exit_["kind"], line["kind"]) == ("node-exited", "log-line")
    (exit_,) = judged(tmp_path, "10:02 stopped\n", removed, faults=faults, phases=exited).violations
    assert "which is not the reason that remove-member gives" in exit_["sentence"]


def test_a_log_without_lines_or_text_is_read(tmp_path: Path) -> None:
    text = b"\xff" * 10_000 + b"panic: x\n"
    (violation,) = judged(tmp_path, text, PANIC).violations
    assert violation["line"] == 1


@pytest.mark.parametrize("regex", ["panic(", "*", "(?u)x", "", "panic|", "x*"])
def test_a_pattern_that_is_none_or_of_every_line_is_refused_where_it_is_made(regex: str) -> None:
    with pytest.raises(ValueError, match=r"no regular expression|matches an empty line"):
        LogPattern(regex, "It gave up.")


def test_a_run_records_the_patterns_and_is_judged_without_the_adapter(tmp_path: Path) -> None:
    class Telling(FakeSystem):
        log_patterns = (PANIC,)

    run = FakeRun(tmp_path)
    run.system = Telling(run.quorum)
    folder: RunFolder = run.run().folder
    (folder.node(folder.node_names()[0]) / "node.log").write_text("panic: nil map\n")
    (violation,) = judge_nodes(load_run(folder.root)).violations
    assert violation["kind"] == "log-line"
    edit_plan(folder, log_patterns=[{"regex": "panic(", "meaning": "It gave up."}])
    assert any("no regular expression" in each for each in load_run(folder.root).problems)
