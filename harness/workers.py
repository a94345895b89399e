"""Runs parts of a judgement in worker processes that can be killed.

A checker's part may take exponential time or memory, or crash; the others must not pay for it. So
each part runs in a process of its own pool slot, with a budget that it is asked to keep and a
parent that kills it when it does not. A part that was killed or crashed has a failure, a sentence;
it must never look like a part that found nothing. Source: design, section 3; issue 3, item 8.
"""

import selectors
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from harness.forked_process import can_fork
from harness.framed_child import FramedChild
from harness.worker_process import work
from history.process_budget import resident_mib

_MODULE = "harness.worker_process"
_GONE = "crashed before it began"
#: How often running parts are looked at.
_POLL_INTERVAL_S = 0.05
#: What a part gets beyond its time budget to notice by itself that it is used up.
_GRACE_S = 2.0
#: A fresh interpreter that does not report in this time is taken for broken; generous, since the
#: machine may be busy with the run itself.
_START_TIMEOUT_S = 120.0
#: A worker that holds more than this share of the memory budget between parts is replaced.
_REUSE_SHARE_MAX = 0.5


class Part(msgspec.Struct, frozen=True):
    """One piece of work."""

    #: What it is, for reasons: ``linearizability of key r3``.
    name: str
    #: ``module:function``, called as ``function(payload, budget)`` in the worker.
    function: str
    #: Anything that pickles.
    payload: Any
    #: How much work it is, in any unit; larger parts start first.
    weight: int = 0


class PartOutcome(msgspec.Struct, frozen=True):
    """What came of a part: a value, or the reason why there is none."""

    value: Any
    #: Why there is no value, as a clause; None for success.
    failure: str | None
    seconds: float
    memory_mib_max: float


class _Worker:
    """One child process and the part that it works on."""

    def __init__(
        self, time_budget_s: float, memory_budget_mib: int, warm: FramedChild | None
    ) -> None:
        self._time_budget_s = time_budget_s
        self._memory_budget_mib = memory_budget_mib
        arguments = (str(time_budget_s), str(memory_budget_mib))
        self._child = FramedChild(_MODULE, arguments) if warm is None else warm
        self.output = self._child.output
        self.input = self._child.input
        self._ready = False
        self._since = time.monotonic()
        self._memory_mib_max = 0.0
        #: Position of the part at work in the caller's list; None while idle or starting.
        self.part: int | None = None

    @property
    def idle(self) -> bool:
        """Whether it has reported ready and has nothing to do."""
        return self._ready and self.part is None

    def start(self, position: int, part: Part) -> PartOutcome | None:
        """Send it a part; an outcome comes back at once if the part cannot be sent."""
        self.part, self._since, self._memory_mib_max = position, time.monotonic(), 0.0
        try:
            self._child.send((part.function, part.payload))
        except OSError:
            return self._failed(_GONE)
        # A payload may fail to pickle in as many ways as there are payloads.
        except Exception as error:  # noqa: BLE001
            return self._failed(f"cannot be sent to a worker: {error}")
        return None

    def send(self) -> PartOutcome | None:
        """Write as much of the part as the worker takes now; an outcome if it is gone."""
        try:
            self._child.flush()
        except OSError:
            return self._failed(_GONE)
        return None

    @property
    def sending(self) -> bool:
        """Whether part of the part is still to be written."""
        return self._child.is_sending

    def receive(self) -> PartOutcome | None:
        """Take what the child wrote; an outcome if that completes the part's answer."""
        self._child.receive()
        if self._child.is_gone:
            return self._failed(f"crashed: its worker {self._child.end()}")
        while True:
            try:
                message = next(self._child.arrived(), None)
                if message is None:
                    return None
                state, value = message
            # What a broken child writes need not be a frame of ours.
            except Exception as error:  # noqa: BLE001
                self._child.kill()
                return self._failed(f"crashed: its answer cannot be read: {error}")
            if state == "ready":
                self._ready, self._since = True, time.monotonic()
            elif state == "done":
                return self._outcome(value, None)
            else:
                return self._failed(value)

    def overrun(self) -> PartOutcome | None:
        """An outcome if the part has left its budget; the caller then discards the worker."""
        elapsed = time.monotonic() - self._since
        if not self._ready:
            if elapsed > _START_TIMEOUT_S:
                return self._failed(f"its worker did not start within {_START_TIMEOUT_S:g} s")
            return None
        if self.part is None:
            return None
        self._memory_mib_max = max(self._memory_mib_max, self._held_mib)
        if elapsed > self._time_budget_s + _GRACE_S:
            return self._failed(f"time budget of {self._time_budget_s:g} s used up, stopped")
        if self._memory_mib_max > self._memory_budget_mib:
            return self._failed(f"memory budget of {self._memory_budget_mib} MiB used up, stopped")
        return None

    @property
    def reusable(self) -> bool:
        """Whether it is alive and holds little enough memory for another part."""
        return self._child.is_alive and self._held_mib < self._memory_budget_mib * _REUSE_SHARE_MAX

    def close(self) -> None:
        """End the process whatever it does, and wait for its end."""
        self._child.close()

    @property
    def _held_mib(self) -> float:
        return resident_mib(self._child.process_id)

    def _failed(self, reason: str) -> PartOutcome:
        return self._outcome(None, reason)

    def _outcome(self, value: Any, failure: str | None) -> PartOutcome:
        return PartOutcome(
            value=value,
            failure=failure,
            seconds=time.monotonic() - self._since,
            memory_mib_max=max(self._memory_mib_max, self._held_mib),
        )


