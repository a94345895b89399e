"""The final reads: who asks for what, which is next, and when a reader gives up. Sans-I/O.

One reader follows the leader, one is pinned to each node.
The reader that follows the leader tries a few times, because a final read that is missing proves
nothing; when even that settles nothing, the cluster does not serve and the rest is left. A reader
that is pinned to a node asks once: what a follower refuses is no loss, what it answers must be
right.
"""

from collections.abc import Sequence
from typing import Final

import msgspec

from splitbrain.contracts.names import NodeName
from splitbrain.contracts.operations import Completion, Operation
from splitbrain.contracts.system import Route
from splitbrain.workloads.workload import Workload

_RETRY_PAUSE_US: Final = 50_000


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


class Reading:
    """One reader's way through the final reads; ``kind`` is of its route."""

    def __init__(self, kind: str, operations: Sequence[Operation]) -> None:
        self._patience = PATIENCE[kind]
        self._operations = operations
        self._place = 0
        self._unsettled_in_a_row = 0
        #: Of the next operation, so far.
        self._tries = 0
        self.settled_count = 0

    @property
    def next(self) -> Operation | None:
        """The operation that is to be asked for; None: the reader is done."""
        is_given_up = self._unsettled_in_a_row == self._patience.unsettled_max
        is_over = is_given_up or self._place == len(self._operations)
        return None if is_over else self._operations[self._place]

    @property
    def unsettled_count(self) -> int:
        """Operations that were not settled, those that were never asked included."""
        return len(self._operations) - self.settled_count

    @property
    def pause_us(self) -> int:
        """Time to wait before the next is asked for: a quick refusal is not asked at once."""
        return self._tries * _RETRY_PAUSE_US

    def took(self, completion: Completion) -> None:
        """Note that the next operation was asked for once."""
        is_settled = completion.type == "ok"
        self._tries += 1
        if not is_settled and self._tries < self._patience.tries:
            return
        self._place += 1
        self._tries = 0
        self.settled_count += is_settled
        self._unsettled_in_a_row = 0 if is_settled else self._unsettled_in_a_row + 1
