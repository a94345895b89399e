"""Sets that only grow: every element is added once, so each that is missing later is a lost write.

Adds dominate; a few reads of whole sets during the run show elements that come and go. Sets are
given up after some hundred elements, so that reading one stays cheap.
"""

from typing import Final

from splitbrain.contracts.draws import Draws
from splitbrain.contracts.operations import Completion, Operation
from splitbrain.history.functions import READ, RECORD, Functions
from splitbrain.workloads.keys import PlainWorkload

_MIX = (("add", 9), ("read", 1))
_FUNCTIONS: Final[Functions] = {"read": READ, "add": RECORD}


class SetWorkload(PlainWorkload):
    """Unique adds over a few sets, and final reads."""

    name = "set"
    prefix = "s"
    lanes = 2
    #: Nearly all of them adds.
    operations_per_key = 500
    checkers: tuple[str, ...] = ("set-full", "split-brain", "lost-commits")
    functions: Functions = _FUNCTIONS

    def operation(self, slot: int, n: int) -> Operation:
        """Return the n-th operation of a slot."""
        draws = Draws(self._seed, slot, n)
        lane = draws.below(self.lanes)
        kind = draws.weighted(_MIX)
        element = n * self._slots + slot if kind == "add" else None
        return Operation(kind, self._keys.key(lane, n), element)

    def completed(self, operation: Operation, completion: Completion) -> None:
        """Nothing depends on outcomes: an unknown add costs a set checker nothing."""


WORKLOAD: Final = SetWorkload
