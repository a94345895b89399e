"""The record that a changed byte of the log belongs to is named from what lies before it."""

import re

from splitbrain.nodes.quorum.identifiers import Epoch, Offset
from splitbrain.nodes.wire.batches import HEADER_BYTES, Record, RecordBatch, encode_batch
from splitbrain.systems.kraft.record_positions import record_at

LOG = "__cluster_metadata-0/00000000000000000007.log"


def batch(base: int, count: int) -> bytes:
    records = tuple(Record(Offset(base + n), 1, None, b"value") for n in range(count))
    return encode_batch(RecordBatch(Offset(base), Epoch(1), 1, 1, records))


def test_each_byte_of_the_log_belongs_to_the_record_of_its_batch() -> None:
    first, second, third = batch(7, 1), batch(8, 3), batch(11, 1)
    log = first + second + third
    for position in range(len(log)):
        hit = record_at(LOG, log[:position])
        assert hit is not None
        if position < len(first):
            wanted = "the record at offset 7 of the log"
        elif position < len(first) + len(second):
            wanted = "one of the records at offsets 8 to 10 of the log"
        else:
            wanted = "the record at offset 11 of the log"
        starts = (0, len(first), len(first) + len(second))
        if position - max(start for start in starts if start <= position) >= HEADER_BYTES:
            assert hit == wanted
        else:
            # The header that tells how many the batch holds is not whole before that byte.
            assert hit.endswith(" of the log, or its batch's header")
            assert re.findall(r"\d+", hit) == re.findall(r"\d+", wanted)[:1]


def test_what_is_behind_the_log_is_the_next_record() -> None:
    assert record_at(LOG, batch(7, 2)) == "the record at offset 9 of the log, or its batch's header"
    assert record_at(LOG, b"") == "the record at offset 7 of the log, or its batch's header"


def test_other_files_hold_no_records() -> None:
    assert record_at("__cluster_metadata-0/quorum-state", b"x" * 200) is None
    assert record_at("elsewhere/00000000000000000007.log", b"") is None
