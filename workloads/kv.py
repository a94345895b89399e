"""Texts that are put, appended to and got: an answer tells every append since the last put."""

from typing import Final

from splitbrain.contracts.draws import Draws
from splitbrain.contracts.operations import Operation
from splitbrain.history.functions import READ, Function, Functions
from splitbrain.workloads.keys import PlainWorkload

#: Puts are rare, so that an append stays to be seen for some time.
_MIX: Final = (("get", 6), ("append", 8), ("put", 1))
_FUNCTIONS: Final[Functions] = {
    "get": READ,
    "append": Function("changes"),
    "put": Function("changes"),
}


class KeyValueWorkload(PlainWorkload):
    """Get, put and append over a few keys; each text is written once."""

    name = "kv"
    prefix = "k"
    checkers: tuple[str, ...] = ("linearizability:kv", "split-brain")
    functions: Functions = _FUNCTIONS
    final_function = "get"

    def operation(self, slot: int, n: int) -> Operation:
        """Return the n-th operation of a slot."""
        draws = Draws(self._seed, slot, n)
        lane, kind = draws.below(self.lanes), draws.weighted(_MIX)
        # No text is part of another one.
        written = None if kind == "get" else f"({self.numbered(slot, n)})"
        return Operation(kind, self._keys.key(lane, n), written)


WORKLOAD: Final = KeyValueWorkload
