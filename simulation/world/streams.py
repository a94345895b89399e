"""Random streams by purpose, the same on every version of Python.

Each purpose has its own stream, derived by name from the seed, so that more draws for one never
shift another. Only ``random()`` is drawn, and integers are made from it here: the other methods of
``random.Random`` may change between versions. Must never be shared between two worlds.
"""

import random
from collections.abc import Sequence
from typing import Final, TypeVar

_Thing = TypeVar("_Thing")
_MULTIPLIER: Final = 6364136223846793005
_INCREMENT: Final = 1442695040888963407
_MASK: Final = 2**64 - 1
#: Bits of the state that do not fit into a float's 53.
_DROPPED_BITS: Final = 11


class Streams:
    """The streams of one seed."""

    def __init__(self, seed: int, salt: str = "") -> None:
        """``salt`` sets the streams of one use of a seed apart from those of another."""
        self._prefix = f"{seed}/{salt}"
        self._streams: dict[str, random.Random] = {}

    def stream(self, purpose: str) -> random.Random:
        """Return the stream of one purpose; the same object each time."""
        stream = self._streams.get(purpose)
        if stream is None:
            # A string is seeded through SHA-512, not through the interpreter's own hash.
            stream = self._streams[purpose] = random.Random(f"{self._prefix}/{purpose}")
        return stream

    def between(self, purpose: str, low: int, high: int) -> int:
        """Return an integer from low to high, both included."""
        stream = self._streams.get(purpose) or self.stream(purpose)
        return low + int(stream.random() * (high - low + 1))

    def chance(self, purpose: str, probability: float) -> bool:
        """Whether something of this probability happens; draws nothing for 0."""
        if probability <= 0:
            return False
        stream = self._streams.get(purpose) or self.stream(purpose)
        return stream.random() < probability

    def pick(self, purpose: str, things: Sequence[_Thing]) -> _Thing:
        """One of them; raises IndexError where there is none."""
        return things[int(self.stream(purpose).random() * len(things))]


class DrawnStream:
    """Numbers from one drawn integer, for what one fault leaves behind; a ``RandomSource``.

    A linear congruence with Knuth's MMIX constants.
    """

    def __init__(self, draw: int) -> None:
        self._state = (draw * _MULTIPLIER + _INCREMENT) & _MASK

    def random(self) -> float:
        """Uniform in [0, 1)."""
        self._state = (self._state * _MULTIPLIER + _INCREMENT) & _MASK
        return (self._state >> _DROPPED_BITS) / (1 << 53)
