"""The run's end of one worker process of the load: starts it, talks to it, ends it.

It is in a process group of its own, so that a Ctrl-C reaches the run alone, and it ends by itself
when this end of its input is closed, which the kernel does however the run's process dies.
"""

import contextlib
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from typing import IO, Any

from harness.child_environment import child_environment
from harness.frames import frame, taken_messages

_READ_BYTES = 1 << 20
#: How long a process that has ended its work may take to end itself.
_EXIT_PATIENCE_S = 5.0
#: Lines of what the process printed that stand in an error.
_LAST_LINES = 1


class Child:
    """One worker process.

    Args:
        number: from 0.
        assignment: the frame of an ``Assignment``.
    """

    def __init__(self, number: int, assignment: bytes) -> None:
        self.number = number
        # Closed with the process, which outlives any one block.
        self._errors: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "harness.load.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            env=child_environment(),
            process_group=0,
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._input, self._output = self._process.stdin, self._process.stdout
        self._buffer = bytearray()
        self._reason: str | None = None
        self.is_ready = False
        #: Whether it has said that nothing more will come.
        self.has_ended = False
        #: Whether its output is at its end.
        self.is_gone = False
        #: Whether it is not listened to, being far ahead of the others.
        self.is_ahead = False
        #: When it last said something, on the monotonic clock, s.
        self.heard_s = time.monotonic()
        with contextlib.suppress(BrokenPipeError):  # then its output ends, which says more
            self._input.write(assignment)
            self._input.flush()
        os.set_blocking(self._input.fileno(), False)
        os.set_blocking(self._output.fileno(), False)

    @property
    def output(self) -> int:
        """Descriptor of what it says, to be waited on."""
        return self._output.fileno()

    @property
    def process_id(self) -> int:
        """Of the operating system."""
        return self._process.pid

    def say(self, message: Any) -> None:
        """Send it a short message, unless it does not take any now."""
        said = frame(message)
        if len(said) > select.PIPE_BUF:
            return
        # Within a pipe's atomic write: all of it goes, or nothing.
        with contextlib.suppress(BlockingIOError, BrokenPipeError):
            os.write(self._input.fileno(), said)

    def hear(self) -> list[Any]:
        """Messages that have arrived whole; to be called when its output can be read."""
        try:
            chunk = os.read(self._output.fileno(), _READ_BYTES)
        except BlockingIOError:
            return []
        if not chunk:
            self.is_gone = True
            return []
        self.heard_s = time.monotonic()
        self._buffer += chunk
        return list(taken_messages(self._buffer))

    def kill(self, reason: str) -> None:
        """End it at once for this reason, a clause; its output then comes to an end."""
        self._reason = reason
        self._process.kill()

    def story(self) -> str:
        """How it ended, as a clause; waits for that."""
        code = self._process.wait()
        if self._reason is not None:
            return f"{self._reason} and was killed"
        how = f"ended with exit code {code}"
        if code < 0:
            how = f"was killed by {signal.Signals(-code).name}"
        self._errors.seek(0)
        printed = self._errors.read().decode(errors="replace").strip().splitlines()[-_LAST_LINES:]
        return how + "".join(f" and printed {line.strip()!r}" for line in printed)

    def close(self) -> None:
        """Make sure that it is gone, and forget it."""
        with contextlib.suppress(BrokenPipeError):
            self._input.close()
        try:
            self._process.wait(_EXIT_PATIENCE_S if self.has_ended else 0)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._output.close()
        self._errors.close()
