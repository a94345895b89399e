"""Random streams by purpose, the same on every version of Python.

Each purpose has its own stream, derived by name from the seed, so that more draws for one never
shift another. Only ``random()`` is drawn, and integers are made from it here: the other methods of
``random.Random`` may change between versions. Must never be shared between two worlds.
"""

import random
from collections.abc import Sequence
from typing import TypeVar

_Thing = TypeVar("_Thing")


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
        return probability > 0 and self.stream(purpose).random() < probability

    def pick(self, purpose: str, things: Sequence[_Thing]) -> _Thing:
        """One of them; raises IndexError where there is none."""
        return things[int(self.stream(purpose).random() * len(things))]
