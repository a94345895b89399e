"""Records that are read from a log, transformed, and written to another, each exactly once.

All slots send to the inputs. By turns, of some tens of operations each, one slot transforms each
input besides; it takes it from whoever had it, who may not know that yet: slots do not keep step,
and one whose client was stuck goes on as if the input were its own.
"""

from typing import Final

from splitbrain.contracts.draws import Draws
from splitbrain.contracts.groups import FETCH_OFFSETS
from splitbrain.contracts.log import LOGS, POLL, SEND
from splitbrain.contracts.operations import Operation
from splitbrain.contracts.transforms import ABANDON, INPUTS, TRANSFORM
from splitbrain.history.functions import READ, Function, Functions
from splitbrain.workloads.plain import PlainWorkload

#: Operations of a turn.
_STRETCH: Final = 60
_MIX_OF_WORKERS: Final = ((TRANSFORM, 12), (SEND, 5), (ABANDON, 6), (FETCH_OFFSETS, 1))
_MIX_OF_OTHERS: Final = ((SEND, 20), (FETCH_OFFSETS, 1))
_FUNCTIONS: Final[Functions] = {
    SEND: Function("changes"),
    TRANSFORM: Function("changes"),
    # An abandoned one changes nothing that anybody sees.
    ABANDON: READ,
    FETCH_OFFSETS: READ,
    POLL: READ,
}


class TransformWorkload(PlainWorkload):
    """Sends of single records, and transactions that read some and write as many."""

    name = TRANSFORM
    checkers: tuple[str, ...] = ("exactly-once", "split-brain")
    functions: Functions = _FUNCTIONS

    def operation(self, slot: int, n: int) -> Operation:
        """Return the n-th operation of a slot."""
        draws = Draws(self._seed, slot, n)
        inputs = self._inputs_of(slot, n // _STRETCH)
        kind = draws.weighted(_MIX_OF_WORKERS if inputs else _MIX_OF_OTHERS)
        if kind == SEND:
            log = INPUTS[draws.below(len(INPUTS))]
            return Operation(SEND, None, [[SEND, log, n * self._slots + slot]])
        if kind == FETCH_OFFSETS:
            return Operation(kind, None, None)
        return Operation(kind, None, inputs[draws.below(len(inputs))])

    def _inputs_of(self, slot: int, turn: int) -> list[str]:
        first = turn * len(INPUTS)
        return [log for place, log in enumerate(INPUTS, first) if place % self._slots == slot]

    def final_reads(self) -> tuple[Operation, ...]:
        """Each log as a whole, and what was committed of the inputs."""
        polls = (Operation(POLL, None, [[POLL, {log: 0}]]) for log in LOGS)
        return (*polls, Operation(FETCH_OFFSETS, None, None))


WORKLOAD: Final = TransformWorkload
