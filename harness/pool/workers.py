"""Runs parts of a judgement, and seeds of a sweep, in worker processes that can be killed.

A checker's part may take exponential time or memory, or crash; the others must not pay for it. So
each part runs in a process of its own pool slot, with a budget that it is asked to keep and a
parent that kills it when it does not. A part that was killed or crashed has a failure, a sentence;
it must never look like a part that found nothing. Source: design, section 3; issue 3, item 8.
"""

import selectors
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

import msgspec

from splitbrain.harness.pool.forked_process import can_fork
from splitbrain.harness.pool.framed_child import FramedChild
from splitbrain.harness.pool.limits import Limits
from splitbrain.harness.pool.worker_process import work
from splitbrain.history.process_budget import PartClock, resident_mib

_MODULE = f"{__package__}.worker_process"
_GONE = "crashed before it began"
#: How often running parts are looked at.
_POLL_INTERVAL_S = 0.05
#: Processor time that a part gets beyond its budget to notice by itself that it is used up.
_GRACE_S = 2.0
#: A fresh interpreter that does not report in this time is taken for broken; generous, since the
#: machine may be busy with the run itself.
_START_TIMEOUT_S = 120.0
#: A worker that holds more than this share of the memory budget between parts is replaced.
_REUSE_SHARE_MAX = 0.5
#: By which whoever gives parts out knows them.
_Name = TypeVar("_Name")


class Part(msgspec.Struct, frozen=True):
    """One piece of work."""

    #: ``module:function``, called as ``function(payload, budget)`` in the worker.
    function: str
    #: Anything that pickles.
    payload: Any
    #: How much work it is, in any unit; larger parts start first.
    weight: int = 0


class PartOutcome(msgspec.Struct, frozen=True):
    """Outcome of a part: a value, or the reason why there is none."""

    value: Any
    #: Why there is no value, as a clause; None for success.
    failure: str | None
    seconds: float
    memory_mib_max: float


class Worker(Generic[_Name]):
    """One child process and the part that it works on.

    The time budget is that of each part, the memory budget that of the process. ``child`` has begun
    already; None: a fresh one. Raises OSError if no process can be started.
    """

    def __init__(
        self, time_budget_s: float, memory_budget_mib: int, child: FramedChild | None = None
    ) -> None:
        self._time_budget_s = time_budget_s
        self._memory_budget_mib = memory_budget_mib
        arguments = (str(time_budget_s), str(memory_budget_mib))
        self.child = FramedChild(_MODULE, arguments) if child is None else child
        #: Whether it has begun to wait for parts.
        self.is_ready = False
        #: Parts that it has done.
        self.done = 0
        #: The caller's name of the part at work; None while idle or starting.
        self.part: _Name | None = None
        self._clock = PartClock(self.child.process_id)
        self._memory_mib_max = 0.0
        #: Why the part could not be sent.
        self._unsendable: str | None = None

    @property
    def idle(self) -> bool:
        """Whether it has reported ready and has nothing to do."""
        return self.is_ready and self.part is None

    def start(self, name: _Name, function: str, payload: Any) -> None:
        """Send it a part, which ``overrun`` ends if it cannot be sent."""
        self.part, self._memory_mib_max = name, 0.0
        self._clock = PartClock(self.child.process_id)
        try:
            self.child.send((function, payload))
        except OSError:
            self._unsendable = _GONE
        # A payload may fail to pickle in as many ways as there are payloads.
        except Exception as error:  # noqa: BLE001
            self._unsendable = f"cannot be sent to a worker: {error}"

    def send(self) -> None:
        """Write as much of the part as the worker takes now."""
        try:
            self.child.flush()
        except OSError:
            self._unsendable = _GONE

    def receive(self) -> PartOutcome | None:
        """Take what the child wrote; an outcome if that completes the part's answer."""
        self.child.receive()
        if self.child.is_gone:
            return self._failed(f"crashed: its worker {self.child.end()}")
        while True:
            try:
                message = next(self.child.arrived(), None)
                if message is None:
                    return None
                state, value = message
            # The output of a broken child need not be a frame of ours.
            except Exception as error:  # noqa: BLE001
                # It takes no other part.
                self.child.kill()
                self.child.end()
                return self._failed(f"crashed: its answer cannot be read: {error}")
            if state == "ready":
                self.is_ready = True
                self._clock = PartClock(self.child.process_id)
            elif state == "done":
                self.done += 1
                return self._outcome(value, None)
            else:
                return self._failed(value)

    def overrun(self) -> PartOutcome | None:
        """An outcome if the part cannot be sent or has left its budget; then it is of no use."""
        if self._unsendable is not None:
            return self._failed(self._unsendable)
        if not self.is_ready:
            if self._clock.wall_s > _START_TIMEOUT_S:
                return self._failed(f"its worker did not start within {_START_TIMEOUT_S:g} s")
            return None
        if self.part is None:
            return None
        self._memory_mib_max = max(self._memory_mib_max, self._held_mib)
        if self._clock.is_used_up(self._time_budget_s + _GRACE_S):
            return self._failed(f"time budget of {self._time_budget_s:g} s used up, stopped")
        if self._memory_mib_max > self._memory_budget_mib:
            return self._failed(f"memory budget of {self._memory_budget_mib} MiB used up, stopped")
        return None

    @property
    def reusable(self) -> bool:
        """Whether it is alive and holds little enough memory for another part."""
        return self.child.is_alive and self._held_mib < self._memory_budget_mib * _REUSE_SHARE_MAX

    @property
    def _held_mib(self) -> float:
        return resident_mib(self.child.process_id)

    def _failed(self, reason: str) -> PartOutcome:
        return self._outcome(None, reason)

    def _outcome(self, value: Any, failure: str | None) -> PartOutcome:
        return PartOutcome(
            value=value,
            failure=failure,
            seconds=self._clock.wall_s,
            memory_mib_max=max(self._memory_mib_max, self._held_mib),
        )


