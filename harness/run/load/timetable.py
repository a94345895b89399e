"""The timetable of a load: when each worker slot's next operation is due. Sans-I/O.

Operation n of slot w is due at ``(n * slots + w) / rate`` seconds, so that all slots work on the
same keys at one time. A slot that lost time to a dead node catches up at a bounded pace, so that
quick refusals never spin. A driver (an event loop's task, or a simulated world) asks when, waits
until then, and says when it began. All times are whole microseconds since the load's start, so that
a simulated world is exact.
"""

import math
from collections.abc import Collection
from typing import Final

#: A slot behind its timetable runs at most this many times as fast as its share of the rate.
CATCH_UP_FACTOR: Final = 3
#: Operations per 1,000 seconds that stand for "as many as there can be": each is due at once.
_ENDLESS_MILLI: Final = 1 << 62
#: How soon after an operation the next one follows where progress is demanded, at the least.
_DEMANDED_EVERY_US: Final = 20_000
_US_PER_KILOSECOND: Final = 1_000_000_000


class Timetable:
    """The pace of all slots together.

    Args:
        slots: worker slots of the whole load, wherever they are carried.
        rate: operations per second over all slots; infinite: as many as there can be.
        limit: operations after which a slot ends; None: it goes on.
        kept: ``(slot, n)`` of those that are performed, or all; one left out moves no other.
    """

    def __init__(
        self,
        slots: int,
        rate: float,
        limit: int | None = None,
        kept: Collection[tuple[int, int]] | None = None,
    ) -> None:
        self._slots = slots
        # The one float is turned into an integer at once.
        self._rate_milli = max(1, int(rate * 1000)) if math.isfinite(rate) else _ENDLESS_MILLI
        #: Microseconds between two operations of a slot that keeps to its timetable.
        self.period_us = slots * _US_PER_KILOSECOND // self._rate_milli
        #: The least between two of one that does not.
        self.spacing_us = slots * _US_PER_KILOSECOND // (self._rate_milli * CATCH_UP_FACTOR)
        self._limit = limit
        self._kept = None if kept is None else frozenset(kept)
        self._kept_end = 0 if not kept else 1 + max(n for _, n in kept)

    def due_us(self, slot: int, n: int) -> int:
        """Moment at which an operation is due."""
        return (n * self._slots + slot) * _US_PER_KILOSECOND // self._rate_milli

    def passed(self, elapsed_us: int) -> int:
        """How many operations of a slot were due in this time."""
        return elapsed_us * self._rate_milli // (_US_PER_KILOSECOND * self._slots)

    def next_of(self, slot: int, n: int) -> int | None:
        """The first operation of a slot from ``n`` on that is performed; None: there is none."""
        if self._kept is not None:
            while n < self._kept_end and (slot, n) not in self._kept:
                n += 1
            if n >= self._kept_end:
                return None
        return None if self._limit is not None and n >= self._limit else n


class SlotTimes:
    """Place of one slot in the load's timetable; it begins each operation ``offset_us`` later."""

    __slots__ = ("_is_demanded", "_last_us", "_n", "_offset_us", "_slot", "_timetable")

    def __init__(self, timetable: Timetable, slot: int, offset_us: int = 0) -> None:
        self._timetable, self._slot, self._offset_us = timetable, slot, offset_us
        self._n = 0
        #: When it last began an operation.
        self._last_us = -timetable.spacing_us
        self._is_demanded = False

    def due_us(self, now_us: int) -> int | None:
        """Moment of the slot's next operation, maybe in the past; None: the slot has ended."""
        if self._is_demanded:
            # At a pace of its own: of some kinds of operations only one in many is.
            return max(now_us, self._last_us + _DEMANDED_EVERY_US)
        table = self._timetable
        n = table.next_of(self._slot, self._n)
        if n is None:
            return None
        self._n = n
        due_us = self._offset_us + table.due_us(self._slot, n)
        return max(due_us, self._last_us + table.spacing_us)

    def begin(self, now_us: int) -> int:
        """Begin the operation that was due; its number."""
        self._last_us = now_us
        self._n += 1
        return self._n - 1

    def demand(self, now_us: int, *, is_idle: bool) -> None:
        """From now on the slot has operations without end, whatever is kept.

        An idle one, with none under way or due, takes the one of now.
        """
        self._is_demanded = True
        if is_idle:
            elapsed_us = max(0, now_us - self._offset_us)
            self._n = max(self._n, self._timetable.passed(elapsed_us))
