"""The names of simulated files: as processes see them, and as the disk holds them.

A name that was made, changed or removed is durable once its folder is synced; until then a crash
may undo it, newest change of a folder first. A failed sync of a folder leaves its changes waiting:
they are in the file system's journal, which a later sync writes. Folders themselves are durable at
once. Must never leave half of a rename.
"""

from typing import NamedTuple

from splitbrain.contracts.random_source import RandomSource
from splitbrain.simulation.disk.content import Content


class NameChange(NamedTuple):
    """One atomic change of names within a folder."""

    #: Counts all changes of this disk; a later one is higher.
    number: int
    folder: str
    #: Path, what it named before, what it names after; None: nothing.
    entries: tuple[tuple[str, Content | None, Content | None], ...]


class Names:
    """Contents by path."""

    def __init__(self) -> None:
        self.current: dict[str, Content] = {}
        self.durable: dict[str, Content] = {}
        #: For each folder its changes since the last sync, oldest first.
        self.pending: dict[str, list[NameChange]] = {}
        self._changes = 0

    def change(self, folder: str, after: tuple[tuple[str, Content | None], ...]) -> NameChange:
        """Let paths name something else; not durable."""
        entries = tuple((path, self.current.get(path), content) for path, content in after)
        self._changes += 1
        change = NameChange(self._changes, folder, entries)
        for path, _, content in entries:
            _assign(self.current, path, content)
        self.pending.setdefault(folder, []).append(change)
        return change

    def undo(self, change: NameChange) -> None:
        """Take the newest change back."""
        self.pending[change.folder].remove(change)
        for path, before, _ in reversed(change.entries):
            _assign(self.current, path, before)

    def take_pending(self, folder: str) -> list[NameChange]:
        """Return the changes that a sync of the folder covers; they wait no more."""
        return self.pending.pop(folder, [])

    def give_back(self, folder: str, changes: list[NameChange]) -> None:
        """Undo ``take_pending``."""
        if changes:
            self.pending[folder] = changes + self.pending.get(folder, [])

    def settle(self, changes: list[NameChange]) -> None:
        """Note that the disk has taken these changes."""
        for change in changes:
            for path, _, after in change.entries:
                _assign(self.durable, path, after)

    def is_durable(self, path: str, folder: str) -> bool:
        """Whether the path names the same after any crash."""
        content = self.current.get(path)
        return (
            content is not None
            and self.durable.get(path) is content
            and not any(
                path == entry[0]
                for change in self.pending.get(folder, ())
                for entry in change.entries
            )
        )

    def crash(self, random: RandomSource | None) -> int:
        """Lose power; how many changes are undone. None: all."""
        kept: list[NameChange] = []
        undone = 0
        for folder in sorted(self.pending):
            changes = self.pending[folder]
            count = 0 if random is None else int(random.random() * (len(changes) + 1))
            kept += changes[:count]
            undone += len(changes) - count
        self.pending.clear()
        self.settle(sorted(kept, key=lambda change: change.number))
        self.current = dict(self.durable)
        return undone

    def replace(self, contents: dict[str, Content]) -> None:
        """Put other files in the place of all."""
        self.pending.clear()
        self.durable = contents
        self.current = dict(contents)


def folder_of(path: str) -> str:
    """Return the path of the folder that holds this path."""
    return path.rpartition("/")[0] or "/"


def _assign(names: dict[str, Content], path: str, content: Content | None) -> None:
    if content is None:
        names.pop(path, None)
    else:
        names[path] = content
