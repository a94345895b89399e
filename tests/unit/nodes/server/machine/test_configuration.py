"""A node's configuration: what is accepted, and that mistakes are refused by name."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from splitbrain.nodes.quorum.settings import QuorumSettings
from splitbrain.nodes.server.machine.configuration import (
    ConfigurationError,
    NodeConfiguration,
    encode_configuration,
    read_configuration,
)
from splitbrain.nodes.server.start.quorum_settings import quorum_settings

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


def test_defaults_are_ours() -> None:
    settings = quorum_settings({})
    assert settings == QuorumSettings()
    assert settings.stands_when_leader_is_gone


def test_kafka_names_set_our_fields() -> None:
    settings = quorum_settings(
        {
            "controller.quorum.fetch.timeout.ms": "2000",
            "controller.quorum.election.timeout.ms": "1000",
            "controller.quorum.election.backoff.max.ms": "900",
            "controller.quorum.request.timeout.ms": "1500",
        }
    )
    assert settings.fetch_timeout_ms == 2000
    assert (settings.election_timeout_ms_min, settings.election_timeout_ms_max) == (1000, 2000)
    assert settings.election_back_off_ms_max == 900
    assert settings.request_timeout_ms == 1500


def test_a_parked_fetch_is_answered_in_half_the_fetch_timeout() -> None:
    settings = quorum_settings({"fetch_timeout_ms": "60", "request_timeout_ms": "5"})
    assert settings.fetch_max_wait_ms == 30


def test_what_kafka_does_not_do_can_be_switched_off() -> None:
    settings = quorum_settings({"stands_when_leader_is_gone": "false"})
    assert not settings.stands_when_leader_is_gone


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"fetch_timeout": "1"}, "unknown setting 'fetch_timeout'"),
        ({"fetch_timeout_ms": "soon"}, "not a whole number"),
        ({"fetch_timeout_ms": "5", "controller.quorum.fetch.timeout.ms": "5"}, "given twice"),
        ({"bugs": "1"}, "unknown setting 'bugs'"),
        ({"fetch_max_wait_ms": "500"}, "fetch_max_wait_ms"),
        ({"stands_when_leader_is_gone": "1"}, "not true or false"),
    ],
)
def test_a_wrong_setting_is_refused_by_name(given: dict[str, str], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        quorum_settings(given)
