"""Agenda of a night: the next attempts, and the runs left undone when time is up.

A run is handed out only if its time limit still fits into the night's budget and its matrix' own.
Threads of the suite share one agenda. It starts nothing.
"""

import math
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping

from splitbrain.harness.campaign.suite.definition import PlannedRun


class Agenda:
    """The planned runs that are not done yet, in their order.

    ``orphans`` are runs that a dead suite had begun; they come first, whatever the budget, because
    their folders may hold a violation. ``used_s`` and ``matrix_used_s`` are seconds that the night,
    and each matrix, took so far; ``clock`` gives monotonic seconds.
    """

    def __init__(
        self,
        runs: Iterable[PlannedRun],
        orphans: Iterable[PlannedRun] = (),
        budget_s: float | None = None,
        used_s: float = 0.0,
        matrix_used_s: Mapping[str, float] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._runs, self._orphans = list(runs), list(orphans)
        self._clock = clock
        self._end_s = math.inf if budget_s is None else clock() + budget_s - used_s
        self._matrix_used_s = defaultdict[str, float](float, matrix_used_s or {})
        self._lock = threading.Lock()
        #: Runs that did not fit into a budget any more.
        self.cut: list[PlannedRun] = []

    def take_orphan(self) -> PlannedRun | None:
        """Return the next orphan, None when there is none."""
        with self._lock:
            return self._orphans.pop(0) if self._orphans else None

    def take(self) -> PlannedRun | None:
        """Return the next run that still fits, None when there is none."""
        with self._lock:
            while self._runs:
                run = self._runs.pop(0)
                if self._admits(run):
                    return run
            return None

    def admits(self, run: PlannedRun) -> bool:
        """Return whether there is time for this run; noted as cut if not."""
        with self._lock:
            return self._admits(run)

    def spent(self, run: PlannedRun, seconds: float) -> None:
        """Add the time that a run of this matrix took."""
        with self._lock:
            self._matrix_used_s[run.matrix] += seconds

    def _admits(self, run: PlannedRun) -> bool:
        left_s = self._end_s - self._clock()
        if run.matrix_budget_s is not None:
            left_s = min(left_s, run.matrix_budget_s - self._matrix_used_s[run.matrix])
        fits = left_s > 0 and left_s >= run.least_s
        if not fits:
            self.cut.append(run)
        return fits
