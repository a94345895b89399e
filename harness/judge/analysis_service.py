"""One session for the analyses of many runs: a night's, those of some seeds, those of one command.

A suite, a sweep or a command that offers it listens on a socket that an environment variable names.
Once somebody has connected, the socket goes to a process of Spark's (``spark_analysis.service``);
where that ends, whatever the reason, another one follows when somebody connects again. So its start
is paid once, and a run folder that ends the process costs the others no more than a new start.
Somebody who is not answered makes the analysis in a process of its own.
"""

import contextlib
import json
import os
import select
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Final, Self

from splitbrain.contracts.distribution import PACKAGE
from splitbrain.harness.judge.analysis_process import (
    LOG_NAME,
    POLL_INTERVAL_S,
    TIMEOUT_S,
    AnalysisProcess,
    reason_to_stop,
)
from splitbrain.harness.pool.spark_child import end_spark, start_spark
from splitbrain.history.border import open_anew
from splitbrain.history.scratch_folders import scratch_folder

#: Environment variable with the path of the socket.
VARIABLE: Final = "SPLITBRAIN_ANALYSES"
#: Processes that ended by an error, after which nobody is served any more.
_FAILURES_MAX: Final = 5
#: It has done its share, or its asker hung up.
_IN_ORDER: Final = (0, 128 + signal.SIGTERM)
_READ_BYTES: Final = 1 << 16


class AnalysisService:
    """The owner's end; leaving the context ends the process of Spark's."""

    def __init__(self, path: Path, log: Path) -> None:
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(path))
        self._listener.listen()
        self._log = log
        self._woken, self._wake = os.pipe()
        self._lock = threading.Lock()
        self._is_over = False
        self._process: subprocess.Popen[bytes] | None = None
        self._keeper = threading.Thread(target=self._keep, name="analyses", daemon=True)

    def __enter__(self) -> Self:
        self._keeper.start()
        return self

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._is_over = True
            process = self._process
        self.begin()
        if process is not None:
            end_spark(process)
        self._keeper.join()
        self._listener.close()
        os.close(self._woken)
        os.close(self._wake)

    def begin(self) -> None:
        """Start the session now: somebody will soon ask."""
        os.write(self._wake, b"\0")

    def _keep(self) -> None:
        failures = 0
        while failures < _FAILURES_MAX:
            ready, _, _ = select.select([self._listener, self._woken], [], [])
            if self._woken in ready:
                os.read(self._woken, _READ_BYTES)
            process = self._started()
            if process is None:
                break
            failures += process.wait() not in _IN_ORDER
        # Those who wait hear that nobody comes, and others that nobody is there.
        self._listener.close()

    def _started(self) -> "subprocess.Popen[bytes] | None":
        """Start a process; None where this is over, or none can be had."""
        with self._lock, contextlib.suppress(OSError), self._log.open("ab") as log:
            if self._is_over:
                return None
            self._process = start_spark(
                f"{PACKAGE}.spark_analysis.service",
                self._listener.fileno(),
                log,
                subprocess.STDOUT,
            )
            return self._process
        return None


@contextlib.contextmanager
def shared_analyses() -> Generator[AnalysisService | None]:
    """Have all analyses that are asked for meanwhile, also by child processes, share a session.

    Yields None where the process is offered one already, or the disk refuses the socket.
    """
    with contextlib.ExitStack() as offered:
        service: AnalysisService | None = None
        if VARIABLE not in os.environ:
            # Each run then has a session of its own.
            with contextlib.suppress(OSError):
                folder = offered.enter_context(scratch_folder("analyses"))
                path = folder / "socket"
                service = offered.enter_context(AnalysisService(path, folder / "service.log"))
                offered.callback(os.environ.pop, VARIABLE, None)
                os.environ[VARIABLE] = str(path)
        yield service


class AskedAnalysis:
    """An analysis that a service was asked for; leaving the context gives it up."""

    def __init__(self, run_folder: Path, connection: socket.socket) -> None:
        self._run_folder, self._connection = run_folder, connection
        self._answer = b""
        self._started = time.monotonic()
        connection.sendall(json.dumps(str(run_folder.absolute())).encode() + b"\n")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def wait(
        self, timeout_s: float = TIMEOUT_S, give_up: Callable[[], str | None] = lambda: None
    ) -> str | None:
        """Wait for the answer; arguments and result are those of ``AnalysisProcess.wait``."""
        while not self._is_answered():
            reason = reason_to_stop(self._started, timeout_s, give_up)
            if reason is not None:
                self._connection.close()
                return reason
        if not self._answer.endswith(b"\n"):
            with AnalysisProcess(self._run_folder) as own:
                return own.wait(timeout_s, give_up)
        problem: str | None = json.loads(self._answer)
        with (
            contextlib.suppress(OSError),
            os.fdopen(open_anew(self._run_folder / LOG_NAME), "wb") as log,
        ):
            log.write(f"{problem or 'done'}\n".encode())
        return None if problem is None else f"The Spark analysis {problem}"

    def _is_answered(self) -> bool:
        """Take what has come; return whether that is all."""
        if not select.select([self._connection], [], [], POLL_INTERVAL_S)[0]:
            return False
        chunk = b""
        with contextlib.suppress(OSError):
            chunk = self._connection.recv(_READ_BYTES)
        self._answer += chunk
        return not chunk or self._answer.endswith(b"\n")


def start_analysis(run_folder: Path) -> AnalysisProcess | AskedAnalysis:
    """Start the analysis of a run, in the session that this process is offered or in its own.

    Raises:
        OSError: no process can be had, or the run folder cannot be written.
    """
    path = os.environ.get(VARIABLE)
    if path is not None:
        connection = socket.socket(socket.AF_UNIX)
        try:
            connection.connect(path)
            return AskedAnalysis(run_folder, connection)
        except OSError:
            # The owner is gone.
            connection.close()
    return AnalysisProcess(run_folder)
