"""A file system in memory with the crashes of a real one, for tests and simulation.

Contents: bytes written but not synced may be lost at a crash, each 512-byte sector for itself, and
a file that grew may keep any part of its growth. Names: what was created, renamed or removed since
the folder's last sync may be undone, newest first. With no random source a crash is the worst case
that is still simple: everything unsynced is lost. Syncs and writes can be made to fail, and bytes
to rot. Must behave as ``DiskFileSystem`` as long as nothing of that happens.
"""

import errno
from collections.abc import Callable
from pathlib import Path
from typing import Final

from nodes.quorum.random_source import RandomSource
from nodes.storage.errors import StorageInUseError

SECTOR_BYTES: Final = 512


class _Content:
    """The bytes behind a name: as the process sees them, and as the disk holds them."""

    def __init__(self) -> None:
        self.current = bytearray()
        self.durable = b""

    def sync(self) -> None:
        self.durable = bytes(self.current)

    def crash(self, random: RandomSource | None) -> None:
        current = bytes(self.current)
        if random is not None and current != self.durable:
            self.durable = _torn(self.durable, current, random)
        self.current = bytearray(self.durable)


def _torn(durable: bytes, current: bytes, random: RandomSource) -> bytes:
    """Some sectors of the new content, some of the old; a grown file keeps part of its growth."""
    low, high = sorted((len(durable), len(current)))
    size_bytes = low + int(random.random() * (high - low + 1))
    result = bytearray(durable[:size_bytes].ljust(size_bytes, b"\0"))
    for start in range(0, size_bytes, SECTOR_BYTES):
        end = min(start + SECTOR_BYTES, size_bytes)
        if random.random() < 0.5:
            sector = current[start:end]
            result[start : start + len(sector)] = sector
    return bytes(result)


