"""A simulated disk with one durable file on it, and what stands in that file."""

from pathlib import Path

from splitbrain.nodes.storage.filesystem import replace_file
from splitbrain.simulation.disk.file_system import MemoryFileSystem
from splitbrain.simulation.disk.files import MemoryFile

ROOT = Path("/")
A = ROOT / "a"
OLD, NEW = b"o" * 900, b"n" * 900


def one_file_disk() -> MemoryFileSystem:
    filesystem = MemoryFileSystem(journals=False)
    replace_file(filesystem, A, OLD)
    return filesystem


def durable_file(disk: MemoryFileSystem, path: Path, content: bytes) -> MemoryFile:
    """One more of them."""
    replace_file(disk, path, content)
    return disk.open(path)
