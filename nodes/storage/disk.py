"""The real file system. Every call goes to the kernel at once; nothing is buffered here.

Uses ``fdatasync`` for content: it also makes a changed size durable, which is all that the log
needs. Must never retry a failed sync.
"""

import fcntl
import os
import struct
from pathlib import Path
from typing import Final

from splitbrain.nodes.storage.errors import StorageInUseError

#: A write lock on the whole file, as the kernel's ``struct flock`` of a 64-bit machine has it.
_WHOLE_FILE: Final = struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)


class DiskFile:
    """An open file of the real file system; reads and writes are safe from several threads."""

    def __init__(self, path: Path, flags: int) -> None:
        self._path = path
        self._descriptor: int | None = os.open(path, flags | os.O_CLOEXEC, 0o644)

    @property
    def path(self) -> Path:
        """Where it was opened."""
        return self._path

    def size(self) -> int:
        """Bytes in the file."""
        return os.fstat(self._open()).st_size

    def read_at(self, position: int, size_bytes: int) -> bytes:
        """Up to ``size_bytes`` from ``position``; fewer only at the end of the file."""
        descriptor = self._open()
        data = os.pread(descriptor, size_bytes, position)
        if len(data) == size_bytes or not data:
            return data
        parts = [data]
        missing = size_bytes - len(data)
        while missing and (data := os.pread(descriptor, missing, position + size_bytes - missing)):
            parts.append(data)
            missing -= len(data)
        return b"".join(parts)

    def write_at(self, position: int, data: bytes) -> None:
        """Write all of ``data`` to the page cache."""
        descriptor = self._open()
        written = os.pwrite(descriptor, data, position)
        while written < len(data):
            written += os.pwrite(descriptor, memoryview(data)[written:], position + written)

    def truncate(self, size_bytes: int) -> None:
        """Cut or extend to ``size_bytes``."""
        os.ftruncate(self._open(), size_bytes)

    def sync(self) -> None:
        """Make content and size durable."""
        os.fdatasync(self._open())

    def close(self) -> None:
        """Close without syncing."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _open(self) -> int:
        if self._descriptor is None:
            raise ValueError(f"{self._path} is closed")
        return self._descriptor


class DiskFolderLock:
    """An exclusive lock; the kernel releases it when the process dies.

    Of the sort that sees what Java's processes lock, and that they see: a controller of Kafka and a
    node of ours never have one folder. Bound to the descriptor, so that another opener here is
    refused too.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor: int | None = descriptor

    def release(self) -> None:
        """Give the folder back."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


class DiskFileSystem:
    """Files of the machine."""

    def open(self, path: Path, *, create: bool = False) -> DiskFile:
        """Open for reading and writing."""
        return DiskFile(path, os.O_RDWR | (os.O_CREAT if create else 0))

    def read(self, path: Path) -> bytes:
        """Return the whole content."""
        return path.read_bytes()

    def exists(self, path: Path) -> bool:
        """Whether a file or folder has this name."""
        return path.exists()

    def list(self, folder: Path) -> list[str]:
        """Names in the folder, sorted."""
        return sorted(path.name for path in folder.iterdir())

    def make_folder(self, folder: Path) -> None:
        """Make the folder and its parents."""
        folder.mkdir(parents=True, exist_ok=True)

    def rename(self, old: Path, new: Path) -> None:
        """Rename atomically, replacing ``new``."""
        old.replace(new)

    def remove(self, path: Path) -> None:
        """Remove a file's name."""
        path.unlink()

    def sync_folder(self, folder: Path) -> None:
        """Make the names in the folder durable."""
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def lock(self, path: Path) -> DiskFolderLock:
        """Hold the lock file.

        Raises StorageInUseError: another process (or another opener here) holds it.
        """
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.fcntl(descriptor, fcntl.F_OFD_SETLK, _WHOLE_FILE)
        except (BlockingIOError, PermissionError) as error:
            os.close(descriptor)
            raise StorageInUseError(path) from error
        return DiskFolderLock(descriptor)


class ReadOnlyDiskFileSystem(DiskFileSystem):
    """Files of the machine, for tools that look at a stopped node's folder and change nothing."""

    def open(self, path: Path, *, create: bool = False) -> DiskFile:
        """Open for reading; never creates, and the kernel refuses every write."""
        del create
        return DiskFile(path, os.O_RDONLY)
