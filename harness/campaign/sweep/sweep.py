"""Sweep of a range of seeds in worker processes, some of them run twice.

A share of the seeds, drawn by the seed itself, is run again by another worker, or after other seeds
in the same process; failing seeds are run again to keep their run folders. Each second run must be
the first one bit for bit. An error in one seed becomes that seed's result and touches no other.
Must never take a seed that could not be run for one that did not fail. Source: design, section 9.
"""

import sys
import time
from collections import deque
from collections.abc import Callable
from typing import TypeAlias

import msgspec

from splitbrain.contracts.budget import Budget
from splitbrain.contracts.errors import HarnessError
from splitbrain.harness.campaign.sweep.options import SimOptions
from splitbrain.harness.campaign.sweep.sweep_tally import SweepTally
from splitbrain.harness.campaign.sweep.trial import Purpose, SeedResult
from splitbrain.harness.console.stop import Stop
from splitbrain.harness.pool.framed_child import FramedChild
from splitbrain.harness.pool.workers import Ended, Worker, Workers
from splitbrain.history.plan import sub_seed

_FUNCTION = f"{__name__}:try_in_worker"
#: A seed that takes so long never ends: its world spins without its clock going on.
SEED_PATIENCE_S = 600.0
#: Worlds have no memory limit.
_MEMORY_BUDGET_MIB = sys.maxsize
#: Seeds that could not be run before the sweep gives up: the next ones could not either.
CRASHES_MAX = 10
_SUB_SEED_LIMIT = 2**63


class SweepOrder(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of a sweep."""

    options: SimOptions
    seeds: range
    #: Tries a seed, as ``harness.campaign.sweep.trial.try_seed`` with its options; pickles.
    try_seed: Callable[[int, Purpose], SeedResult]


def is_checked(seed: int, share: float) -> bool:
    """Return whether a seed is one of those that are run twice."""
    return sub_seed(seed, "self-check") < share * _SUB_SEED_LIMIT


def try_in_worker(
    payload: tuple[Callable[[int, Purpose], SeedResult], int, Purpose], _budget: Budget
) -> SeedResult:
    """Try a seed, in a worker."""
    try_seed, seed, purpose = payload
    return try_seed(seed, purpose)


_Work: TypeAlias = tuple[int, Purpose]


class _Again(msgspec.Struct, frozen=True):
    """A seed to be run once more, and the worker of its first run."""

    seed: int
    worker: Worker[_Work]
    #: Seeds that the worker had done by then.
    done: int


def _ignore(_result: SeedResult) -> None:
    """Tell nobody of a result."""


class Sweep:
    """One sweep; used once."""

    def __init__(
        self,
        order: SweepOrder,
        stop: Stop,
        *,
        seed_patience_s: float = SEED_PATIENCE_S,
        open_child: Callable[[], FramedChild | None] = lambda: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Set up; tests give workers a process by ``open_child``, None: a fresh one.

        ``clock``: seconds, monotonic, for the time limit.
        """
        self.tally = SweepTally(keeps_hashes=order.options.trace_hash, first_seed=order.seeds.start)
        #: ``stop`` is set when the user does not want to wait for the end.
        self.order, self.stop = order, stop
        self._took: Callable[[SeedResult], None] = _ignore
        self._patience_s, self._open_child = seed_patience_s, open_child
        self._clock, self._began_s = clock, clock()
        self._fresh = iter(order.seeds)
        self._no_fresh = self._is_closing = False
        self._again: deque[_Again] = deque()
        self._to_keep: deque[int] = deque()
        self._kept = 0
        self._workers = Workers(self._make_worker)

    @property
    def is_cut_short(self) -> bool:
        """Return whether it ended before its last seed."""
        return self._is_closing or self.stop.is_set()

    def carry_out(self, took: Callable[[SeedResult], None] = _ignore) -> None:
        """Try all seeds, or as many as possible in the time limit and until ``stop`` is set.

        Every started process has ended when this returns or raises. ``took`` is called for each
        result, on the caller's thread.

        Raises:
            HarnessError: not even one worker process could be started.
        """
        self._took, self._began_s = took, self._clock()
        try:
            while not self.stop.is_set():
                self._workers.fill(max(1, min(self.order.options.jobs, len(self.order.seeds))))
                for worker in self._workers.all:
                    if worker.idle and (work := self._next_for(worker)) is not None:
                        worker.start(work, _FUNCTION, (self.order.try_seed, *work))
                if not self._is_under_way():
                    return
                for ended in self._workers.listen():
                    self._take(ended)
        finally:
            self._workers.close()

    def _is_under_way(self) -> bool:
        """Return whether a result is still awaited; after fail-fast only kept seeds are."""
        if self._is_closing:
            works = [worker.part for worker in self._workers.all if worker.part is not None]
            return bool(self._to_keep) or any(purpose == "keep" for _, purpose in works)
        return any(not worker.idle for worker in self._workers.all)

    def _next_for(self, worker: Worker[_Work]) -> _Work | None:
        if self._to_keep:
            return self._to_keep.popleft(), "keep"
        if self._is_closing:
            return None
        for place, again in enumerate(self._again):
            if again.worker is not worker or worker.done > again.done or self._no_fresh:
                del self._again[place]
                return again.seed, "again"
        if self._is_time_over():
            self.tally.is_out_of_time = True
        elif (seed := next(self._fresh, None)) is not None:
            return seed, "first"
        self._no_fresh = True
        return (self._again.popleft().seed, "again") if self._again else None

    def _is_time_over(self) -> bool:
        limit_s = self.order.options.time_limit_s
        return limit_s is not None and self._clock() - self._began_s >= limit_s

    def _take(self, ended: Ended[_Work]) -> None:
        outcome = ended.outcome
        if ended.part is None:
            # Another one takes the place of a worker that has died without a seed.
            if ended.worker.is_ready:
                return
            raise _cannot_start(outcome.failure or "it never began")
        seed, purpose = ended.part
        result: SeedResult = outcome.value
        if outcome.failure is not None:
            result = SeedResult(seed=seed, purpose=purpose, crash=outcome.failure)
        self.tally.take(result)
        if result.crash is not None:
            self._is_closing |= self.order.options.fail_fast or self.tally.crashed >= CRASHES_MAX
        elif result.purpose == "first" and not result.is_skipped:
            is_failure = bool(result.failed_by)
            self._is_closing |= is_failure and self.order.options.fail_fast
            if is_failure and self._kept < self.order.options.keep:
                # The kept run is compared with the first one too.
                self._kept += 1
                self._to_keep.append(seed)
                self.tally.await_second(result)
            elif is_checked(seed, self.order.options.check_share):
                self._again.append(_Again(seed, ended.worker, ended.worker.done))
                self.tally.await_second(result)
        self._took(result)

    def _make_worker(self) -> Worker[_Work]:
        try:
            return Worker(self._patience_s, _MEMORY_BUDGET_MIB, self._open_child())
        except OSError as error:
            raise _cannot_start(error.strerror or str(error)) from error


def _cannot_start(problem: str) -> HarnessError:
    next_step = (
        "Ask for fewer --jobs, or make room for processes on this machine; `splitbrain doctor` "
        "says what it lacks."
    )
    return HarnessError("start a worker process", sys.executable, problem, next_step)
