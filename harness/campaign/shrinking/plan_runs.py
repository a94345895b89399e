"""Runs of smaller plans on the run's own runtime, each in a run folder of its own, and judged.

Each run reads the plan file that the user gets, so that the accepted plan is the one that was
tried. Output of the runs goes to the search's log. Must never start two runs at a time, nor leave
one going on. Source: issue 6, item 6.
"""

import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import msgspec
from rich.console import Console

from splitbrain.contracts.errors import HarnessError
from splitbrain.contracts.scenario import Scenario
from splitbrain.harness.campaign.replaying.verdicts import verdict_of
from splitbrain.harness.campaign.shrinking.run_oracle import Try
from splitbrain.harness.campaign.shrinking.search_folder import SearchFolder
from splitbrain.harness.console.interrupts import Farewell, Interrupts, Reaction
from splitbrain.harness.console.stop import Stop
from splitbrain.harness.report import publishing
from splitbrain.harness.run.options import PreparedTest, TestOptions, prepare
from splitbrain.harness.run.runner import run_test
from splitbrain.nemesis.plan import NONE

_US_PER_S: Final = 1_000_000
_FIRST: Final = (
    "interrupted: this try is ended in order, and the smallest plan so far is kept; once more to "
    "hurry"
)
_SECOND: Final = (
    "interrupted again: the nodes are removed at once; once more to leave them to `splitbrain "
    "clean`"
)
_SAID: Final = (_FIRST, _SECOND)


class LoudInterrupts(Interrupts):
    """Interrupts announced on the terminal although the run writes to the search's log alone."""

    @contextmanager
    def during(self, *reactions: Reaction, farewell: Farewell) -> Generator[None]:
        """Have signals do this while the context lasts."""

        def loud(place: int, reaction: Reaction) -> Reaction:
            return lambda: reaction() or _SAID[min(place, len(_SAID) - 1)]

        spoken = [loud(place, reaction) for place, reaction in enumerate(reactions)]
        with super().during(*spoken, farewell=farewell):
            yield


class PlanRuns:
    """Runner of plans; one at a time.

    ``folder`` takes run folders, plans and log; ``stop`` is set when the user ended a run, and read
    while it is judged; tests replace ``ready``.
    """

    def __init__(
        self,
        options: TestOptions,
        folder: SearchFolder,
        stop: Stop,
        interrupts: Interrupts,
        ready: Callable[[TestOptions], PreparedTest] | None = None,
    ) -> None:
        self._options, self._folder = options, folder
        self._stop, self._interrupts = stop, interrupts
        self._ready = ready or ready_test
        self._console = Console(file=folder.log, width=120, soft_wrap=True)

    def options_of(self, plan: Scenario, number: int) -> TestOptions:
        """Return the options that run a plan; raise HarnessError if its file cannot be written."""
        nemesis = str(self._folder.plan_file(plan, number)) if plan.faults else NONE
        return with_plan(self._options, plan, nemesis=nemesis, runs_folder=self._folder.root)

    def run(self, plan: Scenario, number: int) -> Try:
        """Run a plan once; raise HarnessError if its file cannot be written.

        Any other failure of the harness becomes the try's problem.
        """
        options = self.options_of(plan, number)
        began = time.monotonic()
        made = self._made(options)
        return msgspec.structs.replace(made, seconds=time.monotonic() - began)

    def _made(self, options: TestOptions) -> Try:
        try:
            test = self._ready(options)
            outcome = run_test(test, self._console, interrupts=self._interrupts)
        except HarnessError as error:
            return Try(verdict=None, problem=str(error))
        root = outcome.folder.root
        if outcome.interrupted:
            self._stop.interrupt()
            return Try(verdict=None, folder=root)
        problems = () if outcome.failure is None else (str(outcome.failure),)
        results = publishing.judge_and_publish(
            root, analyze=False, harness_problems=problems, stop=self._stop
        )
        verdict = verdict_of(results)
        if self._stop.is_set() and not verdict.is_invalid:
            return Try(verdict=None, folder=root)
        if results.harness_failed and not verdict.is_invalid:
            problem = results.problems[0] if results.problems else "the harness failed"
            return Try(verdict=None, folder=root, problem=problem)
        return Try(verdict=verdict, folder=root)


def with_plan(
    options: TestOptions, plan: Scenario, *, nemesis: str, runs_folder: Path
) -> TestOptions:
    """Return the options of the searched run, reduced to the plan."""
    experiment = msgspec.structs.replace(
        options.experiment,
        nemesis=nemesis,
        nodes=plan.nodes,
        time_limit_s=plan.load_us / _US_PER_S,
        concurrency=plan.load.clients,
        rate=plan.load.rate,
    )
    return TestOptions(experiment=experiment, keep_data=options.keep_data, runs_folder=runs_folder)


def ready_test(options: TestOptions) -> PreparedTest:
    """Return a run that can be started, its images at hand.

    Raises:
        UsageError: something does not exist or does not fit.
        HarnessError: the runtime cannot carry it out, or does not answer.
    """
    from splitbrain.runtimes.registry import runtime
    from splitbrain.systems.registry import system

    adapter = system(options.experiment.system)
    test = prepare(options, adapter, lambda: runtime(options.experiment.runtime))
    test.runtime.prepare(adapter.images())
    return test
