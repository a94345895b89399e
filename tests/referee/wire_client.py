"""Asks controllers over the wire, with our own codec, and follows their metadata log.

Shares no code with what it asks but the codec, which ``kio`` judges. Must never ask twice: an
answer that does not come fails the test.
"""

import socket
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Self

import msgspec

from splitbrain.nodes.metadata.image import MetadataImage
from splitbrain.nodes.metadata.machine import MetadataMachine
from splitbrain.nodes.quorum.identifiers import DirectoryId, Epoch, NodeId, Offset
from splitbrain.nodes.quorum.messages import (
    DescribeQuorumAnswer,
    DescribeQuorumRequest,
    ErrorCode,
    FetchAnswer,
    FetchRequest,
    FetchSnapshotAnswer,
    FetchSnapshotRequest,
)
from splitbrain.nodes.quorum.persistent import SnapshotId
from splitbrain.nodes.wire.apis import ApiKey
from splitbrain.nodes.wire.batches import RecordBatch, decode_batch, peek_batch
from splitbrain.nodes.wire.calls import api_key_of_call, decode_reply, encode_call
from splitbrain.nodes.wire.envelopes import envelope_of
from splitbrain.nodes.wire.families.controllers import EnvelopeRequest, EnvelopeResponse
from splitbrain.nodes.wire.framing import FrameReader
from splitbrain.nodes.wire.messages import api_key_of, decode_answer, encode_request
from splitbrain.nodes.wire.principals import ANONYMOUS
from splitbrain.nodes.wire.snapshots import SnapshotReader

_TIMEOUT_S: Final = 30.0
_READ_BYTES: Final = 1 << 16
_CLIENT_ID: Final = "referee"
_CLIENT_ADDRESS: Final = bytes((127, 0, 0, 1))
_SIZE_BYTES: Final = 4
#: Id of the log's follower; no voter's and no broker's.
_OBSERVER: Final = NodeId(1_000)
_OBSERVER_DIRECTORY: Final = DirectoryId(f"{0xD15C0:032x}")
_FETCH_BYTES: Final = 1 << 20


class DeposedError(Exception):
    """The controller that was active is so no more."""


class Connection:
    """One connection to one controller: a question, then its answer.

    Raises OSError: it cannot be made, or the controller closes it.
    """

    def __init__(self, host: str, port: int) -> None:
        self._socket = socket.create_connection((host, port), _TIMEOUT_S)
        self._frames = FrameReader()
        self._asked = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def ask(self, request: msgspec.Struct, version: int) -> msgspec.Struct:
        self._asked += 1
        payload = self._exchange(encode_call(request, version, self._asked, _CLIENT_ID))
        reply = decode_reply(payload, api_key_of_call(request), version)
        assert reply.correlation_id == self._asked
        return reply.message

    def tell(self, request: msgspec.Struct, version: int) -> None:
        """Ask, and wait for no answer; nothing may be asked afterwards."""
        self._asked += 1
        self._socket.sendall(encode_call(request, version, self._asked, _CLIENT_ID))

    def ask_forwarded(self, request: msgspec.Struct, version: int) -> msgspec.Struct:
        """The answer to a request that comes in an envelope; the envelope's, if that is refused."""
        inner = encode_call(request, version, self._asked, _CLIENT_ID)[_SIZE_BYTES:]
        answer = self.ask(envelope_of(inner, ANONYMOUS, _CLIENT_ADDRESS), 0)
        return opened(answer, request, version)

    def describe_quorum(self) -> DescribeQuorumAnswer:
        answer = self._ask_quorum(DescribeQuorumRequest())
        assert isinstance(answer, DescribeQuorumAnswer)
        return answer

    def fetch(self, request: FetchRequest) -> FetchAnswer:
        answer = self._ask_quorum(request)
        assert isinstance(answer, FetchAnswer)
        return answer

    def fetch_snapshot(self, request: FetchSnapshotRequest) -> FetchSnapshotAnswer:
        answer = self._ask_quorum(request)
        assert isinstance(answer, FetchSnapshotAnswer)
        return answer

    def _ask_quorum(
        self, request: DescribeQuorumRequest | FetchRequest | FetchSnapshotRequest
    ) -> msgspec.Struct:
        self._asked += 1
        api_key = api_key_of(request)
        version = _QUORUM_VERSIONS[api_key]
        frame = encode_request(request, self._asked, _CLIENT_ID, version=version)
        return decode_answer(self._exchange(frame), api_key, version).message

    def _exchange(self, frame: bytes) -> bytes:
        self._socket.sendall(frame)
        while True:
            received = self._socket.recv(_READ_BYTES)
            if not received:
                raise ConnectionError("the controller closed the connection")
            frames = self._frames.feed(received)
            if frames:
                (payload,) = frames
                return payload


