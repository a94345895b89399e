"""Registers judged session by session: no process reads older things than it has seen or written.

Every slot reads and writes, and each value is written once. Different processes are not compared,
so that a system which answers reads from any member can keep this promise and no stronger one.
"""

from typing import Final

from splitbrain.contracts.draws import Draws
from splitbrain.contracts.operations import Operation
from splitbrain.history.functions import READ, RECORD, Functions
from splitbrain.workloads.keys import PlainWorkload

_MIX: Final = (("read", 2), ("write", 1))
_FUNCTIONS: Final[Functions] = {"read": READ, "write": RECORD}


class SessionsWorkload(PlainWorkload):
    """Read and write over a few registers."""

    name = "sessions"
    prefix = "r"
    checkers: tuple[str, ...] = ("sessions", "split-brain")
    functions: Functions = _FUNCTIONS

    def operation(self, slot: int, n: int) -> Operation:
        """Return the n-th operation of a slot."""
        draws = Draws(self._seed, slot, n)
        lane, kind = draws.below(self.lanes), draws.weighted(_MIX)
        written = self.numbered(slot, n) if kind == "write" else None
        return Operation(kind, self._keys.key(lane, n), written)


WORKLOAD: Final = SessionsWorkload
