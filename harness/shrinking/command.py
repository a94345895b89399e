"""What ``splitbrain shrink`` does with a run on a real runtime that failed.

First the failure is looked for in simulation, where the system has one: what is left of the plan
there is only taken once it has failed on the run's own runtime, k times of n. Then, from that plan
or from the run's own, the search goes on with runs alone. The smallest plan is kept as a plan file
beside the runs in which it failed; the searched run is not touched. Must never show a plan that did
not fail often enough. Source: issue 6, item 6; design, section 2.
"""

import shlex
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import msgspec
from rich.console import Console

from contracts.errors import HarnessError, UsageError
from harness.console_lines import say
from harness.options import PreparedTest, TestOptions, check_runs_folder
from harness.replay import replay_options
from harness.results import EXIT_HARNESS_FAILED, EXIT_UNKNOWN, EXIT_VALID, counted
from harness.results import read as read_results
from harness.shrinking.display import SearchDisplay
from harness.shrinking.oracle import Answer, Oracle, Try
from harness.shrinking.plan_runs import LoudInterrupts, PlanRuns, ready_test
from harness.shrinking.rehearsal import Rehearsed, rehearsed
from harness.shrinking.search_folder import LEDGER, SearchFolder, runs_folder_of
from harness.shrinking.words import comment_lines, fault_lines, headline, to_be_continued
from harness.simulation.like_command import wanted_verdict
from harness.stop import Stop
from harness.stopped_in_order import stopped_in_order
from harness.store import find_run, point_latest
from harness.waiting import Waiting
from history.run_folder import RunFolder
from nemesis.k_of_n import Asking
from nemesis.plan_shrink import PlanShape, fits, shrink_plan, with_faults
from nemesis.search import INTERRUPTED, SearchBudget

#: What a search may take, and how a plan is asked about, unless somebody says otherwise.
TRIES: Final = 3
AT_LEAST: Final = 2
RUNS_MAX: Final = 60
SECONDS_MAX: Final = 3_600.0
#: Part of the time that simulation may take, and the most of it.
_SIMULATION_SHARE: Final = 0.25
_SIMULATION_S_MAX: Final = 600.0

#: Looks for the failure in simulation.
Rehearse = Callable[[RunFolder, Path, Console, Stop, float], Rehearsed]


class SearchOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What ``splitbrain shrink`` was asked for."""

    run: Path
    any_failure: bool = False
    tries: int = TRIES
    at_least: int = AT_LEAST
    runs_max: int = RUNS_MAX
    time_limit_s: float = SECONDS_MAX
    #: Hit the nodes that were hit.
    pinned: bool = False
    #: Look for the failure in simulation first.
    simulate: bool = True
    #: Keep every try's run folder.
    keep_tries: bool = False
    #: Where the search's folder is made; None: beside the run's test.
    runs_folder: Path | None = None


def shrink_real_run(
    options: SearchOptions,
    console: Console,
    *,
    leave: Callable[[int], None] | None = None,
    ready: Callable[[TestOptions], PreparedTest] = ready_test,
    rehearse: Rehearse = rehearsed,
) -> int:
    """Shrink a run, show what is left, and return the exit code.

    A search cut short by its limits came to what it was asked for; an interrupted one, or one whose
    runs the harness could not carry out any more, did not.

    Args:
        options: what was asked for.
        console: where it is shown.
        leave: ends the process at the last Ctrl-C; for tests.
        ready: prepares a run; for tests.
        rehearse: looks for the failure in simulation; for tests.

    Raises:
        UsageError: the run cannot be shrunk, or an option does not fit.
        HarnessError: it does not fail again, or nothing can be run.
    """
    search = _Search(options, console, ready, rehearse)
    with stopped_in_order(
        search.stop,
        said="interrupted: the smallest plan so far is kept; once more to leave at once",
        left="left at once; the folder of the search stays.",
        leave=leave,
        kind=LoudInterrupts,
    ) as interrupts:
        return search.carry_out(interrupts)


class _Search:
    """One search; everything that can be wrong is checked before the first run."""

    def __init__(
        self,
        options: SearchOptions,
        console: Console,
        ready: Callable[[TestOptions], PreparedTest],
        rehearse: Rehearse,
    ) -> None:
        _check_numbers(options)
        self._options, self._console = options, console
        self._ready, self._rehearse = ready, rehearse
        self._folder = find_run(options.run)
        self._verdict = wanted_verdict(self._folder)
        if options.runs_folder is not None:
            check_runs_folder(options.runs_folder)
        self._runs_folder = options.runs_folder or runs_folder_of(self._folder)
        self._test = replay_options(
            options.run, pinned=options.pinned, runs_folder=self._runs_folder
        )
        self._start = start_of(self._test)
        if not fits(self._start):
            raise UsageError(
                f"the schedule of {self._folder.root} cannot be written as a plan file",
                "Shrink a run whose faults this version knows",
            )
        self.stop = Stop()
        self._asking = Asking(options.tries, options.at_least)

    def carry_out(self, interrupts: LoudInterrupts) -> int:
        """Search, show what is left, and return the exit code.

        Raises:
            HarnessError: the run does not fail again, or nothing can be run.
        """
        say(self._console, f"splitbrain shrink {self._name}: {self._wanted_words()}", "bold")
        budget = SearchBudget(
            self._options.runs_max,
            self._options.time_limit_s,
            time.monotonic,
            is_stopped=self.stop.is_set,
        )
        # What a wrong request makes impossible is told before there is a folder.
        with Waiting(self._console).during("making the runtime ready"):
            self._ready(self._test).runtime.teardown()
        guess = self._rehearsed(budget)
        if (reason := budget.exhausted()) is not None:
            say(self._console, f"{reason}: nothing was run, and nothing became smaller.")
            return EXIT_UNKNOWN
        with ExitStack() as context:
            folder = SearchFolder(
                self._runs_folder, self._folder.root.name, keeps_tries=self._options.keep_tries
            )
            context.callback(folder.close)
            runs = PlanRuns(self._test, folder, self.stop, interrupts, self._ready)
            display = context.enter_context(SearchDisplay(self._console, budget, self._asking))
            watcher = _Watcher(folder, display, self._comment)
            wanted = None if self._options.any_failure else self._verdict
            oracle = Oracle(runs.run, wanted, self._asking, budget, watcher)
            is_minimal = self._shrink(oracle, budget, guess)
        return self._show(oracle, budget, folder, is_minimal=is_minimal)

    @property
    def _name(self) -> str:
        """``test/run``, without a path of this machine."""
        return f"{self._folder.root.parent.name}/{self._folder.root.name}"

    def _wanted_words(self) -> str:
        what = "any violation" if self._options.any_failure else ", ".join(self._verdict.violated)
        asking = f"{self._asking.at_least} of {self._asking.tries} tries must fail"
        limits = f"at most {counted(self._options.runs_max, 'run')}"
        return (
            f"{self._start.words()}; {what} wanted; {asking}; {limits} and "
            f"{self._options.time_limit_s:g} s"
        )

    def _comment(self, answer: Answer) -> list[str]:
        return comment_lines(self._name, self._verdict.words(), answer)

    def _rehearsed(self, budget: SearchBudget) -> PlanShape | None:
        """What simulation leaves of the plan; None: nothing to go by."""
        if not self._options.simulate or not self._start.faults:
            return None
        seconds = min(_SIMULATION_S_MAX, _SIMULATION_SHARE * self._options.time_limit_s)
        found = self._rehearse(self._folder, self._runs_folder, self._console, self.stop, seconds)
        for line in found.lines:
            say(self._console, line)
        return None if budget.exhausted() is not None else found.shape

    def _shrink(self, oracle: Oracle, budget: SearchBudget, guess: PlanShape | None) -> bool:
        """Search from the best plan that is confirmed; whether no fault of it can go alone.

        Raises:
            HarnessError: not even the run's own plan fails again.
        """
        start = None if guess is None else self._confirmed(oracle, budget, guess)
        if start is None:
            start = self._start
            if not oracle.fails(start, "the run as it was"):
                if budget.broken is not None:
                    raise budget.broken
                if budget.exhausted() is None:
                    raise self._not_again(oracle)
                return False
        shrunk = shrink_plan(start, oracle.fails, budget)
        if budget.broken is not None and oracle.best is None:
            raise budget.broken
        return shrunk.is_minimal

    def _confirmed(
        self, oracle: Oracle, budget: SearchBudget, guess: PlanShape
    ) -> PlanShape | None:
        """The plan that simulation left, or its faults as the run had them, if one fails here."""
        left = {fault.index for fault in guess.faults}
        as_run = with_faults(
            self._start, tuple(fault for fault in self._start.faults if fault.index in left)
        )
        candidates = [(guess, "as simulation left it")]
        if as_run not in (self._start, guess) and as_run.faults:
            candidates.append((as_run, "those faults as the run had them"))
        for shape, step in candidates:
            if budget.exhausted() is None and fits(shape) and oracle.fails(shape, step):
                return shape
        if budget.exhausted() is None:
            say(
                self._console,
                "what simulation left was not confirmed here; going on with the run's own plan",
            )
        return None

    def _not_again(self, oracle: Oracle) -> HarnessError:
        asking, last = self._asking, oracle.last
        assert last is not None
        came_to = f"{last.failed} of {counted(last.tried, 'try', 'tries')} did"
        others = ""
        if last.otherwise:
            came_to += f", {last.otherwise} failed otherwise"
            others = "--any-failure takes any violation for the same one. "
        return HarnessError(
            "shrink the run",
            self._name,
            f"its own plan did not fail again with the same verdict in {asking.at_least} of "
            f"{asking.tries} tries: {came_to}",
            f"{others}Ask for less, such as --tries {3 * asking.tries} --at-least 1, or for the "
            "nodes that were hit with --pinned; `splitbrain replay RUN --times 10` says how often "
            "it fails",
        )

    def _show(
        self, oracle: Oracle, budget: SearchBudget, folder: SearchFolder, *, is_minimal: bool
    ) -> int:
        best = oracle.best
        is_interrupted = budget.exhausted() == INTERRUPTED
        if best is None:
            say(
                self._console,
                f"{budget.exhausted()}: no plan was settled, so nothing became smaller "
                f"({counted(budget.tries, 'run')}); every try stands in {folder.root / LEDGER}.",
            )
            return EXIT_UNKNOWN
        run = best.folders[-1]
        say(
            self._console,
            headline(self._start, best, budget, oracle.plans, is_minimal=is_minimal),
        )
        for line in fault_lines(best.shape):
            say(self._console, line)
        if (how := to_be_continued(budget, run)) is not None:
            say(self._console, how)
        if budget.broken is not None:
            say(self._console, f"the search ended early: {budget.broken}")
        point_latest(self._runs_folder, run)
        point_latest(folder.root, run)
        if best.shape.faults:
            say(self._console, f"plan:    {folder.plan}")
        say(self._console, f"test:    {_command_of(best, run, folder)}")
        say(self._console, f"report:  {RunFolder(run).report}")
        say(self._console, f"folder:  {run}")
        times = f" --times {self._asking.tries}"
        say(self._console, f"replay:  splitbrain replay {shlex.quote(str(run))}{times}")
        if budget.broken is not None:
            return EXIT_HARNESS_FAILED
        return EXIT_UNKNOWN if is_interrupted else EXIT_VALID


class _Watcher:
    """Has everything shown and kept."""

    def __init__(
        self,
        folder: SearchFolder,
        display: SearchDisplay,
        comment: Callable[[Answer], list[str]],
    ) -> None:
        self._folder, self._display, self._comment = folder, display, comment

    def begins(self, answer: Answer) -> None:
        """The next try is about to be made."""
        self._display.begins(answer)

    def took(self, answer: Answer, made: Try, *, is_same: bool) -> None:
        """A try was made."""
        self._folder.took(answer, made, is_same=is_same)
        self._display.took(answer, made, is_same=is_same)

    def answered(self, answer: Answer) -> None:
        """A plan is settled, or the budget has ended."""
        self._folder.answered(answer, self._comment(answer))
        self._display.answered(answer)


def _command_of(best: Answer, run: Path, folder: SearchFolder) -> str:
    """The command that runs the plan, by the name under which it stays."""
    told = read_results(RunFolder(run).results).reproduce
    if not best.shape.faults:
        return told
    tried = folder.plan_file(best.shape, best.number)
    return told.replace(shlex.quote(str(tried)), shlex.quote(str(folder.plan)))


def start_of(options: TestOptions) -> PlanShape:
    """The searched run's plan, whole."""
    return PlanShape(
        faults=options.schedule or (),
        time_limit_ms=round(options.time_limit_s * 1000),
        nodes=options.nodes,
        clients=options.concurrency,
        rate=options.rate,
    )


def _check_numbers(options: SearchOptions) -> None:
    for name, value in (
        ("--tries", options.tries),
        ("--at-least", options.at_least),
        ("--runs", options.runs_max),
    ):
        if value < 1:
            raise UsageError(f"{name} cannot be {value}", "Choose a number of at least 1")
    if options.at_least > options.tries:
        raise UsageError(
            f"--at-least {options.at_least} of --tries {options.tries} can never fail",
            f"Choose at most --at-least {options.tries}",
        )
    # Not a number compares with nothing and is refused too.
    if not options.time_limit_s > 0:
        raise UsageError(
            f"--time-limit cannot be {options.time_limit_s:g}", "Choose a number of seconds above 0"
        )
