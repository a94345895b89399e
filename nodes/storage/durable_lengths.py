"""Durable lengths for recovery tooling: how much of each file is on the disk, told beside the data.

A table in a file of its own, on a disk that need not be the data's: one line of JSON per file,
padded to a fixed size and rewritten in place, so that whoever reads it after the process was killed
finds every line whole. A line is rewritten after each completed sync and before anybody is told of
the sync; so bytes above the length may be lost by a power cut, and bytes below may not.

    {"path": "__cluster_metadata-0/quorum-state", "length": 108, "named": true}

``path`` is relative to the data folder; ``length`` counts the bytes that a sync has covered;
``named`` tells whether the folder was synced since the name was made. A truncation counts as
durable at once, and so does a write below the length: a disk may have been that fast. An empty line
is free. The table itself is never synced: it tells of a dead process, not of a dead machine.

Must never call durable what no completed sync has covered.
"""

import os
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Final

import msgspec

from splitbrain.nodes.storage.disk import DiskFile, DiskFileSystem

#: A divisor of the page size: a line is copied into the page cache in one go.
LINE_BYTES: Final = 512


class DurableLength(msgspec.Struct, frozen=True):
    """One line of the table."""

    path: str
    length: int
    named: bool


class DurableLengths:
    """The table of one data folder."""

    def __init__(
        self, table: Path, folder: Path, lock: AbstractContextManager[object] | None = None
    ) -> None:
        """Open the table of the folder's files, or make it; lines of files that are gone are freed.

        ``lock`` is held during every change; needed where files are used by several threads. Raises
        OSError: it cannot be opened.
        """
        self._folder = folder
        self._lock = nullcontext() if lock is None else lock
        table.parent.mkdir(parents=True, exist_ok=True)
        self._descriptor = os.open(table, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        self._lines: dict[str, tuple[int, DurableLength]] = {}
        self._free: list[int] = []
        self._count = 0
        content = table.read_bytes()
        for start in range(0, len(content) - LINE_BYTES + 1, LINE_BYTES):
            line = content[start : start + LINE_BYTES].strip()
            self._count += 1
            entry = msgspec.json.decode(line, type=DurableLength) if line else None
            if entry is not None and (folder / entry.path).exists():
                self._lines[entry.path] = self._count - 1, entry
            else:
                self._clear(self._count - 1)

    def opened(self, path: Path, *, is_new: bool) -> None:
        """A file is about to be used; a new one has nothing durable, not even its name."""
        with self._lock:
            if is_new or self._name(path) not in self._lines:
                # Bytes from before the count began were written by a process that is gone.
                length = 0 if is_new else path.stat().st_size
                self._put(DurableLength(self._name(path), length, named=not is_new))

    def synced(self, path: Path, length: int) -> None:
        """A sync that began when the file had this length is complete."""
        with self._lock:
            line = self._lines.get(self._name(path))
            if line is not None and line[1].length != length:
                self._put(msgspec.structs.replace(line[1], length=length))

    def truncated(self, path: Path, length: int) -> None:
        """Note that the file was cut (or grown) to this length."""
        with self._lock:
            line = self._lines.get(self._name(path))
            if line is not None and line[1].length > length:
                self._put(msgspec.structs.replace(line[1], length=length))

    def renamed(self, old: Path, new: Path) -> None:
        """``old`` has taken the place of ``new``; a name that existed before is durable anyway."""
        with self._lock:
            replaced = self._free_line(new)
            line = self._free_line(old)
            if line is not None:
                named = replaced is not None and replaced.named
                self._put(DurableLength(self._name(new), line.length, named=named))

    def removed(self, path: Path) -> None:
        """Note that the file is gone."""
        with self._lock:
            self._free_line(path)

    def folder_synced(self, folder: Path) -> None:
        """All names in the folder are durable."""
        with self._lock:
            for _, entry in list(self._lines.values()):
                if not entry.named and (self._folder / entry.path).parent == folder:
                    self._put(msgspec.structs.replace(entry, named=True))

    def close(self) -> None:
        """Close the table."""
        os.close(self._descriptor)

    def _name(self, path: Path) -> str:
        return path.relative_to(self._folder).as_posix()

    def _put(self, entry: DurableLength) -> None:
        line = self._lines.get(entry.path)
        if line is not None:
            number = line[0]
        elif self._free:
            number = self._free.pop()
        else:
            number, self._count = self._count, self._count + 1
        text = msgspec.json.encode(entry)
        os.pwrite(self._descriptor, text.ljust(LINE_BYTES - 1) + b"\n", number * LINE_BYTES)
        self._lines[entry.path] = number, entry

    def _free_line(self, path: Path) -> DurableLength | None:
        line = self._lines.pop(self._name(path), None)
        if line is None:
            return None
        self._clear(line[0])
        return line[1]

    def _clear(self, number: int) -> None:
        os.pwrite(self._descriptor, b" " * (LINE_BYTES - 1) + b"\n", number * LINE_BYTES)
        self._free.append(number)


class CountingFile(DiskFile):
    """A file whose syncs are told to the table."""

    def __init__(self, path: Path, flags: int, lengths: DurableLengths) -> None:
        super().__init__(path, flags)
        self._lengths = lengths

    def truncate(self, size_bytes: int) -> None:
        """Cut or extend to ``size_bytes``."""
        super().truncate(size_bytes)
        self._lengths.truncated(self.path, size_bytes)

    def sync(self) -> None:
        """Make content and size durable, and say so."""
        # Before the sync: what is appended meanwhile may or may not be covered.
        length = self.size()
        super().sync()
        self._lengths.synced(self.path, length)


class CountingFileSystem(DiskFileSystem):
    """The machine's file system, which keeps the table of one data folder."""

    def __init__(self, lengths: DurableLengths) -> None:
        self._lengths = lengths

    def open(self, path: Path, *, create: bool = False) -> DiskFile:
        """Open for reading and writing."""
        is_new = create and not self.exists(path)
        file = CountingFile(path, os.O_RDWR | (os.O_CREAT if create else 0), self._lengths)
        self._lengths.opened(path, is_new=is_new)
        return file

    def rename(self, old: Path, new: Path) -> None:
        """Rename atomically, replacing ``new``."""
        super().rename(old, new)
        self._lengths.renamed(old, new)

    def remove(self, path: Path) -> None:
        """Remove a file's name."""
        super().remove(path)
        self._lengths.removed(path)

    def sync_folder(self, folder: Path) -> None:
        """Make the names in the folder durable."""
        super().sync_folder(folder)
        self._lengths.folder_synced(folder)
