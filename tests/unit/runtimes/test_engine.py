"""Every way in which an engine can be away is one sentence that says what to do."""

import socket
from pathlib import Path

import pytest
from docker.errors import APIError, ImageNotFound, NotFound

from splitbrain.contracts.errors import HarnessError
from splitbrain.runtimes.docker.engine import connect, engine_action


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
def test_what_the_engine_refuses_is_one_sentence_with_a_next_step(
    error: APIError, sentence: str
) -> None:
    with pytest.raises(HarnessError, match=sentence), engine_action("start n1", "splitbrain-n1"):
        raise error
