"""A folder that did not exist before, whoever else makes one at the same moment."""

from pathlib import Path
from typing import Final

_NAME_TRIES: Final = 1_000


def new_folder(parent: Path, name: str, *, digits: int = 1) -> Path:
    """Make a folder of this name, or of the name with a number from 2 on where that is taken.

    The number has so many ``digits`` at least, so that names sort.

    Raises:
        OSError: it cannot be made, or too many of that name exist.
    """
    parent.mkdir(parents=True, exist_ok=True)
    for number in range(1, _NAME_TRIES + 1):
        root = parent / (name if number == 1 else f"{name}-{number:0{digits}d}")
        try:
            root.mkdir()
        except FileExistsError:
            continue
        return root
    raise FileExistsError(f"{_NAME_TRIES:,} folders called {name} exist")
