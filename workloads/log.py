"""Partitioned logs that are sent to and read on: nothing may be lost, skipped or shown twice.

A client reads on from where it is, and now and then from the beginning, so that what was there once
is looked for again. One that takes another's place does not know where that was: it fails to read
until it is told to begin anew.
"""

from typing import Any, Final, Self

from splitbrain.contracts.draws import Draws
from splitbrain.contracts.log import LOG, LOGS
from splitbrain.contracts.operations import Completion, Operation
from splitbrain.history.functions import READ, Function, Functions
from splitbrain.workloads.keys import chosen

#: Operations of a slot in which each poll begins anew.
_FIRST: Final = 5
#: A client is a new one after each unknown outcome, and then waits for the next of the last.
_MIX: Final = (("send", 6), ("poll", 2), ("begin", 1))
#: Parts ``["send", log, value]`` and ``["poll"]``, or ``["poll", {log: offset}]``.
_FUNCTIONS: Final[Functions] = {"send": Function("changes"), "poll": READ}


class LogWorkload:
    """Sends of single records, and polls of all logs."""

    name = LOG
    checkers: tuple[str, ...] = ("log", "split-brain")
    functions: Functions = _FUNCTIONS

    def __init__(self, seed: int, slots: int) -> None:
        self._seed, self._slots = seed, slots

    @classmethod
    def of(cls, seed: int, slots: int, readers: frozenset[int], options: dict[str, str]) -> Self:
        """There is nothing to choose, and no slot only reads."""
        chosen(cls.name, options, {})
        return cls(seed, slots)

    def operation(self, slot: int, n: int) -> Operation:
        """Return the n-th operation of a slot."""
        draws = Draws(self._seed, slot, n)
        kind = draws.weighted(_MIX)
        if kind == "send":
            log = LOGS[draws.below(len(LOGS))]
            return Operation("send", None, [["send", log, n * self._slots + slot]])
        # The first one of a slot, which was nowhere before, is among these.
        begins = kind == "begin" or n < _FIRST
        return Operation("poll", None, [_from_the_beginning(*LOGS) if begins else ["poll"]])

    def completed(self, operation: Operation, completion: Completion) -> None:
        """Nothing depends on outcomes: unknown sends cost the checker nothing."""

    def final_reads(self) -> tuple[Operation, ...]:
        """Each log as a whole."""
        return tuple(Operation("poll", None, [_from_the_beginning(log)]) for log in LOGS)

    def at_observer(self, final_read: Operation) -> Operation | None:
        """Only nodes that vote are asked."""
        del final_read
        return None

    def options(self) -> dict[str, Any]:
        """There are none."""
        return {}


def _from_the_beginning(*logs: str) -> list[Any]:
    return ["poll", dict.fromkeys(logs, 0)]


WORKLOAD: Final = LogWorkload
