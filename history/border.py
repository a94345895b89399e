"""Border of a run folder: below it only folders and plain files are read or written.

A run folder may come from somebody else, as an archive or in a shared place, and hold a link where
a judgement writes its log, or a pipe where it reads the history. A run makes nothing but folders
and plain files. So anything else has the whole folder refused before the first byte of it is read,
also a link that stays inside: the log of an analysis may not be the history. The folder itself may
be reached through links: the user typed those. The nodes' own data are left out: the system under
test is free there, and only their dumps read them, after asking too.

Files written in place are opened so that a link is not followed even if it came after the check;
all others are made beside their name and renamed, which replaces a link.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from splitbrain.contracts.errors import UsageError

#: Name of the folder with a node's data, below the node's own.
DATA_FOLDER: Final = "data"

_NODES: Final = "nodes"
#: Depth of a node's entries, counted from the run folder.
_IN_NODE: Final = 3


def refuse_foreign_entries(run: Path) -> None:
    """Refuse a run folder that holds anything but folders and plain files.

    Raises:
        UsageError: it does; names the entry.
    """
    found = foreign_entry(run)
    if found is not None:
        raise UsageError(
            f"{run} holds {found}, and a run makes nothing but folders and plain files",
            "Find out who made it: without that the folder can be judged",
        )


def foreign_entry(folder: Path) -> str | None:
    """Return the first entry below a folder that no run makes, in words; None if there is none.

    The data of the nodes of a run folder are left out.
    """
    return next(_foreign_entries(folder, ()), None)


def open_in_place(path: Path, flags: int) -> int:
    """Open a file of a run folder, made if missing, without waiting for a pipe.

    Raises:
        OSError: a link stands there, or the file cannot be opened.
    """
    guarded = flags | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    return os.open(path, guarded, 0o644)


def open_anew(path: Path) -> int:
    """Open a new file for writing in the place of any entry of that name.

    Raises:
        OSError: the folder cannot be written, or somebody makes the name again and again.
    """
    path.unlink(missing_ok=True)
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)


def _foreign_entries(folder: Path, steps: tuple[str, ...]) -> Iterator[str]:
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except (PermissionError, FileNotFoundError, NotADirectoryError):
        return  # unlistable folders cannot be judged either; their readers say so
    for entry in entries:
        inner = (*steps, entry.name)
        if entry.is_dir(follow_symlinks=False):
            is_data = len(inner) == _IN_NODE and (inner[0], inner[-1]) == (_NODES, DATA_FOLDER)
            if not is_data:
                yield from _foreign_entries(Path(entry.path), inner)
        elif not entry.is_file(follow_symlinks=False):
            kind = "a link" if entry.is_symlink() else "a pipe, socket or device"
            yield f"{kind}, {'/'.join(inner)}"
