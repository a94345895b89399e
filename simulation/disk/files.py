"""Files in memory: what processes do with a simulated disk; ``memory`` adds what befalls it.

Every change goes through the log of jobs, every call first asks whether it is to fail. Must behave
as ``DiskFileSystem`` as long as nothing is made to fail. Exact for one thread; several may use it
as they may use the real one, as long as no job is in flight.
"""

import errno
from collections.abc import Callable
from pathlib import Path

from splitbrain.simulation.disk import jobs
from splitbrain.simulation.disk.content import Content
from splitbrain.simulation.disk.faults import DiskFaults
from splitbrain.simulation.disk.names import Names, folder_of


class MemoryFile:
    """An open file of ``FilesInMemory``."""

    def __init__(self, filesystem: "FilesInMemory", path: Path, content: Content) -> None:
        self._filesystem = filesystem
        self._path = path
        self._content = content
        self._life: int | None = filesystem.life

    @property
    def path(self) -> Path:
        """Where it was opened."""
        return self._path

    def size(self) -> int:
        """Bytes in the file."""
        return len(self._open().current)

    def read_at(self, position: int, size_bytes: int) -> bytes:
        """Up to ``size_bytes`` from ``position``."""
        content = self._open()
        self._filesystem.refuse_read(self._path, position)
        return bytes(content.current[position : position + size_bytes])

    def write_at(self, position: int, data: bytes) -> None:
        """Write all of ``data``; a failing disk takes the first half, a full one what fits."""
        self._filesystem.write(self._path, self._open(), position, data)

    def truncate(self, size_bytes: int) -> None:
        """Cut or extend with zeros."""
        self._filesystem.truncate(self._path, self._open(), size_bytes)

    def sync(self) -> None:
        """Make content and size durable."""
        self._filesystem.sync(self._path, self._open())

    def close(self) -> None:
        """Close without syncing."""
        self._life = None

    def _open(self) -> Content:
        if self._life != self._filesystem.life:
            reason = "is closed" if self._life is None else "was closed by the end of its process"
            raise ValueError(f"{self._path} {reason}")
        return self._content


class _MemoryLock:
    def __init__(self, held: dict[str, object], path: str) -> None:
        self._held = held
        self._path = path
        held[path] = self

    def release(self) -> None:
        if self._held.get(self._path) is self:
            del self._held[self._path]


