"""A share group that reads logs: its members acquire records, settle them, stall, leave and vanish.

For some hundred operations a slot is a member; then it only sends, for as long, so that what it has
not settled by then is acquired by others once its locks expire. A client that is replaced, after an
unknown outcome, vanishes.
"""

from typing import Final

from splitbrain.contracts.draws import Draws
from splitbrain.contracts.log import LOGS, POLL, SEND
from splitbrain.contracts.operations import Operation
from splitbrain.contracts.share_groups import (
    ACCEPT,
    ACQUIRE,
    LEAVE,
    REJECT,
    RELEASE,
    SETTLE,
    SHARE_GROUPS,
)
from splitbrain.history.functions import READ, Function, Functions, Refusal
from splitbrain.workloads.plain import PlainWorkload

#: Operations of a slot for which it stays what it is.
_STRETCH: Final = 120
_MIX_OF_MEMBERS: Final = ((ACQUIRE, 40), (SETTLE, 20), (SEND, 50), (LEAVE, 2))
_MIX_OF_KINDS: Final = ((ACCEPT, 16), (RELEASE, 3), (REJECT, 1))
_FUNCTIONS: Final[Functions] = {
    SEND: Function("changes"),
    # Without an answer records may be held by nobody who knows it, until their locks expire.
    ACQUIRE: Function("changes"),
    SETTLE: Function("changes"),
    LEAVE: Function("changes", Refusal(values=(None,))),
    POLL: READ,
}


class ShareGroupsWorkload(PlainWorkload):
    """Sends of single records, and a group whose members share them."""

    name = SHARE_GROUPS
    checkers: tuple[str, ...] = (SHARE_GROUPS, "split-brain")
    functions: Functions = _FUNCTIONS

    def operation(self, slot: int, n: int) -> Operation:
        """Return the n-th operation of a slot."""
        draws = Draws(self._seed, slot, n)
        kind = draws.weighted(_MIX_OF_MEMBERS) if self._is_member(slot, n) else SEND
        if kind == SEND:
            log = LOGS[draws.below(len(LOGS))]
            return Operation(SEND, None, [[SEND, log, n * self._slots + slot]])
        return Operation(kind, None, draws.weighted(_MIX_OF_KINDS) if kind == SETTLE else None)

    def _is_member(self, slot: int, n: int) -> bool:
        # Two of three slots at a time; each stretch of a slot begins elsewhere.
        begins = slot * _STRETCH // self._slots
        return ((n + begins) // _STRETCH + slot) % 3 != 0

    def final_reads(self) -> tuple[Operation, ...]:
        """The group reads to the end; then each log as a whole."""
        return (
            Operation(ACQUIRE, None, None, drains=True),
            *(Operation(POLL, None, [[POLL, {log: 0}]]) for log in LOGS),
        )


WORKLOAD: Final = ShareGroupsWorkload
