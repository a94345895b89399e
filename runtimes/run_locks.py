"""Opens the lock of a run whose path came from outside: a process's environment, a label, a folder.

Whoever can start a process can name any path there, and a sweep, perhaps root's, writes into what
it takes for a dead run's lock. So a path is walked one name at a time and no link is followed (a
run writes its path resolved); what stands at its end must be a plain file called ``lock`` that
holds nothing but a sweep's own word. Where the user is known who named it, lock and run folder must
be that user's: nobody decides what becomes of another one's files. It is looked at before it is
opened, since opening a pipe waits and opening a device may do something.

That somebody else may write to a folder on the way does no harm: neither a file of the user's nor
one that holds anything can be put there.
"""

import os
import stat
from pathlib import Path
from typing import Final

from splitbrain.history.run_folder import RunFolder

#: Stands in the lock file of a dead run that a sweep has held; a living run's is empty.
DEAD: Final = b"dead\n"

#: Names a place in the file tree without opening what is there.
_PLACE: Final = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC


class NoRunLockError(Exception):
    """The file is not a run's lock, or belongs to another user than the process that named it."""


def open_run_lock(lock: Path, flags: int, user: int | None = None) -> int:
    """A descriptor of a run's lock file, without creating, following or waiting.

    Args:
        lock: its path, absolute and resolved.
        flags: ``os.O_RDONLY`` or ``os.O_RDWR``.
        user: id of the user who must own the file and the run folder; None: whoever.

    Raises:
        NoRunLockError: something else stands there.
        OSError: nothing does, or this process may not look.
    """
    if not lock.is_absolute() or lock.name != RunFolder(lock.parent).lock.name:
        raise NoRunLockError(f"{lock} cannot be a run's lock")
    folder = _folder(lock.parent)
    try:
        place = os.open(lock.name, _PLACE, dir_fd=folder)
        try:
            told = os.fstat(place)
            if not stat.S_ISREG(told.st_mode):
                raise NoRunLockError(f"{lock} is not a plain file")
            if user is not None and {told.st_uid, os.fstat(folder).st_uid} != {user}:
                raise NoRunLockError(f"{lock} and its folder are not of user {user}")
            # The very file that was looked at, whatever stands at its path by now.
            found = os.open(f"/proc/self/fd/{place}", flags | os.O_CLOEXEC)
        finally:
            os.close(place)
    finally:
        os.close(folder)
    if os.pread(found, len(DEAD) + 1, 0) not in (b"", DEAD):
        os.close(found)
        raise NoRunLockError(f"{lock} holds what no run writes")
    return found


def _folder(path: Path) -> int:
    """Descriptor of the place of a folder, walked without following links."""
    place = os.open(path.anchor, _PLACE)
    for name in path.parts[1:]:
        try:
            inner = os.open(name, _PLACE, dir_fd=place)
        finally:
            os.close(place)
        place = inner
        if stat.S_ISLNK(os.fstat(place).st_mode):
            os.close(place)
            raise NoRunLockError(f"{path} is reached through a link, {name}")
    return place
