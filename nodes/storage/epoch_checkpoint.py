"""The ``leader-epoch-checkpoint`` file: the first offset of every epoch in the log.

The epoch in a batch is not under the batch's checksum; this file is what it is held against.
Replaced atomically, so a half-written one never exists: what cannot be read is corrupt.

Source: Kafka's LeaderEpochCheckpointFile (version 0): the version, the number of entries, then one
line ``epoch start-offset`` for each.
"""

from itertools import pairwise
from pathlib import Path
from typing import Final

from splitbrain.nodes.quorum.identifiers import Epoch, Offset
from splitbrain.nodes.quorum.persistent import EpochStart
from splitbrain.nodes.storage.errors import CorruptStorageError
from splitbrain.nodes.storage.filesystem import FileSystem, replace_file

_VERSION: Final = 0


def encode_epochs(epochs: tuple[EpochStart, ...]) -> bytes:
    """Return the file's content."""
    lines = [str(_VERSION), str(len(epochs))]
    lines += [f"{entry.epoch} {entry.start_offset}" for entry in epochs]
    return ("\n".join(lines) + "\n").encode()


def write_epochs(filesystem: FileSystem, path: Path, epochs: tuple[EpochStart, ...]) -> None:
    """Replace the file, atomically and durably; raises OSError: the disk refused."""
    replace_file(filesystem, path, encode_epochs(epochs))


def read_epochs(filesystem: FileSystem, path: Path) -> tuple[EpochStart, ...]:
    """Return the entries, ascending in both fields.

    Raises CorruptStorageError: the file is missing, unreadable or out of order.
    """
    try:
        lines = filesystem.read(path).decode("ascii").splitlines()
        version, count = int(lines[0]), int(lines[1])
        entries = [_entry(line) for line in lines[2:]]
    except FileNotFoundError as error:
        raise CorruptStorageError(path, "the file is missing") from error
    except (ValueError, IndexError) as error:
        raise CorruptStorageError(path, "it is not an epoch checkpoint") from error
    if version != _VERSION:
        raise CorruptStorageError(path, f"its version is {version}, this build reads {_VERSION}")
    if count != len(entries):
        raise CorruptStorageError(path, f"it announces {count} entries and has {len(entries)}")
    for before, after in pairwise(entries):
        if after.epoch <= before.epoch or after.start_offset <= before.start_offset:
            raise CorruptStorageError(path, f"epoch {after.epoch} follows epoch {before.epoch}")
    return tuple(entries)


def _entry(line: str) -> EpochStart:
    epoch, start_offset = line.split()
    entry = EpochStart(epoch=Epoch(int(epoch)), start_offset=Offset(int(start_offset)))
    if entry.epoch < 0 or entry.start_offset < 0:
        raise ValueError(line)
    return entry
