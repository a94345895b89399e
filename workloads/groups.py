"""A consumer group that reads logs: its members join, read, commit, freeze, leave and vanish.

For some hundred operations a slot is a member; then it only sends, for as long, so that whoever had
not left the group is a member that is silent for longer than its session. It may go on as if
nothing had been. A client that is replaced, after an unknown outcome, vanishes.
"""

from typing import Final

from splitbrain.contracts.draws import Draws
from splitbrain.contracts.groups import COMMIT, CONSUME, FETCH_OFFSETS, GROUPS, LEAVE
from splitbrain.contracts.log import LOGS, POLL, SEND
from splitbrain.contracts.operations import Operation
from splitbrain.history.functions import READ, Function, Functions, Refusal
from splitbrain.workloads.plain import PlainWorkload

#: Operations of a slot for which it stays what it is.
_STRETCH: Final = 120
_MIX_OF_MEMBERS: Final = ((CONSUME, 60), (COMMIT, 30), (SEND, 24), (FETCH_OFFSETS, 4), (LEAVE, 5))
_MIX_OF_OTHERS: Final = ((SEND, 9), (FETCH_OFFSETS, 1))
#: All readers are members then, who share out the logs anew as one after the other joins.
_FINAL_CONSUMES: Final = 4
_FUNCTIONS: Final[Functions] = {
    SEND: Function("changes"),
    # Without an answer nothing was delivered, and nothing is committed.
    CONSUME: READ,
    COMMIT: Function("changes"),
    LEAVE: Function("changes", Refusal(values=(None,))),
    FETCH_OFFSETS: READ,
    POLL: READ,
}


class GroupsWorkload(PlainWorkload):
    """Sends of single records, and a group that reads them."""

    name = GROUPS
    checkers: tuple[str, ...] = (GROUPS, "log", "split-brain")
    functions: Functions = _FUNCTIONS

    def operation(self, slot: int, n: int) -> Operation:
        """Return the n-th operation of a slot."""
        draws = Draws(self._seed, slot, n)
        kind = draws.weighted(_MIX_OF_MEMBERS if self._is_member(slot, n) else _MIX_OF_OTHERS)
        if kind == SEND:
            log = LOGS[draws.below(len(LOGS))]
            return Operation(SEND, None, [[SEND, log, n * self._slots + slot]])
        return Operation(kind, None, None)

    def _is_member(self, slot: int, n: int) -> bool:
        # Half of the slots at a time; each stretch of a slot begins elsewhere.
        begins = slot * _STRETCH // self._slots
        return ((n + begins) // _STRETCH + slot) % 2 == 0

    def final_reads(self) -> tuple[Operation, ...]:
        """The group reads to the end; then each log as a whole, and what the group committed."""
        return (
            *(Operation(CONSUME, None, turn) for turn in range(_FINAL_CONSUMES)),
            *(Operation(POLL, None, [[POLL, {log: 0}]]) for log in LOGS),
            Operation(FETCH_OFFSETS, None, None),
        )


WORKLOAD: Final = GroupsWorkload
