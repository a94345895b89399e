"""Registers with read, write and compare-and-set, judged key by key for linearizability.

Some slots only read: nothing makes them wait behind a write that an isolated leader cannot commit,
so they go on asking it, and see what it still answers once another leads.

Values come from a small domain by default, so that a compare-and-set often meets the value that
it expects; ``values=unique`` writes each value once, which tells exactly which write a read saw.
``cas=no`` only reads and writes, for systems that have no compare-and-set.
"""

from typing import Any, Final

from splitbrain.contracts.draws import Draws
from splitbrain.contracts.operations import Operation
from splitbrain.history.functions import COMPARE_AND_SET, READ, RECORD, Functions
from splitbrain.workloads.keys import KeyedWorkload, KeyRotation, chosen

#: Keys that live at once: few enough for contention, enough to spread unknown outcomes.
LANES = 2
#: Values of the small domain, from 1; a register that was never written reads as None.
DOMAIN = 5
_MIX = (("read", 3), ("write", 4), ("cas", 3))
_MIX_WITHOUT_CAS = (("read", 1), ("write", 1))
_READER_MIX = (("read", 1),)
_FUNCTIONS: Final[Functions] = {"read": READ, "write": RECORD, "cas": COMPARE_AND_SET}


class RegisterWorkload(KeyedWorkload):
    """Read, write and cas over a few registers."""

    name = "register"
    checkers: tuple[str, ...] = ("linearizability:cas-register", "split-brain", "lost-commits")
    functions: Functions = _FUNCTIONS

    def __init__(
        self,
        seed: int,
        slots: int,
        *,
        readers: frozenset[int],
        unique_values: bool,
        has_cas: bool = True,
    ) -> None:
        self._readers = readers
        self._unique = unique_values
        self._has_cas = has_cas
        super().__init__(seed, slots, KeyRotation("r", lanes=LANES, slots=slots))

    @classmethod
    def of(
        cls, seed: int, slots: int, readers: frozenset[int], options: dict[str, str]
    ) -> "RegisterWorkload":
        """Read the user's options: ``values`` is ``small`` or ``unique``, ``cas`` yes or no."""
        known = {"values": ("small", "unique"), "cas": ("yes", "no")}
        found = chosen(cls.name, options, known)
        is_unique, has_cas = found["values"] == "unique", found["cas"] == "yes"
        return cls(seed, slots, readers=readers, unique_values=is_unique, has_cas=has_cas)

    def operation(self, slot: int, n: int) -> Operation:
        """Return the n-th operation of a slot."""
        draws = Draws(self._seed, slot, n)
        lane = draws.below(LANES)
        mix = _MIX if self._has_cas else _MIX_WITHOUT_CAS
        kind = draws.weighted(_READER_MIX if slot in self._readers else mix)
        value: Any = None
        if kind == "write":
            value = self._new_value(draws, slot, n)
        elif kind == "cas":
            value = [self._expected_value(draws, n), self._new_value(draws, slot, n)]
        return Operation(kind, self._keys.key(lane, n), value)

    def _new_value(self, draws: Draws, slot: int, n: int) -> int:
        if self._unique:
            return n * self._slots + slot + 1
        return 1 + draws.below(DOMAIN)

    def _expected_value(self, draws: Draws, n: int) -> int:
        if not self._unique:
            return 1 + draws.below(DOMAIN)
        # A value that some slot writes at about this time: slots keep pace, so that a
        # good share of these is, or just was, the register's value.
        near = max(0, n - draws.below(4))
        return near * self._slots + draws.below(self._slots) + 1

    def options(self) -> dict[str, Any]:
        """Return the options in force; compare-and-set is only named where it is left out."""
        without = {} if self._has_cas else {"cas": "no"}
        return {"values": "unique" if self._unique else "small", **without}


WORKLOAD: Final = RegisterWorkload