_QUORUM_VERSIONS: Final[Mapping[ApiKey, int]] = {
    ApiKey.DESCRIBE_QUORUM: 2,
    ApiKey.FETCH: 17,
    ApiKey.FETCH_SNAPSHOT: 1,
}


def opened(answer: msgspec.Struct, request: msgspec.Struct, version: int) -> msgspec.Struct:
    """Return the content of an envelope's answer; the answer itself if it has none."""
    assert isinstance(answer, EnvelopeResponse)
    if answer.response_data is None:
        return answer
    assert not isinstance(request, EnvelopeRequest)
    return decode_reply(answer.response_data, api_key_of_call(request), version).message


@dataclass
class Follower:
    """Has what is committed, as an observer of the quorum learns it."""

    connection: Connection
    cluster_id: str
    epoch: Epoch

    def __post_init__(self) -> None:
        self._machine = MetadataMachine()
        # Kafka takes none below 0, not even before the first record.
        self._last_epoch = Epoch(0)

    def image(self) -> MetadataImage:
        """The metadata with all in it that was committed when this was asked."""
        while True:
            answer = self.connection.fetch(self._next_request())
            if answer.error is not ErrorCode.NONE:
                raise DeposedError(f"{answer.error.name}: node {answer.leader_id} leads")
            assert answer.diverging is None, answer
            if answer.snapshot_id is not None:
                self._load(answer.snapshot_id)
                continue
            self._take(answer.records, answer.high_watermark)
            if self._machine.end_offset >= answer.high_watermark:
                return self._machine.image

    def ahead(self) -> bytes:
        """Batches that the leader has after what this has, committed or not."""
        return self.connection.fetch(self._next_request()).records

    def _next_request(self) -> FetchRequest:
        return self._request(Offset(self._machine.end_offset), self._last_epoch)

    def is_too_late(self, end_offset: Offset, epoch: Epoch) -> bool:
        """Whether a follower that has the log so far is sent a snapshot, and no records."""
        answer = self.connection.fetch(self._request(end_offset, epoch))
        return answer.snapshot_id is not None

    def _request(self, offset: Offset, last_epoch: Epoch) -> FetchRequest:
        return FetchRequest(
            cluster_id=self.cluster_id,
            replica_id=_OBSERVER,
            replica_directory_id=_OBSERVER_DIRECTORY,
            epoch=self.epoch,
            fetch_offset=offset,
            last_fetched_epoch=last_epoch,
            high_watermark=offset,
            max_wait_ms=0,
            max_bytes=_FETCH_BYTES,
        )

    def _load(self, snapshot_id: SnapshotId) -> None:
        """Have what the snapshot tells, in place of what was there."""
        content, size_bytes = b"", 1
        while len(content) < size_bytes:
            answer = self.connection.fetch_snapshot(
                FetchSnapshotRequest(
                    cluster_id=self.cluster_id,
                    replica_id=_OBSERVER,
                    replica_directory_id=_OBSERVER_DIRECTORY,
                    epoch=self.epoch,
                    snapshot_id=snapshot_id,
                    position=len(content),
                    max_bytes=_FETCH_BYTES,
                )
            )
            assert answer.error is ErrorCode.NONE, answer.error
            assert answer.data, f"no bytes of {snapshot_id} at {len(content)} of {size_bytes}"
            content += answer.data
            size_bytes = answer.size_bytes
        reader = SnapshotReader(snapshot_id, batches_in(content))
        loading = self._machine.begin_loading()
        for record in reader.records():
            loading.add(record.value or b"")
        loading.install(snapshot_id.end_offset)
        self._last_epoch = snapshot_id.epoch

    def _take(self, content: bytes, high_watermark: Offset) -> None:
        for batch in batches_in(content):
            if batch.last_offset >= high_watermark:
                return
            self._machine.apply_batch(batch, lambda *_: None)
            self._last_epoch = Epoch(batch.epoch)


def batches_in(content: bytes) -> Iterator[RecordBatch]:
    position = 0
    while position < len(content):
        yield decode_batch(content, position)
        position += peek_batch(content, position)[2]
