"""Messages to servers that are slow, wrong, gone or elsewhere; no sentence has the address."""

import socket

import msgspec
import pytest

from splitbrain.harness.export.posting import PostFailedError, post_json, problem_of_address
from tests.unit.harness.export.http_server import HASTY, Answer, Server, answering

SECRET = "/hook/T0p-s3cret"


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "127.0.0.1")


def refused(server: Server, **patience: float) -> PostFailedError:
    with server.running(), pytest.raises(PostFailedError) as failed:
        post_json(
            server.address + SECRET, b"{}", patience=msgspec.structs.replace(HASTY, **patience)
        )
    assert "s3cret" not in str(failed.value)
    assert failed.value.__cause__ is None
    return failed.value


def test_what_is_posted_arrives_as_json_with_its_headers() -> None:
    with answering(Answer(body=b'{"a":1}')).running() as server:
        answered = post_json(server.address + SECRET, b'{"x":2}', headers={"X-Token": "t"})
    (posted,) = server.posted
    assert (answered, posted.path, posted.body) == (b'{"a":1}', SECRET, b'{"x":2}')
    assert (posted.headers["content-type"], posted.headers["x-token"]) == ("application/json", "t")


def test_a_server_that_recovers_is_asked_again() -> None:
    with answering(Answer(500), Answer(429, {"Retry-After": "0"}), Answer()).running() as server:
        post_json(server.address, b"{}", patience=HASTY)
    assert len(server.posted) == 3


@pytest.mark.parametrize(
    ("answer", "told", "asked"),
    [
        (Answer(500), "it answered 500", 3),
        (Answer(429, {"Retry-After": "soon"}), "it answered 429", 3),
        (Answer(404), "it answered 404", 1),
        (Answer(302, {"Location": "/elsewhere"}), "it answered 302, a redirect, which is not", 1),
        (Answer(307, {"Location": "http://127.0.0.1:9/"}), "it answered 307, a redirect", 1),
    ],
)
def test_a_refusal_is_told_and_repeated_where_that_helps(
    answer: Answer, told: str, asked: int
) -> None:
    server = answering(answer)
    assert told in str(refused(server))
    assert len(server.posted) == asked


def test_a_server_that_does_not_answer_is_left() -> None:
    server = answering(Answer(is_silent=True))
    assert "did not answer" in str(refused(server, answer_s=0.2))
    assert len(server.posted) == 3


def test_a_server_that_sends_a_byte_now_and_then_is_left() -> None:
    server = answering(Answer(drips_s=0.05))
    assert "did not answer within 0.3 s" in str(refused(server, answer_s=0.3, attempts=1))


def test_a_port_on_which_nobody_listens_is_told() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{free.getsockname()[1]}{SECRET}"
        with pytest.raises(PostFailedError, match="it refuses connections") as failed:
            post_json(address, b"{}", patience=HASTY)
    assert "s3cret" not in str(failed.value)


@pytest.mark.parametrize(
    "address",
    [
        *("", "hooks.example/x", "file:///etc/passwd", "ftp://127.0.0.1/x", "http://"),
        *(
            "http://127.0.0.1:port/x",
            "http://127.0.0.1/a b",
            "http://127.0.0.1/\u00e4",
            "http://[::",
        ),
        "http://127.0.0.1/\nx",
    ],
)
def test_what_is_no_address_is_refused_before_anything_is_sent(address: str) -> None:
    assert problem_of_address(address)
    with pytest.raises(PostFailedError):
        post_json(address, b"{}", patience=HASTY)
