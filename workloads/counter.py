"""Counters: numbers are added, and each answer tells the sum; lost and doubled adds are seen."""

from typing import Final

from splitbrain.contracts.draws import Draws
from splitbrain.contracts.operations import Operation
from splitbrain.history.functions import READ, Function, Functions
from splitbrain.workloads.keys import PlainWorkload

#: Small numbers: equal ones of unknown outcome are searched as one.
ADDED_MAX: Final = 3
_MIX: Final = (("read", 1), ("add-and-get", 2))
_FUNCTIONS: Final[Functions] = {"read": READ, "add-and-get": Function("changes")}


class CounterWorkload(PlainWorkload):
    """Adds and reads over a few counters."""

    name = "counter"
    prefix = "c"
    checkers: tuple[str, ...] = ("linearizability:counter", "counter-bounds", "split-brain")
    functions: Functions = _FUNCTIONS

    def operation(self, slot: int, n: int) -> Operation:
        """Return the n-th operation of a slot."""
        draws = Draws(self._seed, slot, n)
        lane, kind = draws.below(self.lanes), draws.weighted(_MIX)
        added = 1 + draws.below(ADDED_MAX) if kind == "add-and-get" else None
        return Operation(kind, self._keys.key(lane, n), added)


WORKLOAD: Final = CounterWorkload
