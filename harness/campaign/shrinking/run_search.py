"""Search for a small plan of a run on a real runtime: each plan is run k times of n.

First the failure is looked for in simulation, where the system has one; a small plan from there
must fail on the run's own runtime before it is taken. From it, or from the run's own plan, the
search goes on with runs alone. The smallest plan is kept as a plan file beside the runs in which it
failed. Must never show a plan that did not fail often enough. Source: issue 6, item 6; design,
section 2.
"""

from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from typing import Final

import msgspec
from rich.console import Console

from splitbrain.contracts.errors import HarnessError, UsageError
from splitbrain.contracts.scenario import Scenario
from splitbrain.contracts.words import counted
from splitbrain.harness.campaign.replaying.recorded import (
    changed_versions,
    read_plan,
    replay_options,
)
from splitbrain.harness.campaign.shrinking import description
from splitbrain.harness.campaign.shrinking.display import SearchDisplay
from splitbrain.harness.campaign.shrinking.options import (
    RUN_LIMITS,
    Limits,
    ShrinkOptions,
    search_limits,
)
from splitbrain.harness.campaign.shrinking.plan_runs import LoudInterrupts, PlanRuns
from splitbrain.harness.campaign.shrinking.rehearsal import Rehearse
from splitbrain.harness.campaign.shrinking.run_oracle import Answer, RunOracle, Try, Watcher
from splitbrain.harness.campaign.shrinking.search_folder import LEDGER, SearchFolder, runs_folder_of
from splitbrain.harness.campaign.sweep.like_command import wanted_verdict
from splitbrain.harness.campaign.sweep.planned import record_of_plan
from splitbrain.harness.console.console_lines import say
from splitbrain.harness.console.stop import Stop
from splitbrain.harness.console.waiting import Waiting
from splitbrain.harness.folder.results import read as read_results
from splitbrain.harness.folder.store import point_latest
from splitbrain.harness.run.options import PreparedTest, TestOptions
from splitbrain.history.options import refuse_unfit
from splitbrain.history.run_folder import RunFolder
from splitbrain.nemesis.plan_text import fits
from splitbrain.nemesis.run_steps import FAULTS_WITH_THEIR_LOAD
from splitbrain.nemesis.search import Repetition, SearchBudget
from splitbrain.nemesis.shrinking import shrink

#: Share of the time that simulation may take, and its upper limit.
_SIMULATION_SHARE: Final = 0.25
_SIMULATION_S_MAX: Final = 600.0
#: Default number of runs of a plan, and of those that must fail.
_ASKING: Final = Repetition(tries=3, at_least=2)


