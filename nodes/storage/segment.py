"""One segment file of the log, with a sparse index from offset to byte position in memory.

The index has an entry about every ``INDEX_INTERVAL_BYTES``: finding an offset reads that much at
most and walks it. Bytes past the limit that the caller gives are never handed out, for the end of
the file may be growing.
"""

from array import array
from bisect import bisect_right
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from splitbrain.nodes.quorum.identifiers import Offset
from splitbrain.nodes.quorum.messages import BatchHeader
from splitbrain.nodes.storage.errors import CorruptStorageError
from splitbrain.nodes.storage.filesystem import DataFile
from splitbrain.nodes.wire.batches import (
    BATCH_BYTES_MAX,
    HEADER_BYTES,
    LENGTH_PREFIX_BYTES,
    RecordBatch,
    check_batch,
    decode_batch,
    peek_batch,
)
from splitbrain.nodes.wire.errors import WireError

INDEX_INTERVAL_BYTES: Final = 4096
#: How many of the newest batches are found at once: followers nearly always ask for those.
RECENT_BATCHES: Final = 128
_SCAN_WINDOW_BYTES: Final = 1024 * 1024


class Segment:
    """A segment file and where its batches are."""

    def __init__(self, base_offset: Offset, file: DataFile) -> None:
        #: First offset of the segment, as its name says.
        self.base_offset = base_offset
        self.file = file
        #: One past its last record.
        self.end_offset = base_offset
        #: Bytes of the batches that it is known to hold.
        self.size_bytes = 0
        self._index_offsets = array("q")
        self._index_positions = array("q")
        #: Position of each of the newest batches by its base offset, oldest first.
        self._recent: dict[Offset, int] = {}

    @property
    def path(self) -> Path:
        """Where the file is."""
        return self.file.path

    def append(self, raw: bytes, headers: tuple[BatchHeader, ...]) -> None:
        """Write batches at the end and note them.

        Raises OSError: the disk refused; the end of the file is undefined then.
        """
        self.file.write_at(self.size_bytes, raw)
        for header in headers:
            self.note(header)

    def note(self, header: BatchHeader) -> None:
        """Take a batch that lies at the end into account."""
        positions = self._index_positions
        if not positions or self.size_bytes - positions[-1] >= INDEX_INTERVAL_BYTES:
            self._index_offsets.append(header.base_offset)
            positions.append(self.size_bytes)
        self._recent[header.base_offset] = self.size_bytes
        if len(self._recent) > RECENT_BATCHES:
            del self._recent[next(iter(self._recent))]
        self.size_bytes += header.size_bytes
        self.end_offset = Offset(header.last_offset + 1)

    def cut(self, end_offset: Offset, size_bytes: int) -> None:
        """Drop all batches from this place on, from the file and from the index; raises OSError."""
        self.file.truncate(size_bytes)
        keep = bisect_right(self._index_positions, size_bytes - 1)
        del self._index_offsets[keep:]
        del self._index_positions[keep:]
        self._recent.clear()
        self.size_bytes = size_bytes
        self.end_offset = end_offset

    def find(self, offset: Offset, limit_bytes: int) -> tuple[int, Offset]:
        """Position and base offset of the batch that holds ``offset``.

        ``offset`` is at least the segment's base offset and below its end. Raises
        CorruptStorageError: the headers before ``limit_bytes`` do not lead there.
        """
        recent = self._recent.get(offset)
        if recent is not None and recent < limit_bytes:
            return recent, offset
        entry = bisect_right(self._index_offsets, offset) - 1
        position = self._index_positions[entry] if entry >= 0 else 0
        window = self.file.read_at(position, min(2 * INDEX_INTERVAL_BYTES, limit_bytes - position))
        start = position
        while position < limit_bytes:
            if position - start + HEADER_BYTES > len(window):
                window = self.file.read_at(position, min(HEADER_BYTES, limit_bytes - position))
                start = position
                if len(window) < HEADER_BYTES:
                    break
            base_offset, last_offset, size_bytes = peek_batch(window, position - start)
            if size_bytes < HEADER_BYTES or base_offset > offset:
                break
            if offset <= last_offset:
                return position, base_offset
            position += size_bytes
        raise CorruptStorageError(
            self.path, "the batches do not follow each other", offset=offset, position=position
        )

    def read(self, position: int, limit_bytes: int, end_offset: Offset, max_bytes: int) -> bytes:
        """Whole batches from ``position`` on that lie below ``end_offset``.

        As many as fit into ``max_bytes``, but one at least if there is one; none from
        ``limit_bytes`` on. Raises CorruptStorageError: a batch's header cannot be.
        """
        available = limit_bytes - position
        raw = self.file.read_at(position, max(min(max_bytes, available), HEADER_BYTES))
        cursor = 0
        while len(raw) - cursor >= HEADER_BYTES:
            _, last_offset, size_bytes = peek_batch(raw, cursor)
            if not HEADER_BYTES <= size_bytes <= available - cursor:
                raise CorruptStorageError(
                    self.path, f"a batch says {size_bytes} bytes", position=position + cursor
                )
            if last_offset >= end_offset:
                break
            if cursor + size_bytes > len(raw):
                if cursor == 0:
                    return self.file.read_at(position, size_bytes)
                break
            cursor += size_bytes
        return raw[:cursor]

    def check(self, position: int, base_offset: Offset, limit_bytes: int) -> None:
        """Check one whole batch, which should begin at ``base_offset``, its checksum too.

        Raises CorruptStorageError: it is not intact.
        """
        header = self.file.read_at(position, HEADER_BYTES)
        size_bytes = peek_batch(header)[2]
        raw = self.file.read_at(position, max(0, min(size_bytes, limit_bytes - position)))
        try:
            found = check_batch(raw).base_offset
        except WireError as error:
            raise CorruptStorageError(self.path, str(error), position=position) from error
        if found != base_offset:
            raise CorruptStorageError(
                self.path, f"a batch says that it begins at {found}", offset=base_offset
            )

    def close(self) -> None:
        """Close the file."""
        self.file.close()


