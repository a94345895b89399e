"""The command ``splitbrain nightly``: a suite's night and all steps after it, as one answer.

The gate judges the runs, quarantines included; the night itself says whether it could have seen
anything. A night whose canaries went unseen is void: the cause that hid a planted bug would have
hidden a real one. Killed at any point, the same command goes on.
"""

from pathlib import Path
from typing import Final

import msgspec
from rich.console import Console
from rich.text import Text

from splitbrain.contracts.errors import HarnessError, UsageError
from splitbrain.harness.campaign.gate.alarms import alarms_of_gate
from splitbrain.harness.campaign.gate.baseline import NIGHTS
from splitbrain.harness.campaign.gate.markdown import to_markdown as gate_markdown
from splitbrain.harness.campaign.gate.record import GateRecord
from splitbrain.harness.campaign.nightly.definition import Nightly, read_nightly
from splitbrain.harness.campaign.nightly.metrics import METRICS, write_metrics
from splitbrain.harness.campaign.nightly.morning import PAGE, Morning, gate_in, morning_page
from splitbrain.harness.campaign.nightly.record import (
    ROOM_TO_GO_ON,
    STEPS,
    NightlyRecord,
    Nights,
)
from splitbrain.harness.campaign.nightly.steps import Steps
from splitbrain.harness.campaign.nightly.webhook import (
    name_of_night,
    problem_of_webhook,
    tell_webhook,
    webhook_message,
)
from splitbrain.harness.campaign.suite import night as suite_nights
from splitbrain.harness.campaign.suite.command import SUITES, SuiteOptions, ledger_path, run_suite
from splitbrain.harness.campaign.suite.conductor import TOOL
from splitbrain.harness.campaign.suite.ledger import Ledger
from splitbrain.harness.campaign.suite.reading import check_cells, plan
from splitbrain.harness.campaign.suite.tally import NightTally, nights_of
from splitbrain.harness.console.pace import time_words
from splitbrain.harness.console.standard_streams import answer as answer_user
from splitbrain.harness.export.posting import Patience
from splitbrain.harness.folder.atomic_file import write_atomically
from splitbrain.harness.folder.refusals import tell_refusal
from splitbrain.harness.folder.results import (
    EXIT_HARNESS_FAILED,
    EXIT_INVALID,
    EXIT_UNKNOWN,
    EXIT_VALID,
)
from splitbrain.harness.pool.spark_service import shared_session
from splitbrain.harness.report.alarms import Alarm
from splitbrain.harness.report.github import tell_github

LAKE: Final = "lake"
_VOID: Final = "VOID: a canary was not found, so its valid runs prove nothing."


class NightlyOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options of ``splitbrain nightly``."""

    runs_folder: Path = Path("runs")
    time_budget: str | None = None
    #: Begin a new night although the last one is not over.
    fresh: bool = False
    #: Words that start the command line, of runs and of steps.
    tool: tuple[str, ...] = TOOL
    steps_tool: tuple[str, ...] = TOOL
    #: Whether each cell is checked against the registries before anything starts.
    check: bool = True
    #: With the webhook.
    patience: Patience = Patience()


def run_nightly(path: Path, options: NightlyOptions, console: Console) -> int:
    """Carry out a night, or go on with one; return the exit code.

    Raises:
        UsageError: the file or one that it names is wrong; nothing was started.
        HarnessError: the night can be neither begun nor gone on with.
    """
    file = read_nightly(path, options.time_budget)
    nights = Nights(options.runs_folder.absolute() / NIGHTS / file.suite.suite.name)
    command = _Command(file, options, nights, console)
    try:
        if options.check:  # before the night's folder is made
            check_cells(file.suite.path, plan(file.suite, 0))
            begun = None if options.fresh else nights.read()
            if begun is None or begun.ended is not None:
                _refuse_too_short(file)
        # Of its runs, of the look at all of them and of the gate.
        with nights.locked(), shared_session():
            return command.run()
    except Exception as error:
        command.tell_death(error)
        raise


def _refuse_too_short(file: Nightly) -> None:
    """Refuse a budget in which no canary fits: the night would be void."""
    least_s = min(run.least_s for run in plan(file.suite, 0) if run.expect == "invalid")
    if file.suite_s < least_s:
        problem = (
            f"of the time budget of {time_words(file.budget_s)} the suite has "
            f"{time_words(file.suite_s)}, and its shortest canary takes {time_words(least_s)} and "
            "its set-up, so that the night would be void"
        )
        raise UsageError(problem, "Give it more, such as --time-budget 10m")


class _Command:
    def __init__(
        self, file: Nightly, options: NightlyOptions, nights: Nights, console: Console
    ) -> None:
        self._file, self._options = file, options
        self._nights, self._console = nights, console
        runs_folder = options.runs_folder.absolute()
        self._suites, self._lake = runs_folder / SUITES, file.lake or str(runs_folder / LAKE)
        self._suite = SuiteOptions(
            runs_folder=options.runs_folder,
            time_budget=f"{file.suite_s:.3f}",
            fresh=options.fresh,
            keep_valid=True,
            tells_github=False,
            tool=options.tool,
            check=False,  # ``run_nightly`` has done it
        )
        self._ledger = ledger_path(self._suite)

    def run(self) -> int:
        if problem := problem_of_webhook(self._file.webhook_env):
            self._say(problem)
        record = self._opened()
        code = EXIT_UNKNOWN
        if record.night is None:
            code, record = self._with_suite(record)
        night = record.night
        if night is None:
            # The suite has said so.
            sentence = "The night is not over: the same command goes on with it."
            answer_user(self._console, {"sentence": sentence, "folder": None, "record": record})
            return code if code != EXIT_VALID else EXIT_UNKNOWN
        tally = self._tally(night)
        if tally is None:
            problem, next_step = f"it does not hold the night {night}", "Begin anew with --fresh."
            raise HarnessError("go on with the night", str(self._ledger), problem, next_step)
        steps = Steps(
            self._file,
            self._nights,
            tally,
            ledger=self._ledger,
            runs=self._suites / self._file.suite.suite.name / night / "runs",
            lake=self._lake,
            console=self._console,
            tool=self._options.steps_tool,
        )
        for step in STEPS:
            if step not in record.steps:
                done = steps.carry_out(step, record)
                record = msgspec.structs.replace(record, steps={**record.steps, step: done})
                self._nights.write(record)
        code, sentence = answer(record)
        at = suite_nights.now().isoformat()
        record = msgspec.structs.replace(record, ended=at, exit_code=code)
        gate = gate_in(self._nights.folder(night))
        self._keep_metrics(record, tally, gate)
        page = self._write_page(record, tally, code, sentence)
        told = self._tell(night, code, sentence, gate)
        record = msgspec.structs.replace(record, webhook=told)
        self._nights.write(record)
        folder = self._nights.folder(night)
        answer_user(self._console, {"sentence": sentence, "folder": folder, "record": record})
        self._say(f"Night {night}: {sentence} Exit code {code}; all of it: {page}")
        return code

    def tell_death(self, error: Exception) -> None:
        """Tell the webhook and GitHub of a night that an error ended."""
        if isinstance(error, HarnessError | UsageError):
            code, sentence = error.exit_code, f"{str(error).removesuffix('.')}."
        else:
            code, sentence = EXIT_HARNESS_FAILED, f"it died of {type(error).__name__}: {error}."
        self._tell(None, code, " ".join(sentence.split()), None)

    def _write_page(
        self, record: NightlyRecord, tally: NightTally, code: int, sentence: str
    ) -> Path:
        began = tally.began
        folder = self._nights.folder(began.night)
        page = folder / PAGE
        morning = Morning(
            folder=folder,
            suite_folder=suite_nights.NightFolder(self._suites / began.suite / began.night),
            ledger=self._ledger,
            record=record,
            tally=tally,
            exit_code=code,
            sentence=sentence,
        )
        with tell_refusal("write the page of the night", page, ROOM_TO_GO_ON):
            folder.mkdir(parents=True, exist_ok=True)
            write_atomically(page, morning_page(morning).encode())
        return page

    def _tell(
        self, night: str | None, code: int, sentence: str, gate: GateRecord | None
    ) -> str | None:
        """Tell the webhook and GitHub; whoever dies behind it tells twice rather than never."""
        suite = self._file.suite.suite.name
        name = name_of_night(suite, night)
        alarms = [] if gate is None else alarms_of_gate(gate)
        if code != EXIT_VALID and not alarms:
            alarms = [Alarm(title=name, sentence=sentence)]
        heading = f"# {name[0].upper()}{name[1:]}: {sentence}\n\n"
        tell_github(
            alarms,
            lambda: heading + ("" if gate is None else gate_markdown(gate)),
            self._file.path,
        )
        message = webhook_message(suite, night, code, sentence, gate)
        told = tell_webhook(self._file.webhook_env, message, code, self._options.patience)
        if told is not None:
            self._say(told)
        return told

    def _keep_metrics(
        self, record: NightlyRecord, tally: NightTally, gate: GateRecord | None
    ) -> None:
        path = self._nights.root / METRICS
        try:
            write_metrics(path, record, tally, gate)
        except OSError as error:
            self._say(f"{path} could not be written: {error.strerror or error}.")

    def _opened(self) -> NightlyRecord:
        record = None if self._options.fresh else self._nights.read()
        if record is not None and record.ended is None:
            if record.digest == self._file.digest:
                done = ", ".join(record.steps) or "nothing"
                if record.night is not None:
                    self._say(f"Night {record.night} goes on; after the suite, {done} is done.")
                return record
            self._say("The nightly file has changed since, so a new night begins.")
        record = NightlyRecord(digest=self._file.digest, before=self._last_ended())
        self._nights.write(record)
        return record

    def _with_suite(self, record: NightlyRecord) -> tuple[int, NightlyRecord]:
        """Carry out the suite's night unless it has ended; the returned record names it."""
        code = EXIT_UNKNOWN
        last = self._last_ended()
        if last == record.before:
            code = run_suite(self._file.suite.path, self._suite, self._console)
            last = self._last_ended()
        tally = None if last in (None, record.before) else self._tally(last)
        if tally is None:
            return code, record
        record = msgspec.structs.replace(
            record, night=last, suite_code=tally.exit_code, is_void=tally.is_void
        )
        self._nights.write(record)
        return code, record

    def _last_ended(self) -> str | None:
        """Return the last night of the suite that has ended; one that has not may come after it."""
        ended = [
            tally.began.night
            for tally in self._tallies()
            if tally.ended is not None and tally.ended.reason != "replaced"
        ]
        return ended[-1] if ended else None

    def _tally(self, night: str | None) -> NightTally | None:
        return next((tally for tally in self._tallies() if tally.began.night == night), None)

    def _tallies(self) -> list[NightTally]:
        return nights_of(Ledger(self._ledger).lines(), self._file.suite.suite.name)

    def _say(self, text: str) -> None:
        self._console.print(Text(text), soft_wrap=True)


