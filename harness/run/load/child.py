"""The run's end of one worker process of the load.

It ends by itself when this end of its input is closed, which the kernel does however the run's
process dies.
"""

import contextlib
import time
from typing import Any

from splitbrain.harness.pool.framed_child import FramedChild


class Child(FramedChild):
    """One worker process.

    Args:
        number: from 0.
        assignment: the frame of an ``Assignment``.

    Raises:
        OSError: no process can be started.
    """

    def __init__(self, number: int, assignment: bytes) -> None:
        super().__init__(f"{__package__}.worker")
        self.number = number
        self._reason: str | None = None
        self.is_ready = False
        #: Whether it has said that nothing more will come.
        self.has_ended = False
        #: Whether it is not listened to, being far ahead of the others.
        self.is_ahead = False
        #: When it last said something, on the monotonic clock, s.
        self.heard_s = time.monotonic()
        with contextlib.suppress(OSError):  # then its output ends, which says more
            self.send_frame(assignment)

    def say(self, message: Any) -> None:
        """Send it a message, after what it has not taken yet."""
        with contextlib.suppress(OSError):
            self.send(message)

    def hear(self) -> list[Any]:
        """Messages that have arrived whole; to be called when its output can be read."""
        self.receive()
        self.heard_s = time.monotonic()
        return list(self.arrived())

    def kill_for(self, reason: str) -> None:
        """End it at once for this reason, a clause; its output then comes to an end."""
        self._reason = reason
        self.kill()

    def story(self) -> str:
        """How it ended, as a clause."""
        how = self.end()
        return how if self._reason is None else f"{self._reason} and was killed"

    def close(self) -> None:
        """Make sure that it is gone, and forget it."""
        if self.has_ended:
            self.end()
        super().close()
