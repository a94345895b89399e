"""Commands of ``disks.py`` about the files on a node's disk: look, change, keep, put back, wipe.

Writes are durable when a command ends. It must never follow a name out of the data folder.
"""

import errno
import os
import shutil
from pathlib import Path

from disk_image import Disk, plain_files, sync_folder

_STEP_BYTES = 1 << 20


def sizes(folder: Path, node: str) -> dict[str, int]:
    """The node's plain files by their path below the data folder; bytes."""
    disk = Disk(folder, node)
    return {str(path.relative_to(disk.mount)): path.stat().st_size for path in disk.files()}


def kept(folder: Path, node: str) -> dict[str, int]:
    """The files that were kept; bytes."""
    root = Disk(folder, node).kept
    return {str(path.relative_to(root)): path.stat().st_size for path in plain_files(root)}


def read(folder: Path, node: str, file: str, offset: str, length: str) -> str:
    """Bytes of a file, hexadecimal; from the disk as far as they are clean in memory."""
    path = _inside(Disk(folder, node).mount, file)
    with path.open("rb") as opened:
        os.posix_fadvise(opened.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        return os.pread(opened.fileno(), int(length), int(offset)).hex()


def write(folder: Path, node: str, file: str, offset: str, content: str) -> None:
    """Put bytes into a file and onto the disk."""
    with _inside(Disk(folder, node).mount, file).open("r+b") as opened:
        os.pwrite(opened.fileno(), bytes.fromhex(content), int(offset))
        os.fsync(opened.fileno())


def truncate(folder: Path, node: str, file: str, size: str) -> None:
    """Cut a file off."""
    with _inside(Disk(folder, node).mount, file).open("r+b") as opened:
        opened.truncate(int(size))
        os.fsync(opened.fileno())


def keep(folder: Path, node: str) -> int:
    """Copy the node's files as they are on the disk, frozen meanwhile; how many there are."""
    disk = Disk(folder, node)
    shutil.rmtree(disk.kept, ignore_errors=True)
    disk.kept.mkdir()
    disk.freeze()
    try:
        for path in disk.files():
            copy = disk.kept / path.relative_to(disk.mount)
            copy.parent.mkdir(parents=True, exist_ok=True)
            _copy_with_owner(path, copy)
    finally:
        disk.thaw()
    return len(plain_files(disk.kept))


def difference(folder: Path, node: str, file: str) -> int | None:
    """First byte in which a file differs from its kept copy; null where they are equal."""
    disk = Disk(folder, node)
    present, old = _inside(disk.mount, file), _inside(disk.kept, file)
    if not present.exists():
        return 0
    with present.open("rb") as first, old.open("rb") as second:
        position = 0
        while True:
            one, other = first.read(_STEP_BYTES), second.read(_STEP_BYTES)
            if one != other:
                both = zip(one, other, strict=False)
                differing = (number for number, (a, b) in enumerate(both) if a != b)
                return position + next(differing, min(len(one), len(other)))
            if not one:
                return None
            position += len(one)


def exchange(folder: Path, node: str, file: str) -> None:
    """Let a file be as it was kept, and keep what it was."""
    disk = Disk(folder, node)
    present, old = _inside(disk.mount, file), _inside(disk.kept, file)
    was = old.with_name(f"{old.name}.was")
    if present.exists():
        _copy_with_owner(present, was)
    present.parent.mkdir(parents=True, exist_ok=True)
    _copy_with_owner(old, present)
    with present.open("rb") as opened:
        os.fsync(opened.fileno())
    sync_folder(present.parent)
    if was.exists():
        was.replace(old)


def wipe(folder: Path, node: str) -> dict[str, int]:
    """Empty the disk of a node that is down; how many files and bytes there were."""
    disk = Disk(folder, node)
    files = disk.files()
    found = {"files": len(files), "bytes": sum(path.stat().st_size for path in files)}
    # The canary's file last: while it is there and others are, nobody makes it anew.
    for path in sorted(disk.mount.iterdir(), key=lambda path: path == disk.synced):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()
    sync_folder(disk.mount)
    return found


def _copy_with_owner(path: Path, copy: Path) -> None:
    shutil.copy2(path, copy)
    owner = path.stat()
    os.chown(copy, owner.st_uid, owner.st_gid)


def _inside(root: Path, file: str) -> Path:
    path = root / file
    if ".." in Path(file).parts or Path(file).is_absolute():
        raise OSError(errno.EINVAL, "it leads out of the data folder", file)
    return path
