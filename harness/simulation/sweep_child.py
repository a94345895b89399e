"""The parent's end of one worker process of a sweep.

Must never let a child outlive the sweep, nor wait for one that says nothing.
"""

import contextlib
import sys
import time

from contracts.errors import HarnessError
from harness.framed_child import FramedChild
from harness.simulation.sweep_worker import Assignment
from harness.simulation.trial import Purpose, SeedResult

_MODULE = "harness.simulation.sweep_worker"


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
        self.purpose: Purpose | None = None
        self._seed: int | None = None
        self._since_s = time.monotonic()
        self._broken: str | None = None
        try:
            self._child = FramedChild(_MODULE)
        except OSError as error:
            raise HarnessError(
                "start a worker process",
                sys.executable,
                error.strerror or str(error),
                "Ask for fewer --jobs, or make room for processes on this machine.",
            ) from error
        #: Readable when it has said something.
        self.output = self._child.output
        self._send(assignment)

    @property
    def process_id(self) -> int:
        """Of the child."""
        return self._child.process_id

    @property
    def is_gone(self) -> bool:
        """Whether nothing more is to be expected of it."""
        return self._child.is_gone or self._broken is not None

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
        self._child.receive()
        found: list[SeedResult] = []
        try:
            for message in self._child.arrived():
                if not self.is_ready:
                    self.is_ready = True
                    continue
                found.append(message)
                self._seed, self.purpose = None, None
                self.done += 1
        # What a broken child writes need not be a frame of ours.
        except Exception as error:  # noqa: BLE001
            self._broken = f"its answer cannot be read: {error}"
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
        return f"it {self._child.end()}" if self._broken is None else self._broken

    def close(self) -> None:
        """End the process whatever it does, and wait for its end."""
        self._child.close()

    def _send(self, message: object) -> None:
        # A few hundred bytes, for a child that reads all the time: they go out at once. One that
        # is gone is noticed when its answers end.
        with contextlib.suppress(OSError):
            self._child.send(message)
