"""Words and exit codes of commands when a run or a judgement ends early."""

import fcntl
import hashlib
import json
from pathlib import Path
from typing import NoReturn

import pytest
from rich.console import Console

from splitbrain.contracts.errors import HarnessError
from splitbrain.harness.cli import commands
from splitbrain.harness.cli import main as cli
from splitbrain.harness.cli.session import Session
from splitbrain.harness.folder.results import Results, keep_former
from splitbrain.harness.run.options import TestOptions
from splitbrain.history.run_folder import RunFolder
from tests.unit.harness.fake_spark import fake_spark

pytestmark = pytest.mark.usefixtures("in_process")


def test_ctrl_c_before_the_run_says_that_nothing_was_started(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupt(*_: object) -> NoReturn:
        raise KeyboardInterrupt

    monkeypatch.setattr(commands, "prepare", interrupt)
    assert cli.run(["test", "--seed", "1"]) == 2
    said = capsys.readouterr().err
    assert said == "interrupted before the run began: nothing was started.\n"


def test_a_run_that_is_judged_again_is_said_to_be(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.run(["check", str(run), "--no-analyze"]) == 0
    assert "again" not in capsys.readouterr().err
    assert cli.run(["check", str(run), "--no-analyze"]) == 0
    said = capsys.readouterr().err
    assert f"judging {run} again; its former results are kept in results-1.json" in said


def test_judging_again_keeps_former_results_and_changes_nothing_of_the_evidence(run: Path) -> None:
    folder = RunFolder(run)
    evidence = _digests(run)
    kept: list[bytes] = []
    for count in range(1, 4):
        assert cli.run(["check", str(run), "--no-analyze"]) == 0
        found = _digests(run)
        assert {name: found[name] for name in evidence} == evidence
        # The page is left out in tests of the command line.
        made = {"judging.lock", "junit.xml", "results.json", "results.sarif", "summary.md"}
        formers = {f"results-{number}.json" for number in range(1, count)}
        assert found.keys() - evidence.keys() == made | formers
        for number, content in enumerate(kept, start=1):
            assert folder.former_results(number).read_bytes() == content
        # As a later version would have judged it.
        changed = json.loads(folder.results.read_bytes()) | {"problems": [f"judgement {count}"]}
        folder.results.write_text(json.dumps(changed))
        kept.append(folder.results.read_bytes())


def test_a_changed_verdict_is_said_and_the_verdict_stands_last(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = RunFolder(run)
    assert cli.run(["check", str(run), "--no-analyze"]) == 0
    changed = json.loads(folder.results.read_bytes()) | {"verdict": "invalid"}
    folder.results.write_text(json.dumps(changed))
    capsys.readouterr()
    assert cli.run(["check", str(run), "--no-analyze"]) == 0
    said = capsys.readouterr()
    assert "the former verdict was INVALID, see results-1.json" in said.err
    assert said.out.splitlines()[-1].startswith(" VALID ")


def test_former_results_that_cannot_be_kept_cost_no_verdict(
    run: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(*_: object) -> NoReturn:
        raise HarnessError("keep the former results", "results.json", "disk full", "Make room.")

    monkeypatch.setattr(commands, "keep_former", refuse)
    assert cli.run(["check", str(run), "--no-analyze"]) == 0
    said = capsys.readouterr()
    assert "The former results are not kept: " in said.err
    assert said.out.splitlines()[-1].startswith(" VALID ")


def test_results_of_a_judgement_that_was_kept_already_are_not_kept_twice(run: Path) -> None:
    folder = RunFolder(run)
    assert keep_former(folder) is None
    folder.results.write_text("{}")
    assert keep_former(folder) == folder.former_results(1)
    assert keep_former(folder) == folder.former_results(1)
    assert [path.name for path in run.glob(folder.formers)] == ["results-1.json"]


def _digests(run: Path) -> dict[str, str]:
    return {
        str(path.relative_to(run)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in run.rglob("*")
        if path.is_file()
    }


def test_checking_again_gives_the_same_verdict(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    printed: list[str] = []
    for _ in range(2):
        assert cli.run(["check", str(run), "--no-analyze", "--json"]) == 0
        captured = capsys.readouterr()
        printed.append(captured.out)
        assert captured.err == ""
    assert printed[0] == printed[1]


@pytest.mark.parametrize("code", [0, 1])
def test_the_verdict_and_the_page_wait_for_no_analysis(
    run: Path,
    code: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    shown = tmp_path / "shown"
    program = f"""
import pathlib, sys, time
deadline = time.monotonic() + 60
while not pathlib.Path({str(shown)!r}).exists():
    if time.monotonic() > deadline:
        sys.exit("nobody has seen a verdict yet")
    time.sleep(0.01)
if {code}:
    sys.exit("no Java here")
"""
    monkeypatch.syspath_prepend(fake_spark(tmp_path, program))
    note = Session.note_verdict

    def noted(session: Session, results: Results) -> None:
        note(session, results)
        assert RunFolder(run).summary.is_file()
        shown.touch()

    monkeypatch.setattr(Session, "note_verdict", noted)
    assert cli.run(["check", str(run), "--analyze"]) == 0
    said = capsys.readouterr()
    # The lines on Spark come after it; what they add is told before it stands last again.
    verdict, analysis, *last = said.out.split(" VALID ")
    assert len(last) == code
    assert "judging took" in verdict
    assert "analysing with Spark took" in analysis
    assert ("no Java here" in said.err) == (code == 1), said.err
    assert "nobody has seen" not in said.out + said.err


@pytest.mark.parametrize("command", [["check"], ["check", "--no-analyze"], ["analyze"]])
def test_a_living_run_is_only_looked_at(
    run: Path, command: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    before = sorted(path.name for path in run.iterdir())
    with RunFolder(run).lock.open("wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert cli.run([command[0], str(run), *command[1:]]) == 2
    assert sorted(path.name for path in run.iterdir()) == sorted([*before, "lock"])
    assert "still going on" in capsys.readouterr().out


def test_what_cannot_be_fetched_keeps_nothing_from_being_judged(
    run: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(_: object) -> NoReturn:
        raise HarnessError("talk to the engine", "docker", "nobody answers", "Start it.")

    monkeypatch.setattr(commands, "salvage", refuse)
    assert cli.run(["check", str(run), "--no-analyze"]) == 0
    assert "What the nodes left was not fetched: could not talk" in capsys.readouterr().err


def test_interrupted_replays_are_not_gone_on_with(
    run: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def run_once(options: TestOptions, console: Console, *, analyze: bool) -> commands.Judged:
        assert options
        return commands.Judged(2, interrupted=True)

    monkeypatch.setattr(commands, "run_once", run_once)
    assert cli.run(["replay", str(run), "--times", "5"]) == 2
    printed = capsys.readouterr().out
    assert "0 of 1 replay failed. 4 were left out." in printed
