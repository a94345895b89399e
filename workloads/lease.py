"""Locks that a system takes back after a while, and a register that is guarded by their tokens.

An acquire is answered with the token of the holding, false where another one holds. Since no
operation depends on an answer, a write ``[null, value]`` goes with the token that its client has,
and is answered ``[token, value, accepted]``; one whose client has none fails. Releases are rare, so
that leases run out while their holders go on believing: that is no violation, but an outdated token
that is accepted is one.
"""

from typing import Final

from splitbrain.contracts.draws import Draws
from splitbrain.contracts.operations import Operation
from splitbrain.history.functions import READ, Function, Functions, Refusal
from splitbrain.workloads.keys import PlainWorkload

_MIX: Final = (("acquire", 6), ("write", 15), ("release", 1), ("read", 1))
_FUNCTIONS: Final[Functions] = {
    "acquire": Function("changes", Refusal()),
    "release": Function("changes", Refusal()),
    "write": Function("changes", Refusal(2)),
    "read": READ,
}


class LeaseWorkload(PlainWorkload):
    """Acquire, guarded write and release over a few leased locks."""

    name = "lease"
    prefix = "l"
    checkers: tuple[str, ...] = ("fencing", "split-brain")
    functions: Functions = _FUNCTIONS

    def operation(self, slot: int, n: int) -> Operation:
        """Return the n-th operation of a slot, which keeps to one lock of each generation."""
        kind = Draws(self._seed, slot, n).weighted(_MIX)
        value = [None, self.numbered(slot, n)] if kind == "write" else None
        return Operation(kind, self._keys.key(slot % self.lanes, n), value)


WORKLOAD: Final = LeaseWorkload
