"""Questions to a node: one deadline for all, and None from whoever does not answer properly."""

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager

import pytest

from splitbrain.contracts.runtime import Address
from splitbrain.systems.redis.status import ask, exchange
from tests.unit.systems.redis.fake_servers import N1

QUESTION = [("PING",)]


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


def test_a_node_that_does_not_listen_says_nothing_at_all() -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as vacant:
        port = vacant.getsockname()[1]
    assert ask(lambda _node, _port: Address("127.0.0.1", port), N1, 1.0) is None
