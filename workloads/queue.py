"""Queues: unique elements come and are taken, and at the end each queue is taken empty.

The consumers of the load are closed by then, so that what they were given and did not acknowledge
has come back: each queue is drained at every member until it is found empty several times in a row,
and an element that nobody ever took is lost.

``promise`` says what the system promises besides: ``delivery`` that nothing is lost, handed out
twice or invented; ``unordered`` also that every operation takes effect at one instant, so that a
queue that holds something is never found empty; ``fifo`` the order, too. No order is promised where
elements are redelivered, and to several consumers only where taking one removes it at once.
"""

from typing import Any, Final

from splitbrain.contracts.draws import Draws
from splitbrain.contracts.operations import Operation
from splitbrain.history.functions import Function, Functions, Refusal
from splitbrain.workloads.keys import NEVER, KeyedWorkload, KeyRotation, chosen

#: Queues that live at once.
LANES = 2
_MIX = (("enqueue", 5), ("dequeue", 4))
#: A full queue refuses; a dequeue that finds nothing changes nothing.
_FUNCTIONS: Final[Functions] = {
    "enqueue": Function("changes", Refusal()),
    "dequeue": Function("changes", Refusal(values=(None,))),
}
_USUAL: Final = ("queue-totals", "split-brain")
#: The promise that takes no search to judge.
_COUNTED: Final = "delivery"
#: Checkers by what is promised, the usual promise first.
_CHECKERS: Final[dict[str, tuple[str, ...]]] = {
    _COUNTED: _USUAL,
    "unordered": ("linearizability:unordered-queue", *_USUAL),
    "fifo": ("linearizability:fifo-queue", *_USUAL),
}


class QueueWorkload(KeyedWorkload):
    """Unique enqueues and dequeues over a few queues, and final drains."""

    name = "queue"
    checkers: tuple[str, ...] = _USUAL
    functions: Functions = _FUNCTIONS

    def __init__(self, seed: int, slots: int, promise: str) -> None:
        self._promise = promise
        self.checkers = _CHECKERS[promise]
        # Elements are counted without a search, so queues need not be given up: systems take
        # seconds to make one, and while nodes are apart some cannot be made at all.
        limits = {"operations_per_key": NEVER, "info_per_key": NEVER} if promise == _COUNTED else {}
        super().__init__(seed, slots, KeyRotation("q", lanes=LANES, slots=slots, **limits))

    @classmethod
    def of(
        cls, seed: int, slots: int, readers: frozenset[int], options: dict[str, str]
    ) -> "QueueWorkload":
        """Read the user's options: ``promise`` is ``delivery``, ``unordered`` or ``fifo``."""
        promise = chosen(cls.name, options, {"promise": tuple(_CHECKERS)})["promise"]
        return cls(seed, slots, promise)

    def operation(self, slot: int, n: int) -> Operation:
        """Return the n-th operation of a slot."""
        draws = Draws(self._seed, slot, n)
        lane = draws.below(LANES)
        kind = draws.weighted(_MIX)
        element = n * self._slots + slot + 1 if kind == "enqueue" else None
        return Operation(kind, self._keys.key(lane, n), element)

    def final_reads(self) -> tuple[Operation, ...]:
        """Drain every queue that was used."""
        return tuple(Operation("dequeue", key, None, drains=True) for key in self._keys.used())

    def options(self) -> dict[str, Any]:
        """Return the options in force."""
        return {"promise": self._promise}


WORKLOAD: Final = QueueWorkload
