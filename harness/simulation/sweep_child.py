"""The parent's end of one worker process of a sweep.

Must never let a child outlive the sweep, nor wait for one that says nothing.
"""

import contextlib
import os
import subprocess
import sys
import tempfile
import time
from typing import IO

from contracts.errors import HarnessError
from harness.child_environment import child_environment
from harness.frames import frame, taken_messages
from harness.simulation.sweep_worker import Assignment
from harness.simulation.trial import Purpose, SeedResult

_MODULE = "harness.simulation.sweep_worker"
#: How long a child that has closed its answers gets to end, and so to say how.
_END_PATIENCE_S = 2.0


class SweepChild:
    """A child process, and the seed that it is at.

    Raises:
        HarnessError: no process can be started.
    """

    def __init__(self, number: int, assignment: Assignment) -> None:
        #: Tells the children of a sweep apart.
        self.number = number
        #: Seeds that it has done.
        self.done = 0
        self.is_ready = False
        self.is_gone = False
        self.purpose: Purpose | None = None
        self._seed: int | None = None
        self._since_s = time.monotonic()
        self._buffer = bytearray()
        self._broken: str | None = None
        # Closed with the child, which outlives any one block.
        self._errors: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", _MODULE],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._errors,
                env=child_environment(),
                # Ctrl-C is for the sweep; it decides what becomes of its children.
                start_new_session=True,
            )
        except OSError as error:
            self._errors.close()
            raise HarnessError(
                "start a worker process",
                sys.executable,
                error.strerror or str(error),
                "Ask for fewer --jobs, or make room for processes on this machine.",
            ) from error
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._stdin, self.output = self._process.stdin, self._process.stdout
        os.set_blocking(self.output.fileno(), False)
        self._send(assignment)

    @property
    def is_idle(self) -> bool:
        """Whether it has reported ready and has nothing to do."""
        return self.is_ready and not self.is_gone and self._seed is None

    @property
    def busy_s(self) -> float:
        """Seconds for which it has been starting, or at its seed; 0 while it has nothing to do."""
        return 0.0 if self.is_idle else time.monotonic() - self._since_s

    def start(self, seed: int, purpose: Purpose) -> None:
        """Have it try a seed."""
        self._seed, self.purpose, self._since_s = seed, purpose, time.monotonic()
        self._send((seed, purpose))

    def results(self) -> list[SeedResult]:
        """What it has said since the last time."""
        while chunk := self._read():
            self._buffer += chunk
        if chunk == b"":
            self.is_gone = True
        found: list[SeedResult] = []
        try:
            for message in taken_messages(self._buffer):
                if not self.is_ready:
                    self.is_ready = True
                    continue
                found.append(message)
                self._seed, self.purpose = None, None
                self.done += 1
        # What a broken child writes need not be a frame of ours.
        except Exception as error:  # noqa: BLE001
            self.is_gone, self._broken = True, f"its answer cannot be read: {error}"
        return found

    def failed(self, how: str) -> SeedResult | None:
        """The result of the seed that it was at when it ended; None if it was at none.

        Raises:
            HarnessError: it never began, so that no other one would.
        """
        if not self.is_ready:
            raise HarnessError(
                "start a worker process",
                _MODULE,
                how,
                "`splitbrain doctor` says what this machine lacks.",
            )
        if self._seed is None or self.purpose is None:
            return None
        return SeedResult(seed=self._seed, purpose=self.purpose, crash=f"its worker failed: {how}")

    def end(self) -> str:
        """How it ended, in a clause."""
        if self._broken is not None:
            return self._broken
        try:
            code = self._process.wait(_END_PATIENCE_S)
        except subprocess.TimeoutExpired:
            return "it closed its answers without ending"
        self._errors.seek(0)
        lines = self._errors.read().decode("utf-8", "replace").strip().splitlines()
        how = f"it was ended by signal {-code}" if code < 0 else f"it ended with code {code}"
        return f"{how} ({lines[-1].strip()})" if lines else how

    def close(self) -> None:
        """End the process whatever it does, and wait for its end."""
        self._process.kill()
        self._process.wait()
        self.output.close()
        # Bytes may be left for a child that is gone.
        with contextlib.suppress(OSError):
            self._stdin.close()
        self._errors.close()

    def _send(self, message: object) -> None:
        # A child that is gone is noticed when its answers end.
        with contextlib.suppress(OSError):
            self._stdin.write(frame(message))
            self._stdin.flush()

    def _read(self) -> bytes | None:
        try:
            return os.read(self.output.fileno(), 1 << 20)
        except BlockingIOError:
            return None
