"""Telling dead runs from living ones, and what a runtime says of what it removed; for all runtimes.

A run lives while somebody holds the ``flock`` of the lock file in its folder; the kernel releases
it when the process dies, whatever killed it. Whoever removes a dead run's leftovers holds that lock
meanwhile, so that two sweeps never work on one run at once, and writes into it that the run is
dead. What cannot be known to be dead is spared.
"""

import fcntl
import os
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec

from splitbrain.contracts.names import RunId
from splitbrain.runtimes.owners import is_known_dead, owner_of_word
from splitbrain.runtimes.run_locks import DEAD, NoRunLockError, open_run_lock
from splitbrain.runtimes.waiting import await_true

#: A look takes a shared lock for microseconds; after this long a holder is no looker.
_LOOKS_END_S = 1.0
_LOOK_INTERVAL_S = 0.02


class Swept(msgspec.Struct, frozen=True):
    """What was removed of one dead run."""

    run_id: RunId
    #: Its lock file; the run folder is the folder that holds it.
    lock: Path
    #: Kind of thing, in the plural ("containers"), to how many of them.
    removed: Mapping[str, int]
    #: Why something of it is still there; None: nothing is.
    problem: str | None = None


class Sweep(msgspec.Struct, frozen=True):
    """What one runtime swept."""

    #: Name of the runtime.
    runtime: str
    runs: tuple[Swept, ...] = ()
    #: Why this runtime could not look at all, as a sentence; None: it did.
    skipped: str | None = None


def is_living(lock: Path, owner: str = "", user: int | None = None) -> bool:
    """Whether the run lives, or may.

    The look itself takes a shared lock for a moment: two lookers do not disturb each other.

    Args:
        lock: the run's lock file.
        owner: the word of the process that made what is looked at, the witness where the file is
            gone or not to be read; empty: unknown, and a file that is gone is held by nobody.
        user: who said that this is the run's lock, and must own it; None: whoever.
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

    Yields False, without waiting, for a living run and for what is not a run's lock. A run whose
    lock file is gone cannot be held: removing twice must be harmless anyway.

    Args:
        lock: the run's lock file.
        owner: as for :func:`is_living`.
        patience_s: how long to wait while another sweep holds it; False after that.
        user: as for :func:`is_living`.
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
