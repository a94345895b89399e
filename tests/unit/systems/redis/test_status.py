"""Questions to nodes: one deadline for all, and None from whoever does not answer properly."""

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager

import pytest

from contracts.names import NodeName
from contracts.runtime import Address
from systems.redis import status
from systems.redis.status import NodeView, ServerView, ask, ask_all, exchange
from tests.unit.systems.redis.fake_servers import N1, N2, N3, NODES

QUESTION = [("PING",)]
VIEW = NodeView(ServerView(True, 0, 0, "", "", False, 0), None)


@contextmanager
def answering(reply: bytes | None) -> Iterator[Address]:
    """A listener that answers its first connection with this, or closes it for nothing."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        connection, _ = listener.accept()
        with closing(connection):
            if reply is not None:
                connection.recv(1000)
                connection.sendall(reply)
                connection.recv(1000)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield Address("127.0.0.1", listener.getsockname()[1])
    finally:
        listener.close()
        thread.join()


def soon() -> float:
    return time.monotonic() + 10.0


def test_each_question_gets_its_reply() -> None:
    with answering(b"+PONG\r\n:1\r\n") as address:
        assert exchange(address, [*QUESTION, ("FIVE",)], soon()) == ["PONG", 1]


@pytest.mark.parametrize("reply", [None, b"HTTP/1.1 400\r\n"])
def test_who_does_not_answer_properly_says_nothing(reply: bytes | None) -> None:
    with answering(reply) as address:
        assert exchange(address, QUESTION, soon()) is None


def test_half_an_answer_is_none_when_time_is_up() -> None:
    with answering(b"$5\r\nab") as address:
        assert exchange(address, QUESTION, time.monotonic() + 0.05) is None


def test_nobody_is_asked_after_the_deadline() -> None:
    assert exchange(Address("127.0.0.1", 1), QUESTION, time.monotonic() - 1) is None


def test_a_node_that_does_not_listen_has_no_parts() -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as vacant:
        port = vacant.getsockname()[1]
    assert ask(lambda _node, _port: Address("127.0.0.1", port), N1, 1.0) == NodeView(None, None)


def test_those_that_say_nothing_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def asked(_endpoint: object, node: NodeName, _timeout_s: float) -> NodeView:
        return NodeView(None, None) if node == N2 else VIEW

    monkeypatch.setattr(status, "ask", asked)
    assert set(ask_all(lambda *_: Address("", 0), NODES, 1.0)) == {N1, N3}
    assert ask_all(lambda *_: Address("", 0), (), 1.0) == {}


def test_a_frozen_node_is_not_waited_for_once_enough_is_known(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    thaw = threading.Event()

    def asked(_endpoint: object, node: NodeName, _timeout_s: float) -> NodeView:
        if node == N1:
            thaw.wait()
        return VIEW

    monkeypatch.setattr(status, "ask", asked)
    try:
        found = ask_all(lambda *_: Address("", 0), NODES, 1.0, lambda told: len(told) == 2)
        assert set(found) == {N2, N3}
    finally:
        thaw.set()
