"""Lists that are appended to and read in transactions: a list tells the order of its writes.

Each element is appended once. ``level`` is the isolation that the system promises. With
``keys=pairs`` every list is new: a few slots at a time have one transaction each upon two lists
that nobody wrote before, one or two parts long, so that a row is inserted, changed and looked for
by transactions that overlap.

Source of the pairs: Kingsbury 2020 (Jepsen), on rows inserted and changed at the same time.
"""

from typing import Any, Final, Self

from splitbrain.contracts.draws import Draws
from splitbrain.contracts.operations import Operation
from splitbrain.workloads.keys import chosen
from splitbrain.workloads.transactions import LEVELS, TransactionWorkload, checkers_of, reads_of

LANES, PAIRS = "lanes", "pairs"
#: Slots that work on one pair.
_SLOTS_OF_PAIR: Final = 4


class ListAppendWorkload(TransactionWorkload):
    """Parts ``["append", key, element]`` and ``["r", key, null]``."""

    name = objects = "list-append"
    writes = "append"
    checkers: tuple[str, ...] = checkers_of("list-append")

    def __init__(self, seed: int, slots: int, level: str, *, has_pairs: bool) -> None:
        self._has_pairs = has_pairs
        #: Keys of pairs in the order of their first use; the values mean nothing.
        self._of_pairs: dict[str, None] = {}
        super().__init__(seed, slots, level)

    @classmethod
    def of(cls, seed: int, slots: int, readers: frozenset[int], options: dict[str, str]) -> Self:
        """Read the user's options: ``level``, and ``keys`` lanes or pairs."""
        found = chosen(cls.name, options, {"level": LEVELS, "keys": (LANES, PAIRS)})
        return cls(seed, slots, found["level"], has_pairs=found["keys"] == PAIRS)

    def operation(self, slot: int, n: int) -> Operation:
        """Return the n-th operation of a slot."""
        return self._upon_pair(slot, n) if self._has_pairs else super().operation(slot, n)

    def _upon_pair(self, slot: int, n: int) -> Operation:
        group = slot // _SLOTS_OF_PAIR
        pair = [f"{group % 10}-{group}-{n}-{side}" for side in ("a", "b")]
        self._of_pairs.update(dict.fromkeys(pair))
        draws = Draws(self._seed, slot, n)
        appended, other = pair if draws.below(2) else reversed(pair)
        parts: list[list[Any]] = [["append", appended, self.numbered(slot, n, 0)]]
        if draws.below(2):
            parts.append(["r", other, None])
        return Operation("txn", None, parts)

    def final_reads(self) -> tuple[Operation, ...]:
        """Every key that was used, several to a transaction."""
        return reads_of(tuple(self._of_pairs)) if self._has_pairs else super().final_reads()

    def options(self) -> dict[str, Any]:
        """Return the options in force."""
        return {**super().options(), "keys": PAIRS if self._has_pairs else LANES}


WORKLOAD: Final = ListAppendWorkload
