"""Record batches: byte-exact against another implementation, and nothing wrong is accepted."""

import contextlib
import hashlib

import crc32c
import pytest
from hypothesis import given
from hypothesis import strategies as st

from splitbrain.nodes.quorum.identifiers import Epoch, Offset
from splitbrain.nodes.quorum.messages import BatchHeader
from splitbrain.nodes.wire.batches import (
    CONTROL_BIT,
    HEADER_BYTES,
    Record,
    RecordBatch,
    check_batch,
    decode_batch,
    encode_batch,
    encode_payloads,
    peek_batch,
    split_batches,
    split_whole_batches,
)
from splitbrain.nodes.wire.errors import CorruptBatchError, WireError

# Written by kafka-python 3.0.12 (DefaultRecordBatchBuilder): three records with different times,
# a null key, headers with and without value, an empty key and a null value.
KAFKA_PYTHON_BATCH = bytes.fromhex(
    "00000000000000000000005500000000022df891040000000000020000018bcfe5687b0000018bcfe5687d"
    "ffffffffffffffffffffffffffff000000031c000000066b65790a76616c7565001a000402010004026802"
    "78026e010c000204000100"
)
KAFKA_PYTHON_RECORDS = (
    Record(Offset(0), 1700000000123, b"key", b"value"),
    Record(Offset(1), 1700000000125, None, b"", (("h", b"x"), ("n", None))),
    Record(Offset(2), 1700000000124, b"", None),
)
# Also by kafka-python: 300 records of growing size; only the digest is kept.
KAFKA_PYTHON_LARGE_SHA256 = "04a093c9933975a2eea3a7c311c553f93cc175645a67aa558fec9ea2a734b703"

payloads = st.lists(
    st.tuples(st.none() | st.binary(max_size=200), st.none() | st.binary(max_size=200)),
    min_size=1,
    max_size=12,
)
timestamps = st.integers(min_value=0, max_value=1 << 45)


@st.composite
def batches(draw: st.DrawFn) -> RecordBatch:
    base_offset = draw(st.integers(0, 1 << 60))
    base_timestamp = draw(timestamps)
    headers = st.lists(
        st.tuples(st.text(max_size=8), st.none() | st.binary(max_size=8)), max_size=3
    )
    records = tuple(
        Record(Offset(base_offset + delta), draw(timestamps), key, value, tuple(draw(headers)))
        for delta, (key, value) in enumerate(draw(payloads))
    )
    return RecordBatch(
        base_offset=Offset(base_offset),
        epoch=Epoch(draw(st.integers(0, 2**31 - 1))),
        base_timestamp_ms=base_timestamp,
        max_timestamp_ms=draw(timestamps),
        records=records,
        attributes=draw(st.sampled_from([0, CONTROL_BIT, 0x10, 0x08])),
        producer_id=draw(st.integers(-1, 1 << 40)),
        producer_epoch=draw(st.integers(-1, 100)),
        base_sequence=draw(st.integers(-1, 1 << 30)),
    )


def test_batch_of_another_implementation_is_read_and_written_byte_for_byte() -> None:
    batch = decode_batch(KAFKA_PYTHON_BATCH)
    assert batch.records == KAFKA_PYTHON_RECORDS
    assert (batch.base_timestamp_ms, batch.max_timestamp_ms) == (1700000000123, 1700000000125)
    assert encode_batch(batch) == KAFKA_PYTHON_BATCH


def test_large_batch_equals_the_one_of_another_implementation() -> None:
    start = 1700000000000
    records = tuple(
        Record(Offset(i), start + 7 * i, b"k%d" % i, bytes([i % 256]) * (i * 9 % 400))
        for i in range(300)
    )
    batch = RecordBatch(Offset(0), Epoch(0), start, start + 7 * 299, records)
    assert hashlib.sha256(encode_batch(batch)).hexdigest() == KAFKA_PYTHON_LARGE_SHA256


@given(batches())
def test_every_batch_comes_back_as_it_was(batch: RecordBatch) -> None:
    raw = encode_batch(batch)
    assert decode_batch(raw) == batch
    assert peek_batch(raw) == (batch.base_offset, batch.last_offset, len(raw))


@given(payloads, timestamps)
def test_payload_form_writes_the_same_bytes_as_the_full_form(
    content: list[tuple[bytes | None, bytes | None]], timestamp_ms: int
) -> None:
    raw = encode_payloads(Offset(7), Epoch(3), timestamp_ms, content)
    batch = decode_batch(raw)
    assert [(record.key, record.value) for record in batch.records] == content
    assert {record.timestamp_ms for record in batch.records} == {timestamp_ms}
    assert encode_batch(batch) == raw


