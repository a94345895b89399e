"""Partitioned logs that are sent to and read on: nothing may be lost, skipped or shown twice.

A client reads on from where it is, and now and then from the beginning, so that what was there once
is looked for again. One that takes another's place does not know where that was: it fails to read
until it is told to begin anew. With ``transactions=yes`` most records are sent in transactions to
several logs, some of which read as well, and some of which are aborted.
"""

from typing import Any, Final, Self

from splitbrain.contracts.draws import Draws
from splitbrain.contracts.log import ABORT, LOG, LOGS, POLL, SEND, TXN
from splitbrain.contracts.operations import Completion, Operation
from splitbrain.history.functions import READ, Function, Functions
from splitbrain.workloads.keys import chosen

#: Operations of a slot in which each poll begins anew.
_FIRST: Final = 5
#: A client is a new one after each unknown outcome, and then waits for the next of the last.
_TRANSACTIONS: Final = "transactions"
_BEGIN: Final = "begin"
_MIX: Final = ((SEND, 6), (POLL, 2), (_BEGIN, 1))
_MIX_OF_TRANSACTIONS: Final = ((SEND, 2), (TXN, 4), (ABORT, 2), (POLL, 2), (_BEGIN, 1))
#: Records of a transaction, at most; of so many it reads, too.
_SENT_MAX: Final = 3
_READS_ONCE_IN: Final = 4
#: Parts ``["send", log, value]`` and ``["poll"]``, or ``["poll", {log: offset}]``.
_FUNCTIONS: Final[Functions] = {
    SEND: Function("changes"),
    POLL: READ,
    TXN: Function("changes"),
    ABORT: Function("changes"),
}


class LogWorkload:
    """Sends of single records, and polls of all logs."""

    name = LOG
    checkers: tuple[str, ...] = ("log", "split-brain")
    functions: Functions = _FUNCTIONS

    def __init__(self, seed: int, slots: int, *, transactions: bool) -> None:
        self._seed, self._slots, self._transactions = seed, slots, transactions

    @classmethod
    def of(cls, seed: int, slots: int, readers: frozenset[int], options: dict[str, str]) -> Self:
        """Transactions or none; no slot only reads."""
        given = chosen(cls.name, options, {_TRANSACTIONS: ("no", "yes")})
        return cls(seed, slots, transactions=given[_TRANSACTIONS] == "yes")

    def operation(self, slot: int, n: int) -> Operation:
        """Return the n-th operation of a slot."""
        draws = Draws(self._seed, slot, n)
        kind = draws.weighted(_MIX_OF_TRANSACTIONS if self._transactions else _MIX)
        number = n * self._slots + slot
        if kind in (POLL, _BEGIN):
            # The first one of a slot, which was nowhere before, is among these.
            begins = kind == _BEGIN or n < _FIRST
            return Operation(POLL, None, [_from_the_beginning(*LOGS) if begins else [POLL]])
        if kind == SEND:
            value = number * _SENT_MAX if self._transactions else number
            return Operation(SEND, None, [_send(draws, value)])
        sent = 1 + draws.below(_SENT_MAX)
        parts: list[list[Any]] = [_send(draws, number * _SENT_MAX + i) for i in range(sent)]
        if not draws.below(_READS_ONCE_IN):
            parts.insert(draws.below(sent + 1), [POLL])
        return Operation(kind, None, parts)

    def completed(self, operation: Operation, completion: Completion) -> None:
        """Nothing depends on outcomes: unknown sends cost the checker nothing."""

    def final_reads(self) -> tuple[Operation, ...]:
        """Each log as a whole."""
        return tuple(Operation(POLL, None, [_from_the_beginning(log)]) for log in LOGS)

    def at_observer(self, final_read: Operation) -> Operation | None:
        """Only nodes that vote are asked."""
        del final_read
        return None

    def options(self) -> dict[str, Any]:
        """Return what was chosen."""
        return {_TRANSACTIONS: "yes" if self._transactions else "no"}


def _send(draws: Draws, value: int) -> list[Any]:
    return [SEND, LOGS[draws.below(len(LOGS))], value]


def _from_the_beginning(*logs: str) -> list[Any]:
    return [POLL, dict.fromkeys(logs, 0)]


WORKLOAD: Final = LogWorkload
