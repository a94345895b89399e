"""Figures agree with each other and say what they mean; files get lines as they are."""

import ast
import io
import re
from pathlib import Path

import msgspec
import pytest
from rich.console import Console

from splitbrain.checker.verdict import CheckResult, Verdict
from splitbrain.contracts.fault import FaultEvent
from splitbrain.contracts.names import NodeName
from splitbrain.harness.folder.results import OutcomeCounts, Results, leading_sentence
from splitbrain.harness.judge.outcome_counts import outcome_counts
from splitbrain.harness.report import page_assets
from splitbrain.harness.report.outcome_words import failures
from splitbrain.harness.report.summary import show, to_markdown
from splitbrain.harness.run.progress import Progress
from splitbrain.harness.run.run_clock import RunClock
from splitbrain.harness.run.traffic import Traffic
from splitbrain.history.course import PhaseName
from splitbrain.history.records import PairedOperation
from splitbrain.history.writer import LineWriter
from tests.unit.harness.small_results import results_with

LONG = "Every order of what came before leaves another value, " * 6


def results(**changes: object) -> Results:
    counted: dict[str, object] = {
        "checkers": (CheckResult("split-brain", Verdict.VALID, LONG),),
        "operations": {
            "cas": OutcomeCounts(100, 30, 2, refused=60, fail_by_error={"not-leader": 30}),
            "read": OutcomeCounts(900, 100, 0, fail_by_error={"not-leader": 80, "timed-out": 20}),
        },
    }
    return results_with(**(counted | changes))


def shown(given: Results, *, terminal: bool = False) -> str:
    output = io.StringIO()
    show(given, Console(file=output, width=80, force_terminal=terminal, color_system=None))
    return output.getvalue()


def test_a_file_gets_whole_lines_without_blanks_at_their_ends() -> None:
    lines = shown(results()).splitlines()
    assert any(LONG.strip() in line for line in lines)
    assert [line for line in lines if line != line.rstrip()] == []


def test_a_terminal_gets_lines_that_fit() -> None:
    assert max(map(len, shown(results(), terminal=True).splitlines())) <= 80


def test_refused_compare_and_sets_have_a_column_of_their_own() -> None:
    for text in (shown(results()), to_markdown(results())):
        assert "mismatches" in text
    row = next(line for line in shown(results()).splitlines() if line.strip().startswith("cas"))
    assert row.split() == ["cas", "100", "60", "30", "2"]
    assert "refused" not in shown(results(operations={"read": OutcomeCounts(9, 1, 0)}))


def test_failures_are_split_by_what_caused_them() -> None:
    assert list(failures(results())) == [
        "22.7 % of cas operations failed (certainly did not happen): 30 not-leader",
        "10 % of read operations failed (certainly did not happen): 80 not-leader, 20 timed-out",
    ]
    many = OutcomeCounts(0, 9, 0, fail_by_error={f"class-{n}": 1 for n in range(9)})
    assert next(iter(failures(results(operations={"read": many})))).endswith("and 3 more classes")


def test_counts_say_what_was_refused_and_why_others_failed() -> None:
    done = PairedOperation(0, 0, "cas", "r", [1, 2], [1, 2, True], "ok", 0, 1)
    refused = msgspec.structs.replace(done, result=[1, 2, False])
    failed = msgspec.structs.replace(done, type="fail", result=None, error="not-leader")
    unknown = msgspec.structs.replace(done, type="info", result=None, error=None)
    counts = outcome_counts([done, refused, failed, failed, unknown])["cas"]
    assert (counts.ok, counts.refused, counts.fail, counts.info) == (2, 1, 2, 1)
    assert counts.fail_by_error == {"not-leader": 2}
    assert counts.info_by_error == {"unnamed-error": 1}


def test_the_end_names_the_report_that_was_made(tmp_path: Path) -> None:
    given = results(run_folder=str(tmp_path))
    assert "Report" not in shown(given)
    (tmp_path / "report.html").write_text("<html></html>")
    assert f"Report      {tmp_path / 'report.html'}" in shown(given).splitlines()


def test_of_all_that_is_unknown_the_record_leads() -> None:
    died = "The harness died during the run; the last step it reached is load-started."
    given = results(
        verdict=Verdict.UNKNOWN,
        exit_code=2,
        checkers=(
            CheckResult("split-brain", Verdict.VALID, LONG),
            CheckResult("lost-commits", Verdict.UNKNOWN, "There is no committed log."),
            CheckResult("record", Verdict.UNKNOWN, died),
        ),
    )
    assert leading_sentence(given) == died


def test_what_is_not_known_has_no_row() -> None:
    bare = results(elections=None, longest_unavailability_ms=None, system="")
    assert "Cluster" not in shown(bare)
    assert "kraft-register: register, seed 7, docker" in shown(bare)


def test_unavailability_says_what_it_is() -> None:
    assert "43 ms without an acknowledged write" in shown(results())


@pytest.mark.parametrize("verdict", list(Verdict))
def test_an_interrupted_run_says_so_first_unless_it_found_a_violation(verdict: Verdict) -> None:
    given = results(interrupted=True, vacuous=("No fault bit.",)).with_verdict(
        verdict, harness_failed=False
    )
    if verdict is Verdict.INVALID:
        assert (given.headline, given.exit_code) == ("INVALID", 1)
        return
    assert (given.headline, given.exit_code) == ("INTERRUPTED", 2)
    assert leading_sentence(given).startswith("Ended early by the user")
    assert to_markdown(given).startswith("# INTERRUPTED: ")


def test_the_display_uses_words_of_the_users_and_no_names_of_ours(tmp_path: Path) -> None:
    course: tuple[PhaseName, ...] = ("deployed", "load-started", "interrupted", "not-converged")
    with LineWriter(tmp_path / "phases.jsonl") as lines:
        progress = Progress(RunClock(), lines, Traffic())
        told: list[str] = []
        for phase in course:
            progress.reached(phase)
            told.append(progress.activity)
    assert told == [
        "waiting for a leader",
        "clients at work",
        "clients at work",
        "stopping the nodes",
    ]


def test_the_display_calls_what_was_undone_healed_as_the_report_does(tmp_path: Path) -> None:
    with LineWriter(tmp_path / "phases.jsonl") as lines:
        progress = Progress(RunClock(), lines, Traffic())
        progress.fault_event(FaultEvent(0, 1, "kill", "removed", "leader", (NodeName("n1"),)))
    assert progress.recent[-1].endswith("kill:leader on n1 healed")


def test_an_interruption_that_comes_after_healing_does_not_promise_to_heal(tmp_path: Path) -> None:
    with LineWriter(tmp_path / "phases.jsonl") as lines:
        progress = Progress(RunClock(), lines, Traffic())
        progress.reached("healed")
        progress.reached("interrupted")
    assert progress.recent[0].endswith("all faults healed")
    assert "healing" not in progress.recent[1]


#: Words of before, which readers did not understand.
RIDDLES = re.compile(
    r"\bbit\b|\bmet\b|which refused|nobody knows|believed|was going on|surely|around the verdict"
    r"|What faults|ended before it|simulated seconds a second"
)


def test_pages_and_summaries_speak_plainly() -> None:
    folder = Path(page_assets.__file__).parent
    for path in (*folder.glob("assets/*.j2"), *folder.glob("assets/*.js")):
        assert not RIDDLES.findall(path.read_text()), path
    for path in folder.rglob("*.py"):
        tree = ast.parse(path.read_text())
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                sentence = node.value if " " in node.value and "\n" not in node.value else ""
                assert not RIDDLES.findall(sentence), (path, sentence)
