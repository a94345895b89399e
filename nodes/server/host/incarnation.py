"""Numbers the lives of a node's process, durably before the number is used.

Late answers to an earlier life must never match a request of this one, so no number is given twice
for one data folder nor, where state events outlive the folder, for one node.
"""

from pathlib import Path
from typing import Final

from splitbrain.nodes.quorum.random_source import RandomSource
from splitbrain.nodes.storage.filesystem import FileSystem, replace_file

#: File in the data folder: the number of the next incarnation, in decimal digits.
INCARNATION_FILE: Final = "incarnation"
_ID_DIGITS: Final = 32
_HEX: Final = 16


class IncarnationError(Exception):
    """The counter is unreadable; going on could reuse a number."""


def next_incarnation(filesystem: FileSystem, data_folder: Path, lowest: int = 0) -> int:
    """Take the next number, not below ``lowest``: one past what earlier lives are known to have.

    Returns when the following number is on the disk.

    Raises:
        IncarnationError: the file holds no number.
        OSError: it cannot be read or written.
    """
    path = data_folder / INCARNATION_FILE
    try:
        text = filesystem.read(path).decode("ascii")
    except FileNotFoundError:
        text = "0"
    except UnicodeDecodeError:
        text = ""
    if not text.strip().isdecimal():
        raise IncarnationError(f"{path} holds no number; restore the data folder or format anew")
    incarnation = max(int(text), lowest)
    replace_file(filesystem, path, f"{incarnation + 1}\n".encode("ascii"))
    return incarnation


def drawn_incarnation_id(random: RandomSource) -> str:
    """32 hex digits by which controllers and brokers tell Kafka's other nodes a life."""
    return "".join([f"{int(random.random() * _HEX):x}" for _ in range(_ID_DIGITS)])
