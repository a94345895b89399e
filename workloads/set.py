"""Sets that only grow: every element is added once, so each that is missing later is a lost write.

Adds dominate; a few reads of whole sets during the run show elements that come and go. Sets are
given up after some hundred elements, so that reading one stays cheap.
"""

from typing import Any, Final

from splitbrain.contracts.draws import Draws
from splitbrain.contracts.operations import Completion, Operation
from splitbrain.history.functions import READ, RECORD, Functions
from splitbrain.workloads.keys import KeyedWorkload, KeyRotation, chosen

#: Sets that grow at once.
LANES = 2
#: Operations on one set, nearly all of them adds.
OPERATIONS_PER_SET = 500
_MIX = (("add", 9), ("read", 1))
_FUNCTIONS: Final[Functions] = {"read": READ, "add": RECORD}


class SetWorkload(KeyedWorkload):
    """Unique adds over a few sets, and final reads."""

    name = "set"
    checkers: tuple[str, ...] = ("set-full", "split-brain", "lost-commits")
    functions: Functions = _FUNCTIONS

    def __init__(self, seed: int, slots: int) -> None:
        keys = KeyRotation("s", lanes=LANES, slots=slots, operations_per_key=OPERATIONS_PER_SET)
        super().__init__(seed, slots, keys)

    @classmethod
    def of(
        cls, seed: int, slots: int, readers: frozenset[int], options: dict[str, str]
    ) -> "SetWorkload":
        """There is nothing to choose, and no slot only reads."""
        chosen(cls.name, options, {})
        return cls(seed, slots)

    def operation(self, slot: int, n: int) -> Operation:
        """Return the n-th operation of a slot."""
        draws = Draws(self._seed, slot, n)
        lane = draws.below(LANES)
        kind = draws.weighted(_MIX)
        element = n * self._slots + slot if kind == "add" else None
        return Operation(kind, self._keys.key(lane, n), element)

    def completed(self, operation: Operation, completion: Completion) -> None:
        """Nothing depends on outcomes: an unknown add costs a set checker nothing."""

    def options(self) -> dict[str, Any]:
        """There are none."""
        return {}


WORKLOAD: Final = SetWorkload
