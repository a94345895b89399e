"""Whole nights of fake runs: verdicts, exit codes, voidness, what is kept."""

import io
import json
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from rich.console import Console

from splitbrain.contracts.errors import HarnessError, UsageError
from splitbrain.harness.campaign.suite.cells import planned_runs
from splitbrain.harness.campaign.suite.command import run_suite
from splitbrain.harness.campaign.suite.ledger import Ledger
from splitbrain.harness.campaign.suite.reading import read_suite
from splitbrain.harness.campaign.suite.summary import coverage_text
from splitbrain.harness.campaign.suite.tally import nights_of
from splitbrain.harness.cli import main as cli
from tests.unit.harness.campaign.suite.fake_nights import Suites, does, matrix, program

PLANTED = matrix("planted", setting=does("invalid"), expect="invalid", seeds=[90])
GOOD = matrix("good", setting=does("valid"), seeds="0:2")


def test_a_night_as_expected_ends_with_0(suites: Suites) -> None:
    suites.write(GOOD, PLANTED)
    assert suites.run() == 0, suites.output
    assert suites.verdicts() == ["invalid", "valid", "valid"]
    assert all(run.as_expected for run in suites.runs())
    assert "VALID: suite unit" in suites.output
    assert "Exit code 0: all as expected." in suites.output
    first = suites.runs()[0]
    assert (first.cell, first.seed, first.attempt, first.exit_code) == ("planted", 90, 1, 1)
    assert first.violated == ("linearizability:cas-register",)
    assert first.system_versions == {"fake": "1.2"}
    assert first.took_s > 0


@pytest.mark.parametrize("jobs", [1, 2])
@pytest.mark.parametrize(
    ("first", "second"), [("set-up-fails", "invalid"), ("invalid", "set-up-fails")]
)
def test_a_failed_set_up_never_hides_a_violation(
    suites: Suites, jobs: int, first: str, second: str
) -> None:
    suites.write(
        matrix("first", setting=does(first), seeds=[1]),
        matrix("second", setting=does(second), seeds=[2]),
        jobs=jobs,
    )
    assert suites.run() == 1, suites.output
    assert sorted(suites.verdicts()) == ["failed", "invalid"]
    assert suites.output.index("Violations that nobody") < suites.output.index("environment failed")
    assert "could not start the nodes (n1): port taken" in suites.output
    assert "INVALID: suite unit" in suites.output
    assert "Exit code 1: a violation that nobody expected." in suites.output
    assert suites.report() == 1


@pytest.mark.parametrize(
    ("what", "verdict", "code", "sentence"),
    [
        ("invalid", "invalid", 1, "Why."),
        ("unknown", "unknown", 2, "Why."),
        ("vacuous", "vacuous", 2, "The run proves nothing: No fault bit."),
        ("set-up-fails", "failed", 3, "could not start the nodes (n1): port taken. Free it."),
        ("has-a-defect", "failed", 3, "KeyError: 'n4': this is a defect of splitbrain; tell us."),
        ("fails-late", "failed", 3, "n1 was not healed."),
        # A crash of Python ends with 1, as a violation does, but it convicts nobody.
        ("breaks", "failed", 3, "It ended with exit code 1 without a verdict: ImportError"),
        ("lies", "failed", 3, "It ended with exit code 9, but its results say VALID."),
        # Killed in mid-run: the folder can convict, not acquit.
        ("loses-then-dies", "invalid", 1, "Why."),
        ("is-cut-short", "failed", 3, "It was ended before its time limit"),
        ("is-interrupted", "failed", 3, "It was ended before its time limit"),
        ("is-judged-in-haste", "failed", 3, "It was ended before its time limit"),
        ("keeps-then-dies", "failed", 3, "It died of signal 9, but its results say VALID."),
    ],
)
def test_each_fate_of_a_run_has_its_verdict_and_its_exit_code(
    suites: Suites, what: str, verdict: str, code: int, sentence: str
) -> None:
    suites.write(matrix("m", setting=does(what), seeds=[5]))
    assert suites.run() == code, suites.output
    (run,) = suites.runs()
    assert run.verdict == verdict
    assert not run.as_expected
    assert (run.sentence or "").startswith(sentence)
    assert sentence in suites.output
    assert run.reproduce in suites.output
    assert str(run.run_folder) in suites.output


