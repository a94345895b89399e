"""Sweeps that a time limit ends, or that choose their worlds: what was left out is told."""

import signal
from collections.abc import Callable
from io import StringIO

import pytest
from rich.console import Console

from splitbrain.harness.campaign.sweep.command import run_sweep
from splitbrain.harness.campaign.sweep.sweep import Sweep, SweepOrder
from splitbrain.harness.campaign.sweep.sweep_display import SweepDisplay
from splitbrain.harness.campaign.sweep.trial import SeedResult
from splitbrain.harness.console.stop import Stop
from tests.unit.harness.campaign.sweep.test_sweep import ChildHere, order, sweep_here, swept


class Watch:
    """Clock that goes on by a second with each look at it."""

    def __init__(self) -> None:
        self.now_s = -1.0

    def __call__(self) -> float:
        self.now_s += 1.0
        return self.now_s


def timed(
    given: SweepOrder, clock: Callable[[], float] | None = None, stop: Stop | None = None
) -> tuple[int, str]:
    text = StringIO()
    stop = stop or Stop()
    sweep = Sweep(given, stop, open_child=ChildHere, clock=clock or Watch())  # type: ignore[arg-type]
    return run_sweep(sweep, Console(file=text, width=120)), text.getvalue()


def test_a_time_limit_ends_the_giving_out_of_seeds_and_no_verdict_on_them() -> None:
    # Looks: one at the making, one at the beginning, one for each seed.
    code, said = timed(order(1000, check_share=1.0, time_limit_s=13.0))
    assert code == 0
    assert said.splitlines()[-1] == (
        " CLEAN  no alarm in 12 seeds: at 95% confidence fewer than 1 in 4 seeds. "
        "The time limit of 13 s ended the sweep: 988 not run (--seeds 12:1000)."
    )
    assert "12 of 1,000, 12 run twice and equal" in said, "second runs are made all the same"
    code, said = timed(order(30, {1: "fails"}, time_limit_s=5.0))
    assert code == 1
    assert said.splitlines()[-1].startswith(" FAILED  1 of 4 seeds failed. The time limit of 5 s ")
    code, said = timed(order(30, {1: "puzzles"}, time_limit_s=5.0))
    assert code == 2
    assert "1 of them undecided. The time limit of 5 s ended the sweep: 26 not run" in said


def test_a_time_limit_that_is_over_before_the_first_seed_is_no_pass() -> None:
    code, said = timed(order(7, time_limit_s=0.5))
    assert code == 2
    assert said.splitlines()[-1] == (
        " UNKNOWN  Not one seed was tried. "
        "The time limit of 0.5 s ended the sweep: 7 not run (--seeds 0:7)."
    )


def test_a_time_limit_that_all_seeds_keep_is_not_told() -> None:
    code, said = timed(order(5, time_limit_s=6.5))
    assert (code, said.splitlines()[-1]) == (0, " CLEAN  no alarm in 5 seeds.")


def test_a_sweep_that_is_interrupted_after_its_time_is_no_pass(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now_s, stop = [0.0], Stop()

    def interrupt(display: SweepDisplay, result: SeedResult) -> None:
        if result.seed == 8:
            now_s[0] = 10.0
        if display._tally.is_out_of_time:
            signal.raise_signal(signal.SIGINT)
            # Another thread hands the signal on, and all seeds may be done before it does.
            assert stop.wait(60)

    monkeypatch.setattr(SweepDisplay, "took", interrupt)
    given = order(30, check_share=1.0, time_limit_s=9.0)
    code, said = timed(given, lambda: now_s[0], stop)
    last = said.splitlines()[-1]
    assert code == 2
    assert last.startswith(
        " INTERRUPTED  No alarm in 9 seeds; some second runs were not made. The "
    )
    assert last.endswith("time limit of 9 s ended the sweep: 21 not run (--seeds 9:30).")


def test_seeds_of_other_worlds_are_told_and_count_as_nothing() -> None:
    ways = dict.fromkeys([0, 1, 5, 9], "skips")
    given = order(12, ways | {4: "fails"}, world="codec", check_share=1.0, trace_hash=True)
    sweep = sweep_here(given)
    sweep.carry_out()
    tally = sweep.tally
    assert (tally.tried, tally.done, tally.skipped, tally.first_untried) == (8, 8, 4, 12)
    assert (tally.checked, sorted(tally.hashes)) == (8, [2, 3, 4, 6, 7, 8, 10, 11])
    code, said = swept(given)
    assert code == 1
    assert said.startswith("splitbrain sim kraft, seeds 0 to 11, with codec, 1 process\n")
    assert "8 of 12, 4 skipped, 8 run twice and equal" in said
    assert " FAILED  1 of 8 seeds with codec failed." in said
    assert "splitbrain sim --seed 4 --made-by" in said, "what makes it again needs no choice"


def test_a_sweep_in_which_every_seed_is_skipped_is_no_pass() -> None:
    code, said = swept(order(12, dict.fromkeys(range(12), "skips"), world="codec"))
    assert code == 2
    assert said.splitlines()[-1] == " UNKNOWN  No world of seeds 0 to 11 has codec."


def test_seeds_that_a_time_limit_leaves_are_none_that_were_skipped() -> None:
    ways = dict.fromkeys([0, 1], "skips")
    code, said = timed(order(12, ways, world="codec", time_limit_s=5.0))
    assert code == 0
    assert said.splitlines()[-1] == (
        " CLEAN  no alarm in 2 seeds with codec. "
        "The time limit of 5 s ended the sweep: 8 not run (--seeds 4:12)."
    )
