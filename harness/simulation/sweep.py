"""Tries a range of seeds in worker processes, and some of them twice.

A share of the seeds, drawn by the seed itself, is run again by another worker, or after other seeds
in the same process; what fails is run again to keep its run folder. Each second run must be the
first one bit for bit. What goes wrong in one seed becomes that seed's result and touches no other.
Must never take a seed that could not be run for one that did not fail. Source: design, section 9.
"""

import selectors
from collections import deque
from collections.abc import Callable
from typing import Any

import msgspec

from harness.simulation.sweep_child import SweepChild
from harness.simulation.sweep_tally import SweepTally
from harness.simulation.sweep_worker import Assignment
from harness.simulation.trial import Purpose, SeedResult
from harness.stop import Stop
from history.plan import sub_seed

#: How often workers are looked at when none of them says anything.
_POLL_INTERVAL_S = 0.1
#: A seed that takes so long never ends: its world spins without its clock going on.
SEED_PATIENCE_S = 600.0
#: A fresh interpreter that does not report in this time is taken for broken.
_START_PATIENCE_S = 120.0
#: Seeds that could not be run before the sweep gives up: the next ones could not either.
CRASHES_MAX = 10
_SUB_SEED_LIMIT = 2**63


class SweepOrder(msgspec.Struct, frozen=True, kw_only=True):
    """What a sweep is to do."""

    seeds: range
    #: ``module:function`` that tries a seed, as ``harness.simulation.trial.try_seed``.
    function: str
    #: What it is told beside the seed; pickles.
    trial: Any
    jobs: int = 1
    #: Share of the seeds that are run twice.
    check_share: float = 0.05
    #: End with the first seed that fails.
    fail_fast: bool = False
    #: Failures whose run folder is kept.
    keep_max: int = 100
    #: Remember every seed's trace hash.
    keeps_hashes: bool = False


def is_checked(seed: int, share: float) -> bool:
    """Whether a seed is one of those that are run twice."""
    return sub_seed(seed, "self-check") < share * _SUB_SEED_LIMIT


class _Again(msgspec.Struct, frozen=True):
    """A seed to be run once more, and where it ran first."""

    seed: int
    child: int
    #: Seeds that the child had done by then.
    done: int


class Sweep:
    """One sweep; used once."""

    def __init__(
        self,
        order: SweepOrder,
        stop: Stop,
        *,
        seed_patience_s: float = SEED_PATIENCE_S,
        open_child: Callable[[int, Assignment], SweepChild] = SweepChild,
    ) -> None:
        """``open_child`` starts a worker process; for tests."""
        self.tally = SweepTally(keeps_hashes=order.keeps_hashes, first_seed=order.seeds.start)
        #: What it is to do.
        self.order = order
        #: Set by whoever does not want to wait for the end.
        self.stop = stop
        self._told: Callable[[SeedResult], None] = lambda _result: None
        self._patience_s = seed_patience_s
        self._open_child = open_child
        self._fresh = iter(order.seeds)
        self._no_fresh = False
        self._is_closing = False
        self._again: deque[_Again] = deque()
        self._to_keep: deque[int] = deque()
        self._kept = 0
        self._children: list[SweepChild] = []
        self._born = 0
        self._selector = selectors.DefaultSelector()

    @property
    def is_cut_short(self) -> bool:
        """Whether it ended before its last seed."""
        return self._is_closing or self.stop.is_set()

    def carry_out(self, told: Callable[[SeedResult], None] = lambda _result: None) -> None:
        """Try all seeds, or as many as there can be until ``stop`` is set.

        Every started process has ended when this returns or raises.

        Args:
            told: called for each result, on the thread of the caller.

        Raises:
            HarnessError: not even one worker process could be started.
        """
        self._told = told
        try:
            for _ in range(max(1, min(self.order.jobs, len(self.order.seeds)))):
                self._open()
            while not self.stop.is_set():
                for child in self._children:
                    if child.is_idle and (work := self._next_for(child)) is not None:
                        child.start(*work)
                if not self._is_under_way():
                    return
                self._listen()
        finally:
            for child in list(self._children):
                self._discard(child)
            self._selector.close()

    def _is_under_way(self) -> bool:
        """Whether anything is still awaited; what others do after a failing fast is not."""
        if self._is_closing:
            return bool(self._to_keep) or any(c.purpose == "keep" for c in self._children)
        return any(not child.is_idle for child in self._children)

    def _next_for(self, child: SweepChild) -> tuple[int, Purpose] | None:
        if self._to_keep:
            return self._to_keep.popleft(), "keep"
        if self._is_closing:
            return None
        for place, again in enumerate(self._again):
            if again.child != child.number or child.done > again.done or self._no_fresh:
                del self._again[place]
                return again.seed, "again"
        seed = next(self._fresh, None)
        if seed is not None:
            return seed, "first"
        self._no_fresh = True
        return (self._again.popleft().seed, "again") if self._again else None

    def _listen(self) -> None:
        for key, _ in self._selector.select(_POLL_INTERVAL_S):
            child: SweepChild = key.data
            for result in child.results():
                self._take(child, result)
        for child in list(self._children):
            patience_s = self._patience_s if child.is_ready else _START_PATIENCE_S
            if child.is_gone or child.busy_s > patience_s:
                self._replace(child, patience_s)

    def _replace(self, child: SweepChild, patience_s: float) -> None:
        """A child that died or never ends takes its seed with it; another one goes on."""
        how = child.end() if child.is_gone else f"it did not end within {patience_s:g} s"
        self._discard(child)
        failed = child.failed(how)
        self._open()
        if failed is not None:
            self._take(child, failed)

    def _take(self, child: SweepChild, result: SeedResult) -> None:
        seed = result.seed
        self.tally.take(result)
        if result.crash is not None:
            self._is_closing |= self.order.fail_fast or self.tally.crashed >= CRASHES_MAX
        elif result.purpose == "first":
            is_failure = bool(result.failed_by)
            self._is_closing |= is_failure and self.order.fail_fast
            if is_failure and self._kept < self.order.keep_max:
                # It is compared with the first run too.
                self._kept += 1
                self._to_keep.append(seed)
                self.tally.await_second(result)
            elif is_checked(seed, self.order.check_share):
                self._again.append(_Again(seed, child.number, child.done))
                self.tally.await_second(result)
        self._told(result)

    def _open(self) -> None:
        self._born += 1
        assignment = Assignment(self.order.function, self.order.trial)
        child = self._open_child(self._born, assignment)
        self._children.append(child)
        self._selector.register(child.output, selectors.EVENT_READ, child)

    def _discard(self, child: SweepChild) -> None:
        self._selector.unregister(child.output)
        self._children.remove(child)
        child.close()
