"""How often a segment asks the disk to find a batch: a follower that lags waits for each read."""

from pathlib import Path

from splitbrain.nodes.quorum.identifiers import Epoch, Offset
from splitbrain.nodes.quorum.messages import BatchHeader
from splitbrain.nodes.storage.filesystem import DataFile
from splitbrain.nodes.storage.segment import INDEX_INTERVAL_BYTES, Segment
from splitbrain.nodes.wire.batches import encode_payloads
from splitbrain.simulation.disk.file_system import MemoryFileSystem

PATH = Path("/log")
VALUE = [(None, b"v" * 100)]
SIZE = len(encode_payloads(Offset(0), Epoch(1), 5, VALUE))


def segment_of(count: int) -> Segment:
    """A segment of so many batches of one record each, as recovery makes it."""
    memory = MemoryFileSystem()
    memory.make_folder(PATH.parent)
    file: DataFile = memory.open(PATH, create=True)
    segment = Segment(Offset(0), file)
    for offset in range(count):
        raw = encode_payloads(Offset(offset), Epoch(1), 5, VALUE)
        header = BatchHeader(Offset(offset), Offset(offset), Epoch(1), len(raw))
        segment.append(raw, (header,))
    return segment


class CountedReads:
    """Stands for a file and counts what is read of it."""

    def __init__(self, file: DataFile) -> None:
        self.path = file.path
        self.file = file
        self.count = 0

    def read_at(self, position: int, size_bytes: int) -> bytes:
        self.count += 1
        return self.file.read_at(position, size_bytes)


def test_a_batch_between_two_entries_of_the_index_is_found_with_one_read() -> None:
    count = 5 * INDEX_INTERVAL_BYTES // SIZE
    segment = segment_of(count)
    for offset in range(count):
        # The last batch is known without a look at the file.
        segment._recent.clear()
        reads = CountedReads(segment.file)
        segment.file = reads  # pyright: ignore[reportAttributeAccessIssue]
        assert segment.find(Offset(offset), segment.size_bytes) == (offset * SIZE, offset)
        assert reads.count == 1
        segment.file = reads.file


def test_a_batch_that_was_just_appended_is_found_without_a_read() -> None:
    segment = segment_of(10)
    reads = CountedReads(segment.file)
    segment.file = reads  # pyright: ignore[reportAttributeAccessIssue]
    assert segment.find(Offset(9), segment.size_bytes) == (9 * SIZE, 9)
    assert reads.count == 0
