"""The image as a snapshot, and back; a real controller's snapshot too."""

from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from splitbrain.nodes.metadata import records
from splitbrain.nodes.metadata.delta import MetadataDelta, image_of
from splitbrain.nodes.metadata.errors import ContradictionError, MetadataError, RecordError
from splitbrain.nodes.metadata.image import MetadataImage
from splitbrain.nodes.metadata.serde import decode_record, encode_record
from splitbrain.nodes.metadata.snapshot import decode_image, encode_image, snapshot_id_of
from splitbrain.nodes.metadata.transactions import Provenance
from splitbrain.nodes.quorum.identifiers import Epoch, Offset
from splitbrain.nodes.quorum.persistent import SnapshotId
from splitbrain.nodes.storage.disk import DiskFileSystem
from splitbrain.nodes.storage.snapshots import find_snapshots, read_snapshot
from splitbrain.nodes.wire.batches import decode_batch
from splitbrain.nodes.wire.snapshots import encode_snapshot
from tests.unit.nodes.metadata.courses import course
from tests.unit.nodes.metadata.definitions import FOLDER

ID = SnapshotId(Offset(60), Epoch(1))


def decoded(raw: list[bytes], snapshot_id: SnapshotId = ID) -> MetadataImage:
    return decode_image(snapshot_id, map(decode_batch, raw))


@settings(max_examples=40)
@given(st.integers(0, 1 << 32), st.integers(1, 60))
def test_an_image_survives_its_snapshot(seed: int, count: int) -> None:
    _, images = course(seed, count)
    image = images[-1]
    raw = list(encode_image(image))
    again = decoded(raw, snapshot_id_of(image))
    assert again == image
    assert list(encode_image(again)) == raw


def test_the_snapshot_of_a_real_controller_is_read(tmp_path: Path) -> None:
    (name,) = sorted((FOLDER / "snapshots").iterdir())
    log = tmp_path / "__cluster_metadata-0"
    log.mkdir()
    (log / name.name).write_bytes(name.read_bytes())
    files = DiskFileSystem()
    assert find_snapshots(files, tmp_path) == (ID, ())
    image = decode_image(ID, read_snapshot(files, tmp_path, ID))
    line = (FOLDER / "image_vectors.tsv").read_text().splitlines()[3]
    records_read = [decode_record(bytes.fromhex(each)) for each in line.split("\t")[1].split()]
    assert image == image_of(records_read, Provenance(Offset(59), Epoch(1), 1059))


def test_no_snapshot_ends_within_a_batch_or_is_of_another_version() -> None:
    delta = MetadataDelta(MetadataImage())
    delta.replay(records.FeatureLevelRecord("metadata.version", 30))
    within = delta.apply(Provenance(Offset(3), Epoch(1), 0, ends_batch=False))
    with pytest.raises(ValueError, match="may end at 4, within a batch"):
        encode_image(within)
    with pytest.raises(MetadataError, match=r"at metadata.version None; this build writes .* 30"):
        encode_image(MetadataImage())


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        ([b"\1\x1d\0"], "record type 29"),
        ([b""], "cut short"),
        ([encode_record(records.BeginTransactionRecord())], "contradicts itself"),
        ([encode_record(records.RemoveTopicRecord("ab" * 16))], "contradicts itself: topic"),
    ],
)
def test_a_snapshot_that_makes_no_sense_is_refused(values: list[bytes], problem: str) -> None:
    raw = list(encode_snapshot(ID, 0, values))
    with pytest.raises((RecordError, ContradictionError), match=problem):
        decoded(raw)


def test_half_a_snapshot_is_refused() -> None:
    raw = list(encode_image(course(1, 61)[1][59]))
    with pytest.raises(RecordError, match="ends without its footer"):
        decoded(raw[:-1])
    header, content, _ = map(decode_batch, raw)
    without_values = msgspec.structs.replace(
        content,
        records=tuple(msgspec.structs.replace(each, value=None) for each in content.records),
    )
    with pytest.raises(RecordError, match="record 1 has no value"):
        decode_image(ID, [header, without_values])
