"""Messages between a process of the harness and its own children: a length and a pickle each.

Both ends are the same program on the same machine. Must never be read from anybody else's process:
a pickle is a program.
"""

import os
import pickle
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, BinaryIO

from splitbrain.plugins.files import find_modules_of_files

#: Length prefix of a frame.
_HEADER = struct.Struct(">Q")

# An adapter that a user's file holds is sent to children too, and these have not loaded the file.
find_modules_of_files()


def frame(message: Any) -> bytes:
    """One frame's bytes.

    Raises:
        pickle.PicklingError, TypeError, AttributeError: the message cannot be sent.
    """
    body = pickle.dumps(message, protocol=pickle.HIGHEST_PROTOCOL)
    return _HEADER.pack(len(body)) + body


def write_frame(stream: IO[bytes], message: Any) -> None:
    """Write one frame and flush."""
    stream.write(frame(message))
    stream.flush()


def read_body(stream: BinaryIO) -> bytes | None:
    """Return the next frame's pickle, None where the stream ends before it is whole."""
    header = stream.read(_HEADER.size)
    if len(header) < _HEADER.size:
        return None
    size = _HEADER.unpack(header)[0]
    body = stream.read(size)
    return body if len(body) == size else None


def taken_messages(buffer: bytearray) -> Iterator[Any]:
    """Yield the messages that have arrived whole, each taken out of the buffer once it was given.

    The output of a broken child need not be a frame: unpickling may raise anything.
    """
    start = 0
    try:
        while len(buffer) - start >= _HEADER.size:
            body = start + _HEADER.size
            end = body + _HEADER.unpack_from(buffer, start)[0]
            if len(buffer) < end:
                return
            with memoryview(buffer) as view:
                message = pickle.loads(view[body:end])  # noqa: S301 - from our own child
            start = end
            yield message
    finally:
        del buffer[:start]


def take_over_pipes() -> tuple[BinaryIO, BinaryIO]:
    """Return the child's standard input and output, for frames alone.

    Whatever else reads or prints finds nothing, and the standard error, from now on.
    """
    incoming = os.fdopen(os.dup(0), "rb")
    outgoing = os.fdopen(os.dup(1), "wb")
    with Path(os.devnull).open("rb") as nothing:
        os.dup2(nothing.fileno(), 0)
    os.dup2(2, 1)
    return incoming, outgoing
