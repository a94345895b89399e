"""The final reads: who asks for what, which is next, and when a reader gives up. Sans-I/O.

One reader follows the leader, one is pinned to each node.
The reader that follows the leader tries a few times, because a final read that is missing proves
nothing; when even that settles nothing, the cluster does not serve and the rest is left. A reader
that is pinned to a node asks once: what a follower refuses is no loss, what it answers must be
right.

An operation that drains is asked again until it has found nothing several times in a row. All such
operations are asked in turn, so that an element that is handed out late has some time to come back.
No client of the load is open by then.
"""

from collections import deque
from collections.abc import Sequence
from typing import Final

import msgspec

from splitbrain.contracts.names import NodeName
from splitbrain.contracts.operations import EMPTIES_IN_A_ROW, Completion, Operation
from splitbrain.contracts.system import Route
from splitbrain.workloads.workload import Workload

_RETRY_PAUSE_US: Final = 50_000
#: Between two looks at a queue that was found empty.
_EMPTY_PAUSE_US: Final = 200_000
#: Elements taken after which a queue is held to have no end: a system may hand one out for ever.
TAKES_MAX: Final = 10_000


class Patience(msgspec.Struct, frozen=True):
    """Patience of a reader."""

    #: Of each operation.
    tries: int
    #: Operations in a row that it did not settle, after which it stops.
    unsettled_max: int


PATIENCE: Final[dict[str, Patience]] = {"leader": Patience(5, 1), "pinned": Patience(1, 3)}


def readers(
    nodes: Sequence[NodeName],
    observers: Sequence[NodeName],
    operations: Sequence[Operation],
    workload: Workload,
) -> list[tuple[Route, Sequence[Operation]]]:
    """Return the readers, each with what it is to read; the one that follows the leader first.

    The nodes are those that vote; of the observers the workload says what they may be asked.
    """
    at_observers = [workload.at_observer(operation) for operation in operations]
    observed = [operation for operation in at_observers if operation is not None]
    return [
        (Route("leader", nodes[0]), operations),
        *((Route("pinned", node), operations) for node in nodes),
        *((Route("pinned", node), observed) for node in observers),
    ]


class _Asked(msgspec.Struct):
    """An operation that is not settled yet."""

    operation: Operation
    takes_count: int = 0
    empties_in_a_row: int = 0

    def is_settled_by(self, value: object) -> bool:
        """Note an answer; whether it is the last one that is wanted."""
        if not self.operation.drains:
            return True
        is_empty = value is None
        self.takes_count += not is_empty
        self.empties_in_a_row = self.empties_in_a_row + 1 if is_empty else 0
        return self.empties_in_a_row == EMPTIES_IN_A_ROW


class Reading:
    """One reader's way through the final reads; ``kind`` is of its route."""

    def __init__(self, kind: str, operations: Sequence[Operation]) -> None:
        self._patience = PATIENCE[kind]
        self._count = len(operations)
        #: The next one first.
        self._left = deque(map(_Asked, operations))
        self._unsettled_in_a_row = 0
        #: Of the next operation, so far.
        self._tries = 0
        self.settled_count = 0

    @property
    def next(self) -> Operation | None:
        """The operation that is to be asked for; None: the reader is done."""
        is_given_up = self._unsettled_in_a_row == self._patience.unsettled_max
        return None if is_given_up or not self._left else self._left[0].operation

    @property
    def unsettled_count(self) -> int:
        """Operations that were not settled, those that were never asked included."""
        return self._count - self.settled_count

    @property
    def pause_us(self) -> int:
        """Time to wait before the next is asked for: a quick refusal is not asked at once."""
        if self._left and self._left[0].empties_in_a_row and not self._tries:
            # Each is asked once in a round.
            return _EMPTY_PAUSE_US // len(self._left)
        return self._tries * _RETRY_PAUSE_US

    def took(self, completion: Completion) -> None:
        """Note that the next operation was asked for once."""
        is_ok = completion.type == "ok"
        self._tries += 1
        if not is_ok and self._tries < self._patience.tries:
            # It may have taken something, which then comes back.
            self._left[0].empties_in_a_row = 0
            return
        self._tries = 0
        asked = self._left.popleft()
        is_settled = is_ok and asked.is_settled_by(completion.value)
        self.settled_count += is_settled
        if is_ok and not is_settled and asked.takes_count < TAKES_MAX:
            # One that took goes on; one that found nothing has its next turn after all others.
            (self._left.append if asked.empties_in_a_row else self._left.appendleft)(asked)
        elif not is_settled:
            self._unsettled_in_a_row += 1
            return
        self._unsettled_in_a_row = 0
