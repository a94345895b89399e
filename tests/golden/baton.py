"""Virtual time for threads: one of them runs, the others wait for their turn, and nobody sleeps.

A thread that waits says until when, or for what. When all wait, the clock goes on to the next
moment at which something happens. Of several that may go on at one moment the one with the least
order does, so that a story runs the same every time, however busy the machine is.
"""

import heapq
import threading
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from types import TracebackType
from typing import Any, Self

import msgspec
from tenacity import RetryCallState, Retrying, retry_if_exception_type, wait_fixed

from splitbrain.contracts.fault import Awaited
from splitbrain.harness.console.stop import Stop
from splitbrain.harness.run.state_watch import Await, StateWatch

US_PER_MS = 1000
_US_PER_S = 1_000_000
#: A story that lasts longer has hung.
_LIMIT_US = 600 * _US_PER_S
#: Of the thread that begins a story: before all faults.
_FIRST = -1


class HungError(AssertionError):
    """A story in which everybody waits for what never comes."""


class _Strand(msgspec.Struct, eq=False):
    """One thread of a story."""

    order: int
    turn: threading.Semaphore
    until: int | None = None
    is_so: Callable[[], bool] | None = None

    def may_go_on(self, now: int) -> bool:
        return (self.until is not None and self.until <= now) or (
            self.is_so is not None and self.is_so()
        )


class Baton:
    """The clock of one story, and whose turn it is."""

    def __init__(self) -> None:
        #: Microseconds since the run's start.
        self.now = 0
        first = _Strand(_FIRST, threading.Semaphore(0))
        self._first = self._current = first
        self._strands = [first]
        self._agenda: list[tuple[int, int, Callable[[], object]]] = []
        self._numbered = 0
        self._broken: BaseException | None = None

    def at(self, time_us: int, happening: Callable[[], object]) -> None:
        """Have something happen at a moment, before any thread goes on at it."""
        self._numbered += 1
        heapq.heappush(self._agenda, (time_us, self._numbered, happening))

    def sleep(self, duration_us: int) -> None:
        """Let time pass for the thread that runs."""
        self.wait(self.now + duration_us)

    def wait(self, until: int | None, is_so: Callable[[], bool] | None = None) -> None:
        """Wait until a moment or until something is so, whichever comes first."""
        me = self._current
        me.until, me.is_so = until, is_so
        if me.may_go_on(self.now):
            return
        following = self._following()
        if following is not me:
            self._current = following
            following.turn.release()
            me.turn.acquire()
        if self._broken is not None:
            raise self._broken

    def begin(self, order: int, work: Callable[[], object]) -> None:
        """Start a thread; its turn comes when the thread that runs waits.

        Args:
            order: which of several that may go on at one moment does; the least.
            work: raises nothing.
        """
        strand = _Strand(order, threading.Semaphore(0), until=self.now)
        self._strands.append(strand)

        def run() -> None:
            strand.turn.acquire()
            work()
            self._strands.remove(strand)
            self._current = self._following()
            self._current.turn.release()

        threading.Thread(target=run, name=f"strand {order}", daemon=True).start()

    def _following(self) -> _Strand:
        """The thread whose turn is next, once the clock has gone on as far as it must."""
        try:
            while True:
                able = [one for one in self._strands if one.may_go_on(self.now)]
                if able:
                    return min(able, key=lambda one: one.order)
                self._go_on()
        # Whatever it is, it is the story's failure.
        except BaseException as error:  # noqa: BLE001
            self._broken = error
            return self._first

    def _go_on(self) -> None:
        moments = [one.until for one in self._strands if one.until is not None]
        if self._agenda:
            moments.append(self._agenda[0][0])
        self.now = max(self.now, min(moments, default=_LIMIT_US))
        if self.now >= _LIMIT_US:
            raise HungError(f"after {_LIMIT_US // _US_PER_S} s everybody still waits")
        while self._agenda and self._agenda[0][0] <= self.now:
            heapq.heappop(self._agenda)[2]()


