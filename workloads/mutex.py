"""Locks without leases: who has one keeps it until it is given back.

The holder is the worker slot, whichever process it has become: after an acquire of unknown outcome
its release may still be granted. A lock whose holder is never heard of again is given up with its
key. Leases are another promise, and another workload.
"""

from typing import Final

from splitbrain.contracts.draws import Draws
from splitbrain.contracts.operations import Operation
from splitbrain.history.functions import Function, Functions, Refusal
from splitbrain.workloads.keys import PlainWorkload

_MIX: Final = (("acquire", 1), ("release", 1))
#: A release that is not the holder's, an acquire while it is held: observations.
_FUNCTIONS: Final[Functions] = {kind: Function("changes", Refusal()) for kind, _ in _MIX}


class MutexWorkload(PlainWorkload):
    """Acquire and release over a few locks."""

    name = "mutex"
    prefix = "m"
    checkers: tuple[str, ...] = ("linearizability:mutex", "split-brain")
    functions: Functions = _FUNCTIONS

    def operation(self, slot: int, n: int) -> Operation:
        """Return the n-th operation of a slot, which keeps to one lock of each generation."""
        kind = Draws(self._seed, slot, n).weighted(_MIX)
        return Operation(kind, self._keys.key(slot % self.lanes, n), slot)

    def final_reads(self) -> tuple[Operation, ...]:
        """A lock cannot be read."""
        return ()


WORKLOAD: Final = MutexWorkload
