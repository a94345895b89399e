"""An engine that is away or busy, labels that it believes, and archives that it hands out."""

import io
import socket
import tarfile
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import docker.errors
import pytest
from docker.errors import APIError, ImageNotFound, NotFound

from splitbrain.contracts.errors import HarnessError, UsageError
from splitbrain.contracts.names import RunId
from splitbrain.runtimes.docker import archives, pods, sweep
from splitbrain.runtimes.docker.engine import connect, engine_action
from splitbrain.runtimes.docker.names import DATA_LABEL, NODE_LABEL, mark_of_run
from splitbrain.runtimes.docker.pods import freeze


def test_no_socket(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/docker.sock")
    with pytest.raises(HarnessError, match=r"no engine's socket.*make engine"):
        connect()


def test_a_socket_on_which_nobody_answers(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    path = tmp_path / "docker.sock"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
    monkeypatch.setenv("DOCKER_HOST", f"unix://{path}")
    with pytest.raises(HarnessError, match=r"nobody answers.*make engine"):
        connect()


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (ImageNotFound("no such image"), r"could not start n1.*Run `make images`"),
        (NotFound("gone", explanation="no such container"), "removed it"),
        (
            APIError("conflict", explanation='the name "/x" is already in use by container'),
            "splitbrain clean",
        ),
        (
            APIError(
                "taken", explanation="Bind for 127.0.0.1:80 failed: port is already allocated"
            ),
            "start the run again, ports are drawn anew",
        ),
        (APIError("full", explanation="write /x: no space left on device"), "Free disk space"),
        (APIError("odd", explanation="the engine is unwell."), "unwell. The engine's own log"),
    ],
)
def test_a_refusal_is_one_sentence_with_a_next_step(error: APIError, sentence: str) -> None:
    with pytest.raises(HarnessError, match=sentence), engine_action("start n1", "splitbrain-n1"):
        raise error


BUSY = docker.errors.APIError("OCI runtime pause failed: unable to freeze: unknown")


@pytest.fixture(autouse=True)
def without_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pods, "_WAIT_S", 0.0)


FROZEN = docker.errors.APIError("container is already paused")
GONE = docker.errors.NotFound("no such container")


@pytest.mark.parametrize(
    ("outcomes", "tries", "refusal"),
    [
        pytest.param((BUSY, BUSY, None), 3, None, id="a busy engine is asked again"),
        pytest.param((FROZEN,), 1, None, id="frozen already"),
        pytest.param((BUSY, FROZEN), 2, None, id="frozen while it is asked again"),
        pytest.param([BUSY] * 100, 50, "unable to freeze", id="believed in the end"),
        pytest.param((GONE,), 1, "no such container", id="another refusal is taken at its word"),
    ],
)
def test_a_freeze_is_asked_for_again_while_the_engine_is_busy_and_no_longer(
    outcomes: Sequence[Exception | None], tries: int, refusal: str | None
) -> None:
    container: Any = Mock(pause=Mock(side_effect=outcomes))
    expected = pytest.raises(APIError, match=refusal) if refusal else nullcontext()
    with expected:
        freeze(container)
    assert container.pause.call_count == tries


def client(*names: str) -> Any:
    """An engine with one node of each name."""
    nodes = [
        SimpleNamespace(labels={NODE_LABEL: name, DATA_LABEL: "/data"}, kill=lambda _: None)
        for name in names
    ]
    return SimpleNamespace(containers=SimpleNamespace(list=lambda **_: nodes))


@pytest.fixture
def copied(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Folders that something was copied into."""
    folders: list[Path] = []
    monkeypatch.setattr(sweep, "release_run", lambda *_, **__: None)
    monkeypatch.setattr(archives, "copy_output", lambda _, folder: folders.append(folder))
    monkeypatch.setattr(archives, "copy_data", lambda *_: None)
    return folders


def test_a_node_named_out_of_the_folder_is_not_copied(tmp_path: Path, copied: list[Path]) -> None:
    mark = mark_of_run(RunId("r"), tmp_path / "run" / "lock")
    sweep._salvage(client("../../other", "..", "n1", "/etc"), mark)
    assert copied == [tmp_path / "run" / "nodes" / "n1"]
    assert not (tmp_path / "other").exists()


def test_no_copy_goes_into_a_run_folder_with_a_link(tmp_path: Path, copied: list[Path]) -> None:
    run = tmp_path / "run"
    run.mkdir()
    (run / "nodes").symlink_to(tmp_path)
    with pytest.raises(UsageError, match="holds a link, nodes"):
        sweep._salvage(client("n1"), mark_of_run(RunId("r"), run / "lock"))
    assert copied == []


def archive(*members: tuple[str, bytes], link: str = "") -> io.BytesIO:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as writer:
        for name, content in members:
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            entry.type, entry.linkname = (tarfile.SYMTYPE, link) if link else (tarfile.REGTYPE, "")
            writer.addfile(entry, io.BytesIO(content))
    buffer.seek(0)
    return buffer


def test_an_archive_of_one_folder_becomes_that_folder(tmp_path: Path) -> None:
    archives.unpack(archive(("data/log/0.log", b"x"), ("data/quorum-state", b"y")), tmp_path / "d")
    assert (tmp_path / "d" / "log" / "0.log").read_bytes() == b"x"
    assert (tmp_path / "d" / "quorum-state").read_bytes() == b"y"


@pytest.mark.parametrize(
    ("packed", "problem"),
    [
        (archive(("data/../../escaped", b"x")), "leads out of the archive's folder"),
        (archive(("data/link", b""), link="/etc/passwd"), "neither a folder nor a plain file"),
    ],
)
def test_unfit_members_are_refused(tmp_path: Path, packed: io.BytesIO, problem: str) -> None:
    with pytest.raises(tarfile.TarError, match=problem):
        archives.unpack(packed, tmp_path / "d")
    assert not (tmp_path.parent / "escaped").exists()
