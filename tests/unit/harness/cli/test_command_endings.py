"""Words and exit codes of commands when a run or a judgement ends early."""

import fcntl
from pathlib import Path
from typing import NoReturn

import pytest
from rich.console import Console

from splitbrain.contracts.errors import HarnessError
from splitbrain.harness.cli import commands
from splitbrain.harness.cli import main as cli
from splitbrain.harness.run.options import TestOptions
from splitbrain.history.run_folder import RunFolder

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
    assert f"judging {run} again; its results and report are replaced" in capsys.readouterr().err


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
