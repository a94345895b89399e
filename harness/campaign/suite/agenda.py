"""Agenda of a night: the next attempts, and the runs left undone when time is up.

A run is handed out only if its time limit still fits into the night's budget and its matrix' own.
Threads of the suite share one agenda. It starts nothing.
"""

import threading
import time
from collections.abc import Callable, Iterable

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
        *,
        orphans: Iterable[PlannedRun] = (),
        budget_s: float | None,
        used_s: float = 0.0,
        matrix_used_s: dict[str, float] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._runs = list(runs)
        self._orphans = list(orphans)
        self._clock = clock
        self._end_s = None if budget_s is None else clock() + budget_s - used_s
        self._matrix_used_s = dict(matrix_used_s or {})
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
            before = self._matrix_used_s.get(run.matrix, 0.0)
            self._matrix_used_s[run.matrix] = before + seconds

    def _admits(self, run: PlannedRun) -> bool:
        fits = self._fits_night(run) and self._fits_matrix(run)
        if not fits:
            self.cut.append(run)
        return fits

    def _fits_night(self, run: PlannedRun) -> bool:
        if self._end_s is None:
            return True
        left_s = self._end_s - self._clock()
        return left_s > 0 and left_s >= run.least_s

    def _fits_matrix(self, run: PlannedRun) -> bool:
        used_s = self._matrix_used_s.get(run.matrix, 0.0)
        budget_s = run.matrix_budget_s
        return budget_s is None or (used_s < budget_s and used_s + run.least_s <= budget_s)
