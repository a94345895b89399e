"""``python -m splitbrain.nodes``: what it refuses, in one sentence, and with which exit code."""

from pathlib import Path

import msgspec
import pytest

from splitbrain.nodes.quorum.identifiers import NO_DIRECTORY, DirectoryId, NodeId
from splitbrain.nodes.quorum.persistent import Voter
from splitbrain.nodes.server.host import exit_codes
from splitbrain.nodes.server.machine.commands import CONFIGURATION_VARIABLE, main
from splitbrain.nodes.server.machine.configuration import encode_configuration
from splitbrain.nodes.storage.disk import DiskFileSystem
from splitbrain.nodes.storage.identity import load_identity
from tests.unit.nodes.server.configurations import DIRECTORY, configuration_of
from tests.unit.nodes.storage.foreign_locks import locked_as_java_does

OTHER = DirectoryId("fedcba9876543210" * 2)


def refusal(capsys: pytest.CaptureFixture[str], command: str, path: str, code: int) -> str:
    """Standard error of the command, which ends with this code."""
    capsys.readouterr()
    assert main([command, "--config", path]) == code
    return capsys.readouterr().err


def written(tmp_path: Path, **changes: object) -> str:
    configuration = configuration_of(tmp_path)
    path = tmp_path / "node.json"
    path.write_bytes(encode_configuration(msgspec.structs.replace(configuration, **changes)))
    return str(path)


def test_a_folder_is_formatted_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path)
    assert main(["format", "--config", path]) == 0
    assert (tmp_path / "data" / "meta.properties").exists()
    assert "is formatted already" in refusal(capsys, "format", path, exit_codes.UNUSABLE)


def _as_controller(tmp_path: Path, **changes: object) -> str:
    """A configuration by whose voters Kafka's controllers find each other too."""
    voters = (Voter(NodeId(1), NO_DIRECTORY, "127.0.0.1", 1),)
    return written(tmp_path, **{"state_machine": "metadata", "voters": voters, **changes})


@pytest.fixture
def kafkas(tmp_path: Path) -> Path:
    """A data folder as a controller of Kafka leaves it: without what only ours keep."""
    main(["format", "--config", written(tmp_path)])
    (tmp_path / "data" / "voters.json").unlink()
    (tmp_path / "data" / "__cluster_metadata-0" / "durable-length").unlink()
    return tmp_path / "data"


def test_a_folder_of_kafkas_is_adopted_once(
    tmp_path: Path, kafkas: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = _as_controller(tmp_path)
    assert main(["run", "--config", path]) == exit_codes.CORRUPT
    assert main(["adopt", "--config", path]) == exit_codes.STOPPED
    identity = load_identity(DiskFileSystem(), kafkas)
    assert identity.directory_id == DIRECTORY
    assert [voter.node_id for voter in identity.voters] == [1]
    assert "is formatted already" in refusal(capsys, "adopt", path, exit_codes.UNUSABLE)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"cluster_id": "BBBBBBBBBBBBBBBBBBBBBB"}, "names cluster AAAA"),
        ({"node_id": 2, "voters": (Voter(NodeId(2), NO_DIRECTORY, "h", 1),)}, "names node 1"),
        ({"voters": (Voter(NodeId(1), OTHER, "h", 1),)}, "names directory"),
        ({"state_machine": "registers"}, "node 1 is no controller"),
        ({"node_id": 2}, "node 2 is no controller"),
        ({"data_folder": "/nonexistent/data"}, "does not exist"),
    ],
)
def test_what_cannot_be_adopted_is_refused_in_a_sentence_and_left_as_it_is(
    tmp_path: Path,
    kafkas: Path,
    changes: dict[str, object],
    sentence: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    before = sorted(kafkas.rglob("*"))
    path = _as_controller(tmp_path, **changes)
    error = refusal(capsys, "adopt", path, exit_codes.UNUSABLE)
    assert sentence in error
    assert error.count("\n") == 1
    assert sorted(kafkas.rglob("*")) == before


def test_a_controller_that_runs_keeps_its_folder(
    tmp_path: Path, kafkas: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with locked_as_java_does(kafkas / ".lock"):
        error = refusal(capsys, "adopt", _as_controller(tmp_path), exit_codes.UNUSABLE)
    assert "another process holds" in error
    assert main(["adopt", "--config", _as_controller(tmp_path)]) == exit_codes.STOPPED


def test_a_folder_that_cannot_be_read_is_corrupt(
    tmp_path: Path, kafkas: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (kafkas / "meta.properties").write_text("version=9\n")
    error = refusal(capsys, "adopt", _as_controller(tmp_path), exit_codes.CORRUPT)
    assert "its version is 9" in error


def test_formatting_a_wiped_voter_anew_gives_it_another_directory_id(tmp_path: Path) -> None:
    events = tmp_path / "state_events.jsonl"
    events.write_text("{}\n")
    assert main(["format", "--config", written(tmp_path, state_event_file=str(events))]) == 0
    identity = load_identity(DiskFileSystem(), tmp_path / "data")
    assert identity.directory_id != DIRECTORY


def test_the_configuration_may_be_named_by_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(CONFIGURATION_VARIABLE, written(tmp_path))
    assert main(["format"]) == 0


def test_without_a_configuration_it_says_how_to_give_one(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv(CONFIGURATION_VARIABLE, raising=False)
    assert main(["run"]) == exit_codes.UNUSABLE
    assert "--config FILE" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"settings": {"x": "1"}}, "unknown setting 'x'"),
        ({"cluster_id": "other"}, "does not exist"),
        (
            {"state_machine": "metadata", "settings": {"num.partitions": "x"}},
            "setting 'num.partitions' is 'x', not a whole number",
        ),
        ({"state_machine": "metadata", "settings": {"x": "1"}}, "unknown setting 'x'"),
        ({"settings": {"num.partitions": "1"}}, "unknown setting 'num.partitions'"),
    ],
)
def test_a_node_that_cannot_run_says_why(
    tmp_path: Path, changes: dict[str, object], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    error = refusal(capsys, "run", written(tmp_path, **changes), exit_codes.UNUSABLE)
    assert sentence in error
    assert "Traceback" not in error


def test_a_foreign_folder_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["format", "--config", written(tmp_path)])
    path = written(tmp_path, cluster_id="BBBBBBBBBBBBBBBBBBBBBB")
    assert "names cluster AAAA" in refusal(capsys, "run", path, exit_codes.UNUSABLE)