class RunSearch:
    """One search; before the first run raises UsageError for a bad option or an unfit run."""

    def __init__(
        self,
        options: ShrinkOptions,
        folder: RunFolder,
        stop: Stop,
        ready: Callable[[TestOptions], PreparedTest],
        rehearse: Rehearse,
    ) -> None:
        self._options, self._folder, self._name = options, folder, description.name_of(folder)
        self._stop, self._ready, self._rehearse = stop, ready, rehearse
        self.limits, self._asking = _run_limits(options)
        self._verdict = wanted_verdict(folder)
        self._runs_folder = options.runs_folder or runs_folder_of(folder)
        pinned, runs_folder = options.pinned, self._runs_folder
        self._test = replay_options(options.run, pinned=pinned, runs_folder=runs_folder)
        self.start = record_of_plan(read_plan(folder), self._test.schedule or ())
        if not fits(self.start):
            problem = f"the schedule of {folder.root} cannot be written as a plan file"
            raise UsageError(problem, "Shrink a run whose faults this version knows")
        what = "any violation" if options.any_failure else ", ".join(self._verdict.violated)
        asking = self._asking
        self.wanted = f"{what} wanted; {asking.at_least} of {asking.tries} tries must fail"

    def search(
        self, budget: SearchBudget, console: Console, interrupts: LoudInterrupts
    ) -> description.Result | str:
        """Look for the failure in simulation, then run ever smaller plans.

        Raises:
            HarnessError: the run does not fail again, or nothing can be run.
        """
        # A request that this runtime cannot carry out is refused before there is a folder.
        with Waiting(console).during("making the runtime ready"):
            test = self._ready(self._test)
            test.runtime.teardown()
        for line in changed_versions(read_plan(self._folder), test.system):
            say(console, line)
        guess = self._rehearsed(budget, console)
        if budget.exhausted() is not None:
            return "nothing was run, and nothing became smaller."
        with ExitStack() as context:
            folder = self._search_folder = SearchFolder(
                self._runs_folder, self._folder.root.name, keeps_tries=self._options.keep_tries
            )
            context.callback(folder.close)
            runs = PlanRuns(self._test, folder, self._stop, interrupts, self._ready)
            display = context.enter_context(SearchDisplay(console, budget, "about to begin"))
            wanted = None if self._options.any_failure else self._verdict
            comment = partial(description.comment_lines, self._name, self._verdict.text)
            watcher = _Watcher(folder, display, budget, self._asking, comment)
            oracle = RunOracle(runs.run, wanted, self._asking, budget, watcher)
            is_minimal = self._shrink(oracle, budget, guess, console)
        self._best = best = oracle.best
        if best is None:
            return (
                f"no plan was settled, so nothing became smaller ({counted(budget.tries, 'run')}); "
                f"every try stands in {folder.root / LEDGER}."
            )
        tries = counted(best.tried, "try", "tries")
        return description.Result(
            before=description.size_of(self.start),
            after=description.size_of(best.plan),
            is_minimal=is_minimal,
            tries=f"{counted(oracle.plans, 'plan')}, {counted(budget.tries, 'run')}",
            evidence=f"failed with the same verdict in {best.failed} of {tries}",
        )

    def keep(self, _console: Console, _cut_short: str | None) -> description.Kept:
        """Return the last run of the smallest plan; its files are in place already."""
        best, folder = self._best, self._search_folder
        assert best is not None
        run = best.folders[-1]
        point_latest(self._runs_folder, run)
        point_latest(folder.root, run)
        plan = {"plan": str(folder.plan)} if best.plan.faults else {}
        return description.Kept(
            run=RunFolder(run),
            reproduce=read_results(RunFolder(run).results).reproduce,
            story=description.fault_lines(best.plan),
            more=plan,
            times=self._asking.tries,
        )

    def _rehearsed(self, budget: SearchBudget, console: Console) -> Scenario | None:
        """Return the plan that simulation leaves; None where it found nothing."""
        if self._options.simulate is False or not self.start.faults:
            return None
        seconds = min(_SIMULATION_S_MAX, _SIMULATION_SHARE * self.limits.seconds)
        result = self._rehearse(self._folder, self._runs_folder, console, self._stop, seconds)
        for line in result.lines:
            say(console, line)
        left = result.plan
        if left is None or budget.exhausted() is not None:
            return None
        # The same record as the run's own, so that none is asked about twice.
        return msgspec.structs.replace(
            self.start, faults=left.faults, load_us=left.load_us, nodes=left.nodes, load=left.load
        )

    def _shrink(
        self, oracle: RunOracle, budget: SearchBudget, guess: Scenario | None, console: Console
    ) -> bool:
        """Search from the best confirmed plan; return whether no fault of it can go alone.

        Raises HarnessError if not even the run's own plan fails again.
        """
        start = None if guess is None else self._confirmed(oracle, budget, guess, console)
        if start is None:
            start = self.start
            if not oracle.fails(start, "the run as it was"):
                if budget.broken is not None:
                    raise budget.broken
                if budget.exhausted() is None:
                    raise self._not_again(oracle)
                return False
        is_minimal = shrink(start, oracle, budget).is_minimal
        if budget.broken is not None and oracle.best is None:
            raise budget.broken
        return is_minimal

    def _confirmed(
        self, oracle: RunOracle, budget: SearchBudget, guess: Scenario, console: Console
    ) -> Scenario | None:
        """Return simulation's plan, or its faults as the run had them, if one fails here."""
        left = {fault.index for fault in guess.faults}
        as_run = FAULTS_WITH_THEIR_LOAD.keeping(
            self.start, tuple(fault for fault in self.start.faults if fault.index in left)
        )
        candidates = [(guess, "as simulation left it")]
        if as_run not in (self.start, guess) and as_run.faults:
            candidates.append((as_run, "those faults as the run had them"))
        for plan, step in candidates:
            if budget.exhausted() is None and fits(plan) and oracle.fails(plan, step):
                return plan
        if budget.exhausted() is None:
            line = "what simulation left was not confirmed here; going on with the run's own plan"
            say(console, line)
        return None

    def _not_again(self, oracle: RunOracle) -> HarnessError:
        asking, last = self._asking, oracle.last
        assert last is not None
        problem = (
            f"its own plan did not fail again with the same verdict in {asking.at_least} of "
            f"{asking.tries} tries: {last.failed} of {counted(last.tried, 'try', 'tries')} did"
        )
        next_step = (
            f"Ask for less, such as --tries {3 * asking.tries} --at-least 1, or for the nodes that "
            "were hit with --pinned; `splitbrain replay RUN --times 10` says how often it fails"
        )
        if last.otherwise:
            problem += f", {last.otherwise} failed otherwise"
            next_step = f"--any-failure takes any violation for the same one. {next_step}"
        return HarnessError("shrink the run", self._name, problem, next_step)


class _Watcher(Watcher):
    def __init__(
        self,
        folder: SearchFolder,
        display: SearchDisplay,
        budget: SearchBudget,
        asking: Repetition,
        comment: Callable[[Answer], list[str]],
    ) -> None:
        self._folder, self._display, self._comment = folder, display, comment
        self._budget, self._asking = budget, asking

    def begins(self, answer: Answer) -> None:
        run = f"run {self._budget.tries + 1}"
        self._display.now = f"{run}, {description.progress_text(answer, self._asking)}"

    def took(self, answer: Answer, made: Try, *, is_same: bool) -> None:
        self._folder.took(answer, made, is_same=is_same)
        if (sentence := description.try_text(answer, made, is_same=is_same)) is not None:
            self._display.say(sentence)

    def answered(self, answer: Answer) -> None:
        self._folder.answered(answer, self._comment(answer))
        self._display.say(description.answer_text(answer))


def _run_limits(options: ShrinkOptions) -> tuple[Limits, Repetition]:
    """Return limits, and how often a plan must fail; raise UsageError for an unfit option."""
    next_step = (
        "Leave it out; --runs limits the runs in containers, and `splitbrain sim --like RUN` "
        "looks for the failure in simulation"
    )
    refuse_unfit(options, "runs", f"{options.run}, which is no simulated run", next_step)
    tries = _ASKING.tries if options.tries is None else options.tries
    at_least = min(_ASKING.at_least, max(1, tries))
    asking = Repetition(tries, at_least if options.at_least is None else options.at_least)
    limits = search_limits(options, options.runs, RUN_LIMITS)
    if asking.at_least > asking.tries:
        problem = f"--at-least {asking.at_least} of --tries {asking.tries} can never fail"
        raise UsageError(problem, f"Choose at most --at-least {asking.tries}")
    return limits, asking