@pytest.mark.parametrize("what", ["valid", "unknown", "vacuous"])
def test_a_planted_bug_that_goes_unseen_makes_the_night_void(suites: Suites, what: str) -> None:
    suites.write(GOOD, matrix("planted", setting=does(what), expect="invalid", seeds=[90]))
    assert suites.run() == 3, suites.output
    assert "VOID: suite unit" in suites.output
    assert "planted: found in 0 of 1 run, at least 1 must be" in suites.output
    assert "would have hidden others as well" in suites.output
    # Valid runs of a void night do not count in the ledger's sums.
    assert suites.report() == 3
    row = suites.output.split("All nights in the ledger")[1].splitlines()[2]
    figures = row.split()
    assert figures[1:4] == ["1", "1", "0"], row
    assert figures[8] == "2", row


def test_a_violation_in_a_void_night_still_wins(suites: Suites) -> None:
    suites.write(
        matrix("bad", setting=does("invalid"), seeds=[1]),
        matrix("planted", setting=does("valid"), expect="invalid", seeds=[90]),
    )
    assert suites.run() == 1
    assert "1 unexpected violation, and the night is void" in suites.output


def test_a_suite_without_a_planted_bug_says_what_that_means(suites: Suites) -> None:
    sentence = "nothing shows that one would have been seen"
    suites.write(GOOD)
    assert suites.run() == 0
    assert sentence in suites.output
    suites.write(GOOD, PLANTED)
    assert suites.run() == 0
    assert sentence not in suites.output


def test_enough_runs_must_see_the_planted_bug(suites: Suites) -> None:
    seen_once = {"does": "valid", "does91": "invalid"}
    for at_least, code in ((1, 0), (2, 3)):
        suites.write(
            matrix("p", setting=seen_once, expect="invalid", at_least=at_least, seeds="90:92")
        )
        assert suites.run() == code, suites.output
    assert "Expected violations that were not found" in suites.output


def test_each_cell_must_see_its_own_planted_bug(suites: Suites) -> None:
    suites.write(
        matrix("p", setting=[does("invalid"), does("valid")], expect="invalid", seeds=[90])
    )
    assert suites.run() == 3
    assert "p: setting=does=valid: found in 0 of 1 run" in suites.output


def test_a_violation_found_by_the_wrong_checker_is_no_teeth(suites: Suites) -> None:
    planted = {"setting": does("invalid"), "expect": "invalid", "seeds": [90]}
    suites.write(matrix("p", caught_by=["split-brain"], **planted))
    assert suites.run() == 3
    suites.write(matrix("p", caught_by=["split-brain", "linearizability"], **planted))
    assert suites.run() == 0


def test_of_a_valid_run_only_plan_and_verdict_are_kept(suites: Suites) -> None:
    suites.write(matrix("m", setting=[does("valid"), does("vacuous"), does("invalid")]))
    suites.run()
    kept = {
        run.verdict: sorted(path.name for path in Path(str(run.run_folder)).iterdir())
        for run in suites.runs()
    }
    evidence = ["history.jsonl", "manifest.json", "nodes", "phases.jsonl"]
    whole = [*evidence, "plan.json", "results.json"]
    assert kept == {
        "valid": ["plan.json", "results.json"],
        "vacuous": whole,
        "invalid": whole,
    }


def test_of_a_valid_program_only_what_it_printed_is_kept(suites: Suites) -> None:
    make = "mkdir {folder}/deep; touch {folder}/deep/file; echo done; exit {seed}"
    suites.write(program("p", "sh", "-c", make, seeds=[0, 9]))
    assert suites.run() == 3
    good, bad = sorted(suites.runs(), key=lambda run: run.seed)
    kept = sorted(path.name for path in Path(str(good.run_folder)).iterdir())
    assert kept == ["attempt.json", "output.log"]
    assert (Path(str(bad.run_folder)) / "deep" / "file").exists()


def test_valid_runs_are_kept_whole_on_demand(suites: Suites) -> None:
    suites.write(GOOD, keep_valid=True)
    assert suites.run() == 0
    assert all((Path(str(run.run_folder)) / "nodes").is_dir() for run in suites.runs())


def test_a_program_counts_by_its_exit_code_with_its_last_line(suites: Suites) -> None:
    suites.write(
        program("ok", "{python}", "-c", "print(1); print([{seed}])", seeds=[4]),
        program("expected", "sh", "-c", "exit 7", exit_code=7),
        program("violates", "sh", "-c", "echo found; exit 1"),
        program("breaks", "sh", "-c", "exit 9"),
        program("missing", "/nowhere/at-all"),
        program("slow", "sleep", "60", timeout=0.3),
    )
    assert suites.run() == 1, suites.output
    runs = {run.cell: run for run in suites.runs()}
    assert {name: run.verdict for name, run in runs.items()} == {
        "ok": "valid",
        "expected": "valid",
        "violates": "invalid",
        "breaks": "failed",
        "missing": "failed",
        "slow": "failed",
    }
    assert runs["ok"].output == [4]
    assert runs["violates"].sentence == "It ended with exit code 1, not with 0: found"
    assert runs["breaks"].reproduce.startswith("sh -c 'exit 9'  # splitbrain ")
    assert "could not start the program" in str(runs["missing"].sentence)
    assert runs["slow"].sentence == "It took more than 0.3 s."


