"""When the move of a partition to other brokers is done, and what is left of it then.

Source: KIP-455; KIP-860; a real controller's reassignment rules.
"""

from collections.abc import Sequence
from typing import NamedTuple


class Completed(NamedTuple):
    """A partition whose move is done."""

    replicas: tuple[int, ...]
    isr: tuple[int, ...]


def completed(
    replicas: Sequence[int], isr: Sequence[int], removing: Sequence[int], adding: Sequence[int]
) -> Completed | None:
    """Return the partition after its move is done; None while it is not, or there is none.

    Done once all that come are in sync and one that stays is. Where fewer come than go, all that
    stay have to be: else the partition would have fewer replicas in sync than before its move.
    """
    if not removing and not adding:
        return None
    staying = tuple([each for each in replicas if each not in removing])
    in_sync = tuple([each for each in isr if each not in removing])
    if removing and not (staying and in_sync):
        return None
    if not set(adding) <= set(in_sync):
        return None
    if len(adding) < len(removing) and not set(staying) <= set(in_sync):
        return None
    return Completed(staying, in_sync)
