"""Search for a small world of a simulated run: each candidate is replayed exactly, once.

The small run gets a folder of its own, judged and reported as any other; on request it becomes a
test. Must never pass off another failure as the original's. Source: issue 5, item 8.
"""

from functools import partial
from pathlib import Path

from rich.console import Console

from splitbrain.contracts.errors import HarnessError, UsageError
from splitbrain.contracts.scenario import Scenario
from splitbrain.contracts.words import counted
from splitbrain.harness.campaign.shrinking import description
from splitbrain.harness.campaign.shrinking.display import SearchDisplay
from splitbrain.harness.campaign.shrinking.exact_oracle import (
    ExactOracle,
    Failure,
    failure_of,
    finding_of,
    replay_for,
)
from splitbrain.harness.campaign.shrinking.options import ShrinkOptions, exact_limits
from splitbrain.harness.campaign.shrinking.saved_test import (
    check_test_file,
    content_of_test,
    save_test,
)
from splitbrain.harness.campaign.sweep.trial import run
from splitbrain.harness.console.console_lines import say
from splitbrain.harness.console.interrupts import Interrupts
from splitbrain.harness.console.waiting import Waiting
from splitbrain.harness.folder.scenario_file import read_recorded, said_of
from splitbrain.harness.folder.simulation_outcome import JudgedOutcome
from splitbrain.harness.folder.simulation_record import made_by
from splitbrain.harness.folder.tool_version import other_tool
from splitbrain.harness.judge.simulated_outcomes import judged
from splitbrain.harness.report import publishing
from splitbrain.harness.run.options import check_bugs
from splitbrain.harness.run.world.folder import keep_sweep_run
from splitbrain.history.run_folder import RunFolder
from splitbrain.nemesis.search import SearchBudget
from splitbrain.nemesis.shrinking import shrink


class ExactSearch:
    """One search; before the first replay raises UsageError for a bad option or an unfit run."""

    def __init__(self, options: ShrinkOptions, folder: RunFolder) -> None:
        self._options, self._folder = options, folder
        self._name = description.name_of(folder)
        self.limits = exact_limits(options)
        if options.save_test is not None:
            check_test_file(options.save_test)
        if not folder.scenario.exists():
            raise UsageError(
                f"{options.run} has no {folder.scenario.name}, so its world cannot be run again",
                "Name a run that `splitbrain sim` has kept, or make one with --runtime simulated",
            )
        self.start, self._record = read_recorded(folder)
        from splitbrain.systems.registry import system

        with said_of(folder.scenario):
            check_bugs(self.start.bugs, system(self.start.system))
        if self._record.violation is None and self._record.failed_by == ():
            raise _nothing_wrong(options.run)
        self.wanted = f"{self._wanted()} wanted"

    def search(
        self, budget: SearchBudget, console: Console, _interrupts: Interrupts
    ) -> description.Result:
        """Replay the run, then ever smaller ones.

        Raises:
            UsageError: the run was never judged, and nothing is wrong with it.
            HarnessError: it does not fail again.
        """
        for line in other_tool(made_by(self._record)):
            say(console, line)
        with SearchDisplay(console, budget, "replaying it once") as display:
            first = judged(run(self.start))
            self._failure = self._failure_of(first)
            finding = finding_of(first)
            before = description.size_of(self.start, finding.happened)

            def before_replay(_candidate: Scenario, step: str) -> None:
                smallest = description.size_of(oracle.best or self.start, oracle.happened)
                change = description.change(before, smallest)
                display.now = f"{change} ({step})"

            oracle = self._oracle = ExactOracle(replay_for(self._failure), budget, before_replay)
            oracle.saw(self.start, finding)
            smallest = shrink(self.start, oracle, budget)
        return description.Result(
            before=before,
            after=description.size_of(smallest.plan, oracle.happened),
            is_minimal=smallest.is_minimal,
            tries=counted(budget.tries, "replay"),
        )

    def keep(self, console: Console, cut_short: str | None) -> description.Kept:
        """Make and judge the folder of the small run, and its test if one is asked for.

        Raises HarnessError if it does not fail again, or the disk refuses.
        """
        best, finding, path = self._oracle.best, self._oracle.finding, self._options.save_test
        assert best is not None
        assert finding is not None
        small = judged(run(best, is_recording=True))
        if not self._failure.is_in(small):
            raise self._not_again(self._failure, small, "the smallest run")
        runs_folder = self._options.runs_folder or self._folder.root.parent.parent
        root = keep_sweep_run(small, runs_folder, kind="shrunk", shrunk_from=self._name)
        # The search's own interruption must not leave the small run unjudged.
        results = publishing.judge_and_publish(root, analyze=False, during=Waiting(console).during)

        def save(path: Path) -> None:
            # Names no folder: a path of this machine means nothing where the test goes.
            continued = description.to_be_continued(cut_short, "FOLDER")
            save_test(path, content_of_test(best, finding.failed_by, finding.sentence, continued))

        return description.Kept(
            run=RunFolder(root),
            reproduce=results.reproduce,
            story=description.story(small, len(finding.happened.performed)),
            more={} if path is None else {"test": str(path)},
            last=None if path is None else partial(save, path),
        )

    def _wanted(self) -> str:
        violation, failed_by = self._record.violation, self._record.failed_by
        if self._options.any_failure:
            return "any failure"
        if failed_by:
            return ", ".join(failed_by)
        # A run of `test` is judged after its record is written; it holds to what it fails by.
        return "the failure of its replay" if violation is None else violation.invariant

    def _failure_of(self, first: JudgedOutcome) -> Failure:
        """Return the failure that the small run must show: that of the run when it was made."""
        record, is_any = self._record, self._options.any_failure
        failure = failure_of(first, is_any=is_any)
        was_looked_at = record.violation is not None or record.failed_by is not None
        if failure is None and not was_looked_at:
            raise _nothing_wrong(self._options.run)
        recorded = Failure(
            invariant=None if record.violation is None else record.violation.invariant,
            kind=None if failure is None else failure.kind,
            checkers=record.failed_by or (),
            is_any=is_any,
        )
        if failure is None or (was_looked_at and not recorded.is_in(first)):
            raise self._not_again(recorded, first, "the run")
        return failure

    def _not_again(self, failure: Failure, again: JudgedOutcome, what: str) -> HarnessError:
        was = failure.invariant or ", ".join(failure.checkers) or "a failure"
        now = ", ".join(again.failed_by) or "nothing"
        problem = f"{what} did not fail again when it was replayed ({was} then, {now} now)"
        next_step = "`splitbrain replay` of it says whether it was made by another version"
        return HarnessError("shrink the run", self._name, problem, next_step)


def _nothing_wrong(run_folder: Path) -> UsageError:
    problem = f"nothing is wrong with {run_folder}, so there is no failure to shrink"
    return UsageError(problem, "Name a run that failed")
