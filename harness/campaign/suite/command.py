"""The command ``splitbrain suite``: begins a night or goes on with one, and reports on it.

A night that is replaced (the file changed, a new one was asked for) is ended first: its runs in
flight may hold a violation, and that violation is this command's too.
"""

import secrets
import threading
from contextlib import suppress
from functools import partial
from pathlib import Path

import msgspec
from rich.console import Console
from rich.text import Text

from splitbrain.contracts.errors import HarnessError, UsageError
from splitbrain.contracts.words import counted
from splitbrain.harness.campaign.suite import night as nights
from splitbrain.harness.campaign.suite.alarms import alarms_of_night
from splitbrain.harness.campaign.suite.conductor import TOOL, Conductor, Settings
from splitbrain.harness.campaign.suite.definition import PlannedRun
from splitbrain.harness.campaign.suite.display import Display
from splitbrain.harness.campaign.suite.ledger import Ledger
from splitbrain.harness.campaign.suite.night import Night, NightFolder, OpenNight
from splitbrain.harness.campaign.suite.reading import SuiteFile, check_cells, plan, read_suite
from splitbrain.harness.campaign.suite.summary import (
    coverage_text,
    sums_text,
    to_junit,
    to_markdown,
    to_text,
)
from splitbrain.harness.campaign.suite.tally import NightTally, nights_of, tally_night
from splitbrain.harness.console.console_lines import say, write_lines
from splitbrain.harness.console.pace import time_words
from splitbrain.harness.console.plain_text import printable
from splitbrain.harness.console.standard_streams import answer
from splitbrain.harness.folder.atomic_file import write_atomically
from splitbrain.harness.folder.results import EXIT_INVALID, EXIT_VALID
from splitbrain.harness.pool.spark_service import shared_session
from splitbrain.harness.report.github import tell_github
from splitbrain.history.durations import positive_seconds_of

SUITES = "suites"
LEDGER_NAME = "ledger.jsonl"
#: Night seeds are drawn below it: easy to read aloud.
_NIGHT_SEED_END = 1_000_000_000


class SuiteOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options of ``splitbrain suite``."""

    runs_folder: Path = Path("runs")
    #: None: beside the runs.
    ledger: Path | None = None
    time_budget: str | None = None
    jobs: int | None = None
    night_seed: int | None = None
    #: Begin a new night although the last one is not over.
    fresh: bool = False
    #: Keep the whole folders of valid runs, whatever the file says: the caller still reads them.
    keep_valid: bool = False
    #: Words that start the command line.
    tool: tuple[str, ...] = TOOL
    #: Whether GitHub is told of its end; a night tells of all its steps at once.
    tells_github: bool = True
    #: Whether each cell is checked against the registries before anything starts.
    check: bool = True
    #: Set where a signal ended it, so that the caller begins nothing more.
    interrupted: threading.Event | None = None


def run_suite(path: Path, options: SuiteOptions, console: Console) -> int:
    """Carry out a night of a suite, or go on with one; return the exit code.

    Raises:
        UsageError: the file or an option is wrong; nothing was started.
        HarnessError: the night can be neither begun nor gone on with.
    """
    file = read_suite(path)
    command = _Command(file, options, console)
    if options.check:
        check_cells(path, plan(file, 0))
    return command.run()


def show_plan(path: Path, options: SuiteOptions, console: Console) -> int:
    """Print the runs of a new night in their order; starts nothing, and returns 0.

    Raises:
        UsageError: the file or an option is wrong.
    """
    file = read_suite(path)
    settings, night_seed = _settings(file, options), _night_seed(options)
    runs = plan(file, night_seed)
    if options.check:
        check_cells(path, runs)
    load_s = sum(run.least_s for run in runs)
    of_load = f", {time_words(load_s)} of load" if load_s else ""
    budget = "" if settings.budget_s is None else f", budget {time_words(settings.budget_s)}"
    title = f"suite {file.suite.name}: {counted(len(runs), 'run')}{of_load}{budget}"
    say(console, f"{title}; --night-seed {night_seed} draws these seeds", "bold")
    write_lines(console, [_planned_line(run, len(runs)) for run in runs])
    say(console, "dry run: nothing was started.")
    answer(console, {"night_seed": night_seed, "runs": runs})
    return EXIT_VALID


def _planned_line(run: PlannedRun, count: int) -> str:
    time = f"{run.least_s:7.1f} s" if run.least_s else f"{'':9}"
    found = f"  must be invalid in {run.at_least}" if run.at_least else ""
    name = printable(f"{run.cell}, seed {run.seed}")
    return f"[{run.number:{len(str(count))}}/{count}] {time}  {name}{found}"


def _night_seed(options: SuiteOptions) -> int:
    given = options.night_seed
    return secrets.randbelow(_NIGHT_SEED_END) if given is None else given


def report(path: Path | None, options: SuiteOptions, console: Console) -> int:
    """Print the last night of a suite and the sums of all, from the ledger alone.

    Without a file: the sums of all suites; the exit code is then 0.

    Raises:
        UsageError: the ledger holds no night of this suite.
        HarnessError: the ledger cannot be read.
    """
    ledger = Ledger(ledger_path(options))
    lines = ledger.lines()
    if path is None:
        all_nights = nights_of(lines)
        _print(console, f"{sums_text(all_nights)}\n\n{coverage_text(all_nights)}")
        answer(console, {"nights": [night_answer(night, night.exit_code) for night in all_nights]})
        return 0
    suite = read_suite(path).suite.name
    own_nights = nights_of(lines, suite)
    if not own_nights:
        problem = f"the ledger {ledger.path} holds no night of the suite {suite!r}"
        raise UsageError(problem, "Run it first, or name another ledger with --ledger")
    _print(console, to_text(own_nights[-1], own_nights, with_coverage=True))
    answer(console, night_answer(own_nights[-1], own_nights[-1].exit_code))
    return own_nights[-1].exit_code


def night_answer(night: NightTally, code: int) -> dict[str, object]:
    """Return a night as data: as the ledger has it, and what came of it."""
    return {"exit_code": code, "is_void": night.is_void, **msgspec.structs.asdict(night)}


def ledger_path(options: SuiteOptions) -> Path:
    """Return the ledger's absolute path."""
    return (options.ledger or options.runs_folder / LEDGER_NAME).absolute()


def _settings(file: SuiteFile, options: SuiteOptions) -> Settings:
    suite = file.suite
    if options.jobs is not None and not 1 <= options.jobs <= 64:
        raise UsageError(f"--jobs cannot be {options.jobs}", "Choose a number between 1 and 64")
    if options.night_seed is not None and options.night_seed < 0:
        raise UsageError(f"--night-seed cannot be {options.night_seed}", "Choose a number from 0")
    budget = suite.time_budget if options.time_budget is None else options.time_budget
    try:
        budget_s = None if budget is None else positive_seconds_of(budget)
    except ValueError as error:
        place = f"the suite file {file.path}" if options.time_budget is None else "--time-budget"
        raise UsageError(f"{place}: {error}", "Correct it, or leave it out") from error
    keep_valid = suite.keep_valid or options.keep_valid
    return Settings(options.jobs or suite.jobs, budget_s, keep_valid, options.tool)