class Ended(NamedTuple, Generic[_Name]):
    """A part that has ended, or a worker that has without one."""

    worker: Worker[_Name]
    #: The caller's name of the part; None: the worker was idle, or starting.
    part: _Name | None
    outcome: PartOutcome


class Workers(Generic[_Name]):
    """Some workers, and who of them has something to say; close them after use."""

    def __init__(self, make_worker: Callable[[], Worker[_Name]]) -> None:
        self._make_worker = make_worker
        #: Those that live.
        self.all: list[Worker[_Name]] = []
        self._selector = selectors.DefaultSelector()

    def fill(self, count: int) -> None:
        """Start workers until there are so many."""
        while len(self.all) < count:
            worker = self._make_worker()
            self.all.append(worker)
            self._selector.register(worker.child.output, selectors.EVENT_READ, worker)

    def listen(self) -> Iterator[Ended[_Name]]:
        """Wait a moment for parts to end; workers that can take no other one are discarded."""
        self._watch_inputs()
        for key, _ in self._selector.select(_POLL_INTERVAL_S):
            worker: Worker[_Name] = key.data
            if worker not in self.all:
                continue
            if key.fileobj is worker.child.input:
                worker.send()
            elif (outcome := worker.receive()) is not None:
                yield self._settled(worker, outcome, discard=not worker.reusable)
        for worker in list(self.all):
            if (outcome := worker.overrun()) is not None:
                yield self._settled(worker, outcome, discard=True)

    def close(self) -> None:
        """End all of them."""
        for worker in list(self.all):
            self._discard(worker)
        self._selector.close()

    def _watch_inputs(self) -> None:
        """Wake up as soon as a worker takes more of a part that is still being sent."""
        for worker in self.all:
            child = worker.child
            is_watched = child.input in self._selector.get_map()
            if child.is_sending and not is_watched:
                self._selector.register(child.input, selectors.EVENT_WRITE, worker)
            elif is_watched and not child.is_sending:
                self._selector.unregister(child.input)

    def _settled(
        self, worker: Worker[_Name], outcome: PartOutcome, *, discard: bool
    ) -> Ended[_Name]:
        ended = Ended(worker, worker.part, outcome)
        worker.part = None
        if discard:
            self._discard(worker)
        return ended

    def _discard(self, worker: Worker[_Name]) -> None:
        for stream in (worker.child.output, worker.child.input):
            if stream in self._selector.get_map():
                self._selector.unregister(stream)
        self.all.remove(worker)
        worker.child.close()


def _run(
    parts: Sequence[Part],
    limits: Limits,
    workers: Workers[int],
    give_up: Callable[[], str | None],
    outcomes: dict[int, PartOutcome],
) -> str | None:
    """Fill ``outcomes`` by the parts' positions; return why the rest was given up, if so."""
    jobs, total, done = max(1, limits.jobs), sum(part.weight for part in parts), 0
    waiting = deque(sorted(range(len(parts)), key=lambda place: (-parts[place].weight, place)))
    while len(outcomes) < len(parts):
        if (reason := give_up()) is not None:
            return reason
        workers.fill(min(jobs, len(parts) - len(outcomes)))
        for worker in workers.all:
            if worker.idle and waiting:
                position = waiting.popleft()
                worker.start(position, parts[position].function, parts[position].payload)
        for _, position, outcome in workers.listen():
            # A worker that died or stuck before it had a part takes the next one with it; otherwise
            # a machine on which no worker starts would be asked for ever.
            place = waiting.popleft() if position is None and waiting else position
            if place is not None:
                outcomes[place] = outcome
                done += parts[place].weight
        if limits.took is not None:
            limits.took(done, total)
    return None


def _never() -> str | None:
    return None


def warm_worker(limits: Limits, first: Callable[[], None]) -> FramedChild | None:
    """A worker that need not load what this process has loaded; None where there can be none.

    Its memory includes what this process holds now. It does ``first`` before it has any part.
    """
    if not can_fork():
        return None

    def copied() -> None:
        first()
        work(limits.time_budget_s, limits.memory_budget_mib)

    try:
        return FramedChild(_MODULE, copied=copied)
    except OSError:
        # Whether workers can be had at all is told where the first part needs one.
        return None


def run_parts(
    parts: Sequence[Part],
    limits: Limits,
    *,
    give_up: Callable[[], str | None] = _never,
    warm: list[FramedChild] | None = None,
) -> list[PartOutcome]:
    """Run all parts, at most ``limits.jobs`` at a time, the heaviest first.

    ``warm`` workers (``warm_worker``) are used up first and taken out of the list.

    Returns one outcome per part, in the order of ``parts``. Every started process has ended when
    this returns or raises. Where workers cannot be had at all, or ``give_up`` gives a reason, what
    is still open fails with that reason and what is done is kept.
    """
    waiting = [] if warm is None else warm

    def make_worker() -> Worker[int]:
        child = waiting.pop() if waiting else None
        return Worker(limits.time_budget_s, limits.memory_budget_mib, child)

    outcomes: dict[int, PartOutcome] = {}
    workers = Workers(make_worker)
    try:
        reason = _run(parts, limits, workers, give_up, outcomes)
    # No process, no memory, no file descriptor, or a defect here: the verdict must survive it.
    except Exception as error:  # noqa: BLE001
        reason = f"could not be run: {type(error).__name__}: {error}"
    finally:
        workers.close()
    given_up = PartOutcome(None, reason, 0.0, 0.0)
    return [outcomes.get(position, given_up) for position in range(len(parts))]
