"""Telling dead runs from living ones, and what a runtime says of what it removed; for all runtimes.

A run lives while somebody holds the ``flock`` of the lock file in its folder; the kernel releases
it when the process dies, whatever killed it. Whoever removes a dead run's leftovers holds that lock
meanwhile, so that two sweeps never work on one run at once, and writes into it that the run is
dead. A run that cannot be known to be dead is spared.

The path of a lock came from outside: a process's environment, a label, a folder. Whoever can start
a process can name any path there, and a sweep, perhaps root's, writes into what it takes for a dead
run's lock. So a path is walked one name at a time and no link is followed (a run writes its path
resolved); what stands at its end must be a plain file called ``lock`` that holds nothing but a
sweep's own word. Where the user is known who named it, lock and run folder must be that user's:
nobody decides what becomes of another one's files. It is looked at before it is opened, since
opening a pipe waits and opening a device may do something.

That somebody else may write to a folder on the way does no harm: neither a file of the user's nor
one that holds anything can be put there.
"""

import fcntl
import os
import stat
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import msgspec

from splitbrain.contracts.names import RunId
from splitbrain.history.run_folder import RunFolder
from splitbrain.runtimes.owners import is_known_dead, owner_of_word
from splitbrain.runtimes.waiting import await_true

#: Stands in the lock file of a dead run that a sweep has held; a living run's is empty.
DEAD: Final = b"dead\n"

#: Names a place in the file tree without opening what is there.
_PLACE: Final = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC
#: A look takes a shared lock for microseconds; after this long a holder is no looker.
_LOOKS_END_S = 1.0
_LOOK_INTERVAL_S = 0.02


class NoRunLockError(Exception):
    """The file is not a run's lock, or belongs to another user than the process that named it."""


def open_run_lock(lock: Path, flags: int, user: int | None = None) -> int:
    """Return a descriptor of a run's lock file, without creating, following or waiting.

    ``lock`` is absolute and resolved, ``flags`` are ``os.O_RDONLY`` or ``os.O_RDWR``. ``user`` must
    own the file and the run folder; None: whoever does.

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
            status = os.fstat(place)
            if not stat.S_ISREG(status.st_mode):
                raise NoRunLockError(f"{lock} is not a plain file")
            if user is not None and {status.st_uid, os.fstat(folder).st_uid} != {user}:
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


class Swept(msgspec.Struct, frozen=True):
    """Things removed of one dead run."""

    run_id: RunId
    #: Its lock file; the run folder is the folder that holds it.
    lock: Path
    #: Kind of thing, in the plural ("containers"), to how many of them.
    removed: Mapping[str, int]
    #: Why something of it is still there; None: nothing is.
    problem: str | None = None


class Sweep(msgspec.Struct, frozen=True):
    """Things swept by one runtime."""

    #: Name of the runtime.
    runtime: str
    runs: tuple[Swept, ...] = ()
    #: Why this runtime could not look at all, as a sentence; None: it did.
    skipped: str | None = None


def is_living(lock: Path, owner: str = "", user: int | None = None) -> bool:
    """Whether the run of a lock file lives, or may.

    The look itself takes a shared lock for a moment: two lookers do not disturb each other.

    ``owner`` is the word of the process that made what is looked at, the witness where the file is
    gone or not to be read; empty: unknown, and a file that is gone is held by nobody. ``user`` has
    said that this is the run's lock, and must own it; None: whoever does.
    """
    try:
        descriptor = open_run_lock(lock, os.O_RDONLY, user)
    except NoRunLockError:
        return True
    except OSError as error:
        if (witness := owner_of_word(owner)) is not None:
            return not is_known_dead(witness)
        # Somebody else's folder may hide a lock that is held.
        return not isinstance(error, FileNotFoundError | NotADirectoryError)
    try:
        if os.pread(descriptor, len(DEAD), 0) == DEAD:
            return False
        # Refused where it is held, and on a file system without locks.
        return not _lock(descriptor, fcntl.LOCK_SH)
    finally:
        os.close(descriptor)


def is_swept(lock: Path) -> bool:
    """Whether a sweep has had the run in hand, which is dead then."""
    try:
        descriptor = open_run_lock(lock, os.O_RDONLY)
    except (NoRunLockError, OSError):
        return False
    try:
        return os.pread(descriptor, len(DEAD), 0) == DEAD
    finally:
        os.close(descriptor)


@contextmanager
def claimed(
    lock: Path, owner: str = "", patience_s: float = 0.0, user: int | None = None
) -> Generator[bool]:
    """Hold a dead run for the time of the block, so that no second sweep works on it.

    Yields False, without waiting, for a living run and for what is not a run's lock, and where
    another sweep holds it for longer than the patience. A run whose lock file is gone cannot be
    held: removing twice must be harmless anyway. ``owner`` and ``user`` as for :func:`is_living`.
    """
    try:
        descriptor = open_run_lock(lock, os.O_RDWR, user)
    except (NoRunLockError, OSError):
        yield not is_living(lock, owner, user)
        return
    try:
        if not _lock_exclusively(descriptor, patience_s):
            yield False
            return
        # A full disk must not keep anybody from making room on it.
        with suppress(OSError):
            os.pwrite(descriptor, DEAD, 0)
        yield True
    finally:
        os.close(descriptor)


def _lock_exclusively(descriptor: int, patience_s: float) -> bool:
    """Whether the lock could be had: at once, after some looks, or after another sweep."""
    if _lock(descriptor, fcntl.LOCK_EX):
        return True
    if os.pread(descriptor, len(DEAD), 0) == DEAD:
        return _await_lock(descriptor, patience_s)
    # A shared lock can be had beside lookers, not beside the run itself.
    return _lock(descriptor, fcntl.LOCK_SH) and _await_lock(descriptor, _LOOKS_END_S)


def _await_lock(descriptor: int, patience_s: float) -> bool:
    return await_true(lambda: _lock(descriptor, fcntl.LOCK_EX), patience_s, _LOOK_INTERVAL_S)


def _lock(descriptor: int, kind: int) -> bool:
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
