"""Makes run folders, finds them again, and tells living runs from dead ones.

A run holds an exclusive ``flock`` on the file ``lock`` in its folder; the kernel releases it when
the process dies, whatever killed it. Nothing here reads or writes what a run records.
"""

import datetime as dt
import fcntl
import os
import shlex
import shutil
from contextlib import suppress
from pathlib import Path
from typing import Final, Self

from splitbrain.contracts.errors import HarnessError, UsageError
from splitbrain.contracts.names import RunId
from splitbrain.harness.folder.refusals import ELSEWHERE, tell_refusal
from splitbrain.history.border import DATA_FOLDER, refuse_foreign_entries
from splitbrain.history.run_folder import RunFolder
from splitbrain.runtimes.dead_runs import is_living

LATEST = "latest"
_NAME_TRIES: Final = 1_000


class LivingRun:
    """A run folder with its lock held; leaving the context releases it."""

    def __init__(self, folder: RunFolder, run_id: RunId, descriptor: int) -> None:
        self.folder = folder
        self.run_id = run_id
        self._descriptor = descriptor

    def release(self) -> None:
        """Note that the run is over; harmless when called twice."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


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


def create_run(runs_folder: Path, test: str, seed: int) -> LivingRun:
    """Make ``<runs>/<test>/<UTC time>-<seed>/``, lock it and point ``<runs>/latest`` to it.

    Raises:
        HarnessError: the folder cannot be made.
    """
    stamp = dt.datetime.now(dt.UTC).strftime("%Y%m%dT%H%M%SZ")
    with tell_refusal("make the run folder", runs_folder, ELSEWHERE):
        root = new_folder(runs_folder.absolute() / test, f"{stamp}-{seed}")
        folder = RunFolder(root)
        descriptor = _locked(folder.lock)
        _point_latest(runs_folder.absolute() / LATEST, root)
    return LivingRun(folder, RunId(root.name), descriptor)


def point_latest(runs_folder: Path, root: Path) -> None:
    """Have ``<runs>/latest`` point to a run below it; what cannot be written stays as it is."""
    with suppress(OSError, ValueError):
        _point_latest(runs_folder.absolute() / LATEST, root)


def drop_data(folder: RunFolder) -> None:
    """Remove the nodes' data folders of a run that proved to be in order; they are large."""
    for node in folder.node_names():
        shutil.rmtree(folder.node(node) / DATA_FOLDER, ignore_errors=True)


def find_run(path: Path) -> RunFolder:
    """The run folder that the user means: a folder, or a link to one such as ``runs/latest``.

    Raises:
        UsageError: there is no run in it, or something that no run makes.
    """
    root = path.resolve()
    folder = RunFolder(root)
    if not folder.plan.is_file():
        if folder.history.is_file():
            raise UsageError(
                f"{path} has no {folder.plan.name}, so that nothing says what it was meant to be",
                "Judge its bare history: splitbrain check "
                f"{shlex.quote(str(path / folder.history.name))} --model MODEL",
            )
        raise UsageError(
            f"{path} is no run folder: it has no {folder.plan.name}",
            "Name a folder below runs/, or runs/latest",
        )
    refuse_foreign_entries(root)
    return folder


def is_alive(folder: RunFolder) -> bool:
    """Whether the run's own process still holds its lock."""
    return is_living(RunFolder(folder.root.resolve()).lock)


def _locked(lock: Path) -> int:
    """Return a descriptor that holds the lock, and that no child process gets."""
    descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
    try:
        # Somebody may be looking at it: that ends in a moment.
        fcntl.flock(descriptor, fcntl.LOCK_EX)
    except OSError as error:
        os.close(descriptor)
        lock.unlink()
        lock.parent.rmdir()
        raise HarnessError(
            "lock the run folder",
            str(lock.parent),
            f"its file system keeps no locks ({error.strerror}), so that a living run could not "
            "be told from a dead one",
            "Choose another place with --runs-folder",
        ) from error
    return descriptor


def _point_latest(link: Path, root: Path) -> None:
    """Replace the link in one step; two runs that start together must not collide."""
    temporary = link.with_name(f".{LATEST}.{os.getpid()}")
    temporary.unlink(missing_ok=True)
    temporary.symlink_to(root.relative_to(link.parent), target_is_directory=True)
    temporary.replace(link)
