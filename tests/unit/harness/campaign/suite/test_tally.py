"""Sums over the ledger's lines: what stands twice counts once, what is void does not count."""

import msgspec
import pytest

from splitbrain.harness.campaign.suite.alarms import alarms_of_night
from splitbrain.harness.campaign.suite.ledger import (
    Line,
    NightBegan,
    NightEnded,
    PlannedCell,
    RunEnded,
    Verdict,
)
from splitbrain.harness.campaign.suite.tally import nights_of, sum_by_commit, tally_night
from tests.unit.harness.campaign.suite.ended_runs import ended_run

BEGAN = NightBegan(
    suite="s",
    night="n1",
    night_seed=1,
    digest="",
    at="",
    cells=(PlannedCell("m", "m", 2, "valid", 0), PlannedCell("p", "p", 1, "invalid", 1)),
)
ENDED = NightEnded(suite="s", night="n1", at="", reason="done")


def ran(number: int, verdict: Verdict, cell: str = "m", commit: str | None = "c" * 40) -> RunEnded:
    expect = "invalid" if cell == "p" else "valid"
    how = {"verdict": verdict, "expect": expect, "as_expected": verdict == expect}
    return ended_run(number, night="n1", matrix=cell, cell=cell, commit=commit, **how)


FOUND = ran(3, "invalid", "p")


@pytest.mark.parametrize("twice", [("valid", "invalid"), ("invalid", "valid")])
def test_a_run_that_stands_twice_counts_once_and_as_a_violation(
    twice: tuple[Verdict, Verdict],
) -> None:
    lines: list[Line] = [BEGAN, *(ran(1, verdict) for verdict in twice), ran(2, "valid"), FOUND]
    night = tally_night([*lines, ENDED])
    assert night is not None
    assert [run.verdict for run in night.runs] == ["invalid", "valid", "invalid"]
    assert night.exit_code == 1


@pytest.mark.parametrize(
    ("verdicts", "code"),
    [
        (("valid", "valid", "invalid"), 0),
        (("valid", "unknown", "invalid"), 2),
        (("vacuous", "valid", "invalid"), 2),
        (("failed", "unknown", "invalid"), 3),
        (("failed", "invalid", "invalid"), 1),
        (("valid", "valid", "valid"), 3),
        (("valid", "invalid", "valid"), 1),
        # A planted bug's run that fails is both a failure and no teeth.
        (("valid", "valid", "failed"), 3),
    ],
)
def test_the_worst_decides_the_exit_code(
    verdicts: tuple[Verdict, Verdict, Verdict], code: int
) -> None:
    first, second, planted = verdicts
    night = tally_night([BEGAN, ran(1, first), ran(2, second), ran(3, planted, "p"), ENDED])
    assert night is not None
    assert night.exit_code == code


@pytest.mark.parametrize(
    ("verdicts", "told"),
    [
        (("valid", "valid", "invalid"), []),
        (("invalid", "vacuous", "invalid"), [("error", "invalid: m"), ("warning", "vacuous: m")]),
        (("failed", "valid", "valid"), [("error", "failed: m"), ("error", "VOID: p")]),
    ],
)
def test_a_night_raises_an_alarm_for_each_run_that_nobody_expected(
    verdicts: tuple[Verdict, Verdict, Verdict], told: list[tuple[str, str]]
) -> None:
    first, second, planted = verdicts
    night = tally_night([BEGAN, ran(1, first), ran(2, second), ran(3, planted, "p"), ENDED])
    assert night is not None
    alarms = alarms_of_night(night)
    assert [(alarm.level, alarm.title.partition(",")[0]) for alarm in alarms] == told


def test_a_night_that_is_not_over_raises_one() -> None:
    night = tally_night([BEGAN, ran(1, "valid")])
    assert night is not None
    (alarm,) = alarms_of_night(night)
    assert (alarm.level, alarm.sentence[:8]) == ("warning", "NOT OVER")


def test_a_night_that_is_not_over_is_never_green() -> None:
    night = tally_night([BEGAN, ran(1, "valid"), ran(2, "valid"), FOUND])
    assert night is not None
    assert (night.exit_code, night.is_void) == (2, False)
    # But it is void as soon as the rest cannot make up for what went unseen.
    night = tally_night([BEGAN, ran(3, "valid", "p")])
    assert night is not None
    assert (night.exit_code, night.is_void) == (3, True)


def test_commits_and_void_nights_are_told_apart() -> None:
    other = msgspec.structs.replace(BEGAN, night="n2")
    void = [
        msgspec.structs.replace(run, night="n2", dirty=True)
        for run in (ran(1, "valid"), ran(2, "invalid"), ran(3, "valid", "p"))
    ]
    lines: list[Line] = [BEGAN, ran(1, "valid"), ran(2, "valid", commit=None), FOUND, ENDED]
    sums = {entry.commit: entry for entry in sum_by_commit(nights_of([*lines, other, *void]))}
    assert set(sums) == {"c" * 12, "no commit", "c" * 12 + "-dirty"}
    clean, dirty = sums["c" * 12], sums["c" * 12 + "-dirty"]
    assert (clean.counts["valid"], clean.planted, clean.found, clean.void_valid) == (1, 1, 1, 0)
    assert (dirty.counts["valid"], dirty.counts["invalid"], dirty.void_valid) == (0, 1, 1)
    assert (len(clean.void_nights), len(dirty.void_nights)) == (0, 1)


def test_lines_without_their_night_count_for_nothing() -> None:
    assert nights_of([ran(1, "valid"), ENDED]) == []
    assert nights_of([BEGAN, ran(1, "valid")], "another") == []
