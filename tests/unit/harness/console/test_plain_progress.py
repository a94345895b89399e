"""Progress where the output is a file: one plain line a minute."""

import io
import threading
from collections.abc import Callable

import pytest
from rich.console import Console

from splitbrain.harness.campaign.shrinking.display import SearchDisplay
from splitbrain.harness.campaign.suite.display import Display
from splitbrain.harness.campaign.sweep.sweep_display import SweepDisplay
from splitbrain.harness.campaign.sweep.sweep_tally import SweepTally
from splitbrain.harness.console.live_area import LiveArea
from splitbrain.nemesis.search import SearchBudget
from tests.unit.harness.campaign.sweep.tried_seeds import tried


class Minutes:
    """Clock that waiting moves on, at most so many times; something is done in between."""

    def __init__(self, count: int, meanwhile: Callable[[], None] = lambda: None) -> None:
        self.now_s, self.waited_s = 1_000.0, list[float]()
        self._count, self._meanwhile = count, meanwhile

    def __call__(self) -> float:
        return self.now_s

    def wait(self, _ending: threading.Event, seconds: float) -> bool:
        if len(self.waited_s) == self._count:
            return True
        self.waited_s.append(seconds)
        self.now_s += seconds
        self._meanwhile()
        return False


def swept(ways: dict[int, str], minutes: int, **limits: float) -> tuple[Minutes, str]:
    """Return what a sweep of 100 seeds says, of which each minute brings 20."""
    tally, seeds, output = SweepTally(), iter(range(100)), io.StringIO()

    def meanwhile() -> None:
        for _ in range(20):
            tally.take(tried(ways, next(seeds), "first"))

    clock = Minutes(minutes, meanwhile)
    console = Console(file=output, width=200)
    with SweepDisplay(console, "a sweep", 100, tally, 0, clock=clock, wait=clock.wait, **limits):
        pass
    return clock, output.getvalue()


def test_a_sweep_tells_a_minute_what_it_has_and_what_is_left() -> None:
    clock, said = swept({3: "fails", 30: "puzzles"}, 3)
    assert clock.waited_s == [60.0, 60.0, 60.0]
    assert said.splitlines() == [
        "a sweep",
        "   60.0 s  20 of 100 seeds, 1 failed, 0 unknown, 20 a minute, 4 min left",
        "  120.0 s  40 of 100 seeds, 1 failed, 1 unknown, 20 a minute, 3 min left",
        "  180.0 s  60 of 100 seeds, 1 failed, 1 unknown, 20 a minute, 2 min left",
    ]


def test_seeds_that_were_skipped_are_no_pace_of_seeds_but_shorten_the_time_left() -> None:
    _, said = swept(dict.fromkeys(range(0, 100, 2), "skips"), 2)
    assert said.splitlines()[-1] == (
        "  120.0 s  20 of 100 seeds, 20 skipped, 0 failed, 0 unknown, 10 a minute, 3 min left"
    )


def test_a_time_limit_bounds_the_time_that_is_left() -> None:
    _, said = swept({}, 2, time_limit_s=150.0)
    assert said.splitlines()[-1].endswith(" 20 a minute, 30 s left")


def test_seeds_that_could_not_be_run_are_told() -> None:
    _, said = swept({1: "crashes"}, 1)
    assert "19 of 100 seeds, 0 failed, 0 unknown, 1 could not be run, 19 a minute" in said


def test_searches_and_nights_tell_a_minute_too() -> None:
    console = Console(file=io.StringIO())
    budget = SearchBudget(5, 60.0, lambda: 0.0)
    for display in (Display(console, 3), SearchDisplay(console, budget, "at work")):
        assert display._interval_s == 60.0


@pytest.mark.parametrize("is_coloured", [False, True])
def test_a_file_gets_lines_and_no_carriage_return(
    is_coloured: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    if is_coloured:
        monkeypatch.setenv("FORCE_COLOR", "1")
    output = io.StringIO()
    console = Console(file=output)
    assert console.is_terminal == is_coloured
    with LiveArea(console, lambda: "drawn", lambda: "a line", wait=Minutes(2).wait):
        pass
    assert output.getvalue() == "a line\na line\n"
