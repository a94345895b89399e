"""The one clock of a run: nanoseconds since its start, monotonic, the same for all of it.

The system's monotonic clock is one for every thread and every process of a machine, so worker
processes that are told when the run started stamp times that compare with ours.
"""

import time

NANOSECONDS = 1_000_000_000


class RunClock:
    """Starts at zero when made, or at the ``start_ns`` of another process of this machine."""

    def __init__(self, start_ns: int | None = None) -> None:
        #: Reading of the system's monotonic clock at zero.
        self.start_ns = time.monotonic_ns() if start_ns is None else start_ns

    def now(self) -> int:
        """Nanoseconds since the run's start."""
        return time.monotonic_ns() - self.start_ns

    def wall_start_ns(self) -> int:
        """Return what the clock on the wall read at zero, nanoseconds since 1970."""
        return time.time_ns() - self.now()

    def seconds(self) -> float:
        """Seconds since the run's start."""
        return self.now() / NANOSECONDS