class _Command:
    def __init__(self, file: SuiteFile, options: SuiteOptions, console: Console) -> None:
        self._file, self._options, self._console = file, options, console
        self._settings = _settings(file, options)
        self._ledger = Ledger(ledger_path(options))
        self._lines = self._ledger.lines()
        #: Whether a replaced night holds an unexpected violation.
        self._inherited = False

    def run(self) -> int:
        with self._open() as opened:
            conductor = self._conductor(opened)
            with conductor.display, shared_session():
                conductor.carry_out()
            return self._conclude(opened, conductor)

    def _conductor(self, opened: OpenNight) -> Conductor:
        own = nights.lines_of(self._lines, opened.night)
        display = Display(self._console, len(opened.night.runs), len(nights.done(own)))
        return Conductor(opened, self._ledger, own, self._settings, display)

    def _open(self) -> OpenNight:
        """Open the last night if it is not over, else a new one; say so in one sentence."""
        suite = self._file.suite.name
        suites = self._options.runs_folder.absolute() / SUITES
        last = nights.latest(suites, suite)
        opened = None if last is None else self._reopen(last)
        if opened is not None:
            return opened
        night_seed = _night_seed(self._options)
        runs = plan(self._file, night_seed)
        opened = nights.begin(
            suites, suite, night_seed, digest=self._file.digest, ledger=self._ledger.path, runs=runs
        )
        self._print(
            f"suite {suite}: night {opened.night.night} begins, night seed {night_seed}, "
            f"{counted(len(opened.night.runs), 'run')}, in {opened.folder.root}"
        )
        return opened

    def _reopen(self, last: NightFolder) -> OpenNight | None:
        """Reopen the last night; return None if it is over or replaced."""
        try:
            opened = nights.reopen(last)
        except HarnessError:
            if self._options.fresh:
                return None
            raise
        night = opened.night
        own = nights.lines_of(self._lines, night)
        if nights.has_ended(own):
            opened.close()
            return None
        count = f"{len(nights.done(own))} of {counted(len(night.runs), 'run')} done"
        why = self._reason_to_replace(night)
        if why is not None:
            self._print(f"night {night.night} ({count}) is not gone on with: {why}")
            self._abandon(opened)
            return None
        try:
            nights.refuse_other_ledger(night, self._ledger.path)
        except UsageError:
            opened.close()
            raise
        self._print(f"suite {night.suite}: night {night.night} goes on: {count}")
        return opened

    def _reason_to_replace(self, night: Night) -> str | None:
        if self._options.fresh:
            return "a new night was asked for"
        if night.digest != self._file.digest:
            return "the suite file has changed since, so a new night begins"
        if self._options.night_seed not in (None, night.night_seed):
            return f"its night seed is {night.night_seed}, and another one was asked for"
        return None

    def _abandon(self, opened: OpenNight) -> None:
        with opened:
            if opened.night.ledger != str(self._ledger.path):
                return
            conductor = self._conductor(opened)
            if not conductor.lines:
                return
            with conductor.display:
                conductor.abandon()
            if conductor.stop.failure is not None:
                raise conductor.stop.failure
            if conductor.stop.interrupted:
                raise KeyboardInterrupt
            tally = tally_night(conductor.lines)
            if tally is not None and tally.violations:
                self._inherited = True
                self._publish(opened, tally, [tally])

    def _conclude(self, opened: OpenNight, conductor: Conductor) -> int:
        """Write and print the summary; return the exit code, in which a violation wins."""
        failure = conductor.stop.failure
        if conductor.stop.interrupted and self._options.interrupted is not None:
            self._options.interrupted.set()
        tally = tally_night(conductor.lines)
        assert tally is not None, "a night's first line is made before its first run"
        others: list[NightTally] = []
        # An unreadable ledger must not cost this night's verdict.
        with suppress(HarnessError):
            others = nights_of(self._ledger.lines(), opened.night.suite)
        others = [other for other in others if other.began.night != opened.night.night]
        self._publish(opened, tally, [*others, tally])
        if tally.ended is None and failure is None:
            self._print("The same command goes on with this night.")
        if failure is not None:
            self._print(f"splitbrain: {failure}")
        code = tally.exit_code if failure is None else failure.exit_code
        if self._inherited or tally.violations:
            code = EXIT_INVALID
        if code != tally.exit_code:
            why = "the night before it holds a violation" if self._inherited else "as said above"
            self._print(f"Exit code {code} all the same: {why}.")
        answer(self._console, night_answer(tally, code))
        if self._options.tells_github:
            summary = partial(to_markdown, tally, [*others, tally])
            tell_github(alarms_of_night(tally), summary, self._file.path)
        return code

    def _publish(self, opened: OpenNight, tally: NightTally, all_nights: list[NightTally]) -> None:
        # A full disk must not cost the verdict on the terminal.
        with suppress(OSError):
            write_atomically(opened.folder.summary, to_markdown(tally, all_nights).encode())
            write_atomically(opened.folder.junit, to_junit(tally))
        self._print(to_text(tally, all_nights))

    def _print(self, text: str) -> None:
        _print(self._console, text)


def _print(console: Console, text: str) -> None:
    console.print(Text(text), soft_wrap=True)
