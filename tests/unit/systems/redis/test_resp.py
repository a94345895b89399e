"""The protocol: whole replies from any pieces of bytes, and nothing from what is none."""

import pytest

from splitbrain.systems.redis import resp

WIRE = (
    b"+OK\r\n-READONLY no\r\n:-7\r\n$3\r\na\r\n\r\n$-1\r\n*2\r\n:1\r\n*1\r\n$0\r\n\r\n*-1\r\n*0\r\n"
)
REPLIES = ["OK", resp.ErrorReply("READONLY no"), -7, b"a\r\n", None, [1, [b""]], None, []]


def test_a_command_is_an_array_of_counted_strings() -> None:
    assert resp.encode_command(("SET", "ä", b"\r\n")) == (
        b"*3\r\n$3\r\nSET\r\n$2\r\n\xc3\xa4\r\n$2\r\n\r\n\r\n"
    )


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
def test_replies_come_out_whole_however_the_bytes_are_cut(size: int) -> None:
    parser = resp.ReplyParser()
    found = [
        reply
        for start in range(0, len(WIRE), size)
        for reply in parser.feed(WIRE[start : start + size])
    ]
    assert found == REPLIES


@pytest.mark.parametrize("half", [b"+OK", b"$5\r\nabc", b"*2\r\n:1\r\n", b"*1\r\n$1\r\nx"])
def test_half_a_reply_is_none(half: bytes) -> None:
    assert resp.ReplyParser().feed(half) == []


@pytest.mark.parametrize(
    "nonsense", [b"HTTP/1.1 200\r\n", b":x\r\n", b"$2\r\nabc\r\n", b"$-2\r\n", b"*9999999999\r\n"]
)
def test_what_is_no_reply_is_refused(nonsense: bytes) -> None:
    with pytest.raises(resp.ProtocolError):
        resp.ReplyParser().feed(nonsense)


def test_an_error_is_known_by_its_first_word() -> None:
    assert resp.ErrorReply("NOREPLICAS Not enough good replicas to write.").code == "NOREPLICAS"


def test_descriptions_are_read_as_names_and_values() -> None:
    assert resp.pairs([b"ip", b"n1", b"port", b"6379"]) == {"ip": "n1", "port": "6379"}
    assert resp.pairs("OK") == {}
    assert resp.text(7) == ""
    lines = b"# Replication\r\nrole:master\r\nslave0:ip=n2,port=6379,state=online\r\n"
    assert resp.info_fields(lines) == {"role": "master", "slave0": "ip=n2,port=6379,state=online"}
