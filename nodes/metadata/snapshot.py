"""The image as a snapshot's batches, and back.

Source: KIP-630.
"""

from collections.abc import Iterable, Iterator
from typing import Final

from splitbrain.nodes.metadata.content import image_records
from splitbrain.nodes.metadata.delta import METADATA_VERSIONS, image_of
from splitbrain.nodes.metadata.errors import ContradictionError, MetadataError, RecordError
from splitbrain.nodes.metadata.image import MetadataImage
from splitbrain.nodes.metadata.records import MetadataRecord
from splitbrain.nodes.metadata.serde import decode_record, encode_record
from splitbrain.nodes.metadata.transactions import Provenance
from splitbrain.nodes.quorum.identifiers import Offset
from splitbrain.nodes.quorum.persistent import SnapshotId
from splitbrain.nodes.wire.batches import Record, RecordBatch
from splitbrain.nodes.wire.errors import WireError
from splitbrain.nodes.wire.snapshots import SnapshotReader, encode_snapshot

#: The metadata version for which snapshots are written.
_WRITTEN_FOR: Final = METADATA_VERSIONS[-1]


def snapshot_id_of(image: MetadataImage) -> SnapshotId:
    """Return the name of the image's snapshot."""
    return SnapshotId(image.provenance.end_offset, image.provenance.epoch)


def encode_image(image: MetadataImage) -> Iterator[bytes]:
    """Return the image's snapshot, batch by batch; equal images give equal bytes.

    Raises:
        ValueError: the image ends within a batch of the log, where no snapshot may.
        MetadataError: its metadata.version is not the one that is written here.
    """
    if not image.provenance.ends_batch:
        raise ValueError(f"no snapshot may end at {image.provenance.end_offset}, within a batch")
    if image.metadata_version != _WRITTEN_FOR:
        raise MetadataError(
            f"no snapshot is written at metadata.version {image.metadata_version}; this build "
            f"writes those of {_WRITTEN_FOR}"
        )
    return encode_snapshot(
        snapshot_id_of(image),
        image.provenance.timestamp_ms,
        map(encode_record, image_records(image)),
    )


def decode_image(snapshot_id: SnapshotId, batches: Iterable[RecordBatch]) -> MetadataImage:
    """Return the image that a snapshot tells.

    Raises:
        RecordError: the snapshot is not whole, or holds what cannot be read.
        ContradictionError: a record in it contradicts another.
    """
    last_offset = Offset(snapshot_id.end_offset - 1)
    try:
        reader = SnapshotReader(snapshot_id, batches)
        provenance = Provenance(last_offset, snapshot_id.epoch, reader.timestamp_ms)
        return image_of(map(_metadata_record, reader.records()), provenance)
    except WireError as error:
        raise RecordError(f"the snapshot is malformed: {error}") from error
    except ContradictionError as error:
        raise ContradictionError(f"the snapshot contradicts itself: {error}") from error


def _metadata_record(record: Record) -> MetadataRecord:
    if record.value is None:
        raise RecordError(f"the snapshot's record {record.offset} has no value")
    return decode_record(record.value)
