"""How far something is that takes a while: n of m, a rate, and the time that is left."""

import threading
import time
from collections.abc import Callable
from typing import Final

#: From here on a time is told in minutes.
_IN_MINUTES_S: Final = 120.0
_MIB: Final = 1 << 20
#: A rate over less time than this says nothing.
_ELAPSED_S_MIN: Final = 1.0

#: Told how many are done, of all.
Took = Callable[[int, int], None]


def time_words(seconds: float) -> str:
    """Return a time as a person waits for it: ``12 s``, ``7 min``, ``2 h 5 min``."""
    if seconds < _IN_MINUTES_S:
        return f"{seconds:,.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 120 else f"{minutes // 60} h {minutes % 60} min"


def pace_words(
    done: int,
    total: int,
    noun: str,
    elapsed_s: float,
    *,
    of_this_time: int | None = None,
    plural: str | None = None,
) -> str:
    """Return ``120 of 300 seeds, 24 a second, 8 s left``; nothing of the time before a first one.

    ``of_this_time`` are those of ``done`` that took the elapsed seconds, by default all; the
    ``plural`` of the noun has an s where none is given.
    """
    made = done if of_this_time is None else of_this_time
    words = f"{done:,} of {total:,} {noun if total == 1 else plural or f'{noun}s'}"
    if made <= 0 or elapsed_s < _ELAPSED_S_MIN:
        return words
    rate = made / elapsed_s
    often = f"{rate:,.1f} a second" if rate >= 1 else f"{60 * rate:,.1f} a minute"
    left = f", {time_words((total - done) / rate)} left" if done < total else ""
    return f"{words}, {often}{left}"


class Pace:
    """Pace of work in rounds, each of which begins anew; may be told and read by several threads.

    Args:
        noun: of the things that are counted, in the singular.
        clock: seconds, monotonic.
        plural: of the noun, where that is not with an s.
    """

    def __init__(
        self,
        noun: str,
        clock: Callable[[], float] = time.monotonic,
        *,
        plural: str | None = None,
    ) -> None:
        self._noun, self._plural, self._clock = noun, plural, clock
        self._lock = threading.Lock()
        self._began_s = clock()
        self._done = self._total = 0

    def took(self, done: int, total: int) -> None:
        """Note how many are done, of all of this round."""
        with self._lock:
            if total != self._total or done < self._done:
                self._began_s = self._clock()
            self._done, self._total = done, total

    @property
    def words(self) -> str | None:
        """Return how far it is; None before anything is known, and once all is done."""
        with self._lock:
            if not self._done < self._total:
                return None
            elapsed_s = self._clock() - self._began_s
            return pace_words(self._done, self._total, self._noun, elapsed_s, plural=self._plural)

    def took_bytes(self, done: int, total: int) -> None:
        """Note the same in bytes where mebibytes are counted."""
        self.took(done // _MIB, total // _MIB)
