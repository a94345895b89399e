"""A look at the cluster once an interval, on a thread of its own, beside the run."""

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable

from splitbrain.contracts.errors import HarnessError
from splitbrain.harness.console.stop import Stop
from splitbrain.harness.run.run_clock import RunClock


class Onlooker(ABC):
    """Looks from ``start`` to ``finish``; a disk that refuses what it writes ends the run."""

    def __init__(
        self, name: str, clock: RunClock, stop: Stop, interval_s: float, end_patience_s: float
    ) -> None:
        """``end_patience_s``: how long the end waits for a look that is under way."""
        self._clock, self._stop = clock, stop
        self._interval_s, self._end_patience_s = interval_s, end_patience_s
        self._lock = threading.Lock()
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Begin to look."""
        self._thread.start()

    def finish(self) -> None:
        """Stop looking; a look that hangs is left alone, and nothing is written any more."""
        with self._lock:
            self._ending.set()
        self._thread.join(self._end_patience_s)

    @abstractmethod
    def look(self) -> Callable[[], None] | None:
        """Look once; return what writes down what was seen, None where nothing was."""
        ...

    def _run(self) -> None:
        try:
            due_s = self._clock.seconds()
            while not self._ending.wait(max(0.0, due_s - self._clock.seconds())):
                write = self.look()
                with self._lock:
                    if write is not None and not self._ending.is_set():
                        write()
                # After a look that took too long the next one follows at once, and one only.
                due_s = max(due_s + self._interval_s, self._clock.seconds())
        except HarnessError as error:
            self._stop.fail(error)
