"""The epoch of a clean stop: told once, to the next life alone."""

from pathlib import Path

import pytest

from splitbrain.nodes.server.broker.clean_stop import CLEAN_STOP_FILE, NO_EPOCH, CleanStop
from splitbrain.simulation.disk.file_system import MemoryFileSystem

FOLDER = Path("/data")


@pytest.fixture
def filesystem() -> MemoryFileSystem:
    made = MemoryFileSystem()
    made.make_folder(FOLDER)
    return made


def test_it_is_told_once(filesystem: MemoryFileSystem) -> None:
    CleanStop(filesystem, FOLDER).write(17)
    assert CleanStop(filesystem, FOLDER).take() == 17
    assert CleanStop(filesystem, FOLDER).take() == NO_EPOCH


def test_a_power_cut_does_not_bring_it_back(filesystem: MemoryFileSystem) -> None:
    CleanStop(filesystem, FOLDER).write(17)
    filesystem.crash()
    stop = CleanStop(filesystem, FOLDER)
    assert stop.take() == 17
    filesystem.crash()
    assert stop.take() == NO_EPOCH


def test_the_file_is_kafkas(filesystem: MemoryFileSystem) -> None:
    CleanStop(filesystem, FOLDER).write(17)
    assert filesystem.read(FOLDER / CLEAN_STOP_FILE) == b'{"version":0,"brokerEpoch":17}'


def test_what_is_no_such_file_is_no_clean_stop(filesystem: MemoryFileSystem) -> None:
    file = filesystem.open(FOLDER / CLEAN_STOP_FILE, create=True)
    file.write_at(0, b"{")
    file.close()
    assert CleanStop(filesystem, FOLDER).take() == NO_EPOCH
    assert not filesystem.exists(FOLDER / CLEAN_STOP_FILE)
