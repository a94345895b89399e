"""Contents that a disk may have, by the plainest means: a dirty flag per byte, and no undoing.

It does operations one after the other on an empty disk and says of an outcome of a power loss
whether it is legal.
"""

from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple

from splitbrain.simulation.disk.file_system import SECTOR_BYTES


class Operation(NamedTuple):
    """An act; on a file by its number, on names as the names that it leaves."""

    action: str
    file: int = 0
    position: int = 0
    data: bytes = b""
    names: tuple[tuple[str, int | None], ...] = ()


class Inode:
    """One file of the model."""

    def __init__(self) -> None:
        self.current = b""
        self.durable = b""
        self.dirty: list[bool] = []
        self.resized = False

    def write(self, position: int, data: bytes) -> None:
        if data:
            self._resize(max(len(self.current), position + len(data)))
            end = position + len(data)
            self.current = self.current[:position] + data + self.current[end:]
            self.dirty[position:end] = [True] * len(data)

    def truncate(self, size: int) -> None:
        self._resize(size)

    def sync(self) -> None:
        if self.resized:
            self.durable = padded(self.durable, len(self.current))
        for start in self.dirty_sectors():
            end = min(start + SECTOR_BYTES, len(self.current))
            durable = padded(self.durable, max(len(self.durable), end))
            self.durable = durable[:start] + self.current[start:end] + durable[end:]
        self.forget()

    def forget(self) -> None:
        self.dirty = [False] * len(self.current)
        self.resized = False

    def dirty_sectors(self) -> list[int]:
        starts = range(0, len(self.current), SECTOR_BYTES)
        return [start for start in starts if any(self.dirty[start : start + SECTOR_BYTES])]

    def allows(self, content: bytes) -> bool:
        """Whether a power loss may leave this."""
        size = len(content)
        dirty = self.dirty_sectors()
        reached = len(self.current) if dirty or self.resized else len(self.durable)
        bounds = sorted((len(self.durable), reached))
        if not bounds[0] <= size <= bounds[1]:
            return False
        for start in range(0, size, SECTOR_BYTES):
            end = min(start + SECTOR_BYTES, size)
            old = padded(self.durable, size)[start:end]
            new = self.current[start:end]
            new += old[len(new) :]
            if content[start:end] != old and not (start in dirty and content[start:end] == new):
                return False
        return True

    def _resize(self, size: int) -> None:
        if size != len(self.current):
            self.resized = True
        grown = size - len(self.current)
        self.current = padded(self.current, size)
        self.dirty = self.dirty[:size] + [True] * grown


class Model:
    """A disk on which operations happened one after the other."""

    def __init__(self, operations: Iterable[Operation]) -> None:
        self.inodes = defaultdict[int, Inode](Inode)
        self.names: dict[str, int] = {}
        self.durable_names: dict[str, int] = {}
        self.pending: list[tuple[tuple[str, int | None], ...]] = []
        for operation in operations:
            self._do(operation)

    def current(self) -> dict[str, bytes]:
        return {name: self.inodes[file].current for name, file in self.names.items()}

    def durable(self) -> dict[str, bytes]:
        return {name: self.inodes[file].durable for name, file in self.durable_names.items()}

    def allows(self, outcome: dict[str, bytes]) -> bool:
        """Whether some of the newest changes of names undone, and torn files, explain it."""
        for kept in range(len(self.pending) + 1):
            names = dict(self.durable_names)
            for change in self.pending[:kept]:
                assign(names, change)
            if names.keys() == outcome.keys() and all(
                self.inodes[file].allows(outcome[name]) for name, file in names.items()
            ):
                return True
        return False

    def _do(self, operation: Operation) -> None:
        inode = self.inodes[operation.file]
        match operation.action:
            case "write":
                inode.write(operation.position, operation.data)
            case "truncate":
                inode.truncate(operation.position)
            case "sync":
                inode.sync()
            case "failed-sync":
                inode.forget()
            case "names":
                assign(self.names, operation.names)
                self.pending.append(operation.names)
            case _:
                for change in self.pending:
                    assign(self.durable_names, change)
                self.pending.clear()


def padded(content: bytes, size: int) -> bytes:
    return content[:size].ljust(size, b"\0")


def assign(names: dict[str, int], change: tuple[tuple[str, int | None], ...]) -> None:
    for name, file in change:
        if file is None:
            names.pop(name, None)
        else:
            names[name] = file
