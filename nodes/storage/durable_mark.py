"""The durable-length mark: up to where the log is known to have been flushed.

It tells corruption from a torn tail. Below it every batch was flushed once, so an invalid one is
rot and the node must not start; above it an invalid one was never acknowledged by a flush that the
mark knows of. The mark may lag, never lead: it is written after the log's own sync, and rolled
back, durably, before the log is truncated. It lags by at most one flush group; rot within that
last group cannot be told from a torn tail.

The file has two slots of one sector each, written in turn, each with a sequence number and a
checksum: a torn write spoils one slot and leaves the other.
"""

from pathlib import Path
from struct import Struct
from typing import Final, NamedTuple

import crc32c

from splitbrain.nodes.storage.errors import CorruptStorageError
from splitbrain.nodes.storage.filesystem import DataFile, FileSystem

_SECTOR_BYTES: Final = 512
_SLOTS: Final = 2
_MAGIC: Final = b"SBDL"
# sequence, segment's base offset, bytes of the segment, end offset
_BODY: Final = Struct(">qqqq")
_CHECKSUM: Final = Struct(">I")
#: Of a slot, so many bytes say something; the rest of its sector is padding.
STATEMENT_BYTES: Final = len(_MAGIC) + _BODY.size + _CHECKSUM.size


class LogPosition(NamedTuple):
    """A byte position in the log; ordered as the log is."""

    #: Base offset of the segment.
    segment: int
    #: Byte position within the segment's file.
    byte: int


class DurableMark(NamedTuple):
    """One statement of how much is flushed."""

    #: Counts the statements; the higher of two slots holds.
    sequence: int
    #: All bytes before it are flushed.
    position: LogPosition
    #: All records below it are flushed.
    end_offset: int


class DurableMarkFile:
    """The mark of an open log; ``write`` then ``sync``, blocking."""

    def __init__(self, file: DataFile, mark: DurableMark) -> None:
        self._file = file
        #: The last mark written.
        self.mark = mark
        self._synced = True

    @property
    def path(self) -> Path:
        """Where the mark is kept."""
        return self._file.path

    def write(self, position: LogPosition, end_offset: int) -> None:
        """State a new mark; it may stay in the page cache until ``sync``; raises OSError."""
        self.mark = DurableMark(self.mark.sequence + 1, position, end_offset)
        slot = self.mark.sequence % _SLOTS
        self._synced = False
        self._file.write_at(slot * _SECTOR_BYTES, _encode(self.mark))

    def sync(self) -> None:
        """Make the last mark durable; does nothing if it is; raises OSError: the disk refused."""
        if not self._synced:
            self._file.sync()
            self._synced = True

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def write_new_mark(filesystem: FileSystem, path: Path, mark: DurableMark) -> None:
    """Make the file with ``mark`` in both slots; durable but for its name in the folder.

    Raises OSError: the disk refused.
    """
    file = filesystem.open(path, create=True)
    try:
        file.truncate(0)
        file.write_at(0, _encode(mark) * _SLOTS)
        file.sync()
    finally:
        file.close()


def read_mark(filesystem: FileSystem, path: Path) -> DurableMark:
    """Return the newest mark in the file.

    Raises CorruptStorageError: the file is missing, or neither slot can be read.
    """
    try:
        content = filesystem.read(path)
    except FileNotFoundError as error:
        raise CorruptStorageError(path, "the file is missing") from error
    slots = (content[index * _SECTOR_BYTES :] for index in range(_SLOTS))
    marks = [mark for slot in slots if (mark := _decode(slot)) is not None]
    if not marks:
        raise CorruptStorageError(path, "neither of its slots can be read")
    return max(marks)


def open_mark(filesystem: FileSystem, path: Path) -> DurableMarkFile:
    """Open the mark of an existing log for writing.

    Raises CorruptStorageError: as ``read_mark``.
    """
    mark = read_mark(filesystem, path)
    return DurableMarkFile(filesystem.open(path), mark)


def _encode(mark: DurableMark) -> bytes:
    body = _MAGIC + _BODY.pack(mark.sequence, *mark.position, mark.end_offset)
    return (body + _CHECKSUM.pack(crc32c.crc32c(body))).ljust(_SECTOR_BYTES, b"\0")


def _decode(slot: bytes) -> DurableMark | None:
    body_size = len(_MAGIC) + _BODY.size
    if len(slot) < body_size + _CHECKSUM.size or not slot.startswith(_MAGIC):
        return None
    body = slot[:body_size]
    if _CHECKSUM.unpack_from(slot, body_size)[0] != crc32c.crc32c(body):
        return None
    sequence, segment, byte, end_offset = _BODY.unpack_from(body, len(_MAGIC))
    return DurableMark(sequence, LogPosition(segment, byte), end_offset)