class FilesInMemory:
    """The operations of a file system, in memory."""

    def __init__(
        self,
        *,
        journals: bool = True,
        capacity_bytes: int | None = None,
        in_use: Callable[[Path], Exception] = BlockingIOError,
    ) -> None:
        """A disk that is empty.

        Args:
            journals: whether ``journal`` is kept; it grows without end.
            capacity_bytes: what all files together may hold; None: no limit.
            in_use: what is raised of a lock file that is held, by its path.
        """
        self._in_use = in_use
        self._names = Names()
        self._folders: dict[str, None] = {"/": None}
        self._jobs = jobs.JobLog()
        self._held: dict[str, object] = {}
        self._faults = DiskFaults()
        self._faults.capacity_bytes = capacity_bytes
        self._journals = journals
        #: Counts the processes that lived on this disk.
        self.life = 0
        #: Asked before each write, truncate, sync, rename, remove and sync-folder: an errno to fail
        #: with, or None.
        self.fault: Callable[[str, Path], int | None] | None = None
        #: Operations so far as (action, path); tests clear it.
        self.journal: list[tuple[str, Path]] = []

    @property
    def capacity_bytes(self) -> int | None:
        """Bytes that all files together may hold; None: no limit."""
        return self._faults.capacity_bytes

    @capacity_bytes.setter
    def capacity_bytes(self, capacity_bytes: int | None) -> None:
        self._faults.capacity_bytes = capacity_bytes

    @property
    def used_bytes(self) -> int:
        """Bytes that all files together hold."""
        return sum(len(content.current) for content in self._names.current.values())

    def open(self, path: Path, *, create: bool = False) -> MemoryFile:
        """Open for reading and writing."""
        text = str(path)
        content = self._names.current.get(text)
        if content is None:
            if not create:
                raise FileNotFoundError(errno.ENOENT, "no such file", text)
            content = self._create(text)
        return MemoryFile(self, path, content)

    def read(self, path: Path) -> bytes:
        """Return the whole content."""
        content = self._content(path)
        self.refuse_read(path, 0)
        return bytes(content.current)

    def exists(self, path: Path) -> bool:
        """Whether a file or folder has this name."""
        text = str(path)
        return text in self._names.current or text in self._folders

    def list(self, folder: Path) -> list[str]:
        """Names in the folder, sorted."""
        text = str(folder)
        self._need_folder(text)
        prefix = text if text.endswith("/") else text + "/"
        start = len(prefix)
        paths = (*self._names.current, *self._folders)
        return sorted(
            path[start:]
            for path in paths
            if path.startswith(prefix) and len(path) > start and "/" not in path[start:]
        )

    def make_folder(self, folder: Path) -> None:
        """Make the folder and its parents; folders are durable at once."""
        for path in (folder, *folder.parents):
            self._folders.setdefault(str(path))

    def rename(self, old: Path, new: Path) -> None:
        """Rename atomically, replacing ``new``."""
        content = self._content(old)
        target = str(new)
        folder = folder_of(target)
        self._need_folder(folder)
        self.refuse("rename", new)
        after = ((str(old), None), (target, content))
        self._jobs.perform(jobs.NameStep("rename", target, folder, self._names, after))

    def remove(self, path: Path) -> None:
        """Remove a file's name."""
        self._content(path)
        self.refuse("remove", path)
        text = str(path)
        self._jobs.perform(
            jobs.NameStep("remove", text, folder_of(text), self._names, ((text, None),))
        )

    def sync_folder(self, folder: Path) -> None:
        """Make the names in the folder durable."""
        text = str(folder)
        self._need_folder(text)
        self.refuse("sync-folder", folder)
        self._jobs.perform(jobs.SyncFolderStep(text, self._names))

    def lock(self, path: Path) -> _MemoryLock:
        """Hold the lock file.

        Raises:
            Exception: it is held; the one that the disk was given for that.
        """
        text = str(path)
        if text in self._held:
            raise self._in_use(path)
        if text not in self._names.current:
            self._create(text)
        return _MemoryLock(self._held, text)

    # --- for the open files

    def refusal(self, action: str, path: Path) -> OSError | None:
        """Note the action and ask whether it fails."""
        if self._journals:
            self.journal.append((action, path))
        number = self.fault(action, path) if self.fault is not None else None
        if number is None:
            number = self._faults.strikes(action, str(path))
        return None if number is None else self._faults.failure(action, path, number)

    def refuse(self, action: str, path: Path) -> None:
        """As ``refusal``, but raises."""
        error = self.refusal(action, path)
        if error is not None:
            raise error

    def refuse_read(self, path: Path, position: int) -> None:
        """Raise what a read of this file fails with, if it does."""
        number = self._faults.strikes("read", str(path))
        if number is not None:
            raise self._faults.failure("read", path, number, position)

    def write(self, path: Path, content: Content, position: int, data: bytes) -> None:
        """As ``MemoryFile.write_at``."""
        error = self.refusal("write", path)
        if error is not None:
            data = data[: len(data) // 2]
        fits = len(data)
        capacity_bytes = self._faults.capacity_bytes
        if capacity_bytes is not None:
            end_max = len(content.current) + max(0, capacity_bytes - self.used_bytes)
            fits = max(0, min(fits, end_max - position))
        if self._jobs.steps is None:
            content.write(position, data[:fits])
        elif fits:
            self._jobs.perform(jobs.WriteStep(str(path), content, position, data[:fits]))
        if error is not None:
            raise error
        if fits < len(data):
            self._faults.refuse_growth(path, position + fits)

    def truncate(self, path: Path, content: Content, size_bytes: int) -> None:
        """As ``MemoryFile.truncate``."""
        self.refuse("truncate", path)
        if size_bytes != len(content.current):
            self._jobs.perform(jobs.TruncateStep(str(path), content, size_bytes))

    def sync(self, path: Path, content: Content) -> None:
        """As ``MemoryFile.sync``."""
        error = self.refusal("sync", path)
        self._jobs.perform(jobs.SyncStep(str(path), content, failed=error is not None))
        if error is not None:
            raise error

    def _create(self, path: str) -> Content:
        folder = folder_of(path)
        self._need_folder(folder)
        content = Content()
        self._jobs.perform(jobs.NameStep("create", path, folder, self._names, ((path, content),)))
        return content

    def _need_folder(self, folder: str) -> None:
        if folder not in self._folders:
            raise FileNotFoundError(errno.ENOENT, "no such folder", folder)

    def _content(self, path: Path) -> Content:
        try:
            return self._names.current[str(path)]
        except KeyError:
            raise FileNotFoundError(errno.ENOENT, "no such file", str(path)) from None
