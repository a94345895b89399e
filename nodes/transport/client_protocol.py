"""The private protocol between clients and a node: msgpack behind a four-byte length.

The server speaks first: a ``Hello`` proves that the node itself answers, where a port's proxy
accepts connections for a dead one. A client that waits for it before it sends anything knows that
nothing happened when it does not come. Requests may be sent before earlier ones are answered;
answers carry the request's id and come in any order.
"""

from collections.abc import Callable
from typing import Any, Final, Literal, TypeVar

import msgspec

from splitbrain.nodes.wire.errors import FrameTooLargeError
from splitbrain.nodes.wire.framing import FrameReader, frame

#: Version of the protocol, in ``Hello``.
PROTOCOL_VERSION: Final = 1
#: A longer frame is refused and its connection closed.
FRAME_SIZE_BYTES_MAX: Final = 1024 * 1024

RequestKind = Literal[
    "read",
    "write",
    "cas",
    "add",
    "read-set",
    "create-topic",
    "delete-topic",
    "describe-topic",
    "status",
]
AnswerOutcome = Literal[
    "ok", "not-leader", "timeout", "unknown", "invalid-request", "stopping", "fenced"
]


class Hello(msgspec.Struct, frozen=True):
    """First frame of a connection, from the node."""

    version: int
    node_id: int
    incarnation: int


class ClientRequest(msgspec.Struct, frozen=True, omit_defaults=True):
    """Request of a client to one node."""

    #: Chosen by the client, unique within the connection.
    id: int
    kind: RequestKind
    #: Register, set or topic; empty for status.
    key: str = ""
    #: write: the value; cas: ``[expected, new]``; add: the element; create-topic: the number of
    #: partitions; else None.
    value: Any = None
    #: Operation id that goes into the log, so that a repeated command shows.
    operation: str = ""
    #: How long the node may take, milliseconds.
    timeout_ms: int = 5_000
    mode: Literal["linearizable"] = "linearizable"


class NodeState(msgspec.Struct, frozen=True):
    """Result of ``status``: what the node says of itself."""

    node_id: int
    incarnation: int
    role: str
    epoch: int
    leader_id: int | None
    #: -1 while it is unknown.
    high_watermark: int
    log_end_offset: int
    #: One past the last record applied to the registers.
    applied_offset: int
    #: Digest of the registers at ``applied_offset``.
    digest: str
    #: Of a broker: where it is in its life, in Kafka's words; None of other nodes.
    broker_state: str | None = None
    #: Of a broker: whether it has to believe that it is fenced.
    is_fenced: bool | None = None
    #: Of a broker: the epoch that its controller gave it, -1 before.
    broker_epoch: int | None = None


class ClientAnswer(msgspec.Struct, frozen=True, omit_defaults=True):
    """A node's answer to a request."""

    id: int
    outcome: AnswerOutcome
    #: True where the outcome is certain: it happened (ok), or it did not and never will.
    definite: bool
    #: read: the value; read-set: a list; cas: whether it succeeded; create-topic: whether there was
    #: none of that name; delete-topic: whether there was one; describe-topic: its number of
    #: partitions, None where there is none; status: a ``NodeState``.
    result: Any = None
    #: Node that leads, as far as this one knows.
    leader_id: int | None = None
    epoch: int | None = None
    #: Where the record of a write lies; for a read, one past the last record it saw.
    offset: int | None = None
    #: In words, for everything but ok.
    reason: str | None = None


#: Takes the answer to one request.
Reply = Callable[[ClientAnswer], None]
#: Takes a request and calls the reply once, at once or later; it must not raise.
RequestHandler = Callable[[ClientRequest, Reply], None]


class ProtocolError(Exception):
    """The other side sent something that this protocol does not have."""


_Message = TypeVar("_Message", Hello, ClientRequest, ClientAnswer)
_ENCODER: Final = msgspec.msgpack.Encoder()
_REQUEST_DECODER: Final = msgspec.msgpack.Decoder(ClientRequest)
_ANSWER_DECODER: Final = msgspec.msgpack.Decoder(ClientAnswer)
_HELLO_DECODER: Final = msgspec.msgpack.Decoder(Hello)


def encode_frame(message: Hello | ClientRequest | ClientAnswer) -> bytes:
    """Return the message with its length before it.

    Raises ProtocolError: it has a value that msgpack cannot carry, or it is too long.
    """
    try:
        body = _ENCODER.encode(message)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise ProtocolError(f"message cannot be encoded: {error}") from error
    if len(body) > FRAME_SIZE_BYTES_MAX:
        raise ProtocolError(f"message has {len(body)} bytes, at most {FRAME_SIZE_BYTES_MAX} go")
    return frame(body)


def decode_request(body: bytes) -> ClientRequest:
    """Return the request in a frame's body; raises ``ProtocolError``."""
    return _decoded(_REQUEST_DECODER, body, "request")


def decode_answer(body: bytes) -> ClientAnswer:
    """Return the answer in a frame's body; raises ``ProtocolError``."""
    return _decoded(_ANSWER_DECODER, body, "answer")


def decode_hello(body: bytes) -> Hello:
    """Return the greeting in a connection's first frame; raises ``ProtocolError``."""
    hello = _decoded(_HELLO_DECODER, body, "greeting")
    if hello.version != PROTOCOL_VERSION:
        raise ProtocolError(
            f"the node speaks version {hello.version}, this client {PROTOCOL_VERSION}"
        )
    return hello


def _decoded(decoder: "msgspec.msgpack.Decoder[_Message]", body: bytes, name: str) -> _Message:
    try:
        return decoder.decode(body)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise ProtocolError(f"malformed {name}: {error}") from error


def decode_state(answer: ClientAnswer) -> NodeState:
    """Return the result of a ``status`` request; raises ``ProtocolError``."""
    try:
        return msgspec.convert(answer.result, NodeState)
    except msgspec.ValidationError as error:
        raise ProtocolError(f"malformed status: {error}") from error


class FrameSplitter(FrameReader):
    """Cuts a byte stream into frame bodies."""

    def __init__(self) -> None:
        super().__init__(FRAME_SIZE_BYTES_MAX)

    def feed(self, data: bytes | bytearray | memoryview) -> list[bytes]:
        """Bodies that are whole now.

        Raises ProtocolError: a frame is announced that is too long; nothing after it can be
        trusted, and bodies that the same bytes completed before it are lost with the connection.
        """
        try:
            return super().feed(data)
        except FrameTooLargeError as error:
            raise ProtocolError(str(error)) from error
