"""Where chance comes from: one stream of numbers, drawn in order, for one purpose."""

from typing import Protocol


class RandomSource(Protocol):
    """One random stream; only ``random()`` is ever called; ``random.Random`` is one."""

    def random(self) -> float:
        """Uniform in [0, 1)."""
        ...
