"""Files of one node's data folder: looked at, changed, kept, put back and wiped; for all runtimes.

The pods' image has a copy of this module beside its tools, so it needs the standard library alone.
Writes are durable when a call ends. It must never follow a name out of the folder.
"""

import errno
import os
import shutil
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Literal

#: Names of ours beside a node's files begin so.
OWN = ".splitbrain-"
#: The file of the canary that must survive a power cut.
SYNCED = f"{OWN}synced"
_CANARY_BYTES = 8192
_STEP_BYTES = 1 << 20


class FolderFiles:
    """Implements :class:`contracts.arms.DataFiles` on a folder; copies are kept in another."""

    def __init__(self, data: Path, kept_files: Path) -> None:
        self._data = data
        self._kept = kept_files

    def sizes(self) -> Mapping[str, int]:
        """Bytes of each file there is now."""
        return _sizes(self._data)

    def kept(self) -> Mapping[str, int]:
        """Bytes of each file that was kept."""
        return _sizes(self._kept)

    def read(self, file: str, offset: int, length: int) -> bytes:
        """Bytes of a file; what memory has of it is dropped before, as far as it is clean."""
        with _inside(self._data, file).open("rb") as opened:
            os.posix_fadvise(opened.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            return os.pread(opened.fileno(), length, offset)

    def write(self, file: str, offset: int, content: bytes) -> None:
        """Put bytes in the place of others."""
        with _inside(self._data, file).open("r+b") as opened:
            os.pwrite(opened.fileno(), content, offset)
            os.fsync(opened.fileno())

    def truncate(self, file: str, size: int) -> None:
        """Cut a file off."""
        with _inside(self._data, file).open("r+b") as opened:
            opened.truncate(size)
            os.fsync(opened.fileno())

    def difference(self, file: str) -> int | None:
        """First byte in which a file differs from its kept copy; None where they are equal."""
        present, old = _inside(self._data, file), _inside(self._kept, file)
        if not present.exists():
            return 0
        position = 0
        with present.open("rb") as first, old.open("rb") as second:
            while True:
                present_bytes, old_bytes = first.read(_STEP_BYTES), second.read(_STEP_BYTES)
                if present_bytes != old_bytes:
                    both = enumerate(zip(present_bytes, old_bytes, strict=False))
                    differing = (number for number, (a, b) in both if a != b)
                    return position + next(differing, min(len(present_bytes), len(old_bytes)))
                if not present_bytes:
                    return None
                position += len(present_bytes)

    def exchange(self, file: str) -> None:
        """Let a file be as it was kept, and keep what it was."""
        present, old = _inside(self._data, file), _inside(self._kept, file)
        was = old.with_name(f"{old.name}.was")
        if present.exists():
            _copy(present, was)
        _copy(old, present)
        for path in (present, present.parent):
            sync(path)
        if was.exists():
            was.replace(old)

    def sync(self) -> None:
        """Make all files durable."""
        for file in self.sizes():
            # A running node may remove one meanwhile.
            with suppress(FileNotFoundError):
                sync(self._data / file)

    def keep(self) -> None:
        """Copy all files; earlier copies go."""
        shutil.rmtree(self._kept, ignore_errors=True)
        self._kept.mkdir(parents=True)
        for file in self.sizes():
            with suppress(FileNotFoundError):
                _copy(self._data / file, self._kept / file)

    def wipe(self) -> None:
        """Remove all that is in the folder."""
        # The canary's file last: while it is there and others are, nobody makes it anew.
        for path in sorted(self._data.iterdir(), key=lambda path: path.name == SYNCED):
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink()
        sync(self._data)


def sync(path: Path) -> None:
    """Make a file, or a folder's names, durable."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def state_of(folder: Path) -> Literal["writable", "full", "read-only", "failing"]:
    """Try a write and sync in the folder; never returns while its disk is frozen."""
    try:
        # It never has a name: neither the node nor a power cut finds it.
        file = os.open(folder, os.O_TMPFILE | os.O_RDWR, 0o600)
        try:
            os.write(file, bytes(_CANARY_BYTES))
            os.fsync(file)
        finally:
            os.close(file)
    except OSError as error:
        if error.errno == errno.ENOSPC:
            return "full"
        return "read-only" if error.errno == errno.EROFS else "failing"
    return "writable"


def _sizes(folder: Path) -> dict[str, int]:
    """Bytes of the files that are neither links nor ours."""
    return {
        str(path.relative_to(folder)): path.stat().st_size
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.is_symlink() and not path.name.startswith(OWN)
    }


def _copy(path: Path, copy: Path) -> None:
    """Copy a file with its owner."""
    copy.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy2(path, copy)
    owner = path.stat()
    os.chown(copy, owner.st_uid, owner.st_gid)


def _inside(root: Path, file: str) -> Path:
    path = root / file
    if ".." in Path(file).parts or Path(file).is_absolute():
        raise OSError(errno.EINVAL, "it leads out of the data folder", file)
    return path
