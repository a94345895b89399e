"""Questions to a node: one deadline for all, and None from whoever does not answer properly."""

import socket
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager

import pytest

from splitbrain.contracts.member_digest import MemberDigest
from splitbrain.contracts.runtime import Address
from splitbrain.systems.redis.resp import ErrorReply
from splitbrain.systems.redis.status import ask, ask_digest, digest_of, exchange
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


PRIMARY = {"loading": 0, "role": "master", "master_replid": "r1", "master_repl_offset": 42}
REPLICA = PRIMARY | {"role": "slave", "master_link_status": "up", "slave_repl_offset": 40}


def info(fields: Mapping[str, object]) -> bytes:
    return "".join(f"{name}:{value}\r\n" for name, value in fields.items()).encode()


def test_a_digest_belongs_to_the_offset_before_and_after_it() -> None:
    primary, replica = info(PRIMARY), info(REPLICA)
    assert digest_of([primary, "ab", primary]) == MemberDigest(42, "ab", "r1")
    assert digest_of([replica, "ab", replica]) == MemberDigest(40, "ab", "r1")


@pytest.mark.parametrize(
    "change",
    [
        {"master_repl_offset": 43, "slave_repl_offset": 41},
        {"master_replid": "r2"},
        {"role": "slave"},
    ],
)
def test_a_server_that_moved_meanwhile_tells_none(change: dict[str, object]) -> None:
    before = PRIMARY if "role" in change else REPLICA
    assert digest_of([info(before), "ab", info(before | change)]) is None


@pytest.mark.parametrize(
    "change", [{"master_link_status": "down"}, {"loading": 1}, {"async_loading": 1}]
)
def test_a_replica_whose_data_may_be_anothers_tells_none(change: dict[str, object]) -> None:
    replica = info(REPLICA | change)
    assert digest_of([replica, "ab", replica]) is None


def test_a_primary_whose_offset_stands_still_whatever_is_written_tells_none() -> None:
    change: dict[str, object] = {"repl_backlog_active": 0}
    alone = info(PRIMARY | change)
    assert digest_of([alone, "ab", alone]) is None
    change["repl_backlog_active"] = 1
    followed = info(PRIMARY | change)
    assert digest_of([followed, "ab", followed]) == MemberDigest(42, "ab", "r1")


def test_a_server_that_refuses_or_does_not_answer_tells_none() -> None:
    primary = info(PRIMARY)
    assert digest_of([primary, ErrorReply("ERR DEBUG command not allowed"), primary]) is None
    assert digest_of([ErrorReply("LOADING"), "ab", primary]) is None
    with answering(None) as address:
        assert ask_digest(lambda _node, _port: address, N1, 1.0) is None
