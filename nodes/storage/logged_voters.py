"""Whether a log says itself who its voters are, as Kafka's does from ``kraft.version`` 1 on.

Nodes of ours have static voters and pass such records over: on such a log two of them could take
two sets of voters for the quorum's. Must never change anything.

Source: KIP-853; Kafka's ControlRecordType.
"""

from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from splitbrain.nodes.storage.filesystem import FileSystem
from splitbrain.nodes.storage.recovery import LogScan
from splitbrain.nodes.storage.segment import decoded_batches
from splitbrain.nodes.storage.snapshots import read_snapshot
from splitbrain.nodes.wire.batches import RecordBatch
from splitbrain.nodes.wire.control import VOTERS_TYPE, control_type


def has_logged_voters(filesystem: FileSystem, folder: Path, scan: LogScan) -> bool:
    """Whether the log or a snapshot of it names voters.

    Raises:
        CorruptStorageError: they cannot be read.
    """
    return any(
        control_type(record) == VOTERS_TYPE
        for batch in chain(_logged(scan), _told(filesystem, folder, scan))
        if batch.is_control
        for record in batch.records
    )


def _logged(scan: LogScan) -> Iterator[RecordBatch]:
    for segment in scan.segments:
        yield from decoded_batches(segment)


def _told(filesystem: FileSystem, folder: Path, scan: LogScan) -> Iterator[RecordBatch]:
    for snapshot_id in scan.snapshots:
        yield from read_snapshot(filesystem, folder, snapshot_id)
