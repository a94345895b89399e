"""Numbers that a fault's integer settles: which nodes it hits besides its target's, and how.

Each use has numbers of its own, so that another draw for one leaves the other as it was.
"""

from typing import Final

from splitbrain.contracts.draws import Draws

_WHERE: Final = 1
_HOW: Final = 2


def where(draw: int) -> Draws:
    """Settle which nodes and links a fault hits."""
    return Draws(draw, _WHERE, 0)


def how(draw: int) -> Draws:
    """Settle everything else of it."""
    return Draws(draw, _HOW, 0)


def spread(draws: Draws, low: int, doublings: int) -> int:
    """An integer from ``low`` on, its size spread evenly over the doublings; two draws."""
    size = low << draws.below(doublings)
    return size + draws.below(size)