class _Pool:
    """Slots for workers, and the outcomes so far."""

    def __init__(
        self,
        parts: Sequence[Part],
        make_worker: Callable[[], _Worker],
        give_up: Callable[[], str | None],
    ) -> None:
        self._give_up = give_up
        self._parts = parts
        self._make_worker = make_worker
        order = sorted(range(len(parts)), key=lambda position: (-parts[position].weight, position))
        self._waiting = deque(order)
        self._workers: list[_Worker] = []
        self._selector = selectors.DefaultSelector()
        self.outcomes: dict[int, PartOutcome] = {}

    def abandon(self, reason: str) -> None:
        """Give every part that is still open this failure."""
        for position in range(len(self._parts)):
            self.outcomes.setdefault(position, PartOutcome(None, reason, 0.0, 0.0))

    def run(self, jobs: int) -> None:
        try:
            while len(self.outcomes) < len(self._parts):
                if (reason := self._give_up()) is not None:
                    self.abandon(reason)
                    return
                open_parts = len(self._parts) - len(self.outcomes)
                while len(self._workers) < min(jobs, open_parts):
                    self._open()
                self._feed()
                self._watch_inputs()
                for key, _ in self._selector.select(_POLL_INTERVAL_S):
                    if key.fileobj is key.data.input:
                        self._settle(key.data, key.data.send(), discard=True)
                    else:
                        self._settle(key.data, key.data.receive(), discard=False)
                for worker in list(self._workers):
                    self._settle(worker, worker.overrun(), discard=True)
        finally:
            for worker in list(self._workers):
                self._discard(worker)
            self._selector.close()

    def _watch_inputs(self) -> None:
        """Wake up as soon as a worker takes more of a part that is still being sent."""
        for worker in self._workers:
            watched = worker.input in self._selector.get_map()
            if worker.sending and not watched:
                self._selector.register(worker.input, selectors.EVENT_WRITE, worker)
            elif watched and not worker.sending:
                self._selector.unregister(worker.input)

    def _feed(self) -> None:
        for worker in list(self._workers):
            if worker.idle and self._waiting:
                position = self._waiting.popleft()
                failed = worker.start(position, self._parts[position])
                self._settle(worker, failed, discard=True)

    def _settle(self, worker: _Worker, outcome: PartOutcome | None, *, discard: bool) -> None:
        if outcome is None or worker not in self._workers:
            return
        # A worker that died or stuck before it had a part takes the next one with it; otherwise a
        # machine on which no worker starts would be asked for ever.
        position = worker.part
        if position is None and self._waiting:
            position = self._waiting.popleft()
        if position is not None:
            self.outcomes[position] = outcome
        worker.part = None
        if discard or not worker.reusable:
            self._discard(worker)

    def _open(self) -> None:
        worker = self._make_worker()
        self._workers.append(worker)
        self._selector.register(worker.output, selectors.EVENT_READ, worker)

    def _discard(self, worker: _Worker) -> None:
        for stream in (worker.output, worker.input):
            if stream in self._selector.get_map():
                self._selector.unregister(stream)
        self._workers.remove(worker)
        worker.close()


def _never() -> str | None:
    return None


def warm_worker(
    time_budget_s: float, memory_budget_mib: int, first: Callable[[], None]
) -> FramedChild | None:
    """A worker that need not load what this process has loaded; None where there can be none.

    Args:
        time_budget_s: as in ``run_parts``.
        memory_budget_mib: as in ``run_parts``; what this process holds now is part of it.
        first: what it does before anything else, while it has no part yet.
    """
    if not can_fork():
        return None

    def copied() -> None:
        first()
        work(time_budget_s, memory_budget_mib)

    try:
        return FramedChild(_MODULE, copied=copied)
    except OSError:
        # Whether workers can be had at all is told where the first part needs one.
        return None


def run_parts(
    parts: Sequence[Part],
    *,
    jobs: int,
    time_budget_s: float,
    memory_budget_mib: int,
    give_up: Callable[[], str | None] = _never,
    warm: list[FramedChild] | None = None,
) -> list[PartOutcome]:
    """Run all parts, at most ``jobs`` at a time, the heaviest first.

    ``warm`` workers (``warm_worker``) are used up first and taken out of the list.

    Returns one outcome per part, in the order of ``parts``. Every started process has ended when
    this returns or raises. Where workers cannot be had at all, or ``give_up`` gives a reason, what
    is still open fails with that reason and what is done is kept.
    """
    waiting = [] if warm is None else warm

    def make_worker() -> _Worker:
        return _Worker(time_budget_s, memory_budget_mib, waiting.pop() if waiting else None)

    pool = _Pool(parts, make_worker, give_up)
    try:
        pool.run(max(1, jobs))
    # No process, no memory, no file descriptor, or a defect here: the verdict must survive it.
    except Exception as error:  # noqa: BLE001
        pool.abandon(f"could not be run: {type(error).__name__}: {error}")
    return [pool.outcomes[position] for position in range(len(parts))]
