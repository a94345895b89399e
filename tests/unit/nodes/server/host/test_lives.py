"""Incarnations and formatting: no number twice, and no voter that silently forgets."""

from pathlib import Path

import msgspec
import pytest

from splitbrain.nodes.server.host.incarnation import (
    INCARNATION_FILE,
    IncarnationError,
    next_incarnation,
)
from splitbrain.nodes.server.machine.configuration import NodeConfiguration
from splitbrain.nodes.server.machine.data_folder import format_data_folder as format_node
from splitbrain.nodes.server.machine.data_folder import (
    format_data_folder_if_empty as format_if_empty,
)
from splitbrain.nodes.storage.disk import DiskFileSystem
from splitbrain.nodes.storage.errors import AlreadyFormattedError
from splitbrain.nodes.storage.identity import load_identity
from tests.unit.nodes.server.configurations import DIRECTORY, configuration_of

DISK = DiskFileSystem()


def test_incarnations_count_from_0_and_never_repeat(tmp_path: Path) -> None:
    assert [next_incarnation(DISK, tmp_path) for _ in range(3)] == [0, 1, 2]


def test_a_new_disk_goes_on_after_the_lives_that_are_known(tmp_path: Path) -> None:
    assert [next_incarnation(DISK, tmp_path, 5), next_incarnation(DISK, tmp_path, 5)] == [5, 6]
    assert next_incarnation(DISK, tmp_path, 3) == 7


def test_a_leftover_of_a_crash_does_not_disturb_the_count(tmp_path: Path) -> None:
    next_incarnation(DISK, tmp_path)
    (tmp_path / "incarnation.tmp").write_text("99")
    assert next_incarnation(DISK, tmp_path) == 1


@pytest.mark.parametrize("content", [b"", b"x", b"-1", b"\xff"])
def test_an_unreadable_counter_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / INCARNATION_FILE).write_bytes(content)
    with pytest.raises(IncarnationError, match="holds no number"):
        next_incarnation(DISK, tmp_path)


def test_an_empty_folder_gets_the_configured_directory_id(tmp_path: Path) -> None:
    assert format_if_empty(configuration_of(tmp_path)) == DIRECTORY
    identity = load_identity(DiskFileSystem(), tmp_path / "data")
    assert identity.directory_id == DIRECTORY
    assert identity.voters == configuration_of(tmp_path).voters


def test_a_formatted_folder_is_left_alone(tmp_path: Path) -> None:
    format_if_empty(configuration_of(tmp_path))
    assert format_if_empty(configuration_of(tmp_path)) is None
    with pytest.raises(AlreadyFormattedError):
        format_node(configuration_of(tmp_path))


def test_a_folder_with_anything_in_it_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "something").touch()
    assert format_if_empty(configuration_of(tmp_path)) is None


def test_a_fresh_file_system_counts_as_empty(tmp_path: Path) -> None:
    (tmp_path / "data" / "lost+found").mkdir(parents=True)
    assert format_if_empty(configuration_of(tmp_path)) == DIRECTORY


def test_what_a_crash_while_formatting_left_is_formatted_again(tmp_path: Path) -> None:
    format_if_empty(configuration_of(tmp_path))
    data = tmp_path / "data"
    (data / "meta.properties").rename(data / "meta.properties.tmp")
    assert format_if_empty(configuration_of(tmp_path)) == DIRECTORY
    assert load_identity(DiskFileSystem(), data).directory_id == DIRECTORY


def test_a_half_formatted_folder_of_a_node_that_has_lived_gets_another_directory_id(
    tmp_path: Path,
) -> None:
    format_if_empty(configuration_of(tmp_path))
    (tmp_path / "data" / "meta.properties").unlink()
    (tmp_path / "state_events.jsonl").write_text("{}\n")
    assert format_if_empty(configuration_of(tmp_path)) not in (None, DIRECTORY)


@pytest.mark.parametrize("name", ["incarnation", "__cluster_metadata-0/quorum-state"])
def test_a_folder_that_lost_its_identity_after_a_life_is_left_alone(
    tmp_path: Path, name: str
) -> None:
    format_if_empty(configuration_of(tmp_path))
    (tmp_path / "data" / "meta.properties").unlink()
    (tmp_path / "data" / name).write_text("1")
    assert format_if_empty(configuration_of(tmp_path)) is None


def test_a_wiped_voter_comes_back_under_another_directory_id(tmp_path: Path) -> None:
    (tmp_path / "state_events.jsonl").write_text("{}\n")
    given = format_if_empty(configuration_of(tmp_path))
    assert given not in (None, DIRECTORY)


def test_the_configuration_survives_its_file(tmp_path: Path) -> None:
    original = configuration_of(tmp_path)
    assert msgspec.json.decode(msgspec.json.encode(original), type=NodeConfiguration) == original