def test_the_figures_of_programs_add_up_over_nights(suites: Suites) -> None:
    output = """print(chr(123) + '"kills": 20, "left": 0, "share": 0.5, "ok": true' + chr(125))"""
    suites.write(program("kills", "{python}", "-c", "PRINT").replace("'PRINT'", f"'''{output}'''"))
    for _ in range(2):
        assert suites.run() == 0, suites.output
    assert "unit/kills: 2 of 2 runs as expected, kills 40, left 0\n" in suites.output


def test_nights_add_up_by_commit_and_draw_their_own_seeds(suites: Suites) -> None:
    suites.write(matrix("m", setting=does("valid"), seeds={"count": 2}), PLANTED)
    for _ in range(3):
        assert suites.run() == 0
    assert len({night.night for night in suites.nights()}) == 3
    assert len({run.seed for run in suites.runs() if run.matrix == "m"}) >= 5
    assert suites.report(with_file=False) == 0
    row = suites.output.splitlines()[2].split()
    assert row[1:4] == ["3", "0", "6"]
    assert "3 of 3" in suites.output


def test_a_night_can_be_repeated_from_its_seed(suites: Suites) -> None:
    suites.write(matrix("m", setting=does("valid"), seeds={"count": 3}))
    suites.run(night_seed=42)
    suites.run(night_seed=42)
    seeds = [run.seed for run in suites.runs()]
    assert seeds[:3] == seeds[3:]
    assert [night.night_seed for night in suites.nights()] == [42, 42]


def test_the_report_comes_from_the_ledger_alone(suites: Suites, tmp_path: Path) -> None:
    suites.write(matrix("m", setting=does("invalid"), seeds=[1]), PLANTED)
    assert suites.run() == 1
    ran = suites.output[suites.output.index("INVALID") :]
    (tmp_path / "suites").rename(tmp_path / "gone")
    assert suites.report() == 1
    coverage = coverage_text(nights_of(suites.lines())) + "\n\n"
    assert coverage in suites.output
    assert suites.output.replace(coverage, "") == ran


def test_a_report_of_a_suite_that_never_ran_is_refused(suites: Suites) -> None:
    suites.write(GOOD)
    with pytest.raises(UsageError, match="holds no night of the suite 'unit'"):
        suites.report()


def test_the_night_folder_holds_a_summary_and_junit(suites: Suites) -> None:
    suites.write(
        matrix("bad", setting=[does("invalid"), does("set-up-fails"), does("vacuous")], seeds=[1]),
        matrix("planted", setting=does("valid"), expect="invalid", seeds=[90]),
        program("p", "true"),
    )
    suites.run()
    (folder,) = (suites.folder / "suites" / "unit").iterdir()
    summary = (folder / "summary.md").read_text()
    assert summary.startswith("# INVALID: suite unit, night ")
    assert "## The night is void" in summary
    assert "- invalid: bad: setting=does=invalid, seed 1: Why.\n  - again\n" in summary
    suite = ET.fromstring((folder / "junit.xml").read_text())
    counts = {name: int(suite.attrib[name]) for name in ("tests", "failures", "errors")}
    # Three runs, the planted one, the program, and whether the planted bug was found.
    assert counts == {"tests": 6, "failures": 3, "errors": 1}
    troubled = {case.attrib["name"] for case in suite if len(case)}
    assert "planted: found" in troubled
    assert len(troubled) == 4


def test_the_ledger_is_named_once_per_night(suites: Suites, tmp_path: Path) -> None:
    suites.write(GOOD)
    assert suites.run(ledger=tmp_path / "other.jsonl") == 0
    assert not suites.ledger.path.exists()
    assert len(Ledger(tmp_path / "other.jsonl").lines()) == 4


def test_a_broken_ledger_stops_the_suite_before_it_starts(suites: Suites) -> None:
    suites.write(GOOD)
    suites.ledger.path.write_text("rubbish\n{}\n")
    with pytest.raises(HarnessError, match="line 1 is no line of a ledger"):
        suites.run()
    assert not (suites.folder / "suites").exists()


