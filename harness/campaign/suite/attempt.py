"""One attempt at one planned run: a child process of the real command line.

The child leads a session of its own, writes to a file and holds a lock in the attempt's folder: it
outlives a suite that is killed, ends in order, and the next process of the night finds it by its
lock, waits for it and reads its folder. A child is asked to end (SIGINT: heal, stop, judge) before
it is killed. Nothing here judges. Source: issue 4, item 8.
"""

import fcntl
import os
import signal
import subprocess
import threading
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Literal

import msgspec

from splitbrain.contracts.errors import UNREADABLE
from splitbrain.harness.campaign.suite.definition import Expectation
from splitbrain.harness.campaign.suite.night import now
from splitbrain.harness.console.stop import Stop
from splitbrain.harness.folder.atomic_file import write_atomically
from splitbrain.harness.folder.refusals import tell_refusal
from splitbrain.history.expectation import ATTEMPT_RECORD

#: Time of a child that was asked to end: healing, stopping, collecting, judging.
END_PATIENCE_S = 150.0
#: Time after the second request, on which a run gives up all but taking down.
URGED_PATIENCE_S = 40.0
_TICK_S = 0.1
_MAKE = "make the folder of a run"

Ending = Literal["by itself", "out of time", "interrupted"]


class Started(msgspec.Struct, frozen=True):
    """Content of ``attempt.json``."""

    command: tuple[str, ...]
    #: Process id, also of the child's session.
    pid: int
    #: UTC, ISO 8601.
    started: str
    #: Of the suite, for whoever has the run's folder alone (``history.expectation``).
    expect: Expectation = "valid"


class Attempt:
    """Paths of one attempt."""

    def __init__(self, root: Path) -> None:
        self.root = root
        #: Record of its process.
        self.record = root / ATTEMPT_RECORD
        #: Held (flock) by the child.
        self.lock = root / "lock"
        self.output = root / "output.log"

    @property
    def number(self) -> int:
        """Return its number, from 1."""
        return int(self.root.name.rpartition("-")[2])

    def started(self) -> Started | None:
        """Return its process; None if the suite died before writing that."""
        try:
            return msgspec.json.decode(self.record.read_bytes(), type=Started)
        except (OSError, *UNREADABLE):
            return None


class OwnChild:
    """A child that this process started."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process

    @property
    def exit_code(self) -> int | None:
        """Return the exit code, negative for a signal; None while it runs."""
        return self._process.returncode

    def has_ended(self, timeout_s: float) -> bool:
        """Return whether it ends within this time."""
        try:
            self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            return False
        return True

    def signal(self, number: signal.Signals) -> None:
        """Send a signal, to its whole session for SIGKILL."""
        if self._process.returncode is None:
            _send(self._process.pid, number)


class OrphanChild:
    """A child of a suite that died: known by its lock, and by its id while the lock is held."""

    def __init__(self, attempt: Attempt) -> None:
        self._attempt = attempt
        started = attempt.started()
        self._pid = None if started is None else started.pid

    def has_ended(self, timeout_s: float) -> bool:
        """Return whether it ends within this time."""
        deadline_s = time.monotonic() + timeout_s
        while is_held(self._attempt.lock):
            left_s = deadline_s - time.monotonic()
            if left_s <= 0:
                return False
            time.sleep(min(left_s, _TICK_S))
        return True

    def signal(self, number: signal.Signals) -> None:
        """Send a signal, to its whole session for SIGKILL."""
        # While the lock is held the id has not been given to another process.
        if self._pid is not None and is_held(self._attempt.lock):
            _send(self._pid, number)


def attempts_at(folder: Path) -> list[Attempt]:
    """Return the attempts in a run's folder, oldest first."""
    return sorted(map(Attempt, folder.glob("attempt-*")), key=lambda attempt: attempt.number)


def new_attempt(folder: Path) -> Attempt:
    """Make the folder of the next attempt; raise HarnessError if the disk refuses."""
    number = max((attempt.number for attempt in attempts_at(folder)), default=0) + 1
    attempt = Attempt(folder / f"attempt-{number}")
    with tell_refusal(_MAKE, attempt.root):
        attempt.root.mkdir(parents=True)
    return attempt


def start(
    attempt: Attempt,
    command: Sequence[str],
    environment: Mapping[str, str] | None = None,
    expect: Expectation = "valid",
) -> OwnChild:
    """Start the child; raise HarnessError if the program cannot be started, or the disk refuses.

    ``environment``: None for that of this process.
    """
    with (
        attempt_files(attempt) as (lock, output),
        tell_refusal("start the program", command[0], "Name a program that exists and may be run."),
    ):
        process = subprocess.Popen(
            list(command),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            pass_fds=(lock,),
            env=environment,
        )
    record = Started(tuple(command), process.pid, now().isoformat(timespec="seconds"), expect)
    # Without the record a later process of the night only knows it less well.
    with suppress(OSError):
        write_atomically(attempt.record, msgspec.json.encode(record))
    return OwnChild(process)


@contextmanager
def attempt_files(attempt: Attempt) -> Generator[tuple[int, int]]:
    """Yield an attempt's lock, taken, and output file; raise HarnessError if the disk refuses."""
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
    with ExitStack() as opened:
        with tell_refusal(_MAKE, attempt.root):
            lock = os.open(attempt.lock, flags, 0o644)
            opened.callback(os.close, lock)
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            output = os.open(attempt.output, flags | os.O_APPEND, 0o644)
            opened.callback(os.close, output)
        yield lock, output


def see_out(
    child: OwnChild | OrphanChild,
    stop: Stop,
    timeout_s: float,
    urged: threading.Event,
    *,
    end_patience_s: float = END_PATIENCE_S,
    urged_patience_s: float = URGED_PATIENCE_S,
) -> Ending:
    """Wait for the child's end; ask, urge and at last kill it when time is up or the user stops.

    ``timeout_s`` is the child's own time; ``urged`` is set when the user asks a second time.
    """
    deadline_s = time.monotonic() + timeout_s
    while not stop.is_set() and time.monotonic() < deadline_s:
        if child.has_ended(_TICK_S):
            return "by itself"
    ending: Ending = "interrupted" if stop.is_set() else "out of time"
    child.signal(signal.SIGINT)
    end_deadline_s = time.monotonic() + end_patience_s
    while True:
        # At least one look: two signals without a pause between them arrive as one.
        if child.has_ended(_TICK_S):
            return ending
        if urged.is_set() or time.monotonic() >= end_deadline_s:
            break
    child.signal(signal.SIGINT)
    if not child.has_ended(urged_patience_s):
        child.signal(signal.SIGKILL)
        child.has_ended(urged_patience_s)
    return ending


def is_held(lock: Path) -> bool:
    """Return whether a living process holds the lock."""
    try:
        descriptor = os.open(lock, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def _send(pid: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):
        if number is signal.SIGKILL:
            os.killpg(pid, number)
        else:
            os.kill(pid, number)
