"""Random numbers that follow from one drawn integer, for what one fault leaves behind."""

from typing import Final

_MULTIPLIER: Final = 6364136223846793005
_INCREMENT: Final = 1442695040888963407
_MASK: Final = 2**64 - 1
#: Bits of the state that do not fit into a float's 53.
_DROPPED_BITS: Final = 11


class DrawnStream:
    """A linear congruence (Knuth's MMIX constants); implements ``RandomSource``."""

    def __init__(self, draw: int) -> None:
        self._state = (draw * _MULTIPLIER + _INCREMENT) & _MASK

    def random(self) -> float:
        """Uniform in [0, 1)."""
        self._state = (self._state * _MULTIPLIER + _INCREMENT) & _MASK
        return (self._state >> _DROPPED_BITS) / (1 << 53)
