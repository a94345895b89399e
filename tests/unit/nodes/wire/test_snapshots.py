"""The container of a snapshot: header, batches, footer; and all that is no whole snapshot."""

import struct
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from splitbrain.nodes.quorum.identifiers import Epoch, Offset
from splitbrain.nodes.quorum.persistent import SnapshotId
from splitbrain.nodes.wire.batches import RecordBatch, decode_batch, encode_payloads, peek_batch
from splitbrain.nodes.wire.errors import WireError
from splitbrain.nodes.wire.snapshots import (
    BATCH_VALUE_BYTES,
    SnapshotError,
    SnapshotReader,
    encode_snapshot,
)

ID = SnapshotId(Offset(17), Epoch(4))
HEADER, *CONTENT, FOOTER = encode_snapshot(ID, 1234, [b"a", b"b"])


def read(raw: Iterable[bytes], snapshot_id: SnapshotId = ID) -> tuple[int, list[bytes | None]]:
    reader = SnapshotReader(snapshot_id, [decode_batch(batch) for batch in raw])
    return reader.timestamp_ms, [record.value for record in reader.records()]


def batch(offset: int, *payloads: tuple[bytes | None, bytes], is_control: bool = True) -> bytes:
    return encode_payloads(Offset(offset), Epoch(4), 1, payloads, is_control=is_control)


@given(st.lists(st.binary(max_size=9)), st.integers(0, 1 << 40))
def test_what_is_written_is_read(values: list[bytes], timestamp_ms: int) -> None:
    assert read(encode_snapshot(ID, timestamp_ms, values)) == (timestamp_ms, values)


def test_batches_follow_each_other_from_offset_0_and_are_closed_when_full() -> None:
    values = [bytes(BATCH_VALUE_BYTES // 2)] * 5
    raw = list(encode_snapshot(ID, 7, values))
    assert [peek_batch(each)[:2] for each in raw] == [(0, 0), (1, 2), (3, 4), (5, 5), (6, 6)]
    assert {decode_batch(each).epoch for each in raw} == {4}
    assert read(raw) == (7, values)


def test_more_control_records_in_the_header_and_elsewhere_are_not_content() -> None:
    # A controller with dynamic voters writes their set behind the header.
    header = decode_batch(HEADER).records[0]
    voters = (b"\0\0\0\6", b"\0\0\0")
    raw = [batch(0, (header.key, header.value or b""), voters)]
    raw += [
        batch(2, (None, b"x"), is_control=False),
        batch(3, voters),
        batch(4, (b"\0\0\0\4", b"")),
    ]
    assert read(raw) == (1234, [b"x"])


@pytest.mark.parametrize(
    ("raw", "problem"),
    [
        ([], "is empty"),
        ([batch(0, (None, b"a"), is_control=False)], "does not begin with its header"),
        ([batch(0, (b"\0\0\0\4", b""))], "does not begin with its header"),
        ([batch(0, (b"\0", b""))], "has no type"),
        ([batch(0, (b"\0\0\0\3", b"\0\0"))], "header is cut short"),
        ([batch(0, (b"\0\0\0\3", struct.pack(">hq", 1, 5) + b"\0"))], "unknown version 1"),
        ([HEADER], "ends without its footer"),
        ([HEADER, *CONTENT], "ends without its footer"),
        ([HEADER, *CONTENT, FOOTER, batch(4, (b"\0\0\0\4", b""))], "after a snapshot's footer"),
        ([HEADER, FOOTER], "has offset 3, not 1"),
        ([HEADER, HEADER], "has offset 0, not 1"),
        (list(encode_snapshot(SnapshotId(Offset(17), Epoch(5)), 1, [])), "a batch of epoch 5"),
    ],
)
def test_what_is_no_whole_snapshot_is_told(raw: list[bytes], problem: str) -> None:
    with pytest.raises(SnapshotError, match=problem):
        read(raw)


@given(st.binary(max_size=14))
def test_a_malformed_header_raises_the_typed_error(value: bytes) -> None:
    batches: list[RecordBatch] = [decode_batch(batch(0, (b"\0\0\0\3", value)))]
    try:
        reader = SnapshotReader(ID, batches)
    except WireError:
        return
    assert reader.timestamp_ms == struct.unpack_from(">q", value, 2)[0]
