"""The one clock of a run: nanoseconds since its start, monotonic, the same for every thread."""

import time

NANOSECONDS = 1_000_000_000


class RunClock:
    """Starts at zero when made."""

    def __init__(self) -> None:
        self._start_ns = time.monotonic_ns()

    def now(self) -> int:
        """Nanoseconds since the run's start."""
        return time.monotonic_ns() - self._start_ns

    def seconds(self) -> float:
        """Seconds since the run's start."""
        return self.now() / NANOSECONDS
