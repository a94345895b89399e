"""A node's configuration: what is accepted, and that mistakes are refused by name."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from splitbrain.nodes.server.machine.configuration import (
    ConfigurationError,
    NodeConfiguration,
    encode_configuration,
    read_configuration,
)

DIRECTORY = "0123456789abcdef" * 2


def valid() -> dict[str, Any]:
    return {
        "name": "n1",
        "node_id": 1,
        "directory_id": DIRECTORY,
        "cluster_id": "AAAAAAAAAAAAAAAAAAAAAA",
        "voters": [{"node_id": 1, "directory_id": DIRECTORY, "host": "n1", "port": 9193}],
        "quorum_listener": {"host": "127.0.0.1", "port": 9193},
        "client_listener": {"host": "127.0.0.1", "port": 9190},
        "data_folder": "/data",
    }


def read(tmp_path: Path, content: object) -> NodeConfiguration:
    path = tmp_path / "node.json"
    path.write_bytes(msgspec.json.encode(content))
    return read_configuration(path)


def test_what_is_written_is_read(tmp_path: Path) -> None:
    configuration = read(tmp_path, valid())
    path = tmp_path / "again.json"
    path.write_bytes(encode_configuration(configuration))
    assert read_configuration(path) == configuration


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"node": 1}, "node"),
        ({"directory_id": "xyz"}, "directory id of the node"),
        ({"voters": []}, "no voters"),
        ({"voters": valid()["voters"] * 2}, "same node id"),
        ({"node_id": "one"}, "node_id"),
    ],
)
def test_a_mistake_is_refused_by_name(
    tmp_path: Path, change: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(ConfigurationError, match=sentence):
        read(tmp_path, valid() | change)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"nowhere\.json"):
        read_configuration(tmp_path / "nowhere.json")
