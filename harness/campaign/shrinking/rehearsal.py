"""Search in simulation for a run's failure and a small plan, where a try costs milliseconds.

A seed near the run's schedule that fails with the same verdict is shrunk by the same search as in
containers, with an exact oracle; a plan counts as failing where one of a few seeds does. The result
is a plan for containers, but only a guess there: the caller must confirm it. Source: issue 6, item
6.
"""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

import msgspec
from rich.console import Console

from splitbrain.contracts.errors import UsageError
from splitbrain.contracts.scenario import Scenario
from splitbrain.contracts.words import counted
from splitbrain.harness.campaign.shrinking.description import size_of
from splitbrain.harness.campaign.shrinking.display import SearchDisplay
from splitbrain.harness.campaign.shrinking.exact_oracle import ExactOracle, Failure, replay_for
from splitbrain.harness.campaign.sweep.like_command import lines_of, order_of, search
from splitbrain.harness.campaign.sweep.likeness import like_scenario, within_load
from splitbrain.harness.campaign.sweep.trial import run
from splitbrain.harness.console.stop import Stop
from splitbrain.harness.judge.simulated_outcomes import judged
from splitbrain.harness.run.world.folder import keep_sweep_run
from splitbrain.history.run_folder import RunFolder
from splitbrain.nemesis.search import SearchBudget
from splitbrain.nemesis.shrinking import shrink

SEEDS: Final = range(50)
#: Seeds beside the found one with which a smaller plan is tried.
_OTHER_SEEDS: Final = (1, 2)
#: More worlds than any search makes in its time.
_WORLDS_MAX: Final = 100_000


class Rehearsed(msgspec.Struct, frozen=True, kw_only=True):
    """Result of a search in simulation."""

    #: The small plan; None: the failure was not result.
    plan: Scenario | None
    #: How it was found, or why not: whole lines.
    lines: tuple[str, ...]


#: Looks for the failure of a run in simulation; see ``rehearsed``.
Rehearse = Callable[[RunFolder, Path, Console, Stop, float], Rehearsed]


def rehearsed(
    folder: RunFolder, runs_folder: Path, console: Console, stop: Stop, seconds: float
) -> Rehearsed:
    """Look for a failed run's failure in simulation, and make its plan small there.

    It may take ``seconds``, and less once ``stop`` is set.

    Raises:
        HarnessError: no worker process could be started, or no folder made.
    """
    budget = SearchBudget(_WORLDS_MAX, seconds, time.monotonic, is_stopped=stop.is_set)
    try:
        order = order_of(folder, runs_folder)
    except UsageError as error:
        return _nothing(f"not tried in simulation: {error.problem}.")
    result = search(order, console, SEEDS, jobs=1, stop=_StopInTime(budget))
    lines = lines_of(result, order, SEEDS)
    if result.seed is None:
        late = result.interrupted and not stop.is_set()
        reason = f"no seed failed alike within {seconds:g} s." if late else lines[0]
        return _nothing(f"simulation: {reason}")
    plan = within_load(like_scenario(order.likeness, result.seed))
    with SearchDisplay(console, budget, "in simulation") as display:

        def asking(plan: Scenario, step: str) -> None:
            worlds = counted(budget.tries, "world")
            display.now = f"in simulation: {size_of(plan).text} ({step}), {worlds}"

        replay = replay_for(Failure(checkers=order.wanted, is_alike=True))
        oracle = ExactOracle(replay, budget, asking, (result.seed, *_OTHER_SEEDS))
        if not oracle.fails(plan, "as a plan"):
            how = f"seed {result.seed} fails alike, but not as a plan that ends with its load."
            return _nothing(f"simulation: {how}")
        small = shrink(plan, oracle, budget).plan
    assert oracle.best is not None
    smallest = judged(run(oracle.best, is_recording=True))
    root = keep_sweep_run(smallest, runs_folder, kind="shrunk-like", like=order.likeness.run)
    took = f"{counted(budget.tries, 'world')}, {budget.elapsed_s:.1f} s in all"
    smaller = f"{size_of(plan).text} -> {size_of(small).text} ({took})"
    return Rehearsed(
        plan=small,
        lines=(f"simulation: {lines[0]}", f"simulation: {smaller}; splitbrain replay {root}"),
    )


class _StopInTime(Stop):
    """Set when the time is over or the user wants to stop."""

    def __init__(self, budget: SearchBudget) -> None:
        super().__init__()
        self._budget = budget

    def is_set(self) -> bool:
        return self._budget.exhausted() is not None


def _nothing(line: str) -> Rehearsed:
    return Rehearsed(plan=None, lines=(line,))
