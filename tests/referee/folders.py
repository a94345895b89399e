"""Reads the data folders of stopped controllers, Kafka's and ours.

With the nodes' own code, which is what is judged. Must never write.
"""

from pathlib import Path
from typing import Final

import msgspec

from splitbrain.nodes.metadata.content import image_records
from splitbrain.nodes.metadata.delta import image_after
from splitbrain.nodes.metadata.image import MetadataImage
from splitbrain.nodes.metadata.records import (
    MetadataRecord,
    RegisterBrokerRecord,
    RegisterControllerRecord,
)
from splitbrain.nodes.metadata.serde import decode_record
from splitbrain.nodes.metadata.snapshot import decode_image
from splitbrain.nodes.metadata.transactions import MetadataBatch, TransactionBuffer
from splitbrain.nodes.quorum.persistent import SnapshotId
from splitbrain.nodes.storage.disk import ReadOnlyDiskFileSystem
from splitbrain.nodes.storage.reading import LoggedRecord, log_start, read_committed
from splitbrain.nodes.storage.snapshots import list_snapshots, read_snapshot

_FILES: Final = ReadOnlyDiskFileSystem()


def image_in(folder: Path, end_offset: int | None = None) -> MetadataImage:
    """Read a folder below an offset, or whole, from the snapshot its log begins after."""
    start = log_start(folder)
    image = image_of(folder, start) if start.end_offset else MetadataImage()
    buffer = TransactionBuffer(start.end_offset)
    for record in read_committed(folder, end_offset):
        for settled in buffer.add(_alone(record)):
            image = image_after(image, settled)
    return image


def image_of(folder: Path, snapshot_id: SnapshotId) -> MetadataImage:
    return decode_image(snapshot_id, read_snapshot(_FILES, folder, snapshot_id))


def snapshots(folder: Path) -> tuple[SnapshotId, ...]:
    return list_snapshots(_FILES, folder)


def content(image: MetadataImage) -> list[MetadataRecord]:
    """All that an image says but who its controllers are: each life of one says it anew."""
    records = image_records(image)
    return [_sorted(each) for each in records if not isinstance(each, RegisterControllerRecord)]


def _sorted(record: MetadataRecord) -> MetadataRecord:
    """Kafka's snapshots tell a broker's features in no order that means anything."""
    if not isinstance(record, RegisterBrokerRecord):
        return record
    features = tuple(sorted(record.features, key=lambda each: each.name))
    return msgspec.structs.replace(record, features=features)


def _alone(record: LoggedRecord) -> MetadataBatch:
    return MetadataBatch(
        base_offset=record.offset,
        last_offset=record.offset,
        epoch=record.epoch,
        timestamp_ms=record.timestamp_ms,
        records=[] if record.is_control else [decode_record(record.value or b"")],
    )
