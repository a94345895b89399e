"""One Spark session for many questions: a night's, those of some seeds, those of one command.

A night, a suite or a command that offers it listens on a socket that an environment variable names.
Once somebody has connected, the socket goes to a process of Spark's (``spark_analysis.service``);
where that ends, whatever the reason, another one follows when somebody connects again. So its start
is paid once, and a question that ends the process costs the others no more than a new start.
Somebody who is not answered starts a process of his own.
"""

import contextlib
import json
import os
import select
import socket
import subprocess
import threading
import time
from collections.abc import Generator
from pathlib import Path
from typing import Any, Final, NamedTuple, Self

import msgspec

from splitbrain.contracts.distribution import PACKAGE
from splitbrain.harness.pool.spark_child import end_spark, set_niceness, start_spark
from splitbrain.history.scratch_folders import scratch_folder

#: Environment variable with the path of the socket.
VARIABLE: Final = "SPLITBRAIN_ANALYSES"
#: Processes that ended by an error, after which nobody is served any more.
_FAILURES_MAX: Final = 5
_READ_BYTES: Final = 1 << 16
_GIVES_WAY: Final = 19


class Answered(NamedTuple):
    """How a question ended."""

    #: Exit code of the module that was asked; None: it took too long.
    code: int | None
    #: Its answer, JSON.
    answer: bytes
    #: Why there is none, one sentence.
    error_line: str


def ask_spark(module: str, request: Any, *, name: str, timeout_s: float | None) -> Answered:
    """Ask a module, in the session that this process is offered or in one of its own, and wait.

    ``request`` is anything that JSON can hold; ``name`` is for the scratch folder; ``timeout_s``
    None: for ever.
    """
    began_s = time.monotonic()
    with scratch_folder(name) as folder:
        path = folder / "request.json"
        path.write_bytes(msgspec.json.encode(request))
        question = ask_service(module, path)
        if question is not None:
            with question:
                is_over = question.wait(timeout_s)
            if not is_over:
                return Answered(None, b"", "")
            if question.answered is not None:
                return question.answered
        if timeout_s is not None:
            timeout_s = max(0.0, timeout_s - (time.monotonic() - began_s))
        with start_spark(module, path, subprocess.PIPE, subprocess.PIPE) as process:
            try:
                output, errors = process.communicate(timeout=timeout_s)
            except BaseException as error:
                end_spark(process)
                if isinstance(error, subprocess.TimeoutExpired):
                    return Answered(None, b"", "")
                raise
    error_line = _last_line(errors).decode(errors="replace")
    return Answered(process.returncode, _last_line(output), error_line)


def ask_service(module: str, given: Path) -> "Question | None":
    """Ask the session that this process is offered; None: it is offered none, or that is gone."""
    path = os.environ.get(VARIABLE)
    if path is None:
        return None
    connection = socket.socket(socket.AF_UNIX)
    try:
        connection.connect(path)
        return Question(connection, module, given)
    except OSError:
        connection.close()
        return None


class Question:
    """A question to a session; leaving the context gives it up."""

    def __init__(self, connection: socket.socket, module: str, given: Path) -> None:
        self._connection = connection
        self._received = b""
        connection.sendall(json.dumps([module, str(given.absolute())]).encode() + b"\n")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Give it up, unless it is over: whoever works at it ends."""
        self._connection.close()

    def wait(self, timeout_s: float | None) -> bool:
        """Return whether it is over, answered or not; at the latest after so many seconds."""
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        while True:
            left_s = None if deadline is None else max(0.0, deadline - time.monotonic())
            if not select.select([self._connection], [], [], left_s)[0]:
                return False
            chunk = b""
            with contextlib.suppress(OSError):
                chunk = self._connection.recv(_READ_BYTES)
            self._received += chunk
            if not chunk or self._received.endswith(b"\n"):
                return True

    @property
    def answered(self) -> Answered | None:
        """Return the answer; None: the process ended before it had one."""
        if not self._received.endswith(b"\n"):
            return None
        code, answer, error_line = json.loads(self._received)
        return Answered(code, answer.encode(), error_line)


class SparkService:
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
        self._rehearsed: Path | None = None
        self._keeper = threading.Thread(target=self._keep, name="spark-service", daemon=True)

    def __enter__(self) -> Self:
        self._keeper.start()
        return self

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._is_over = True
            process = self._process
        self._wake_up()
        if process is not None:
            end_spark(process)
        self._keeper.join()
        self._listener.close()
        os.close(self._woken)
        os.close(self._wake)

    def prepare(self, run_folder: Path) -> None:
        """Start the session while a run's nodes start, giving way to all.

        It rehearses with the run before its clients and works ahead behind them, and from ``begin``
        or ``hurry`` on it gives way to nobody.
        """
        self._rehearsed = run_folder
        self._wake_up()

    def begin(self) -> None:
        """Start the session now, or let it hurry: somebody will soon ask."""
        if not self.hurry():
            self._rehearsed = None
            self._wake_up()

    def _wake_up(self) -> None:
        # Where this is over meanwhile, nobody reads it.
        with contextlib.suppress(OSError):
            os.write(self._wake, b"\0")

    def hurry(self) -> bool:
        """Let a session give way to nobody any more; return whether there is one."""
        with self._lock:
            process = self._process
        if process is None or process.poll() is not None:
            return False
        set_niceness(process, 0)
        return True

    def _keep(self) -> None:
        failures = 0
        while failures < _FAILURES_MAX:
            ready, _, _ = select.select([self._listener, self._woken], [], [])
            if self._woken in ready:
                os.read(self._woken, _READ_BYTES)
            process = self._started()
            if process is None:
                break
            failures += process.wait() != 0
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
                *([] if self._rehearsed is None else [self._rehearsed]),
            )
            if self._rehearsed is not None:
                set_niceness(self._process, _GIVES_WAY)
            # One that follows it is started for a question.
            self._rehearsed = None
            return self._process
        return None


@contextlib.contextmanager
def shared_session() -> Generator[SparkService | None]:
    """Have all questions that are asked meanwhile, also by child processes, share a session.

    Yields None where the process is offered one already, or the disk refuses the socket.
    """
    with contextlib.ExitStack() as offered:
        service: SparkService | None = None
        if VARIABLE not in os.environ:
            # Each question then has a session of its own.
            with contextlib.suppress(OSError):
                folder = offered.enter_context(scratch_folder("analyses"))
                path = folder / "socket"
                service = offered.enter_context(SparkService(path, folder / "service.log"))
                offered.callback(os.environ.pop, VARIABLE, None)
                os.environ[VARIABLE] = str(path)
        yield service


def _last_line(output: bytes) -> bytes:
    lines = output.strip().splitlines()
    return lines[-1].strip() if lines else b""