@pytest.mark.parametrize(("what", "code"), [("valid", 3), ("invalid", 1)])
def test_a_ledger_that_cannot_be_written_stops_the_night_and_hides_no_violation(
    suites: Suites, what: str, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    suites.write(matrix("m", setting=does(what), seeds="0:3"))
    append = Ledger.append

    def full(self: Ledger, line: object) -> None:
        if getattr(line, "number", 0):
            raise HarnessError("write the ledger", "it", "no space", "Make room.")
        append(self, line)  # type: ignore[arg-type]

    monkeypatch.setattr(Ledger, "append", full)
    assert suites.run() == code
    assert "could not write the ledger" in suites.output
    assert suites.output.count("[1/3]") == 1
    assert "[3/3]" not in suites.output
    # Nothing of the run is removed whose line could not be kept: it is told by its folder later.
    monkeypatch.undo()
    assert suites.run() == (1 if what == "invalid" else 0)
    assert "goes on: 0 of 3 runs done" in suites.output
    first = suites.runs()[0]
    assert (first.number, first.attempt, first.exit_code) == (1, 1, None)


def test_numbers_out_of_range_are_refused(suites: Suites) -> None:
    suites.write(GOOD)
    for changes, sentence in (
        ({"jobs": 0}, "--jobs cannot be 0"),
        ({"night_seed": -1}, "--night-seed cannot be -1"),
        ({"time_budget": "long"}, "--time-budget: 'long' is no time"),
    ):
        with pytest.raises(UsageError, match=sentence):
            suites.run(**changes)


def test_on_a_terminal_the_lines_of_finished_runs_stay(suites: Suites) -> None:
    suites.write(GOOD, PLANTED)
    screen = io.StringIO()
    console = Console(file=screen, force_terminal=True, width=120, color_system=None)
    assert run_suite(suites.file, suites.options(), console) == 0
    shown = screen.getvalue()
    assert "[1/3] invalid" in shown
    assert "planted, seed 90  as expected" in shown
    assert "VALID: suite unit" in shown


def test_a_run_line_is_plain_json(suites: Suites) -> None:
    suites.write(GOOD)
    suites.run()
    kinds = [json.loads(line)["kind"] for line in suites.ledger.path.read_text().splitlines()]
    assert kinds == ["night-began", "run", "run", "night-ended"]


def test_a_night_is_told_as_data(suites: Suites, capsys: pytest.CaptureFixture[str]) -> None:
    suites.write(matrix("good", seeds=[1, 2]), program("breaks", "sh", "-c", "exit 9", seeds=3))
    suites.run()
    told = ["--report-only", "--ledger", str(suites.ledger.path), "--json"]
    code = cli.run(["suite", str(suites.file), *told])
    answered = json.loads(capsys.readouterr().out)
    assert code == answered["exit_code"] == 3
    assert [run["verdict"] for run in answered["runs"]] == ["valid", "failed", "valid"]
    assert answered["runs"][1]["reproduce"].startswith("sh -c 'exit 9'  # splitbrain ")
    assert cli.run(["suite", *told]) == 0
    assert len(json.loads(capsys.readouterr().out)["nights"]) == 1


def test_a_dry_run_shows_the_night_that_its_seed_draws_and_starts_nothing(
    suites: Suites, capsys: pytest.CaptureFixture[str]
) -> None:
    planted = matrix("planted", system="kraft", time_limit=20, expect="invalid", seeds=[90])
    drawn = matrix("drawn", system="kraft", nodes=[3, 5], time_limit=40.5)
    suites.write(drawn, planted, program("sweep", "true"))
    command = ["suite", str(suites.file), "--runs-folder", str(suites.folder / "runs"), "--dry-run"]
    assert cli.run(command) == 0
    told = capsys.readouterr().out
    assert "suite unit: 4 runs, 101 s of load; --night-seed " in " ".join(told.split())
    assert "[1/4]    20.0 s  planted, seed 90  must be invalid in 1\n" in told
    assert "[2/4]    40.5 s  drawn: nodes=3, seed " in told
    assert not (suites.folder / "runs").exists()
    assert suites.lines() == []
    seed = told.partition("--night-seed ")[2].split()[0]
    assert cli.run([*command, "--night-seed", seed]) == 0
    assert capsys.readouterr().out == told
    assert cli.run([*command, "--night-seed", seed, "--json"]) == 0
    answered = json.loads(capsys.readouterr().out)
    begun = planned_runs(read_suite(suites.file).suite, int(seed))
    assert [run["arguments"] for run in answered["runs"]] == [list(run.arguments) for run in begun]


def test_a_dry_run_refuses_what_a_night_would(
    suites: Suites, capsys: pytest.CaptureFixture[str]
) -> None:
    suites.write(matrix("good", system="kraft", nemesis="kil"))
    assert cli.run(["suite", str(suites.file), "--dry-run"]) == 64
    assert "Did you mean 'kill'?" in capsys.readouterr().err
