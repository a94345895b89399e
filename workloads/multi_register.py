"""Registers in groups: a transaction reads and writes several of one group at one moment."""

from typing import Any, Final

from splitbrain.contracts.draws import Draws
from splitbrain.contracts.operations import Operation
from splitbrain.history.functions import Function, Functions
from splitbrain.workloads.keys import PlainWorkload

#: Registers of a group.
NAMES: Final = ("x", "y", "z")
#: Parts of a transaction.
PARTS: Final = 2
_FUNCTIONS: Final[Functions] = {"txn": Function("changes", reading_parts=("r",))}


class MultiRegisterWorkload(PlainWorkload):
    """Transactions over a few groups of registers; each value is written once."""

    name = "multi-register"
    prefix = "g"
    checkers: tuple[str, ...] = ("linearizability:multi-register", "split-brain")
    functions: Functions = _FUNCTIONS

    def operation(self, slot: int, n: int) -> Operation:
        """Return the n-th operation of a slot."""
        draws = Draws(self._seed, slot, n)
        key = self._keys.key(draws.below(self.lanes), n)
        parts: list[list[Any]] = []
        for place in range(PARTS):
            name = NAMES[draws.below(len(NAMES))]
            written = self.numbered(slot, n) * PARTS + place
            parts.append(["w", name, written] if draws.below(2) else ["r", name, None])
        return Operation("txn", key, parts)

    def final_reads(self) -> tuple[Operation, ...]:
        """All registers of every group that was used."""
        parts = [["r", name, None] for name in NAMES]
        return tuple(Operation("txn", key, parts) for key in self._keys.used())


WORKLOAD: Final = MultiRegisterWorkload
