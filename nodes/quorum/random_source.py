"""The only randomness that the core sees: uniform floats from a source that the host seeds."""

from typing import Protocol


class RandomSource(Protocol):
    """A stream of uniform floats; ``random.Random`` fits.

    The core calls nothing else of it, so that one seed gives one schedule on every interpreter.
    """

    def random(self) -> float:
        """Uniform in [0, 1)."""
        ...