class BatonLock:
    """A lock that is waited for in virtual time."""

    def __init__(self, baton: Baton) -> None:
        self._baton = baton
        self._is_held = False

    def __enter__(self) -> None:
        self._baton.wait(None, lambda: not self._is_held)
        self._is_held = True

    def __exit__(self, *_: object) -> None:
        self._is_held = False


class _Outcome:
    """The future of a thread of a ``FaultPool``."""

    def __init__(self, baton: Baton) -> None:
        self._baton = baton
        self._error: BaseException | None = None
        self._is_done = False

    def end(self, error: BaseException | None) -> None:
        self._error, self._is_done = error, True

    def done(self) -> bool:
        return self._is_done

    def result(self) -> None:
        self._baton.wait(None, self.done)
        if self._error is not None:
            raise self._error


class FaultPool:
    """Stands in for the pool of the nemesis: a thread for each fault, by the fault's index."""

    def __init__(self, baton: Baton, workers: int) -> None:
        """``workers``: threads at once; who comes later waits for one of them to end."""
        self._baton = baton
        self._free = workers
        self._waiting: deque[tuple[int, Callable[[], object]]] = deque()
        self._outcomes: list[_Outcome] = []

    def submit(self, function: Callable[..., object], fault: Any, *args: object) -> _Outcome:
        outcome = _Outcome(self._baton)
        self._outcomes.append(outcome)

        def work() -> None:
            error: BaseException | None = None
            try:
                function(fault, *args)
            # As a future does.
            except BaseException as raised:  # noqa: BLE001
                error = raised
            outcome.end(error)
            self._free += 1
            self._begin()

        self._waiting.append((fault.index, work))
        self._begin()
        return outcome

    def _begin(self) -> None:
        while self._free and self._waiting:
            self._free -= 1
            self._baton.begin(*self._waiting.popleft())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._baton.wait(None, lambda: all(one.done() for one in self._outcomes))


class ProbePool:
    """Stands in for the pool of the evidence's probes: one look, which takes its longest probe."""

    def __init__(self, begin: Callable[[], object], end: Callable[[], object]) -> None:
        """``begin`` and ``end`` are called around the probes of a look."""
        self._begin, self._end = begin, end

    def map(self, look: Callable[[Any], Any], items: Iterable[Any]) -> Sequence[Any]:
        self._begin()
        seen = [look(item) for item in items]
        self._end()
        return seen

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass


class BatonStop(Stop):
    """The one reason to end a run, waited for in virtual time."""

    def __init__(self, baton: Baton) -> None:
        super().__init__()
        self._baton = baton

    def wait(self, timeout_s: float) -> bool:
        self._baton.wait(self._baton.now + in_us(timeout_s), self.is_set)
        return self.is_set()

    def retrying(self, patience_s: float, interval_s: float, *errors: type[Exception]) -> Retrying:
        end = self._baton.now + in_us(patience_s)

        def is_over(_state: RetryCallState) -> bool:
            return self._baton.now >= end or self.is_set()

        return Retrying(
            stop=is_over,
            wait=wait_fixed(interval_s),
            sleep=self._sleep,
            retry=retry_if_exception_type(errors),
            reraise=True,
        )

    def _sleep(self, seconds: float) -> None:
        self.wait(seconds)


class _Happened:
    """An event that is waited for in virtual time."""

    def __init__(self, baton: Baton) -> None:
        self._baton = baton
        self._is_set = False

    def set(self) -> None:
        self._is_set = True

    def wait(self, timeout_s: float) -> bool:
        self._baton.wait(self._baton.now + in_us(timeout_s), lambda: self._is_set)
        return self._is_set


class BatonWatch(StateWatch):
    """The nodes' state events, waited for in virtual time."""

    def __init__(self, baton: Baton) -> None:
        super().__init__()
        self._baton = baton

    def begin(self, when: Awaited) -> Await:
        waiting = super().begin(when)
        waiting.happened = _Happened(self._baton)  # type: ignore[assignment]
        return waiting


def in_us(seconds: float) -> int:
    """A duration as whole microseconds, none if it is over."""
    return max(0, round(seconds * _US_PER_S))
