"""Frames that no honest peer sends, drawn from a seed: for ``bench.port_fuzz``.

Half of them are well formed and make no sense, the others are not even that. Lies of
a known voter are not among them: nothing protects a quorum from a voter that claims to lead or to
hold what it does not. Names and numbers come from small pools, so that what a node may keep of them
(topics, brokers, registers) stays small as well.
"""

import random
from collections.abc import Callable
from typing import Annotated, Any, Final, NamedTuple, get_args, get_origin

import msgspec

from splitbrain.nodes.quorum.epoch_limit import LAST_EPOCH
from splitbrain.nodes.quorum.identifiers import NO_DIRECTORY, DirectoryId, Epoch, NodeId, Offset
from splitbrain.nodes.quorum.messages import (
    BeginQuorumEpochRequest,
    DescribeQuorumRequest,
    EndQuorumEpochRequest,
    FetchRequest,
    FetchSnapshotRequest,
    Request,
    VoteRequest,
)
from splitbrain.nodes.quorum.persistent import SnapshotId, Voter
from splitbrain.nodes.transport.client_protocol import ClientRequest, encode_frame
from splitbrain.nodes.wire import codec
from splitbrain.nodes.wire.apis import SUPPORTED_VERSIONS, ApiKey
from splitbrain.nodes.wire.calls import TABLES, encode_call
from splitbrain.nodes.wire.codec import Scalar
from splitbrain.nodes.wire.declared import columns
from splitbrain.nodes.wire.families.controllers import EnvelopeRequest
from splitbrain.nodes.wire.framing import frame
from splitbrain.nodes.wire.messages import api_key_of, encode_request

#: APIs of which any request may be sent: none of those in which only voters speak.
_ANYBODYS: Final = tuple(
    key
    for key in TABLES
    if key not in SUPPORTED_VERSIONS or key in (ApiKey.API_VERSIONS, ApiKey.FETCH_SNAPSHOT)
)
_INTEGERS: Final = {codec.INT8: 8, codec.INT16: 16, codec.INT32: 32, codec.INT64: 64}
_TEXTS: Final = ("", "a", "t1", "t2", "t3", "\u00e9\u4e2d", "x" * 300, "retention.ms", "..", "a b")
_IDS: Final = (-1, 70, 77, 1_000, 2**31 - 1, -(2**31))
_BLOBS: Final = (b"", b"\0", b"\xff" * 9, b"k" * 70)
_UUIDS: Final = (NO_DIRECTORY, "ab" * 16, "00" * 15 + "01")
#: Beyond what a node enters, and before what it has been in.
_EPOCHS: Final = (2**31 - 1, 2**31 - 2, LAST_EPOCH + 1, LAST_EPOCH, 0, -1)
_KEYS: Final = ("k1", "k2", "k3", "", "..", "x" * 40_000)
_KINDS: Final = (
    "read",
    "write",
    "cas",
    "add",
    "read-set",
    "describe-topic",
    "status",
    "create-topic",
    "delete-topic",
)
_PATHS: Final = ("/metrics", "/", "/metrics?x=1", "/" + "x" * 9_000, "\x00", "")
_VALUES: Final[tuple[Any, ...]] = (None, 1, -1, 2**63 - 1, 1.5, "x", [1, 2], [1], {"a": [None]})


class World(NamedTuple):
    """Names of the cluster under test, for frames."""

    cluster_id: str
    voters: tuple[Voter, ...]
    #: The node that it is sent to.
    node_id: int
    #: APIs that its port serves besides the quorum's own.
    served: tuple[ApiKey, ...]


