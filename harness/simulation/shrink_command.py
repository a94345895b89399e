"""What ``splitbrain shrink`` does: makes a small run of a simulated one that failed.

The small run gets a folder of its own, judged and reported as any other, and is told in a few
lines; on request it becomes a test. The original is not touched. Must never pass off as the same
failure what another replay of the original does not show. Source: issue 5, item 8.
"""

import shlex
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

import msgspec
from rich.console import Console

from contracts.errors import HarnessError, UsageError
from contracts.scenario import Scenario
from harness import judge as judging
from harness.console_lines import say
from harness.options import check_bugs, check_runs_folder
from harness.results import EXIT_UNKNOWN, EXIT_VALID
from harness.simulation.folder import keep_sweep_run
from harness.simulation.judging import judged
from harness.simulation.outcome import JudgedOutcome
from harness.simulation.record import SimulationRecord
from harness.simulation.saved_test import check_test_file, content_of_test, save_test
from harness.simulation.scenario_file import read_recorded, said_of
from harness.simulation.shrink_display import ShrinkDisplay
from harness.simulation.shrink_oracle import Failure, failure_of, finding_of, replay_for
from harness.simulation.shrink_words import headline, story, to_be_continued
from harness.simulation.shrinking import Shrinking, shrink
from harness.simulation.trial import run
from harness.stop import Stop
from harness.stopped_in_order import stopped_in_order
from harness.store import find_run
from harness.waiting import Waiting
from history.run_folder import RunFolder
from nemesis.search import INTERRUPTED, SearchBudget

#: What a search may take unless somebody says otherwise.
REPLAYS_MAX: Final = 5_000
SECONDS_MAX: Final = 600.0


class ShrinkOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What ``splitbrain shrink`` was asked for."""

    run: Path
    any_failure: bool = False
    replays_max: int = REPLAYS_MAX
    time_limit_s: float = SECONDS_MAX
    #: Where the small run goes; None: beside the original.
    runs_folder: Path | None = None
    #: A test file to be written.
    save_test: Path | None = None


class _Original(msgspec.Struct, frozen=True):
    """The run that is to be made smaller."""

    folder: RunFolder
    scenario: Scenario
    record: SimulationRecord

    @property
    def name(self) -> str:
        """``test/run``, without a path of this machine."""
        return f"{self.folder.root.parent.name}/{self.folder.root.name}"


def shrink_run(
    options: ShrinkOptions, console: Console, leave: Callable[[int], None] | None = None
) -> int:
    """Shrink a run, show what is left, and return the exit code.

    A search cut short by its limits came to what it was asked for; an interrupted one did not.

    Args:
        options: what was asked for.
        console: where it is shown.
        leave: ends the process at the second Ctrl-C; for tests.

    Raises:
        UsageError: the run cannot be shrunk, or an option does not fit.
        HarnessError: it does not fail again.
    """
    original = _original_of(options)
    stop = Stop()
    with stopped_in_order(
        stop,
        said="interrupted: the smallest so far is kept; once more to leave at once",
        left="left at once; a folder that was made already stays.",
        leave=leave,
    ):
        display = ShrinkDisplay(console, f"splitbrain shrink {original.name}")
        with display:
            shrinking, failure = _search(original, options, stop, display)
        seconds = display.elapsed_s
        small = judged(run(shrinking.scenario, is_recording=True))
        if not failure.is_in(small):
            raise _not_again(original, failure, small, "the smallest run")
        folder = _keep(small, original, options)
        # The search's own interruption must not leave the small run unjudged.
        judging.judge(folder.root, analyze=False, during=Waiting(console).during)
    _show(shrinking, small, folder, console, seconds)
    if options.save_test is not None:
        finding = shrinking.finding
        save_test(
            options.save_test,
            content_of_test(
                shrinking.scenario,
                finding.failed_by,
                finding.sentence,
                # Without a folder: a path of this machine says nothing where the test goes.
                to_be_continued(shrinking, "FOLDER"),
            ),
        )
        say(console, f"test:    {options.save_test}")
    return EXIT_UNKNOWN if shrinking.cut_short == INTERRUPTED else EXIT_VALID


def _original_of(options: ShrinkOptions) -> _Original:
    """Check everything that can be wrong before the first replay."""
    if options.replays_max < 1:
        raise UsageError(
            f"--replays cannot be {options.replays_max}", "Choose a number of at least 1"
        )
    # Not a number compares with nothing and is refused too.
    if not options.time_limit_s > 0:
        raise UsageError(
            f"--time-limit cannot be {options.time_limit_s:g}", "Choose a number of seconds above 0"
        )
    if options.save_test is not None:
        check_test_file(options.save_test)
    if options.runs_folder is not None:
        check_runs_folder(options.runs_folder)
    folder = find_run(options.run)
    if not folder.scenario.exists():
        raise UsageError(
            f"{options.run} has no {folder.scenario.name}, and shrink works on simulated runs so "
            "far",
            "Name a run that `splitbrain sim` has kept, or make one with --runtime simulated",
        )
    scenario, record = read_recorded(folder)
    from systems.registry import system

    with said_of(folder.scenario):
        check_bugs(scenario.bugs, system(scenario.system))
    original = _Original(folder, scenario, record)
    if record.violation is None and record.failed_by == ():
        raise _nothing_wrong(options.run)
    return original


def _search(
    original: _Original, options: ShrinkOptions, stop: Stop, display: ShrinkDisplay
) -> tuple[Shrinking, Failure]:
    first = judged(run(original.scenario))
    failure = _failure(original, options, first)
    budget = SearchBudget(
        options.replays_max, options.time_limit_s, time.monotonic, stop.is_set, called="replays"
    )
    found = finding_of(first)
    shrinking = shrink(original.scenario, found, replay_for(failure), budget, display.told)
    return shrinking, failure


def _failure(original: _Original, options: ShrinkOptions, first: JudgedOutcome) -> Failure:
    """What the small run must show: what the run showed when it was made."""
    record = original.record
    found = failure_of(first, is_any=options.any_failure)
    if found is None and record.failed_by is None and record.violation is None:
        # Nobody had looked at it before.
        raise _nothing_wrong(options.run)
    recorded = Failure(
        invariant=None if record.violation is None else record.violation.invariant,
        kind=None if found is None else found.kind,
        checkers=record.failed_by or (),
        is_any=options.any_failure,
    )
    if found is None:
        raise _not_again(original, recorded, first, "the run")
    was_looked_at = record.violation is not None or record.failed_by is not None
    if was_looked_at and not recorded.is_in(first):
        raise _not_again(original, recorded, first, "the run")
    return found


def _keep(small: JudgedOutcome, original: _Original, options: ShrinkOptions) -> RunFolder:
    """Make the folder of the small run."""
    runs_folder = options.runs_folder or original.folder.root.parent.parent
    root = keep_sweep_run(small, runs_folder, kind="shrunk", shrunk_from=original.name)
    return RunFolder(root)


def _show(
    shrinking: Shrinking, small: JudgedOutcome, folder: RunFolder, console: Console, seconds: float
) -> None:
    say(console, headline(shrinking, seconds))
    how_to_go_on = to_be_continued(shrinking, shlex.quote(str(folder.root)))
    if how_to_go_on is not None:
        say(console, how_to_go_on)
    for line in story(small, shrinking.finding.operations):
        say(console, line)
    say(console, f"report:  {folder.report}")
    say(console, f"folder:  {folder.root}")
    say(console, f"replay:  splitbrain replay {folder.root}")


def _nothing_wrong(run_folder: Path) -> UsageError:
    return UsageError(
        f"nothing is wrong with {run_folder}, so there is no failure to shrink",
        "Name a run that failed",
    )


def _not_again(
    original: _Original, failure: Failure, again: JudgedOutcome, what: str
) -> HarnessError:
    was = failure.invariant or ", ".join(failure.checkers) or "a failure"
    now = ", ".join(again.failed_by) or "nothing"
    return HarnessError(
        "shrink the run",
        original.name,
        f"{what} did not fail again when it was replayed ({was} then, {now} now)",
        "`splitbrain replay` of it says whether it was made by another version",
    )
