"""Interface of the state machine above a node's log.

Everything happens on the node's thread but what is said to happen on the disk's. Equal logs make
equal machines, and equal snapshots.
"""

from collections.abc import Callable, Iterator
from typing import Any, Literal, NamedTuple, Protocol

from splitbrain.nodes.quorum.persistent import SnapshotId
from splitbrain.nodes.wire.batches import RecordBatch

#: Names of the state machines that may stand above the log.
StateMachineName = Literal["registers", "metadata"]
#: Told of each record: its offset, its epoch, what it did (None for a record of raft's own).
Listener = Callable[[int, int, Any], None]
#: Begins to tell a state that changes no more, record by record; called on the disk's thread.
StateValues = Callable[[], Iterator[bytes]]


class FrozenState(NamedTuple):
    """A state, and what of the log made it."""

    snapshot_id: SnapshotId
    #: Of the last batch in it, milliseconds since 1970.
    timestamp_ms: int
    values: StateValues


class Loading(Protocol):
    """A state on its way from a snapshot; the machine is as it was until ``install``."""

    def add(self, value: bytes) -> None:
        """Take the next record, on the disk's thread; raises UnreadableRecordError."""

    def install(self, end_offset: int) -> None:
        """Let the machine be what was loaded: the state after all below this offset."""


class StateMachine(Protocol):
    """The state as of one offset."""

    @property
    def end_offset(self) -> int:
        """One past the last applied offset."""
        ...

    def apply_batch(self, batch: RecordBatch, listener: Listener) -> None:
        """Apply what is not applied of a committed batch; raises UnreadableRecordError."""

    def freeze(self) -> StateValues | None:
        """Return the state as it is now; None where no snapshot may end here."""
        ...

    def digest(self) -> str:
        """32 hex digits that are equal for equal states."""
        ...

    def begin_loading(self) -> Loading:
        """Begin to take the state of a snapshot, beside the present one."""
        ...
