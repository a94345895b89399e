"""Lock of a run folder that lets one judgement write at a time; a second one waits.

Result files replace each other whole, but the tables of the Spark analysis do not, and a report of
two judgements would fit neither. Not the run's own lock: a folder being judged is not alive.
"""

import fcntl
import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from splitbrain.harness.console.stop import NotYetError, Stop
from splitbrain.harness.console.waiting import During
from splitbrain.history.border import open_in_place

LOCK_NAME = "judging.lock"
WAITING = "waiting for another judgement of this run"
_INTERVAL_S = 0.1
#: Longer than any judgement takes; after it the judgement goes on without the lock.
_PATIENCE_S = 3600.0


@contextmanager
def exclusive(run_folder: Path, during: During, stop: Stop) -> Generator[None]:
    """Hold the folder's lock; ``stop`` ends the wait for it and goes on without."""
    try:
        descriptor = open_in_place(run_folder / LOCK_NAME, os.O_RDWR)
    except OSError:
        # An unwritable folder needs no lock.
        yield
        return
    try:
        if not _locked(descriptor):
            with during(WAITING):
                _await(descriptor, stop)
        yield
    finally:
        os.close(descriptor)


def _await(descriptor: int, stop: Stop) -> None:
    def try_once() -> None:
        if not _locked(descriptor):
            raise NotYetError(WAITING)

    try:
        stop.retrying(_PATIENCE_S, _INTERVAL_S, NotYetError)(try_once)
    except NotYetError:
        return


def _locked(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