class FrameMaker:
    """Draws frames; the same draws from the same stream."""

    def __init__(self, stream: random.Random, world: World) -> None:
        self._stream = stream
        self._world = world
        self._is_wild = False

    def begin_row(self) -> None:
        """Draw the kind of what follows on one connection.

        Wild: anything. Otherwise well-formed requests for what is served, since the first frame
        that is not ends the connection, and nobody takes those behind it.
        """
        self._is_wild = self._stream.random() < 0.3

    def quorum_port(self) -> bytes:
        """For a controller: any API in any version, raw bytes, and what others forward."""
        if self._stream.random() < 0.1:
            return self._sent(self._claim())  # never damaged: that might make it a voter's lie
        if self._is_wild:
            return self._any((self._declared, self._asking, self._envelope, self._raw))
        if not self._world.served:
            return self._asking()
        return self._stream.choice((self._declared, self._declared, self._asking, self._envelope))()

    def broker_port(self) -> bytes:
        """For a broker's port for Kafka's clients."""
        if self._is_wild:
            return self._any((self._declared, self._declared, self._asking, self._raw))
        return self._declared()

    def client_port(self) -> bytes:
        """For the port of our own clients."""
        if self._is_wild:
            return self._any((self._asked, self._packed))
        return self._asked()

    def metrics_port(self) -> bytes:
        """For the port that tells figures; no frame ends there."""
        draw = self._stream.choice
        method = draw(("GET", "POST", "G" * 100, ""))
        end = draw(("\r\n\r\n", "\r\n\r\n", "\r\n", ""))
        return self._damaged(f"{method} {draw(_PATHS)} HTTP/1.1{end}".encode())

    def _any(self, makers: tuple[Callable[[], bytes], ...]) -> bytes:
        return self._damaged(self._stream.choice(makers)())

    def _damaged(self, whole: bytes) -> bytes:
        """Half of the time as it is, otherwise with some bytes changed, cut out or put in."""
        stream, changed = self._stream, bytearray(whole)
        if stream.random() < 0.5:
            return whole
        for _ in range(stream.randint(1, 4)):
            # Mostly behind the length, so that what follows is still cut into frames.
            position = stream.randint(0 if stream.random() < 0.1 else 4, max(len(changed), 4))
            match stream.randrange(4):
                case 0 if position < len(changed):
                    changed[position] = stream.randrange(256)
                case 1:
                    del changed[position : position + stream.randint(1, 8)]
                case 2:
                    changed[position:position] = stream.randbytes(stream.randint(1, 8))
                case _:
                    changed[position : position + 5] = b"\xff\xff\xff\xff\x0f"
        if stream.random() < 0.8:
            changed[:4] = max(len(changed) - 4, 0).to_bytes(4, "big")
        return bytes(changed)

    def _number(self) -> int:
        return self._stream.choice((0, 1, 2**31 - 1, -1, self._stream.getrandbits(31)))

    def _raw(self) -> bytes:
        stream = self._stream
        head = bytes((0, stream.choice((*_ANYBODYS, 0, 127)), 0, stream.randrange(20)))
        return frame(head + stream.randbytes(stream.choice((0, 3, 9, 40, 200, 2_000))))

    def _declared(self) -> bytes:
        key = self._stream.choice(_ANYBODYS if self._is_wild else self._world.served)
        version = self._stream.choice(
            range(TABLES[key].versions.lowest, TABLES[key].versions.highest + 1)
        )
        message = self._message(TABLES[key].request, version)
        return encode_call(message, version, self._number(), self._stream.choice(("fuzz", None)))

    def _envelope(self) -> bytes:
        inner = self._stream.choice((self._declared, self._asking, self._raw))()[4:]
        principal = self._stream.choice(
            (b"\0\0\x05User\x0aANONYMOUS\0\0", None, b"\0\0", b"\xff" * 9)
        )
        address = self._stream.choice((b"\x7f\0\0\1", b"", bytes(16)))
        message = EnvelopeRequest(
            request_data=inner, request_principal=principal, client_host_address=address
        )
        return encode_call(message, 0, self._number(), "fuzz")

    def _message(self, of: type[msgspec.Struct], version: int) -> msgspec.Struct:
        said = {
            column.name: self._value(
                column.hint, version, nullable=version >= column.nullable_since
            )
            for column in columns(of)
            if column.is_in(version)
        }
        return of(**said)

    def _value(self, hint: Any, version: int, *, nullable: bool = True) -> Any:
        if get_origin(hint) is Annotated:
            scalar = next((each for each in get_args(hint) if isinstance(each, Scalar)), None)
            if scalar is not None:
                return self._scalar(scalar, nullable=nullable)
            hint = get_args(hint)[0]
        if type(None) in get_args(hint):
            (choice,) = (each for each in get_args(hint) if each is not type(None))
            is_null = nullable and self._stream.random() < 0.3
            return None if is_null else self._value(choice, version)
        if get_origin(hint) is tuple:
            count = self._stream.choice((0, 1, 1, 2, 3, 12))
            return tuple(self._value(get_args(hint)[0], version) for _ in range(count))
        return self._message(hint, version)

    def _scalar(self, scalar: Scalar, *, nullable: bool) -> Any:
        stream, kind = self._stream, scalar
        if kind in _INTEGERS:
            bits = _INTEGERS[kind]
            drawn = stream.choice((*_IDS, 0, 1, 2, stream.getrandbits(bits - 1)))
            return max(-(1 << bits - 1), min(drawn, (1 << bits - 1) - 1))
        if kind is codec.BOOLEAN:
            return stream.random() < 0.5
        if kind is codec.UINT16:
            return stream.randrange(1 << 16)
        if kind is codec.UUID:
            return stream.choice(_UUIDS)
        if (
            kind in (codec.NULLABLE_STRING, codec.NULLABLE_BYTES)
            and nullable
            and stream.random() < 0.3
        ):
            return None
        texts = (*_TEXTS, self._world.cluster_id)
        return stream.choice(texts if kind in (codec.STRING, codec.NULLABLE_STRING) else _BLOBS)

    def _sent(self, request: Request) -> bytes:
        versions = SUPPORTED_VERSIONS[api_key_of(request)]
        version = self._stream.randint(versions.lowest, versions.highest)
        try:
            return encode_request(request, self._number(), "fuzz", version=version)
        except ValueError:  # this version cannot say it
            return encode_request(request, self._number(), "fuzz")

    def _claim(self) -> Request:
        """Return a request of the quorum in a voter's name, in an epoch for which it is refused."""
        stream, world = self._stream, self._world
        cluster_id = stream.choice((world.cluster_id, None, "other"))
        epoch, last_epoch = Epoch(stream.choice(_EPOCHS)), Epoch(stream.choice((0, -1, 9)))
        me = next(each for each in world.voters if each.node_id == world.node_id)
        peer = next(each for each in world.voters if each.node_id != world.node_id)
        match stream.randrange(4):
            case 0:
                return BeginQuorumEpochRequest(
                    cluster_id, me.node_id, me.directory_id, peer.node_id, epoch
                )
            case 1:
                return EndQuorumEpochRequest(cluster_id, peer.node_id, epoch, ())
            case _:
                candidate = (peer.node_id, peer.directory_id, last_epoch)
                pre_vote = stream.random() < 0.5
                return VoteRequest(
                    cluster_id, me.node_id, me.directory_id, epoch, *candidate, Offset(9), pre_vote
                )

    def _asking(self) -> bytes:
        """Return a request that every client may send to the quorum."""
        stream = self._stream
        cluster_id = stream.choice((self._world.cluster_id, None, "other"))
        stranger, nowhere = NodeId(stream.choice(_IDS)), DirectoryId(stream.choice(_UUIDS))
        epoch = Epoch(stream.choice((*_EPOCHS, 1, 2, 3)))
        offset = Offset(stream.choice((0, 1, -1, 2**62, 5)))
        wait_ms, size_bytes = (
            stream.choice((0, -1, 50, 2**31 - 1)),
            stream.choice((0, -1, 1, 10**6)),
        )
        match stream.randrange(3):
            case 0:
                request = DescribeQuorumRequest()
            case 1:
                fetched = (epoch, offset, Epoch(stream.choice((0, -1, 1))), Offset(-1))
                request = FetchRequest(cluster_id, stranger, nowhere, *fetched, wait_ms, size_bytes)
            case _:
                snapshot_id = SnapshotId(Offset(max(offset, 0)), Epoch(max(epoch, 0)))
                place = (snapshot_id, stream.choice((0, -1, 2**40)), size_bytes)
                request = FetchSnapshotRequest(cluster_id, stranger, nowhere, epoch, *place)
        return self._sent(request)

    def _asked(self) -> bytes:
        stream = self._stream
        return encode_frame(
            ClientRequest(
                id=self._number(),
                kind=stream.choice(_KINDS),
                key=stream.choice(_KEYS),
                value=stream.choice((*_VALUES, stream.randrange(9))),
                operation=stream.choice(("", "o1")),
                timeout_ms=stream.choice((1, 50, 0, -1, 2**31)),
            )
        )

    def _packed(self) -> bytes:
        stream = self._stream
        depth = stream.choice((3, 100, 5_000))
        odd = (
            b"\x91" * depth,
            b"\x81\xa5value" * depth,
            b"\xdf\xff\xff\xff\xff",
            b"\xdb\xff\xff\xff\xff",
            msgspec.msgpack.encode({"id": 2**64 - 1, "kind": "read"}),
            msgspec.msgpack.encode({"id": 1, "kind": "x" * 5_000}),
            msgspec.msgpack.encode({"id": 1, "kind": "write", "key": "k1", "value": "\ud7ff"}),
            stream.randbytes(stream.choice((0, 1, 20, 300))),
        )
        return frame(stream.choice(odd))
