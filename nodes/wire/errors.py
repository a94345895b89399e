"""Everything that can be wrong with bytes from a peer or a file, as one family of exceptions.

A remote error: the peer (or the disk) sent what it should not have. The host closes the connection
and goes on; it never ends a node. Our own misuse of this room is a plain ``ValueError``.
"""

from nodes.quorum.messages import ErrorCode
from nodes.wire.apis import RequestHeader


class WireError(Exception):
    """Bytes that cannot be read as what they should be."""


class FrameTooLargeError(WireError):
    """A frame announces more bytes than the reader accepts; the stream cannot be read further."""


class UnsupportedApiError(WireError):
    """A request of an API or a version that we do not serve; Kafka closes the connection."""

    def __init__(self, api_key: int, api_version: int) -> None:
        self.api_key = api_key
        self.api_version = api_version
        super().__init__(f"request of API {api_key} version {api_version} is not served here")


class UnsupportedAnswerError(WireError):
    """A well-formed response that says something the quorum has no message for."""


class CorruptBatchError(WireError):
    """A record batch is cut short, fails its checksum or contradicts its neighbours.

    ``position`` is the byte position of the batch within the bytes that were given; ``incomplete``
    tells a batch that may only be cut short from one that is wrong.
    """

    def __init__(self, position: int, problem: str, *, incomplete: bool = False) -> None:
        self.position = position
        self.problem = problem
        self.incomplete = incomplete
        super().__init__(f"record batch at byte {position}: {problem}")


class ForeignPartitionError(WireError):
    """A well-formed request that is not about the metadata partition alone.

    Answer it with ``encode_refusal(error.header, error.code)``.
    """

    def __init__(self, header: RequestHeader, code: ErrorCode) -> None:
        self.header = header
        self.code = code
        super().__init__(
            f"request of API {header.api_key} is not about the metadata partition alone"
        )
