"""A child process that begins where this one stands, with everything that is imported already.

A fresh interpreter takes a third of a second to load what a worker needs; a copy of this process
takes milliseconds. Only a process of one thread may be copied: what another thread holds at that
moment stays held in the copy for ever. ``can_fork`` tells, and who cannot starts a fresh one
(``harness.pool.framed_child``). Must never return in the child.
"""

import os
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import IO, NoReturn

#: File descriptors that a process has, of which the child closes all that are not its own.
_DESCRIPTORS_MAX = 1 << 16
_WAIT_INTERVAL_S = 0.01


def can_fork() -> bool:
    """Whether this process has one thread alone, those of libraries included."""
    if not hasattr(os, "fork") or threading.active_count() != 1:
        return False
    threads = Path("/proc/self/task")
    # Where nobody tells of the threads of libraries, there may be some.
    return threads.is_dir() and len(list(threads.iterdir())) == 1


class ForkedProcess:
    """A copy of this process that runs one function and ends; used like ``subprocess.Popen``.

    The child does ``work``, its standard input and output joined to ours, and prints its errors
    into ``errors``. Raises OSError if no process can be started.
    """

    def __init__(self, work: Callable[[], None], errors: IO[bytes]) -> None:
        sys.stdout.flush()
        sys.stderr.flush()
        child_in, ours_out = os.pipe()
        ours_in, child_out = os.pipe()
        try:
            self.pid = os.fork()
        except OSError:
            for descriptor in (child_in, ours_out, ours_in, child_out):
                os.close(descriptor)
            raise
        if self.pid == 0:
            _live(work, child_in, child_out, errors.fileno())
        os.close(child_in)
        os.close(child_out)
        self.stdin: IO[bytes] = os.fdopen(ours_out, "wb", buffering=0)
        self.stdout: IO[bytes] = os.fdopen(ours_in, "rb", buffering=0)
        self._code: int | None = None

    def poll(self) -> int | None:
        """Its exit code, minus the signal that ended it; None while it lives."""
        if self._code is None:
            ended, status = os.waitpid(self.pid, os.WNOHANG)
            if ended:
                self._code = os.waitstatus_to_exitcode(status)
        return self._code

    def wait(self, timeout: float | None = None) -> int:
        """Its exit code, once it has ended; raise subprocess.TimeoutExpired if it does not."""
        if self._code is None and timeout is None:
            self._code = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        end = time.monotonic() + (timeout or 0.0)
        while (code := self.poll()) is None:
            if time.monotonic() > end:
                raise subprocess.TimeoutExpired("a copy of this process", timeout or 0.0)
            time.sleep(_WAIT_INTERVAL_S)
        return code

    def kill(self) -> None:
        """End it whatever it does."""
        if self.poll() is None:
            os.kill(self.pid, signal.SIGKILL)


def _live(work: Callable[[], None], child_in: int, child_out: int, errors: int) -> NoReturn:
    code = 1
    try:
        # Ctrl-C is for the parent; it decides what becomes of its children.
        os.setsid()
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)
        for target, source in enumerate((child_in, child_out, errors)):
            os.dup2(source, target)
        # The pipes of other children: one that is held here would never be seen to end.
        os.closerange(3, _DESCRIPTORS_MAX)
        work()
        code = 0
    except BaseException:  # noqa: BLE001 - nothing may climb into what the parent was doing
        traceback.print_exc()
        sys.stderr.flush()
    finally:
        os._exit(code)
