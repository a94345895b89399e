"""Frames come out whole whatever the pieces in which they arrive."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from splitbrain.nodes.wire.errors import FrameTooLargeError
from splitbrain.nodes.wire.framing import FrameReader, frame

frames = st.lists(st.binary(max_size=60), max_size=8)


@given(frames, st.lists(st.integers(1, 40), min_size=1))
def test_frames_survive_any_cut_of_the_stream(contents: list[bytes], pieces: list[int]) -> None:
    stream = b"".join(frame(content) for content in contents)
    reader = FrameReader(limit_bytes=64)
    received: list[bytes] = []
    position = turn = 0
    while position < len(stream):
        size = pieces[turn % len(pieces)]
        received += reader.feed(stream[position : position + size])
        position += size
        turn += 1
    assert received == contents
    assert reader.pending_bytes == 0


def test_incomplete_frame_is_held_back() -> None:
    reader = FrameReader()
    assert reader.feed(frame(b"abc")[:-1]) == []
    assert reader.pending_bytes == 6
    assert reader.feed(b"c") == [b"abc"]


@pytest.mark.parametrize("size", [-1, 65, 2**31 - 1])
def test_impossible_size_is_refused_before_its_bytes_arrive(size: int) -> None:
    reader = FrameReader(limit_bytes=64)
    with pytest.raises(FrameTooLargeError):
        reader.feed(size.to_bytes(4, "big", signed=True))
