"""Asks the nodes once a second who leads, and writes each change to ``leaders.jsonl``.

Seen from outside: for the display, and for the leaders in the report of a system whose nodes write
no state events. A reign shorter than a second may be missed, so no verdict rests on it. It asks on
a thread of its own, so that the run is not held up, nor fails, because nobody answers.
"""

from collections.abc import Callable
from functools import partial

from splitbrain.contracts.errors import AdapterError
from splitbrain.contracts.system import LeaderView
from splitbrain.harness.console.stop import Stop
from splitbrain.harness.run.onlooker import Onlooker
from splitbrain.harness.run.progress import Progress
from splitbrain.harness.run.run_clock import RunClock
from splitbrain.history.course import LeaderSighting
from splitbrain.history.writer import LineWriter

INTERVAL_S = 1.0
#: How long the nodes get to answer; within the interval, so that silent ones cost no second.
LOOK_TIMEOUT_S = 0.5
#: How long the end of the watch waits for a look that is under way.
_END_PATIENCE_S = 2 * LOOK_TIMEOUT_S


class LeaderWatch(Onlooker):
    """Asks for the leader from ``start`` to ``finish``."""

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
        super().__init__("leader watch", clock, stop, interval_s, _END_PATIENCE_S)
        self._ask_leader, self._lines, self._progress = leader, lines, progress
        self._last: LeaderView | None = None

    def look(self) -> Callable[[], None] | None:
        """Ask who leads."""
        try:
            view = self._ask_leader(LOOK_TIMEOUT_S)
        except AdapterError:
            raise
        except Exception:  # noqa: BLE001 - an onlooker: what matters fails where it is needed
            return None
        return partial(self._write, view)

    def _write(self, view: LeaderView) -> None:
        self._progress.led_by(view.leader, view.epoch)
        if view != self._last:
            self._last = view
            self._lines.append(LeaderSighting(self._clock.now(), view.leader, view.epoch))
