"""Which key an operation works on: a few lanes live at once, and each moves to a fresh key in time.

A checker's work grows steeply with the operations on one key, above all with those whose outcome
is unknown, so keys are given up after about 200 operations or after 20 ``info``. The first is
counted by a slot's own operations, so that it is a function of the place; only the second depends
on what the system answered, and it stands in the history in the key's name (design, section 4).
"""

from collections import Counter

import msgspec

#: Operations on one key, over all slots, after which it is given up.
OPERATIONS_PER_KEY = 200
#: Operations of unknown outcome after which a key is given up early.
INFO_PER_KEY = 20


class KeyPlace(msgspec.Struct, frozen=True):
    """A key before early rotation: a lane and the generation that the place says."""

    lane: int
    generation: int


class KeyRotation:
    """Names keys; counts the ``info`` of each and moves on from those that had too many."""

    def __init__(
        self,
        prefix: str,
        *,
        lanes: int,
        slots: int,
        operations_per_key: int = OPERATIONS_PER_KEY,
        info_per_key: int = INFO_PER_KEY,
    ) -> None:
        self._prefix = prefix
        self._info_per_key = info_per_key
        # A slot spreads its operations over the lanes, and all slots work on each lane.
        self._span = max(1, operations_per_key * lanes // slots)
        self._info: Counter[str] = Counter()
        self._early: Counter[KeyPlace] = Counter()
        self._places: dict[str, KeyPlace] = {}

    def key(self, lane: int, n: int) -> str:
        """The key of the n-th operation of any slot in this lane."""
        place = KeyPlace(lane, n // self._span)
        early = self._early[place]
        name = f"{self._prefix}{place.lane}-{place.generation}"
        if early:
            name += f"-{early}"
        self._places[name] = place
        return name

    def saw_info(self, key: str) -> None:
        """Count an operation of unknown outcome; the key is given up at its limit."""
        self._info[key] += 1
        if self._info[key] == self._info_per_key:
            self._early[self._places[key]] += 1

    def used(self) -> tuple[str, ...]:
        """Every key named so far, in the order of their first use."""
        return tuple(self._places)
