"""State that a node must find again after a restart: its vote, its epochs, its log's shape."""

from typing import Final

import msgspec

from splitbrain.nodes.quorum.identifiers import DirectoryId, Epoch, NodeId, Offset


class Voter(msgspec.Struct, frozen=True):
    """A member of the voter set, fixed when the storage is formatted."""

    node_id: NodeId
    directory_id: DirectoryId
    #: Where its quorum listener is reached by the other nodes.
    host: str
    port: int


class QuorumState(msgspec.Struct, frozen=True):
    """Content of the ``quorum-state`` file; written atomically, durable before an answer leaves."""

    epoch: Epoch
    leader_id: NodeId | None
    voted_id: NodeId | None
    voted_directory_id: DirectoryId | None


#: Of a node that has never had one.
EMPTY_STATE: Final = QuorumState(Epoch(0), None, None, None)


class EpochStart(msgspec.Struct, frozen=True):
    """One line of the leader-epoch checkpoint: the first offset of an epoch in the log."""

    epoch: Epoch
    start_offset: Offset


class SnapshotId(msgspec.Struct, frozen=True, order=True):
    """Names a snapshot by what of the log it stands for."""

    #: One past the last record in it.
    end_offset: Offset
    #: Epoch of that record.
    epoch: Epoch


class LogShape(msgspec.Struct, frozen=True):
    """Findings of recovery in the log; all of it is durable."""

    start_offset: Offset
    end_offset: Offset
    #: Ascending in both fields; the log is empty where there are none.
    epochs: tuple[EpochStart, ...]
    #: Snapshots that can be used, oldest first. A log that starts above 0 starts where the first
    #: one ends.
    snapshots: tuple[SnapshotId, ...] = ()
