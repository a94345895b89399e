"""Size-prefixed frames: how Kafka cuts a byte stream into requests and responses.

Holds bytes and nothing else: no socket, no clock. Must never keep more than one frame's limit plus
what the last ``feed`` brought.
"""

from struct import Struct
from typing import Final

from splitbrain.nodes.wire.errors import FrameTooLargeError

#: Kafka's default ``socket.request.max.bytes``.
FRAME_BYTES_MAX: Final = 100 * 1024 * 1024
_SIZE: Final = Struct(">i")


def frame(payload: bytes) -> bytes:
    """Return the payload with its size before it, as it goes on the wire."""
    return _SIZE.pack(len(payload)) + payload


class FrameReader:
    """Collects the bytes of one connection and gives whole frames, without their size."""

    def __init__(self, limit_bytes: int = FRAME_BYTES_MAX) -> None:
        self._limit_bytes = limit_bytes
        self._buffer = bytearray()

    @property
    def pending_bytes(self) -> int:
        """Bytes held of a frame that is not complete yet."""
        return len(self._buffer)

    def feed(self, data: bytes | bytearray | memoryview) -> list[bytes]:
        """Take the next bytes of the stream; return the frames that they complete, in order.

        Raises FrameTooLargeError for an impossible size; frames before it are lost, too.
        """
        buffer = self._buffer
        buffer += data
        frames: list[bytes] = []
        position = 0
        while len(buffer) - position >= _SIZE.size:
            (size,) = _SIZE.unpack_from(buffer, position)
            if not 0 <= size <= self._limit_bytes:
                raise FrameTooLargeError(
                    f"a frame announces {size} bytes; the limit is {self._limit_bytes}"
                )
            end = position + _SIZE.size + size
            if end > len(buffer):
                break
            frames.append(bytes(memoryview(buffer)[position + _SIZE.size : end]))
            position = end
        if position:
            del buffer[:position]
        return frames
