"""The ``quorum-state`` file: the epoch a node is in, its leader and its vote.

One line of JSON in Kafka's own form (data version 1; version 0 of older Kafka is read). Written to
a temporary file, synced, renamed, and the folder synced, before it counts as written: after a crash
it is the old or the new state, never a mix.

Source: Kafka's FileQuorumStateStore and QuorumStateData; KIP-595, KIP-853.
"""

from pathlib import Path
from typing import Final

import msgspec

from splitbrain.nodes.quorum.epoch_limit import EPOCH_MAX
from splitbrain.nodes.quorum.identifiers import NO_DIRECTORY, Epoch, NodeId
from splitbrain.nodes.quorum.persistent import QuorumState
from splitbrain.nodes.storage.directory_ids import from_kafka_text, to_kafka_text
from splitbrain.nodes.storage.errors import CorruptStorageError, StorageFailed
from splitbrain.nodes.storage.filesystem import FileSystem, replace_file
from splitbrain.nodes.storage.layout import QUORUM_STATE, log_folder

_NOBODY: Final = -1
_DATA_VERSION: Final = 1
_ID_MAX: Final = 2**31 - 1


class _StoredState(msgspec.Struct, frozen=True, rename="camel"):
    leader_id: int
    leader_epoch: int
    voted_id: int
    data_version: int = msgspec.field(name="data_version")
    voted_directory_id: str | None = None


class QuorumStateFile:
    """Reads and writes one node's ``quorum-state``; blocking, one caller at a time."""

    def __init__(self, filesystem: FileSystem, folder: Path) -> None:
        """``folder`` is the node's data folder."""
        self._filesystem = filesystem
        #: Where the state is kept.
        self.path = log_folder(folder) / QUORUM_STATE
        self._failed: StorageFailed | None = None

    def read(self) -> QuorumState | None:
        """Return the last state that was made durable; None if the node has never had one.

        Raises CorruptStorageError: the file is not what this node or Kafka writes.
        """
        try:
            content = self._filesystem.read(self.path)
        except FileNotFoundError:
            return None
        return decode_quorum_state(content, self.path)

    def write(self, state: QuorumState) -> None:
        """Make ``state`` durable; blocks until it is.

        Raises StorageFailed: the disk refused, now or at an earlier call.
        """
        if self._failed is not None:
            raise self._failed
        try:
            replace_file(self._filesystem, self.path, encode_quorum_state(state))
        except OSError as error:
            self._failed = StorageFailed("write", self.path, str(error))
            raise self._failed from error


def encode_quorum_state(state: QuorumState) -> bytes:
    """Return the file's content, fields in Kafka's order."""
    directory_id = state.voted_directory_id or NO_DIRECTORY
    fields: dict[str, int | str] = {
        "leaderId": _NOBODY if state.leader_id is None else state.leader_id,
        "leaderEpoch": state.epoch,
        "votedId": _NOBODY if state.voted_id is None else state.voted_id,
        "votedDirectoryId": to_kafka_text(directory_id),
        "data_version": _DATA_VERSION,
    }
    return msgspec.json.encode(fields)


def decode_quorum_state(content: bytes, path: Path) -> QuorumState:
    """Return the state in a file's content.

    Raises CorruptStorageError: it is not what this node or Kafka writes; names ``path``.
    """
    try:
        stored = msgspec.json.decode(content, type=_StoredState)
        if not 0 <= stored.data_version <= _DATA_VERSION:
            raise ValueError(f"data version {stored.data_version} is unknown")
        if stored.leader_epoch < 0 or min(stored.leader_id, stored.voted_id) < _NOBODY:
            raise ValueError("an epoch or an id in it is negative")
        if stored.leader_epoch > EPOCH_MAX or max(stored.leader_id, stored.voted_id) > _ID_MAX:
            raise ValueError("an epoch or an id in it has more than 31 bits")
        return _from_stored(stored)
    except (ValueError, RecursionError) as error:
        raise CorruptStorageError(path, str(error)) from error


def _from_stored(stored: _StoredState) -> QuorumState:
    voted = stored.voted_id != _NOBODY
    text = stored.voted_directory_id
    directory_id = from_kafka_text(text) if text is not None else NO_DIRECTORY
    return QuorumState(
        epoch=Epoch(stored.leader_epoch),
        leader_id=None if stored.leader_id == _NOBODY else NodeId(stored.leader_id),
        voted_id=NodeId(stored.voted_id) if voted else None,
        voted_directory_id=directory_id if voted else None,
    )
