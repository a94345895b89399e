"""Metadata transactions: what is let out, when, and with which offset and epoch."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from splitbrain.nodes.metadata.errors import ContradictionError, RecordError
from splitbrain.nodes.metadata.records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
    MetadataRecord,
    NoOpRecord,
    UnregisterBrokerRecord,
)
from splitbrain.nodes.metadata.serde import encode_record
from splitbrain.nodes.metadata.transactions import (
    MetadataBatch,
    Provenance,
    Settled,
    TransactionBuffer,
    read_batch,
)
from splitbrain.nodes.quorum.identifiers import Epoch, Offset
from splitbrain.nodes.wire.batches import decode_batch, encode_payloads

BEGIN, END, ABORT = BeginTransactionRecord(), EndTransactionRecord(), AbortTransactionRecord()


def numbered(number: int) -> MetadataRecord:
    return UnregisterBrokerRecord(number, number)


A, B, C, D = map(numbered, range(4))


def batch_at(base: int, epoch: int, *records: MetadataRecord) -> MetadataBatch:
    last = base + max(len(records), 1) - 1
    return MetadataBatch(Offset(base), Offset(last), Epoch(epoch), 1000 + base, records)


def summary(settled: Sequence[Settled]) -> list[tuple[list[MetadataRecord], int, int, int, bool]]:
    return [
        (
            list(each.records),
            each.provenance.last_offset,
            each.provenance.epoch,
            each.provenance.timestamp_ms,
            each.provenance.ends_batch,
        )
        for each in settled
    ]


def test_without_a_transaction_each_batch_counts_at_once() -> None:
    buffer = TransactionBuffer()
    assert summary(buffer.add(batch_at(0, 3, A, B))) == [([A, B], 1, 3, 1000, True)]
    # A batch of raft's own moves the log on.
    assert summary(buffer.add(batch_at(2, 4))) == [([], 2, 4, 1002, True)]
    assert buffer.end_offset == 3


def test_a_transaction_over_batches_and_epochs_counts_at_its_end() -> None:
    buffer = TransactionBuffer()
    assert buffer.add(batch_at(0, 1, BEGIN, A)) == ()
    assert buffer.opened_at == 0
    assert buffer.add(batch_at(2, 1, B)) == ()
    assert buffer.add(batch_at(3, 2)) == ()
    assert summary(buffer.add(batch_at(4, 2, C, END, D))) == [([A, B, C, D], 6, 2, 1004, True)]
    assert buffer.opened_at is None


def test_an_aborted_transaction_leaves_its_offsets_and_nothing_else() -> None:
    buffer = TransactionBuffer()
    assert buffer.add(batch_at(5, 1, BEGIN, A, B)) == ()
    # The next leader aborts what the last one left open.
    assert buffer.add(batch_at(8, 2)) == ()
    assert summary(buffer.add(batch_at(9, 2, ABORT))) == [([], 9, 2, 1009, True)]
    assert summary(buffer.add(batch_at(10, 2, C))) == [([C], 10, 2, 1010, True)]


def test_what_stands_before_a_transaction_counts_without_it() -> None:
    buffer = TransactionBuffer()
    assert summary(buffer.add(batch_at(0, 1, A, BEGIN, B))) == [([A], 0, 1, 1000, False)]
    assert buffer.opened_at == 1
    assert summary(buffer.add(batch_at(3, 1, END, C, BEGIN, D, ABORT))) == [
        ([B, C], 4, 1, 1003, False),
        ([], 7, 1, 1003, True),
    ]


def test_a_snapshot_may_not_end_within_a_batch() -> None:
    first, second = TransactionBuffer().add(batch_at(0, 1, A, BEGIN, B, END))
    assert (first.provenance.ends_batch, second.provenance.ends_batch) == (False, True)
    assert second.provenance.end_offset == 4
    assert Provenance().end_offset == 0


@pytest.mark.parametrize(
    ("records", "problem"),
    [
        ((BEGIN, A, BEGIN), "BeginTransactionRecord at offset 9, while the transaction from off"),
        ((A, END), "EndTransactionRecord at offset 8, while no transaction is open"),
        ((ABORT,), "AbortTransactionRecord at offset 7, while no transaction is open"),
    ],
)
def test_what_no_controller_writes_is_refused(
    records: tuple[MetadataRecord, ...], problem: str
) -> None:
    with pytest.raises(ContradictionError, match=problem):
        TransactionBuffer().add(batch_at(7, 1, *records))


def test_a_batch_is_taken_once() -> None:
    buffer = TransactionBuffer(Offset(4))
    with pytest.raises(ContradictionError, match="from offset 3 comes after offset 3"):
        buffer.add(batch_at(3, 1, A))
    buffer.add(batch_at(4, 1, A))
    with pytest.raises(ContradictionError, match="from offset 4 comes after offset 4"):
        buffer.add(batch_at(4, 1, A))


#: Transactions and lone records: how each ends, and how many records it has.
COURSES = st.lists(
    st.tuples(st.sampled_from(["lone", "ended", "aborted"]), st.integers(0, 4)), max_size=8
)


@given(COURSES, st.data())
def test_however_the_log_is_cut_into_batches_the_same_records_count(
    courses: list[tuple[str, int]], data: st.DataObject
) -> None:
    log: list[MetadataRecord] = []
    counting: list[MetadataRecord] = []
    #: Whether a transaction is open after each record.
    is_open: list[bool] = []
    for kind, count in courses:
        content = [numbered(len(log) + at) for at in range(count)]
        if kind == "lone":
            log += content
            is_open += [False] * count
        else:
            log += [BEGIN, *content, END if kind == "ended" else ABORT]
            is_open += [True] * (count + 1) + [False]
        counting += content if kind != "aborted" else []
    buffer = TransactionBuffer()
    seen: list[MetadataRecord] = []
    position = 0
    while position < len(log):
        size = data.draw(st.integers(1, len(log) - position))
        batch = batch_at(position, 1, *log[position : position + size])
        settled = buffer.add(batch)
        position += size
        for each in settled:
            seen += each.records
            assert not is_open[each.provenance.last_offset]
        assert (buffer.opened_at is not None) == is_open[position - 1]
        if not is_open[position - 1]:
            assert settled[-1].provenance.last_offset == position - 1
    assert seen == counting


def test_a_batch_of_the_log_is_read() -> None:
    payloads = [(None, encode_record(record)) for record in (BEGIN, A, NoOpRecord())]
    raw = encode_payloads(Offset(40), Epoch(6), 77, payloads)
    read = read_batch(decode_batch(raw))
    assert read == MetadataBatch(Offset(40), Offset(42), Epoch(6), 77, [BEGIN, A, NoOpRecord()])
    control = encode_payloads(Offset(43), Epoch(6), 78, [(b"\0\0\0\2", b"x")], is_control=True)
    assert read_batch(decode_batch(control)) == MetadataBatch(
        Offset(43), Offset(43), Epoch(6), 78, []
    )


def test_a_record_without_value_is_refused() -> None:
    raw = encode_payloads(Offset(40), Epoch(6), 77, [(None, None)])
    with pytest.raises(RecordError, match="offset 40 has no value"):
        read_batch(decode_batch(raw))
