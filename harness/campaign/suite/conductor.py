"""Conductor of one night: hands out runs, waits for children, keeps the ledger.

Worker threads, one per job, each wait for one child at a time and hand its line to the main thread,
which alone writes the ledger: the line is on the disk before anything else follows from it. An
error in one run becomes that run's line and touches no other. The first Ctrl-C or SIGTERM asks the
children to end in order, the second urges them; the night can be gone on with afterwards.
"""

import datetime as dt
import os
import queue
import signal
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Literal

import msgspec

from splitbrain.contracts.distribution import PACKAGE
from splitbrain.contracts.errors import HarnessError
from splitbrain.harness.campaign.suite import attempt as attempts
from splitbrain.harness.campaign.suite import conclusion as conclusions
from splitbrain.harness.campaign.suite import night as nights
from splitbrain.harness.campaign.suite.agenda import Agenda
from splitbrain.harness.campaign.suite.attempt import Attempt
from splitbrain.harness.campaign.suite.conclusion import Conclusion
from splitbrain.harness.campaign.suite.definition import PlannedRun
from splitbrain.harness.campaign.suite.display import Display
from splitbrain.harness.campaign.suite.ledger import Ledger, Line, NightBegan, NightEnded, RunEnded
from splitbrain.harness.campaign.suite.night import OpenNight
from splitbrain.harness.console.stop import Stop
from splitbrain.harness.folder.tool_version import tool_commit, tool_version
from splitbrain.harness.pool.child_environment import child_environment
from splitbrain.harness.report.github import unannounced
from splitbrain.history.reproduce_line import line_of, tool_words
from splitbrain.history.run_folder import RunFolder

TOOL: tuple[str, ...] = (sys.executable, "-P", "-m", f"{PACKAGE}.harness.cli")

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_DIRTY = "-dirty"


class Settings(msgspec.Struct, frozen=True):
    """Settings of a night."""

    jobs: int = 1
    budget_s: float | None = None
    keep_valid: bool = False
    #: Words that start the command line.
    tool: tuple[str, ...] = TOOL


