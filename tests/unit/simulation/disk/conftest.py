"""A disk in memory with one durable file."""

import pytest

from splitbrain.simulation.disk.file_system import MemoryFileSystem
from tests.unit.simulation.disk.one_file_disks import one_file_disk


@pytest.fixture
def disk() -> MemoryFileSystem:
    """With one durable file."""
    return one_file_disk()
