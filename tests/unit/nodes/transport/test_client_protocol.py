"""The private client protocol: framing, and what is refused."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from splitbrain.nodes.transport.client_protocol import (
    FRAME_SIZE_BYTES_MAX,
    ClientAnswer,
    ClientRequest,
    FrameSplitter,
    Hello,
    NodeState,
    ProtocolError,
    decode_answer,
    decode_hello,
    decode_request,
    decode_state,
    encode_frame,
)

_REQUESTS = st.builds(
    ClientRequest,
    id=st.integers(0, 2**31),
    kind=st.sampled_from(["read", "write", "cas", "add", "read-set", "status"]),
    key=st.text(max_size=5),
    value=st.none() | st.integers(-5, 5) | st.lists(st.integers(0, 5), max_size=2),
)


@given(st.lists(_REQUESTS, max_size=4), st.integers(1, 20))
def test_frames_survive_any_chunking(requests: list[ClientRequest], chunk_bytes: int) -> None:
    stream = b"".join(encode_frame(request) for request in requests)
    splitter = FrameSplitter()
    bodies = [
        body
        for start in range(0, len(stream), chunk_bytes)
        for body in splitter.feed(stream[start : start + chunk_bytes])
    ]
    assert [decode_request(body) for body in bodies] == requests


def test_an_answer_survives_its_frame() -> None:
    answer = ClientAnswer(7, "not-leader", definite=True, leader_id=2, epoch=3, reason="no")
    (body,) = FrameSplitter().feed(encode_frame(answer))
    assert decode_answer(body) == answer


def test_a_status_survives_its_frame() -> None:
    state = NodeState(1, 2, "leader", 3, 1, 10, 11, 9, "ab")
    (body,) = FrameSplitter().feed(encode_frame(ClientAnswer(1, "ok", definite=True, result=state)))
    assert decode_state(decode_answer(body)) == state


def test_a_frame_announced_too_long_is_refused_before_it_arrives() -> None:
    splitter = FrameSplitter()
    with pytest.raises(ProtocolError, match="announces"):
        list(splitter.feed((FRAME_SIZE_BYTES_MAX + 1).to_bytes(4, "big")))


def test_a_message_too_long_is_refused_by_the_sender() -> None:
    with pytest.raises(ProtocolError, match="bytes"):
        encode_frame(ClientRequest(1, "write", "k", "x" * FRAME_SIZE_BYTES_MAX))


def test_a_value_that_msgpack_lacks_is_refused_by_the_sender() -> None:
    with pytest.raises(ProtocolError):
        encode_frame(ClientRequest(1, "write", "k", 2**70))


@given(st.binary(max_size=30))
def test_any_bytes_are_a_message_or_refused(body: bytes) -> None:
    for decode in (decode_request, decode_answer, decode_hello):
        try:
            decode(body)
        except ProtocolError:
            continue


def test_an_unknown_kind_is_refused() -> None:
    with pytest.raises(ProtocolError):
        decode_request(msgspec.msgpack.encode({"id": 1, "kind": "drop-everything"}))


def test_another_version_of_the_protocol_is_refused() -> None:
    (body,) = FrameSplitter().feed(encode_frame(Hello(99, 1, 0)))
    with pytest.raises(ProtocolError, match="99"):
        decode_hello(body)
