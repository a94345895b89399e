"""The few file operations that storage needs, as protocols, so that a simulated disk can serve.

The contract is POSIX's, read strictly: bytes are durable after ``sync`` of their file; a new name,
a rename and a removal are durable after ``sync_folder`` of their folder; until then a crash may
undo them, and may tear unsynced bytes by sector. Failures are ``OSError``.
"""

from pathlib import Path
from typing import Protocol


class DataFile(Protocol):
    """An open file; positioned reads and writes, no cursor."""

    @property
    def path(self) -> Path:
        """Where it was opened."""
        ...

    def size(self) -> int:
        """Bytes in the file."""
        ...

    def read_at(self, position: int, size_bytes: int) -> bytes:
        """Up to ``size_bytes`` from ``position``; fewer only at the end of the file."""
        ...

    def write_at(self, position: int, data: bytes) -> None:
        """Write all of ``data``; not durable before ``sync``."""
        ...

    def truncate(self, size_bytes: int) -> None:
        """Cut (or extend with zeros) to ``size_bytes``; not durable before ``sync``."""
        ...

    def sync(self) -> None:
        """Make the content and the size durable."""
        ...

    def close(self) -> None:
        """Close without syncing. Safe to call twice."""
        ...


class FolderLock(Protocol):
    """Holds a folder for one process."""

    def release(self) -> None:
        """Give the folder back. Safe to call twice."""
        ...


class FileSystem(Protocol):
    """Names and files below them."""

    def open(self, path: Path, *, create: bool = False) -> DataFile:
        """Open for reading and writing.

        Raises FileNotFoundError: it does not exist and ``create`` is off.
        """
        ...

    def read(self, path: Path) -> bytes:
        """Return the whole content; raises FileNotFoundError: it does not exist."""
        ...

    def exists(self, path: Path) -> bool:
        """Whether a file or folder has this name."""
        ...

    def list(self, folder: Path) -> list[str]:
        """Names in the folder, sorted; raises FileNotFoundError: there is no such folder."""
        ...

    def make_folder(self, folder: Path) -> None:
        """Make the folder and its parents; nothing happens where it exists."""
        ...

    def rename(self, old: Path, new: Path) -> None:
        """Give ``old`` the name ``new`` atomically, replacing what had it."""
        ...

    def remove(self, path: Path) -> None:
        """Remove a file's name."""
        ...

    def sync_folder(self, folder: Path) -> None:
        """Make the names in the folder durable."""
        ...

    def lock(self, path: Path) -> FolderLock:
        """Hold the named lock file until released or the process ends.

        Raises StorageInUseError: another process holds it.
        """
        ...


def replace_file(filesystem: FileSystem, path: Path, content: bytes) -> None:
    """Give ``path`` a new content, atomically and durably: old or new after a crash, never a mix.

    Raises OSError: something failed; the old content may or may not still be there after a crash.
    """
    temporary = path.with_name(path.name + ".tmp")
    file = filesystem.open(temporary, create=True)
    try:
        file.truncate(0)
        file.write_at(0, content)
        file.sync()
    finally:
        file.close()
    filesystem.rename(temporary, path)
    filesystem.sync_folder(path.parent)
