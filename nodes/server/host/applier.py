"""Feeds committed records to the state machine, in the order of the log.

Knows what of the log the machine's state stands for, which is the name of its snapshot. Must never
apply a record above the high watermark, nor one twice.
"""

from typing import Generic, TypeVar

from splitbrain.nodes.quorum.identifiers import NO_EPOCH, Epoch, Offset
from splitbrain.nodes.quorum.persistent import SnapshotId
from splitbrain.nodes.server.host.disk import Disk
from splitbrain.nodes.server.host.state_machine import FrozenState, Listener, Loading, StateMachine
from splitbrain.nodes.wire.batches import HEADER_BYTES, RecordBatch

Machine = TypeVar("Machine", bound=StateMachine)


class Applier(Generic[Machine]):
    """Applies what is committed to one machine."""

    def __init__(self, disk: Disk, machine: Machine) -> None:
        """An applier that has applied nothing."""
        self._disk = disk
        self.machine = machine
        #: Of the last batch that the state stands for.
        self._epoch = NO_EPOCH
        self._timestamp_ms = -1
        #: Bytes of the batches applied since the last snapshot was begun or loaded: records, and a
        #: header for each batch.
        self.new_bytes = 0

    @property
    def epoch(self) -> Epoch:
        """Of the last batch that was applied, or is in the snapshot that was loaded."""
        return Epoch(self._epoch)

    def load(self, snapshot_id: SnapshotId, timestamp_ms: int, loading: Loading) -> None:
        """Let the state be that of a snapshot."""
        loading.install(snapshot_id.end_offset)
        self._epoch, self._timestamp_ms = snapshot_id.epoch, timestamp_ms
        self.new_bytes = 0

    def freeze(self) -> FrozenState | None:
        """Return the state as it is now, by name; None where no snapshot may end here."""
        values = self.machine.freeze()
        if values is None or self._epoch == NO_EPOCH:
            return None
        self.new_bytes = 0
        snapshot_id = SnapshotId(Offset(self.machine.end_offset), Epoch(self._epoch))
        return FrozenState(snapshot_id, self._timestamp_ms, values)

    def apply_up_to(self, offset: Offset, listener: Listener) -> None:
        """Apply every record below ``offset`` that is not applied yet.

        Raises:
            StorageError: the log cannot be read.
            UnreadableRecordError: a record is none of this build's.
        """
        machine = self.machine
        for batch in self._disk.batches(Offset(machine.end_offset), offset):
            machine.apply_batch(batch, listener)
            self._epoch, self._timestamp_ms = batch.epoch, batch.max_timestamp_ms
            self.new_bytes += _size_bytes(batch)


def _size_bytes(batch: RecordBatch) -> int:
    values = sum([len(record.key or b"") + len(record.value or b"") for record in batch.records])
    return HEADER_BYTES + values