def answer(record: NightlyRecord) -> tuple[int, str]:
    """Return exit code and sentence of a night all of whose steps are done."""
    gate = record.steps["gate"]
    judged = gate.sentence is None
    violated = record.suite_code == EXIT_INVALID
    # Every policy demands the canaries: the gate of a void night is red without a violation too.
    if gate.exit_code == EXIT_INVALID and (violated or not record.is_void):
        return EXIT_INVALID, f"the gate is red.{f' {_VOID}' if record.is_void else ''}"
    if not judged and violated:
        return EXIT_INVALID, "there is a violation, and the gate did not answer."
    if record.is_void:
        return EXIT_HARNESS_FAILED, _VOID
    for step, done in record.steps.items():
        if done.exit_code == EXIT_HARNESS_FAILED:
            return EXIT_HARNESS_FAILED, f"{step} failed."
    for step, done in record.steps.items():
        if done.exit_code == EXIT_UNKNOWN:
            return EXIT_UNKNOWN, f"{step}: {done.sentence or 'nothing can be said.'}"
    if record.suite_code == EXIT_UNKNOWN:
        return EXIT_UNKNOWN, "the gate is green, but not all of the suite proved something."
    spared = " What the suite found is spared by the policy." if record.suite_code else ""
    return EXIT_VALID, f"the gate is green.{spared}"
