"""Spark's analysis of a run, in a child process or a shared one; no verdict is lost with it."""

import contextlib
import os
import re
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, Self

import msgspec

from splitbrain.contracts.analysis.run import RunAnalysis
from splitbrain.contracts.distribution import PACKAGE
from splitbrain.contracts.errors import UNREADABLE
from splitbrain.harness.pool.spark_child import end_spark, signal_spark, start_spark
from splitbrain.harness.pool.spark_service import Question, ask_service
from splitbrain.history.border import open_anew
from splitbrain.history.json_problems import in_words
from splitbrain.history.run_folder import RunFolder

#: A session alone takes a minute on a busy machine.
TIMEOUT_S = 600.0
_POLL_INTERVAL_S = 0.1
_MODULE = f"{PACKAGE}.spark_analysis"
#: Line of the log, see ``spark_analysis.analyze.jobs_line``.
_JOBS: Final = re.compile(r"^(\d+) of (\d+) jobs$", re.MULTILINE)

#: Told how many jobs are done, of all.
Took = Callable[[int, int], None]


_living: set["AnalysisProcess"] = set()


def kill_all() -> None:
    """End every analysis at once, because this process is about to exit."""
    for analysis in tuple(_living):
        analysis.kill()


class AnalysisProcess:
    """One running analysis; leaving the context ends it."""

    def __init__(self, run_folder: Path) -> None:
        self._folder = RunFolder(run_folder)
        self._log_path = self._folder.analysis_log
        self._started = time.monotonic()
        with os.fdopen(open_anew(self._log_path), "wb") as log:
            self._process = start_spark(_MODULE, run_folder, log, subprocess.STDOUT)

    def __enter__(self) -> Self:
        _living.add(self)
        return self

    def __exit__(self, *_: object) -> None:
        end_spark(self._process)
        _living.discard(self)

    def kill(self) -> None:
        """Kill the whole process group."""
        signal_spark(self._process, signal.SIGKILL)

    def wait(
        self,
        timeout_s: float = TIMEOUT_S,
        give_up: Callable[[], str | None] = lambda: None,
        took: Took = lambda _done, _total: None,
    ) -> str | None:
        """Wait for its end, counted from its start; return the problem as one sentence, or None.

        ``give_up`` returns a reason as soon as nobody wants to wait any longer.
        """
        while (code := self._ended()) is None:
            _tell_jobs(self._log_path, took)
            if (reason := _reason_to_stop(self._started, timeout_s, give_up)) is not None:
                end_spark(self._process)
                return reason
        if code == 0:
            return None
        how = f"was ended by signal {-code}" if code < 0 else f"ended with code {code}"
        return f"The Spark analysis {how}: {self._last_line()} (all of it in {self._log_path.name})"

    def _ended(self) -> int | None:
        try:
            return self._process.wait(_POLL_INTERVAL_S)
        except subprocess.TimeoutExpired:
            return None

    def _last_line(self) -> str:
        try:
            text = self._log_path.read_text(encoding="utf-8", errors="replace")
        except OSError as error:
            return f"its output cannot be read ({error.strerror})"
        lines = text.strip().splitlines()
        return lines[-1].strip() if lines else "it said nothing"


def _tell_jobs(log: Path, took: Took) -> None:
    with contextlib.suppress(OSError):
        if told := _JOBS.findall(log.read_text(encoding="utf-8", errors="replace")):
            done, total = map(int, told[-1])
            took(done, total)


def _reason_to_stop(
    started: float, timeout_s: float, give_up: Callable[[], str | None]
) -> str | None:
    """Return why an analysis is waited for no longer, as one sentence; None: it is.

    ``started`` is a moment of the monotonic clock.
    """
    if (reason := give_up()) is not None:
        return f"The Spark analysis was stopped: {reason}."
    if time.monotonic() - started > timeout_s:
        return f"The Spark analysis did not end within {timeout_s:g} s and was stopped."
    return None


class AskedAnalysis:
    """An analysis in a session that others share; leaving the context gives it up."""

    def __init__(self, run_folder: Path, question: Question) -> None:
        self._run_folder, self._question = run_folder, question
        self._log_path = RunFolder(run_folder).analysis_log
        self._started = time.monotonic()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._question.close()

    def wait(
        self,
        timeout_s: float = TIMEOUT_S,
        give_up: Callable[[], str | None] = lambda: None,
        took: Took = lambda _done, _total: None,
    ) -> str | None:
        """Wait for the answer; arguments and result are those of ``AnalysisProcess.wait``."""
        while not self._question.wait(_POLL_INTERVAL_S):
            _tell_jobs(self._log_path, took)
            reason = _reason_to_stop(self._started, timeout_s, give_up)
            if reason is not None:
                self._question.close()
                return reason
        answered = self._question.answered
        if answered is None:
            with AnalysisProcess(self._run_folder) as own:
                return own.wait(timeout_s, give_up, took)
        problem = answered.error_line if answered.code else None
        with (
            contextlib.suppress(OSError),
            os.fdopen(open_anew(self._log_path), "wb") as log,
        ):
            log.write(f"{problem or 'done'}\n".encode())
        return None if problem is None else f"The Spark analysis {problem}"


def start_analysis(run_folder: Path) -> AnalysisProcess | AskedAnalysis:
    """Start the analysis of a run, in the session that this process is offered or in its own.

    Raises:
        OSError: no process can be had, or the run folder cannot be written.
    """
    # Whoever answers tells there how far it is; an older log would tell it of another analysis.
    RunFolder(run_folder).analysis_log.unlink(missing_ok=True)
    question = ask_service(_MODULE, run_folder)
    if question is None:
        return AnalysisProcess(run_folder)
    return AskedAnalysis(run_folder, question)


def read_analysis(run_folder: Path) -> tuple[RunAnalysis | None, str | None]:
    """Return the analysis' results and the problem with them; both None without an analysis."""
    path = RunFolder(run_folder).analysis_summary
    try:
        return analysis_of(msgspec.json.decode(path.read_bytes(), type=dict[str, Any])), None
    except FileNotFoundError:
        return None, None
    except (OSError, *UNREADABLE) as error:
        return None, f"The results of the Spark analysis cannot be read: {in_words(error)}."


def analysis_of(summary: Mapping[str, Any]) -> RunAnalysis:
    """Return the parts of a summary that this version can read."""
    parts: dict[str, Any] = {}
    for field in msgspec.structs.fields(RunAnalysis):
        with contextlib.suppress(KeyError, msgspec.ValidationError):
            parts[field.name] = msgspec.convert(summary[field.name], field.type)
    return RunAnalysis(**parts)
