"""Run folders whose locks are held as living runs hold them."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.runtimes.node_programs import living


@pytest.fixture
def living_folder(tmp_path: Path) -> Iterator[Callable[[str], Path]]:
    """Makes run folders of the given names, locked until the test ends."""
    with ExitStack() as locks:
        yield lambda name: locks.enter_context(living(tmp_path / name))