def scan_batches(file: DataFile, size_bytes: int) -> Iterator[tuple[int, BatchHeader]]:
    """Every batch of a file with its position, each fully checked, from the start.

    Raises:
        CorruptBatchError: at the first batch that is cut short or wrong; ``position`` is its
            position *within the window* and of no use, the caller counts.
    """
    position = 0
    window = b""
    start = 0
    while position < size_bytes:
        rest = window[position - start : position - start + LENGTH_PREFIX_BYTES]
        needed = HEADER_BYTES
        if len(rest) == LENGTH_PREFIX_BYTES:
            length = int.from_bytes(rest[8:], "big", signed=True)
            needed = max(needed, min(LENGTH_PREFIX_BYTES + length, BATCH_BYTES_MAX))
        if start + len(window) < min(position + needed, size_bytes):
            start = position
            window = file.read_at(position, max(needed, _SCAN_WINDOW_BYTES))
            continue
        header = check_batch(window, position - start)
        yield position, header
        position += header.size_bytes


def decoded_batches(segment: Segment) -> Iterator[RecordBatch]:
    """Yield a scanned segment's intact batches, in order.

    Raises CorruptStorageError: one cannot be read any more.
    """
    position = 0
    while position < segment.size_bytes:
        raw = segment.read(position, segment.size_bytes, segment.end_offset, _SCAN_WINDOW_BYTES)
        cursor = 0
        while cursor < len(raw):
            try:
                yield decode_batch(raw, cursor)
            except WireError as error:
                raise CorruptStorageError(
                    segment.path, str(error), position=position + cursor
                ) from error
            cursor += peek_batch(raw, cursor)[2]
        position += cursor
