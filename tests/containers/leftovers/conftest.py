"""Run folders whose locks are held as living runs hold them."""

import fcntl
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from splitbrain.history.run_folder import RunFolder


@pytest.fixture
def living_folder(tmp_path: Path) -> Iterator[Callable[[str], Path]]:
    """Makes run folders of the given names, locked until the test ends."""
    with ExitStack() as locks:

        def make(name: str) -> Path:
            folder = tmp_path / name
            folder.mkdir(parents=True)
            lock = locks.enter_context(RunFolder(folder).lock.open("w"))
            fcntl.flock(lock, fcntl.LOCK_EX)
            return folder

        yield make
