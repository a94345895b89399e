"""Commands of ``disks.py`` about the files on a node's disk: look, change, keep, put back, wipe."""

from collections.abc import Mapping
from pathlib import Path

from disk_image import Disk

from splitbrain.runtimes.folder_files import FolderFiles


def _files(folder: Path, node: str) -> FolderFiles:
    disk = Disk(folder, node)
    return FolderFiles(disk.mount, disk.kept)


def sizes(folder: Path, node: str) -> Mapping[str, int]:
    """Return the node's plain files by their path below the data folder; bytes."""
    return _files(folder, node).sizes()


def kept(folder: Path, node: str) -> Mapping[str, int]:
    """Return the files that were kept; bytes."""
    return _files(folder, node).kept()


def read(folder: Path, node: str, file: str, offset: str, length: str) -> str:
    """Bytes of a file, hexadecimal; from the disk as far as they are clean in memory."""
    return _files(folder, node).read(file, int(offset), int(length)).hex()


def write(folder: Path, node: str, file: str, offset: str, content: str) -> None:
    """Put bytes into a file and onto the disk."""
    _files(folder, node).write(file, int(offset), bytes.fromhex(content))


def truncate(folder: Path, node: str, file: str, size: str) -> None:
    """Cut a file off."""
    _files(folder, node).truncate(file, int(size))


def keep(folder: Path, node: str) -> None:
    """Copy the node's files as they are on the disk, frozen meanwhile."""
    disk = Disk(folder, node)
    disk.freeze()
    try:
        _files(folder, node).keep()
    finally:
        disk.thaw()


def difference(folder: Path, node: str, file: str) -> int | None:
    """First byte in which a file differs from its kept copy; null where they are equal."""
    return _files(folder, node).difference(file)


def exchange(folder: Path, node: str, file: str) -> None:
    """Let a file be as it was kept, and keep what it was."""
    _files(folder, node).exchange(file)


def wipe(folder: Path, node: str) -> dict[str, int]:
    """Empty the disk of a node that is down; how many files and bytes there were."""
    files = _files(folder, node)
    sizes = files.sizes()
    files.wipe()
    return {"files": len(sizes), "bytes": sum(sizes.values())}
