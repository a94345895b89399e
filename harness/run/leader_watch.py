"""Asks the nodes once a second who leads, and writes each change to ``leaders.jsonl``.

Seen from outside: for the display, and for the leaders in the report of a system whose nodes write
no state events. A reign shorter than a second may be missed, so no verdict rests on it. It asks on
a thread of its own, so that the run is not held up, nor fails, because nobody answers.
"""

import threading
from collections.abc import Callable

from splitbrain.contracts.errors import HarnessError
from splitbrain.contracts.system import LeaderView
from splitbrain.harness.console.stop import Stop
from splitbrain.harness.run.progress import Progress
from splitbrain.harness.run.run_clock import RunClock
from splitbrain.history.course import LeaderSighting
from splitbrain.history.writer import LineWriter

INTERVAL_S = 1.0
#: How long the nodes get to answer; within the interval, so that silent ones cost no second.
LOOK_TIMEOUT_S = 0.5
#: How long the end of the watch waits for a look that is under way.
_END_PATIENCE_S = 2 * LOOK_TIMEOUT_S


class LeaderWatch:
    """Looks on a thread of its own from ``start`` to ``finish``."""

    def __init__(
        self,
        leader: Callable[[float], LeaderView],
        clock: RunClock,
        lines: LineWriter,
        progress: Progress,
        stop: Stop,
        interval_s: float = INTERVAL_S,
    ) -> None:
        """``leader`` is given how many seconds the nodes have to answer."""
        self._ask_leader, self._clock, self._interval_s = leader, clock, interval_s
        self._lines, self._progress, self._stop = lines, progress, stop
        self._last: LeaderView | None = None
        self._lock = threading.Lock()
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, name="leader watch", daemon=True)

    def start(self) -> None:
        """Begin to look."""
        self._thread.start()

    def finish(self) -> None:
        """Stop looking; a look that hangs is left alone, and nothing is written any more."""
        with self._lock:
            self._ending.set()
        self._thread.join(_END_PATIENCE_S)

    def _run(self) -> None:
        try:
            due_s = self._clock.seconds()
            while not self._ending.wait(max(0.0, due_s - self._clock.seconds())):
                self._look()
                # After a look that took too long the next one follows at once, and one only.
                due_s = max(due_s + self._interval_s, self._clock.seconds())
        except HarnessError as error:
            self._stop.fail(error)

    def _look(self) -> None:
        try:
            view = self._ask_leader(LOOK_TIMEOUT_S)
        except Exception:  # noqa: BLE001 - an onlooker: what matters fails where it is needed
            return
        with self._lock:
            if self._ending.is_set():
                return
            self._progress.led_by(view.leader, view.epoch)
            if view != self._last:
                self._last = view
                self._lines.append(LeaderSighting(self._clock.now(), view.leader, view.epoch))
