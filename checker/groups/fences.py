"""Times by which a member was surely no longer what it had been; pure.

A number of the whole group, its generation, is over once anybody was told a higher one. A number of
a member's own, its epoch, is over for a log once another member was told that it owns the log in a
higher one: the coordinator gives a log away when its owner gave it up or was removed.
"""

from bisect import bisect_right
from collections.abc import Iterable
from itertools import accumulate
from typing import Final

from splitbrain.checker.findings import end_of
from splitbrain.checker.groups.readings import Consumed, Standing

#: Key of those who were told a generation, in place of a log.
_ALL: Final = None


class Fences:
    """Answers to members, by what they put an end to."""

    def __init__(self, consumed: Iterable[Consumed]) -> None:
        told: dict[str | None, list[Consumed]] = {}
        for each in consumed:
            for key in (_ALL,) if each.standing.is_generation else each.logs:
                told.setdefault(key, []).append(each)
        #: By log: numbers in order, and of each and those above the first told, and the first of
        #: them that was told to another member than that.
        self._by_key = {key: _suffixes(rows) for key, rows in told.items()}

    def end_of(self, standing: Standing, log: str) -> Consumed | None:
        """Return the first answer to end that put an end to a standing; None: none did."""
        numbers, firsts = self._by_key.get(_ALL if standing.is_generation else log, ((), ()))
        place = bisect_right(numbers, standing.number)
        if place == len(numbers):
            return None
        first, second = firsts[place]
        is_own = first.standing.member == standing.member and not standing.is_generation
        return second if is_own else first


_Pair = tuple[Consumed, Consumed | None]


def _suffixes(rows: list[Consumed]) -> tuple[list[int], list[_Pair]]:
    rows.sort(key=lambda each: each.standing.number)
    firsts = [*accumulate(((each, None) for each in reversed(rows)), _earlier)]
    return [each.standing.number for each in rows], firsts[::-1]


def _earlier(one: _Pair, other: _Pair) -> _Pair:
    """Return the first of all, and the first of another member."""
    found = sorted((each for each in (*one, *other) if each), key=lambda each: end_of(each[0]))
    rest = (each for each in found if each.standing.member != found[0].standing.member)
    return found[0], next(rest, None)
