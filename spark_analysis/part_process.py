"""Child process that judges parts of histories, and its guard.

A part may take exponential time or memory, hang or crash; neither the Spark worker that asks nor
the parts after it may pay for that. A guard beside the asking thread kills the child when it leaves
its budget, whatever either is waiting for; the next part then gets a fresh one. Must never let a
part without answer look like one that found nothing.
"""

import contextlib
import os
import pickle
import socket
import subprocess
import sys
import tempfile
import threading
from multiprocessing.connection import Connection
from typing import IO, Any, Final

from splitbrain.history.process_budget import PartClock, resident_mib

#: Processor time beyond its budget for a part to stop by itself.
_GRACE_S: Final = 2.0
#: Time after which a fresh interpreter that does not report is taken for broken.
_START_TIMEOUT_S: Final = 120.0
_POLL_INTERVAL_S: Final = 0.05
#: Share of its memory that a child may hold between parts; beyond it is replaced.
_REUSE_SHARE_MAX: Final = 0.5


class ChildFailed(Exception):
    """Absence of an answer; the message is a clause."""


class PartProcess:
    """Judge of one part after the other, in a child that is replaced whenever it is killed.

    Args:
        module: run as ``python -P -m MODULE DESCRIPTOR SECONDS MIB``; see ``part_judging``.
        time_budget_s: for each part.
        memory_budget_mib: resident, for each part, with the interpreter's own.
    """

    def __init__(self, module: str, time_budget_s: float, memory_budget_mib: int) -> None:
        self._module = module
        self._time_budget_s = time_budget_s
        self._memory_budget_mib = memory_budget_mib
        self._child: _Child | None = None

    def ask(self, question: object) -> Any:
        """Return the child's answer.

        Raises:
            ChildFailed: it was killed, crashed, or could not be started.
        """
        try:
            if self._child is None:
                self._child = self._started()
            with self._child.guarded(self._time_budget_s + _GRACE_S, self._memory_budget_mib):
                state, answer = self._child.exchange(question)
        except ChildFailed as failure:
            self.close()
            raise ChildFailed(self._worded(str(failure))) from None
        except OSError as error:
            self.close()
            raise ChildFailed(f"no process could be started for it: {error.strerror}") from error
        if self._child.resident_mib > self._memory_budget_mib * _REUSE_SHARE_MAX:
            self.close()
        if state == "failed":
            raise ChildFailed(answer)
        return answer

    def close(self) -> None:
        """Kill the child and wait for its end."""
        if self._child is not None:
            self._child.close()
            self._child = None

    def _started(self) -> "_Child":
        child = _Child(self._module, self._time_budget_s, self._memory_budget_mib)
        try:
            with child.guarded(_START_TIMEOUT_S, None):
                child.receive()
        except ChildFailed as failure:
            child.close()
            raise ChildFailed(f"its process did not start: {failure}") from None
        return child

    def _worded(self, failure: str) -> str:
        if failure == _TIME:
            return f"time budget of {self._time_budget_s:g} s used up, stopped"
        if failure == _MEMORY:
            return f"memory budget of {self._memory_budget_mib} MiB used up, stopped"
        return failure


_TIME: Final = "time used up"
_MEMORY: Final = "memory used up"


class _Child:
    """Process; every wait for it happens under a guard that may kill it."""

    def __init__(self, module: str, time_budget_s: float, memory_budget_mib: int) -> None:
        # Closed with the child, not with a block.
        self._errors: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115
        ours, theirs = socket.socketpair()
        with theirs:
            number = theirs.fileno()
            arguments = (str(number), str(time_budget_s), str(memory_budget_mib))
            try:
                self._process = subprocess.Popen(
                    [sys.executable, "-P", "-m", module, *arguments],
                    stdin=subprocess.DEVNULL,
                    stdout=self._errors,
                    stderr=self._errors,
                    pass_fds=(number,),
                    env=_environment(),
                    # A signal to the worker's group is for the worker; the child ends with its
                    # connection.
                    start_new_session=True,
                )
            except OSError:
                ours.close()
                self._errors.close()
                raise
        self._connection = Connection(ours.detach())
        self._killed: str | None = None

    @property
    def resident_mib(self) -> float:
        return resident_mib(self._process.pid)

    def exchange(self, question: object) -> Any:
        try:
            self._connection.send_bytes(pickle.dumps(question, pickle.HIGHEST_PROTOCOL))
        except OSError:
            raise ChildFailed(self._end()) from None
        return self.receive()

    def receive(self) -> Any:
        try:
            return self._connection.recv()
        except (EOFError, OSError):
            raise ChildFailed(self._end()) from None
        # A broken child may write anything.
        except Exception as error:  # noqa: BLE001
            raise ChildFailed(f"crashed: its answer cannot be read: {error}") from None

    @contextlib.contextmanager
    def guarded(self, seconds: float, memory_mib: int | None) -> Any:
        """Kill the child if it leaves these bounds within the block."""
        done = threading.Event()
        clock = PartClock(self._process.pid)
        guard = threading.Thread(
            target=self._watch, args=(done, clock, seconds, memory_mib), daemon=True
        )
        guard.start()
        try:
            yield
        finally:
            done.set()
            guard.join()

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        self._connection.close()
        self._errors.close()

    def _watch(
        self, done: threading.Event, clock: PartClock, seconds: float, memory_mib: int | None
    ) -> None:
        while not done.wait(_POLL_INTERVAL_S):
            if clock.is_used_up(seconds):
                self._killed = _TIME
            elif memory_mib is not None and self.resident_mib > memory_mib:
                self._killed = _MEMORY
            else:
                continue
            self._process.kill()
            return

    def _end(self) -> str:
        self._process.kill()
        code = self._process.wait()
        if self._killed is not None:
            return self._killed
        self._errors.seek(0)
        lines = self._errors.read().decode("utf-8", "replace").strip().splitlines()
        how = f"was ended by signal {-code}" if code < 0 else f"ended with code {code}"
        return f"crashed: its process {how}" + (f" ({lines[-1].strip()})" if lines else "")


def _environment() -> dict[str, str]:
    """Return this process's environment with its import path, which may hold a driver's archive."""
    # An empty entry stands for the current folder.
    paths = [path or os.getcwd() for path in sys.path]  # noqa: PTH109 - an import path
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
