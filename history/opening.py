"""Opening of a history's file, packed with gzip or not, and numbering of its lines.

Every refusal by the file system or the packing becomes one ``HistoryError`` with the next step.
Byte offsets are those of the unpacked text. A packed file says nothing of its size, so its reader
sets a memory limit. Must never hold a whole file.
"""

import gzip
import io
import os
import zlib
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import IO, Any, Final, NamedTuple

from splitbrain.history.errors import HistoryError
from splitbrain.history.process_budget import resident_mib

#: Next step where a file cannot be had.
OTHER_FILE: Final = "Name a run folder or a history file that can be read"
_GZIP_MARK = b"\x1f\x8b"
_BLOCK_BYTES = 1 << 20
#: Resident mebibytes of this process while it reads a packed file; None for any number.
_memory_budget_mib: Final[ContextVar[int | None]] = ContextVar("memory_budget_mib", default=None)
#: Told bytes that are read of a file, and its size.
Took = Callable[[int, int], None]
_took: Final[ContextVar[Took | None]] = ContextVar("took", default=None)


class NumberedLine(NamedTuple):
    """Line without its line feed."""

    #: From 1.
    number: int
    #: Start in the unpacked text.
    byte_offset: int
    content: bytes
    #: Whether it ends with a line feed; only the last one may not.
    whole: bool


@contextmanager
def reading_within(memory_budget_mib: int | None, took: Took | None = None) -> Generator[None]:
    """Refuse within the block a packed file that takes this process beyond its memory.

    A megabyte may unpack to a thousand of them, in one line or in many; None: no limit. ``took`` is
    told block by block how much of a file is read, as it lies there: of a packed one the packed
    bytes.
    """
    token, told = _memory_budget_mib.set(memory_budget_mib), _took.set(took)
    try:
        yield
    finally:
        _memory_budget_mib.reset(token)
        _took.reset(told)


class _Told(io.FileIO):
    """A file that tells how much of it is read."""

    def __init__(self, path: Path, took: Took) -> None:
        super().__init__(path)
        self._took, self._done, self._size = took, 0, os.fstat(self.fileno()).st_size

    def readinto(self, buffer: Any) -> int:
        count = super().readinto(buffer)
        self._done += count
        self._took(min(self._done, self._size), self._size)
        return count


def _file(path: Path) -> IO[bytes]:
    took = _took.get()
    return path.open("rb") if took is None else io.BufferedReader(_Told(path, took), _BLOCK_BYTES)


class _Unpacked(io.RawIOBase):
    """Unpacked bytes of a file, within the memory limit."""

    def __init__(self, path: Path, unpacked: gzip.GzipFile, memory_budget_mib: int | None) -> None:
        self._path, self._unpacked, self._budget_mib = path, unpacked, memory_budget_mib

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if self._budget_mib is not None and resident_mib(os.getpid()) > self._budget_mib:
            raise HistoryError(
                str(self._path),
                f"unpacked, it takes more than the memory budget of {self._budget_mib:,} MiB",
                "Look what it holds, and judge it unpacked: gzip -dc FILE > HISTORY",
            )
        return self._unpacked.readinto(buffer)


@contextmanager
def opened(path: Path) -> Generator[IO[bytes]]:
    """Yield the unpacked bytes of a file; read errors inside the block are converted too.

    Raises:
        HistoryError: the file cannot be opened or read, or its packing is broken.
    """
    try:
        with _file(path) as file:
            if file.read(len(_GZIP_MARK)) != _GZIP_MARK:
                file.seek(0)
                yield file
                return
            file.seek(0)
            with gzip.GzipFile(fileobj=file) as unpacked:
                # Without a buffer each line is a call into the packing.
                raw = _Unpacked(path, unpacked, _memory_budget_mib.get())
                yield io.BufferedReader(raw, _BLOCK_BYTES)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        problem = (
            "its gzip packing ends too early"
            if isinstance(error, EOFError)
            else f"its gzip packing is broken ({error})"
        )
        raise HistoryError(
            str(path), problem, "Copy it again, or judge what is left: gzip -dc FILE > REST"
        ) from error
    except OSError as error:
        raise cannot_open(path, error) from error


def is_packed(path: Path) -> bool:
    """Return whether the file is packed with gzip.

    Raises:
        HistoryError: the file cannot be opened or read.
    """
    try:
        with path.open("rb") as file:
            return file.read(len(_GZIP_MARK)) == _GZIP_MARK
    except OSError as error:
        raise cannot_open(path, error) from error


def numbered_lines(path: Path) -> Iterator[NumberedLine]:
    """Yield the lines of a file, one at a time.

    Raises:
        HistoryError: see ``opened``.
    """
    with opened(path) as file:
        offset = 0
        for number, line in enumerate(file, start=1):
            whole = line.endswith(b"\n")
            yield NumberedLine(number, offset, line[:-1] if whole else line, whole)
            offset += len(line)


def cannot_open(path: Path, error: OSError) -> HistoryError:
    """Return the error for a file that the system refuses."""
    return HistoryError(str(path), error.strerror or str(error), OTHER_FILE)
