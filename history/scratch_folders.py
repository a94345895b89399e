"""Temporary folders that show whether their maker still lives.

A process that is killed cannot remove its temporary files. So each folder holds a lock file whose
``flock`` the maker holds; the kernel releases it at the maker's death, and ``splitbrain clean``
removes the folder. Never for anything that must outlive its maker: that goes into the run folder.
"""

import fcntl
import os
import shutil
import tempfile
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from pathlib import Path

PREFIX = "splitbrain-"
#: Not a plain word: others keep locks in their folders too, and those must stay.
_LOCK = ".splitbrain-scratch.lock"
#: Anybody may make a folder of such a name: no link is followed there and no pipe waited for.
_FOUND = os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


@contextmanager
def scratch_folder(purpose: str) -> Generator[Path]:
    """Yield a fresh folder, removed at the end of the block, or by ``clean`` if it never ends."""
    folder = Path(tempfile.mkdtemp(prefix=f"{PREFIX}{purpose}-"))
    # Locked before it has its name: nobody finds it free.
    unnamed = folder / f"{_LOCK}.new"
    descriptor = os.open(unnamed, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        # Without locks the folder is not known as dead, and stays.
        with suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            unnamed.rename(folder / _LOCK)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(descriptor)


def remove_dead(
    parent: Path | None = None, before: Callable[[Path], None] = lambda _: None
) -> list[Path]:
    """Remove the folders whose makers are dead, and return them.

    A folder without a lock file is spared: it is foreign, or just being made. ``before`` is called
    with each before it is removed; without ``parent`` this process's temporary place is searched.
    """
    removed: list[Path] = []
    for folder in sorted((parent or Path(tempfile.gettempdir())).glob(f"{PREFIX}*")):
        # It may be another user's, in use, or just being removed.
        with suppress(OSError):
            descriptor = os.open(folder / _LOCK, _FOUND)
            try:
                if folder.is_symlink():
                    continue
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                before(folder)
                shutil.rmtree(folder)
                removed.append(folder)
            finally:
                os.close(descriptor)
    return removed
