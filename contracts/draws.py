"""Numbers that depend on (seed, slot, n), or on a fault's integer, without a stream in between.

An operation can be computed from its place, whatever was issued before it, so that a slot that
lost time to a dead node still issues the same operations as in any other run. A fault's integer
settles which nodes it hits besides its target's, and how; each use has numbers of its own, so that
another draw for one leaves the other as it was.
"""

import hashlib
from collections.abc import Sequence
from typing import Final, TypeVar

_Item = TypeVar("_Item")
_WORD_BYTES = 4
_WORDS = 8


class Draws:
    """A few independent numbers for one operation; the n-th call gives the same in every run."""

    def __init__(self, seed: int, slot: int, n: int) -> None:
        place = f"{seed}/{slot}/{n}".encode()
        self._bytes = hashlib.blake2b(place, digest_size=_WORDS * _WORD_BYTES).digest()
        self._next = 0

    def below(self, limit: int) -> int:
        """Draw uniformly from [0, limit), for limits far below 2**32; at most eight calls."""
        start = self._next * _WORD_BYTES
        word = self._bytes[start : start + _WORD_BYTES]
        if not word:
            message = f"more than {_WORDS} numbers for one operation"
            raise IndexError(message)
        self._next += 1
        return int.from_bytes(word, "big") % limit

    def weighted(self, items: Sequence[tuple[_Item, int]]) -> _Item:
        """Draw an item, by integer weight."""
        place = self.below(sum(weight for _, weight in items))
        for item, weight in items:
            place -= weight
            if place < 0:
                return item
        raise AssertionError("the weights do not add up")  # unreachable: place is below their sum


_WHERE: Final = 1
_HOW: Final = 2


def where(draw: int) -> Draws:
    """Settle which nodes and links a fault hits."""
    return Draws(draw, _WHERE, 0)


def how(draw: int) -> Draws:
    """Settle everything else of it."""
    return Draws(draw, _HOW, 0)


def spread(draws: Draws, low: int, doublings: int) -> int:
    """Draw an integer from ``low`` on, its size spread evenly over the doublings; two draws."""
    size = low << draws.below(doublings)
    return size + draws.below(size)
