"""Registers that are written and read in transactions; each value is written once.

``level`` is the isolation that the system promises. Transactions are mini ones: they have one or
two keys, read each, and write some of them after that. Each write then tells by its read after
which other one it came, and snapshot isolation and serializability are decided in linear time.
With ``mini=no`` they have one to eight parts in any order, and the order of some writes stays open.

Source: Gu and others, Boosting End-to-End Database Isolation Checking via Mini-Transactions
(ICDE 2025).
"""

from typing import Any, Final, Self

from splitbrain.contracts.operations import Operation
from splitbrain.workloads.keys import chosen
from splitbrain.workloads.transactions import (
    LANE_WEIGHTS,
    LEVELS,
    Part,
    TransactionWorkload,
    checkers_of,
)

#: Keys of a mini-transaction at most.
_MINI_KEYS_MAX: Final = 2


class RegisterTransactionsWorkload(TransactionWorkload):
    """Parts ``["w", key, value]`` and ``["r", key, null]``."""

    name = objects = "rw-register"
    writes = "w"
    checkers: tuple[str, ...] = checkers_of("rw-register")

    def __init__(self, seed: int, slots: int, level: str, *, is_mini: bool) -> None:
        self._is_mini = is_mini
        super().__init__(seed, slots, level)

    @classmethod
    def of(cls, seed: int, slots: int, readers: frozenset[int], options: dict[str, str]) -> Self:
        """Read the user's options: ``level``, and ``mini`` yes or no."""
        found = chosen(cls.name, options, {"level": LEVELS, "mini": ("yes", "no")})
        return cls(seed, slots, found["level"], is_mini=found["mini"] == "yes")

    def writes_per_transaction(self) -> float:
        """Return the mean of the parts that write."""
        # One key or two, rarely the same one twice; every other is written.
        return (1 + _MINI_KEYS_MAX) / 2 / 2 if self._is_mini else super().writes_per_transaction()

    def operation(self, slot: int, n: int) -> Operation:
        """Return the n-th operation of a slot."""
        return self._mini(slot, n) if self._is_mini else super().operation(slot, n)

    def _mini(self, slot: int, n: int) -> Operation:
        draws = self._draws(slot, n, 0)
        drawn = [draws.weighted(LANE_WEIGHTS) for _ in range(1 + draws.below(_MINI_KEYS_MAX))]
        keys = [self._keys.key(lane, n) for lane in dict.fromkeys(drawn)]
        reads: list[Part] = [["r", key, None] for key in keys]
        writes: list[Part] = [
            ["w", key, self.numbered(slot, n, place)]
            for place, key in enumerate(keys)
            if draws.below(2)
        ]
        if writes and draws.below(2):
            # A key is written before the next one is read.
            written = {write[1]: write for write in writes}
            parts = [part for read in reads for part in (read, written.get(read[1])) if part]
            return Operation("txn", None, parts)
        return Operation("txn", None, [*reads, *writes])

    def options(self) -> dict[str, Any]:
        """Return the options in force."""
        return {**super().options(), "mini": "yes" if self._is_mini else "no"}


WORKLOAD: Final = RegisterTransactionsWorkload