class MemoryFile:
    """An open file of a ``MemoryFileSystem``."""

    def __init__(self, filesystem: "MemoryFileSystem", path: Path, content: _Content) -> None:
        self._filesystem = filesystem
        self._path = path
        self._content = content
        self._closed = False

    @property
    def path(self) -> Path:
        """Where it was opened."""
        return self._path

    def size(self) -> int:
        """Bytes in the file."""
        return len(self._open().current)

    def read_at(self, position: int, size_bytes: int) -> bytes:
        """Up to ``size_bytes`` from ``position``."""
        return bytes(self._open().current[position : position + size_bytes])

    def write_at(self, position: int, data: bytes) -> None:
        """Write all of ``data``; a full disk takes the first half of it."""
        current = self._open().current
        error = self._filesystem.refusal("write", self._path)
        if error is not None:
            data = data[: len(data) // 2]
        if position > len(current):
            current.extend(bytes(position - len(current)))
        current[position : position + len(data)] = data
        if error is not None:
            raise error

    def truncate(self, size_bytes: int) -> None:
        """Cut or extend with zeros."""
        current = self._open().current
        self._filesystem.refuse("truncate", self._path)
        del current[size_bytes:]
        current.extend(bytes(size_bytes - len(current)))

    def sync(self) -> None:
        """Make content and size durable."""
        content = self._open()
        self._filesystem.refuse("sync", self._path)
        content.sync()

    def close(self) -> None:
        """Close without syncing."""
        self._closed = True

    def _open(self) -> _Content:
        if self._closed:
            raise ValueError(f"{self._path} is closed")
        return self._content


class _MemoryLock:
    def __init__(self, held: set[Path], path: Path) -> None:
        self._held = held
        self._path = path

    def release(self) -> None:
        self._held.discard(self._path)


class MemoryFileSystem:
    """Files in memory. ``crash`` ends every open file's life: open anew afterwards."""

    def __init__(self) -> None:
        self._names: dict[Path, _Content] = {}
        self._folders: dict[Path, None] = {Path("/"): None}
        #: For each folder, how to undo each change of names since its last sync, oldest first.
        self._undo: dict[Path, list[Callable[[], None]]] = {}
        self._held: set[Path] = set()
        #: Asked before each write, truncate, sync and sync-folder: an errno to fail with, or None.
        self.fault: Callable[[str, Path], int | None] | None = None
        #: What was done, in order, as (action, path); tests clear it.
        self.journal: list[tuple[str, Path]] = []

    def refusal(self, action: str, path: Path) -> OSError | None:
        """Note the action and ask ``fault`` whether it fails."""
        self.journal.append((action, path))
        number = self.fault(action, path) if self.fault is not None else None
        return None if number is None else OSError(number, errno.errorcode[number], str(path))

    def refuse(self, action: str, path: Path) -> None:
        """As ``refusal``, but raises."""
        error = self.refusal(action, path)
        if error is not None:
            raise error

    def crash(self, random: RandomSource | None = None) -> None:
        """Lose power: unsynced bytes and names go, wholly or (with ``random``) in part."""
        for folder in sorted(self._undo):
            changes = self._undo[folder]
            kept = 0 if random is None else int(random.random() * (len(changes) + 1))
            for undo in reversed(changes[kept:]):
                undo()
        self._undo.clear()
        for content in self._names.values():
            content.crash(random)
        self._held.clear()

    def kill(self) -> None:
        """End the process alone: locks go, everything written stays."""
        self._held.clear()

    def rot(self, path: Path, position: int, mask: int = 0x01) -> None:
        """Flip bits of one byte, in what the disk holds too."""
        content = self._content(path)
        content.current[position] ^= mask
        durable = bytearray(content.durable)
        if position < len(durable):
            durable[position] ^= mask
        content.durable = bytes(durable)

    def open(self, path: Path, *, create: bool = False) -> MemoryFile:
        """Open for reading and writing."""
        if path not in self._names:
            if not create:
                raise FileNotFoundError(errno.ENOENT, "no such file", str(path))
            self._need_folder(path.parent)
            self._names[path] = _Content()
            self._note(path.parent, lambda: self._names.pop(path, None))
        return MemoryFile(self, path, self._names[path])

    def read(self, path: Path) -> bytes:
        """The whole content."""
        return bytes(self._content(path).current)

    def exists(self, path: Path) -> bool:
        """Whether a file or folder has this name."""
        return path in self._names or path in self._folders

    def list(self, folder: Path) -> list[str]:
        """Names in the folder, sorted."""
        self._need_folder(folder)
        paths = (*self._names, *self._folders)
        return sorted(path.name for path in paths if path.parent == folder != path)

    def make_folder(self, folder: Path) -> None:
        """Make the folder and its parents; folders are durable at once."""
        for path in (folder, *folder.parents):
            self._folders.setdefault(path)

    def rename(self, old: Path, new: Path) -> None:
        """Rename atomically, replacing ``new``."""
        content = self._content(old)
        self.refuse("rename", new)
        replaced = self._names.get(new)
        del self._names[old]
        self._names[new] = content

        def undo() -> None:
            self._names[old] = content
            self._restore(new, replaced)

        self._note(new.parent, undo)

    def remove(self, path: Path) -> None:
        """Remove a file's name."""
        content = self._content(path)
        self.refuse("remove", path)
        del self._names[path]
        self._note(path.parent, lambda: self._restore(path, content))

    def sync_folder(self, folder: Path) -> None:
        """Make the names in the folder durable."""
        self._need_folder(folder)
        self.refuse("sync-folder", folder)
        self._undo.pop(folder, None)

    def lock(self, path: Path) -> _MemoryLock:
        """Hold the lock file.

        Raises:
            StorageInUseError: it is held.
        """
        if path in self._held:
            raise StorageInUseError(path)
        self._held.add(path)
        return _MemoryLock(self._held, path)

    def _note(self, folder: Path, undo: Callable[[], object]) -> None:
        def run() -> None:
            undo()

        self._undo.setdefault(folder, []).append(run)

    def _restore(self, path: Path, content: _Content | None) -> None:
        if content is None:
            self._names.pop(path, None)
        else:
            self._names[path] = content

    def _need_folder(self, folder: Path) -> None:
        if folder not in self._folders:
            raise FileNotFoundError(errno.ENOENT, "no such folder", str(folder))

    def _content(self, path: Path) -> _Content:
        try:
            return self._names[path]
        except KeyError:
            raise FileNotFoundError(errno.ENOENT, "no such file", str(path)) from None
