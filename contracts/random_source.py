"""Source of chance: one stream of numbers, drawn in order, for one purpose."""

from typing import Protocol


class RandomSource(Protocol):
    """One random stream; only ``random()`` is ever called; ``random.Random`` is one."""

    def random(self) -> float:
        """Draw uniformly from [0, 1)."""
        ...