class Conductor:
    """One process' work on one night.

    ``opened`` is the night, its lock held; ``lines`` are its lines that the ledger already holds.
    """

    def __init__(
        self,
        opened: OpenNight,
        ledger: Ledger,
        lines: Sequence[Line],
        settings: Settings,
        display: Display,
    ) -> None:
        self._folder, self._night = opened.folder, opened.night
        self._ledger, self._settings, self.display = ledger, settings, display
        self._began_s = time.monotonic()
        done = nights.done(lines)
        self._session = 1 + max((line.session for line in done.values()), default=0)
        self._commit, self._version = tool_commit(), tool_version()
        self._urged = threading.Event()
        #: Lines for the main thread; None from each worker that is through.
        self._finished: queue.SimpleQueue[RunEnded | None] = queue.SimpleQueue()
        open_runs = [run for run in self._night.runs if run.number not in done]
        self._begun = [run for run in open_runs if self._attempts(run)]
        begun = {run.number for run in self._begun}
        self._fresh = [run for run in open_runs if run.number not in begun]
        #: All lines of the night, those of this process too, kept or not.
        self.lines: list[Line] = list(lines)
        self.stop = Stop()

    def carry_out(self) -> None:
        """Do all that fits into the budget; a failed ledger is kept in ``stop``."""
        agenda = self._agenda(self._fresh)
        with _signals(self.stop, self._urged):
            if not any(isinstance(line, NightBegan) for line in self.lines):
                self._keep(nights.header(self._night))
            self._work(agenda)
            if not self.stop.is_set():
                self._end("budget" if agenda.cut else "done")

    def abandon(self) -> None:
        """Conclude the runs in flight, start none, and end the night."""
        with _signals(self.stop, self._urged):
            self._work(self._agenda(()), adopt_only=True)
            if not self.stop.is_set():
                self._end("replaced")

    def _agenda(self, fresh: Sequence[PlannedRun]) -> Agenda:
        matrix_used_s = defaultdict[str, float](float)
        for line in nights.done(self.lines).values():
            matrix_used_s[line.matrix] += line.took_s
        used_s = nights.used_s(self.lines)
        return Agenda(fresh, self._begun, self._settings.budget_s, used_s, matrix_used_s)

    def _work(self, agenda: Agenda, *, adopt_only: bool = False) -> None:
        jobs = self._settings.jobs
        with ThreadPoolExecutor(jobs, thread_name_prefix="run") as pool:
            workers = [
                pool.submit(self._worker, agenda, adopt_only=adopt_only) for _ in range(jobs)
            ]
            try:
                for _ in workers:
                    for line in iter(self._finished.get, None):
                        self._keep_run(line)
            except BaseException:
                self.stop.interrupt()
                raise
        for worker in workers:
            worker.result()

    def _keep_run(self, line: RunEnded) -> None:
        is_kept = self._keep(line)
        self.display.finished(line)
        if self._settings.keep_valid or line.verdict != "valid" or not line.as_expected:
            return
        # A run without a line on the disk needs its whole folder when the night goes on.
        if is_kept and line.run_folder is not None:
            conclusions.prune(Path(line.run_folder), is_program=line.is_program)

    def _keep(self, line: Line) -> bool:
        """Write a line; if that fails the night stops, and the line still counts in its summary."""
        self.lines.append(line)
        try:
            self._ledger.append(line)
        except HarnessError as error:
            self.stop.fail(error)
            return False
        return True

    def _end(self, reason: Literal["done", "budget", "replaced"]) -> None:
        suite, night = self._night.suite, self._night.night
        at = nights.now().isoformat(timespec="seconds")
        self._keep(NightEnded(suite=suite, night=night, at=at, reason=reason))

    # --- on worker threads -------------------------------------------------------------------

    def _worker(self, agenda: Agenda, *, adopt_only: bool) -> None:
        try:
            self._work_off(agenda, adopt_only=adopt_only)
        finally:
            self._finished.put(None)

    def _work_off(self, agenda: Agenda, *, adopt_only: bool) -> None:
        while not self.stop.is_set():
            run = agenda.take_orphan()
            line = None if run is None else self._guarded(self._adopt, run)
            if line is None and run is not None and (adopt_only or not agenda.admits(run)):
                continue
            run = run or agenda.take()
            if run is None:
                return
            if line is None and not self.stop.is_set():
                line = self._guarded(self._do, run)
            if line is not None:
                agenda.spent(run, line.took_s)
                self._finished.put(line)

    def _guarded(
        self, action: Callable[[PlannedRun], RunEnded | None], run: PlannedRun
    ) -> RunEnded | None:
        """Return one run's line, also where it could not even be started."""
        started = nights.now()
        try:
            return action(run)
        except HarnessError as error:
            sentence = str(error)
        # A defect of ours in one run must not cost the others.
        except Exception as error:  # noqa: BLE001
            sentence = f"This is a defect of splitbrain: {type(error).__name__}: {error}."
        return self._line(run, Conclusion("failed", None, sentence), started, 1)

    def _adopt(self, run: PlannedRun) -> RunEnded | None:
        """Conclude the last attempt of a dead suite; None if it must be done again."""
        attempt = self._attempts(run)[-1]
        record = attempt.started()
        started = nights.now() if record is None else dt.datetime.fromisoformat(record.started)
        left_s = run.timeout_s - (nights.now() - started).total_seconds()
        attempts.see_out(attempts.OrphanChild(attempt), self.stop, left_s, self._urged)
        if run.is_program:
            return None
        conclusion = conclusions.conclude_orphan(attempt, self._settings.tool)
        if conclusion is None or conclusion.run_folder is None:
            return None
        written_s = RunFolder(Path(conclusion.run_folder)).results.stat().st_mtime
        took_s = max(0.0, written_s - started.timestamp())
        return self._line(run, conclusion, started, attempt.number, took_s)

    def _do(self, run: PlannedRun) -> RunEnded | None:
        """Carry out one attempt; return None if the user ended it."""
        started, began_s = nights.now(), time.monotonic()
        attempt = attempts.new_attempt(self._folder.attempts(run))
        command = [*self._settings.tool, "test", *run.arguments, "--runs-folder", str(attempt.root)]
        environment = unannounced(child_environment())
        if run.is_program:
            command = _program_command(run, sys.executable, str(attempt.root))
            environment = unannounced(os.environ)
        self.display.started(run)
        child = attempts.start(attempt, command, environment, run.expect)
        ending = attempts.see_out(child, self.stop, run.timeout_s, self._urged)
        exit_code = -signal.SIGKILL if child.exit_code is None else child.exit_code
        if run.is_program:
            conclusion = conclusions.conclude_program(run, attempt, exit_code, ending)
        else:
            conclusion = conclusions.conclude_run(
                attempt, self._settings.tool, exit_code, ending, run.timeout_s
            )
        if conclusion is None:
            return None
        took_s = time.monotonic() - began_s
        return self._line(run, conclusion, started, attempt.number, took_s)

    def _line(
        self,
        run: PlannedRun,
        conclusion: Conclusion,
        started: dt.datetime,
        attempt: int,
        took_s: float = 0.0,
    ) -> RunEnded:
        commit = conclusion.tool_commit or self._commit
        return RunEnded(
            suite=self._night.suite,
            night=self._night.night,
            number=run.number,
            session=self._session,
            session_s=round(time.monotonic() - self._began_s, 3),
            is_program=run.is_program,
            matrix=run.matrix,
            cell=run.cell,
            options=run.options,
            seed=run.seed,
            commit=None if commit is None else commit.removesuffix(_DIRTY),
            dirty=commit is not None and commit.endswith(_DIRTY),
            tool_version=self._version,
            system_versions=conclusion.system_versions,
            started=started.isoformat(timespec="seconds"),
            took_s=round(took_s, 3),
            verdict=conclusion.verdict,
            vacuous=conclusion.vacuous,
            exit_code=conclusion.exit_code,
            violated=conclusion.violated,
            sentence=conclusion.sentence,
            run_folder=conclusion.run_folder,
            reproduce=conclusion.reproduce or _reproduce(run, tool_words(self._version, commit)),
            expect=run.expect,
            as_expected=conclusions.as_expected(run, conclusion),
            attempt=attempt,
            output=conclusion.output,
            coverage=conclusion.coverage,
        )

    def _attempts(self, run: PlannedRun) -> list[Attempt]:
        return attempts.attempts_at(self._folder.attempts(run))


def _reproduce(run: PlannedRun, made_by: str) -> str:
    if run.is_program:
        return line_of(_program_command(run, "python", "."), made_by)
    return line_of(["splitbrain", "test", *run.arguments], made_by)


def _program_command(run: PlannedRun, python: str, folder: str) -> list[str]:
    command = list(run.arguments)
    for place, text in (("{python}", python), ("{seed}", str(run.seed)), ("{folder}", folder)):
        command = [word.replace(place, text) for word in command]
    return command


@contextmanager
def _signals(stop: Stop, urged: threading.Event) -> Generator[None]:
    """Stop the night at the first signal, urge at a later one; neither raises within a write."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def on_signal(_number: int, _frame: FrameType | None) -> None:
        if stop.interrupted:
            urged.set()
        stop.interrupt()

    # Ignored signals (SIGHUP under nohup, SIGINT in a script's background) stay ignored.
    before = {
        number: signal.signal(number, on_signal)
        for number in _SIGNALS
        if signal.getsignal(number) is not signal.SIG_IGN
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
