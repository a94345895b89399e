"""Replays say how often the same checkers found a violation, and what else came out."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console

from splitbrain.harness.campaign.replaying.verdicts import (
    INTERRUPTED,
    ReplayVerdict,
    recorded_verdict,
    replay_lines,
    verdict_of,
)
from splitbrain.harness.cli import commands
from splitbrain.harness.cli import main as cli
from splitbrain.harness.folder.results import EXIT_INVALID, read
from splitbrain.harness.report.publishing import judge_and_publish as judge
from splitbrain.harness.run.options import TestOptions
from splitbrain.history.run_folder import RunFolder
from tests.synthetic_runs import write_run

STALE = ReplayVerdict("INVALID", ("linearizability:cas-register",))
BRAIN = ReplayVerdict("INVALID", ("linearizability:cas-register", "split-brain"))
VALID = ReplayVerdict("VALID")


def test_same_verdict_means_the_same_checkers_and_no_other() -> None:
    replays = [*[STALE] * 7, BRAIN, VALID, VALID]
    assert replay_lines(STALE, replays, 10) == [
        "7 of 10 replays failed with the same verdict: linearizability:cas-register.",
        "   7 invalid (linearizability:cas-register)",
        "   1 invalid (linearizability:cas-register, split-brain)",
        "   2 valid",
    ]


def test_a_violation_is_listed_before_what_came_more_often() -> None:
    lines = replay_lines(BRAIN, [VALID, VALID, STALE], 3)
    assert lines[0].startswith("0 of 3 replays failed with the same verdict: ")
    assert lines[1:] == ["   1 invalid (linearizability:cas-register)", "   2 valid"]


@pytest.mark.parametrize("recorded", [None, VALID, ReplayVerdict("HARNESS FAILED")])
def test_replays_of_a_run_that_did_not_fail_are_counted_by_violations_alone(
    recorded: ReplayVerdict | None,
) -> None:
    assert replay_lines(recorded, [VALID, STALE], 2)[0] == "1 of 2 replays came out invalid."
    assert replay_lines(recorded, [VALID], 2)[0].endswith("invalid. 1 was left out.")
    ended = replay_lines(recorded, [INTERRUPTED], 5)
    assert ended == ["0 of 1 replay came out invalid. 4 were left out.", "   1 interrupted"]


def test_a_verdict_is_made_of_the_headline_and_the_checkers_that_convict(tmp_path: Path) -> None:
    folder = RunFolder(write_run(tmp_path / "run", flaw="stale-read"))
    assert recorded_verdict(folder) is None
    results = judge(folder.root, analyze=False)
    assert recorded_verdict(folder) == verdict_of(results) == STALE
    assert verdict_of(read(folder.results)) == STALE


def test_the_command_tells_the_rate_of_the_recorded_verdict_and_ends_with_the_worst_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = RunFolder(
        write_run(tmp_path / "kraft-register" / "20261121T020000Z-7", flaw="stale-read")
    )
    assert verdict_of(judge(folder.root, analyze=False)) == STALE
    replayed = [STALE, VALID, STALE]

    def run_once(options: TestOptions, console: Console, *, analyze: bool) -> Any:
        came_to = replayed.pop(0)
        code = EXIT_INVALID if came_to.is_invalid else 0
        return SimpleNamespace(exit_code=code, interrupted=False, came_to=came_to)

    monkeypatch.setattr(commands, "run_once", run_once)
    assert cli.run(["replay", str(folder.root), "--times", "3"]) == EXIT_INVALID
    printed = capsys.readouterr().out
    assert "2 of 3 replays failed with the same verdict: linearizability:cas-register." in printed
    assert "   1 valid" in printed
