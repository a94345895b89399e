"""Groups of registers that are written once each, and read as a whole while that goes on.

Snapshot isolation shows everybody the writes in one order. Two transactions of which one sees the
first of two writes alone, and the other the second alone, are a long fork. ``level`` is the
isolation that the system promises. Source: Sovran and others, Transactional Storage for
Geo-Replicated Systems (SOSP 2011), section 3.2.
"""

from typing import Any, ClassVar, Final, Self

from splitbrain.contracts.draws import Draws
from splitbrain.contracts.operations import Completion, Operation
from splitbrain.history.functions import Functions
from splitbrain.workloads.keys import chosen
from splitbrain.workloads.transactions import LEVELS, TRANSACTIONS, checkers_of, reads_of

#: Registers of a group; as many slots work on one.
GROUP: Final = 4
#: Operations of a slot on a group: one of them writes its register, the others read.
ROUNDS: Final = 4


class LongForkWorkload:
    """Parts ``["w", key, value]``, alone, and ``["r", key, null]`` of a whole group."""

    name: ClassVar[str] = "long-fork"
    checkers: tuple[str, ...] = checkers_of("rw-register")
    functions: Functions = TRANSACTIONS

    def __init__(self, seed: int, slots: int, level: str) -> None:
        self._seed, self._slots, self._level = seed, slots, level
        self.checkers = checkers_of("rw-register", level)
        #: Keys in the order of their first use; the values mean nothing.
        self._used: dict[str, None] = {}

    @classmethod
    def of(cls, seed: int, slots: int, readers: frozenset[int], options: dict[str, str]) -> Self:
        """Read the user's options: ``level`` is the promise that the history is held to."""
        return cls(seed, slots, chosen(cls.name, options, {"level": LEVELS})["level"])

    def operation(self, slot: int, n: int) -> Operation:
        """Return the n-th operation of a slot."""
        lane, place = divmod(slot, GROUP)
        generation, round_ = divmod(n, ROUNDS)
        size = min(GROUP, self._slots - lane * GROUP)
        keys = [f"{lane}-{generation}-{register}" for register in range(size)]
        self._used.update(dict.fromkeys(keys))
        # No operation has this place: there is one of each slot and generation.
        if Draws(self._seed, -1 - slot, generation).below(ROUNDS) == round_:
            return Operation("txn", None, [["w", keys[place], n * self._slots + slot + 1]])
        draws = Draws(self._seed, slot, n)
        order = [keys.pop(draws.below(len(keys))) for _ in range(size)]
        return Operation("txn", None, [["r", key, None] for key in order])

    def completed(self, operation: Operation, completion: Completion) -> None:
        """No outcome moves a key."""

    def final_reads(self) -> tuple[Operation, ...]:
        """Every register that was used, several to a transaction."""
        return reads_of(tuple(self._used))

    def at_observer(self, final_read: Operation) -> Operation | None:
        """Only nodes that vote are asked."""
        del final_read
        return None

    def options(self) -> dict[str, Any]:
        """Return the options in force."""
        return {"level": self._level}


WORKLOAD: Final = LongForkWorkload