@given(batches(), st.data())
def test_one_flipped_bit_under_the_checksum_is_refused(
    batch: RecordBatch, data: st.DataObject
) -> None:
    raw = bytearray(encode_batch(batch))
    position = data.draw(st.integers(16, len(raw) - 1))
    raw[position] ^= 1 << data.draw(st.integers(0, 7))
    with pytest.raises(CorruptBatchError):
        check_batch(bytes(raw))


@pytest.mark.parametrize("is_sealed", [False, True])
@given(batches(), st.data())
def test_flipped_bits_raise_wire_errors_only_also_under_a_good_checksum(
    is_sealed: bool, batch: RecordBatch, data: st.DataObject
) -> None:
    raw = bytearray(encode_batch(batch))
    first = 21 if is_sealed else 0
    for _ in range(data.draw(st.integers(1, 4))):
        raw[data.draw(st.integers(first, len(raw) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    if is_sealed:
        raw[17:21] = crc32c.crc32c(bytes(raw[21:])).to_bytes(4, "big")
    with contextlib.suppress(WireError):
        decode_batch(bytes(raw))


@given(batches(), st.data())
def test_batch_cut_short_is_told_from_a_wrong_one(batch: RecordBatch, data: st.DataObject) -> None:
    raw = encode_batch(batch)
    with pytest.raises(CorruptBatchError) as caught:
        check_batch(raw[: data.draw(st.integers(0, len(raw) - 1))])
    assert caught.value.incomplete


def _raw(base_offset: int, epoch: int, count: int = 1) -> bytes:
    return encode_payloads(Offset(base_offset), Epoch(epoch), 5, [(None, b"x")] * count)


def test_concatenated_batches_are_described_in_order() -> None:
    first, second = _raw(5, 1, 3), _raw(8, 2)
    assert split_batches(first + second) == (
        BatchHeader(Offset(5), Offset(7), Epoch(1), len(first)),
        BatchHeader(Offset(8), Offset(8), Epoch(2), len(second)),
    )
    assert split_batches(b"") == ()


@pytest.mark.parametrize(
    ("second", "problem"),
    [
        (_raw(9, 1), "offset 9 follows 7"),
        (_raw(7, 1), "offset 7 follows 7"),
        (_raw(8, 0), "epoch 0 follows 1"),
    ],
)
def test_what_the_checksum_does_not_cover_is_held_against_the_neighbour(
    second: bytes, problem: str
) -> None:
    first = _raw(5, 1, 3)
    with pytest.raises(CorruptBatchError, match=problem) as caught:
        split_batches(first + second)
    assert caught.value.position == len(first)


def test_cut_last_batch_is_dropped_and_a_wrong_one_refused() -> None:
    first, second = _raw(5, 1), _raw(6, 1)
    whole, headers = split_whole_batches(first + second[:-1])
    assert (whole, len(headers)) == (first, 1)
    with pytest.raises(CorruptBatchError):
        split_whole_batches(first + second[:-1] + b"\xff")


def test_negative_offset_epoch_and_false_count_are_refused() -> None:
    raw = _raw(5, 1)
    for position, byte, problem in (
        (0, b"\xff", "negative"),
        (12, b"\xff", "negative"),
        (16, b"\1", "magic"),
    ):
        with pytest.raises(CorruptBatchError, match=problem):
            check_batch(raw[:position] + byte + raw[position + 1 :])


def test_zeros_as_a_lost_sector_leaves_them_are_no_batch() -> None:
    with pytest.raises(CorruptBatchError, match="length 0 is impossible"):
        check_batch(bytes(4096))


def test_empty_and_compressed_batches_are_not_written() -> None:
    with pytest.raises(ValueError, match="at least one record"):
        encode_payloads(Offset(0), Epoch(0), 0, [])
    batch = decode_batch(KAFKA_PYTHON_BATCH)
    compressed = RecordBatch(batch.base_offset, batch.epoch, 0, 0, batch.records, attributes=1)
    with pytest.raises(ValueError, match="compressed"):
        encode_batch(compressed)


def test_header_size_is_the_one_of_an_empty_record_section() -> None:
    assert len(KAFKA_PYTHON_BATCH) - HEADER_BYTES == 36
