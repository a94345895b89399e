"""Takes from a dead node's files what a power cut would have taken.

The node's own table tells how many bytes of each file a completed sync has covered (see
``NodeSpec.durable_lengths_path``). The part above is lost whole, kept up to some byte, or kept
and zeroed sector by sector, as ``draw`` settles; so a torn tail may hold intact records behind
damaged ones. A file whose name was never made durable may vanish. Not modelled, and so as if the
disk had been fast: truncations, renames over an existing name, removals, writes below the length,
and files that are not in the table. The process must be gone before.

Source: the model of ``nodes.storage.filesystem``; the order in which sectors reach a disk is free.
"""

import errno
import os
import random
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import msgspec

from splitbrain.contracts.errors import UNREADABLE, HarnessError
from splitbrain.runtimes.folder_files import OWN, SYNCED

_SECTOR_BYTES: Final = 512
_UNSYNCED: Final = f"{OWN}unsynced"
#: The greatest share that can be drawn, or nearly.
_UNLUCKY: Final = 0.99


class _DurableLength(msgspec.Struct, frozen=True):
    path: str
    length: int
    named: bool


class Loss(msgspec.Struct, frozen=True):
    """Loss of one file."""

    path: str
    #: Bytes that no sync had covered.
    unflushed: int
    #: Of these, bytes that are as they were written.
    kept: int
    #: The file itself is gone: its name was not durable.
    vanished: bool = False

    def text(self) -> str:
        """Return the loss, for people."""
        name = self.path.rpartition("/")[2]
        if self.vanished:
            return f"all of {name}, whose name was not flushed"
        return f"{self.unflushed - self.kept} of {self.unflushed} unflushed bytes of {name}"


def lose_unflushed(data: Path, table: Path, draw: int) -> list[Loss]:
    """Take the unflushed bytes of every file in the table; what was lost, file by file.

    ``draw`` settles what survives. Without a table nothing would be lost, and the cut be a kill.

    Raises:
        HarnessError: the table or a file cannot be read or changed, or files have no table.
    """
    try:
        if not table.exists() and any(path.is_file() for path in data.rglob("*")):
            raise FileNotFoundError(errno.ENOENT, "it never told what it has flushed", str(table))
        lines = table.read_bytes().split(b"\n") if table.exists() else []
        entries = [msgspec.json.decode(line, type=_DurableLength) for line in lines if line.strip()]
        losses = [
            _lose(data, entry, _chance(draw, entry.path))
            for entry in sorted(entries, key=lambda entry: entry.path)
        ]
    except (OSError, *UNREADABLE) as error:
        raise HarnessError(
            "cut the power of a node",
            str(data),
            str(error),
            "Its durable lengths or its files cannot be used; look at them and start again.",
        ) from error
    return [loss for loss in losses if loss is not None]


def _chance(draw: int, path: str) -> Callable[[], float]:
    if path == _UNSYNCED:
        # Nobody knows what a disk keeps of what was not flushed; of a canary it keeps nothing.
        return lambda: _UNLUCKY
    return random.Random(f"{draw} {path}").random


class Canaries:
    """Two files beside a dead node's own, and their lines in its table.

    One is flushed and the table says so, of the other it says that nothing is. A power cut that
    takes by that table must leave the one and take the other.
    """

    def __init__(self, data: Path, table: Path) -> None:
        self._data = data
        self._table = table
        self._token = os.urandom(_SECTOR_BYTES)
        self._table_bytes = 0

    def write(self) -> None:
        """Right before the cut, the node gone. Nothing where it never had a table."""
        if not self._table.exists():
            return
        with self._writing():
            self._table_bytes = self._table.stat().st_size
            for name in (SYNCED, _UNSYNCED):
                is_synced = name == SYNCED
                with (self._data / name).open("wb") as file:
                    file.write(self._token)
                    if is_synced:
                        file.flush()
                        os.fsync(file.fileno())
                length = _DurableLength(name, len(self._token) if is_synced else 0, is_synced)
                with self._table.open("ab") as lines:
                    lines.write(msgspec.json.encode(length) + b"\n")

    def take_back(self) -> tuple[bool, bool]:
        """Whether the synced one is there, whole, and whether the other one is; both go."""
        with self._writing():
            found = [self._is_there(self._data / name) for name in (SYNCED, _UNSYNCED)]
            if self._table.exists() and self._table_bytes:
                os.truncate(self._table, self._table_bytes)
        return found[0], found[1]

    def _is_there(self, path: Path) -> bool:
        is_there = path.exists() and path.read_bytes() == self._token
        path.unlink(missing_ok=True)
        return is_there

    @contextmanager
    def _writing(self) -> Generator[None]:
        try:
            yield
        except OSError as error:
            raise HarnessError(
                "write the canaries of a power cut",
                str(self._data),
                str(error),
                "Look at that disk and start again",
            ) from error


def in_words(losses: list[Loss]) -> str:
    """All losses in one clause."""
    losses_text = [loss.text() for loss in losses if loss.path != _UNSYNCED]
    return "lost " + (", ".join(losses_text) or "nothing unflushed")


def _lose(data: Path, entry: _DurableLength, chance: Callable[[], float]) -> Loss | None:
    path = data / entry.path
    if not path.exists():
        return None
    size = path.stat().st_size
    # All numbers are drawn, so that one file's luck never shifts another choice of its own.
    name_survives, fate, share = chance() < 0.5, chance(), chance()
    if not entry.named and not name_survives:
        path.unlink()
        return Loss(entry.path, unflushed=size, kept=0, vanished=True)
    unflushed = size - entry.length
    if unflushed <= 0:
        return None
    end = entry.length
    if fate >= 1 / 3:
        end += int(share * (unflushed + 1))
    os.truncate(path, end)
    kept = end - entry.length
    if fate >= 2 / 3:
        kept -= _zero_some_sectors(path, entry.length, end, chance)
    return Loss(entry.path, unflushed=unflushed, kept=kept)


def _zero_some_sectors(path: Path, start: int, end: int, chance: Callable[[], float]) -> int:
    """Sectors that never reached the disk, in any order; how many bytes of them there were."""
    zeroed = 0
    with path.open("r+b") as file:
        position = start
        while position < end:
            stop = min(end, position - position % _SECTOR_BYTES + _SECTOR_BYTES)
            if chance() < 0.5:
                file.seek(position)
                file.write(bytes(stop - position))
                zeroed += stop - position
            position = stop
    return zeroed
