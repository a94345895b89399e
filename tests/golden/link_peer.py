"""The peer of a story's link, byte for byte, and the tape of all that happens to it.

It knows no loop: an engine gives it a clock and carries its bytes.
"""

from collections.abc import Callable
from typing import Protocol
from zlib import crc32

import msgspec

from splitbrain.nodes.quorum.identifiers import NO_EPOCH, DirectoryId, Epoch, NodeId, Offset
from splitbrain.nodes.quorum.messages import (
    BeginQuorumEpochAnswer,
    BeginQuorumEpochRequest,
    ErrorCode,
    VoteAnswer,
    VoteRequest,
)
from splitbrain.nodes.quorum.persistent import Voter
from splitbrain.nodes.wire.api_versions import ApiVersionsResponse, served_versions
from splitbrain.nodes.wire.apis import (
    SUPPORTED_FEATURES,
    SUPPORTED_VERSIONS,
    ApiKey,
    RequestHeader,
    VersionRange,
)
from splitbrain.nodes.wire.calls import TABLES, decode_head, encode_reply
from splitbrain.nodes.wire.families.brokers import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
)
from splitbrain.nodes.wire.framing import FrameReader, frame
from splitbrain.nodes.wire.messages import encode_answer, encode_api_versions
from tests.golden.link_story import LinkStory, Meeting, Reply, Word

ME, PEER = NodeId(1), NodeId(2)
DIRECTORY = DirectoryId("ab" * 16)
VOTER = Voter(PEER, DIRECTORY, "n2", 9093)
_PRE_VOTE = VoteRequest("c", PEER, DIRECTORY, Epoch(4), ME, DIRECTORY, NO_EPOCH, Offset(0), True)
_HEARTBEAT = BrokerHeartbeatRequest(
    broker_id=1, broker_epoch=7, current_metadata_offset=9, want_fence=False, want_shut_down=False
)
#: Requests of an owner, by codec and by the word of a story.
REQUESTS = {
    "quorum": {
        "plain": msgspec.structs.replace(_PRE_VOTE, pre_vote=False),
        "second": BeginQuorumEpochRequest("c", PEER, DIRECTORY, ME, Epoch(4)),
        "strict": _PRE_VOTE,
    },
    "control": {
        "plain": _HEARTBEAT,
        "second": AllocateProducerIdsRequest(broker_id=1, broker_epoch=7),
        "strict": AllocateProducerIdsRequest(broker_id=1, broker_epoch=8),
    },
}
_ANSWERS = {
    ApiKey.VOTE: VoteAnswer(ErrorCode.NONE, None, Epoch(4), granted=True),
    ApiKey.BEGIN_QUORUM_EPOCH: BeginQuorumEpochAnswer(ErrorCode.NONE, ME, Epoch(4)),
}
_REPLIES = {
    ApiKey.BROKER_HEARTBEAT: BrokerHeartbeatResponse(
        throttle_time_ms=0, error_code=0, is_fenced=False, should_shut_down=False
    ),
    ApiKey.ALLOCATE_PRODUCER_IDS: AllocateProducerIdsResponse(
        throttle_time_ms=0, error_code=0, producer_id_start=5_000, producer_id_len=1_000
    ),
}
#: A peer of an older release says in version 0 that it knows the question up to version 3.
_REFUSAL = bytes.fromhex("0023" + "00000001" + "0012" + "0000" + "0003")
_PART_MS = 0.1
_ENDS = ("closed", "reset")
#: Runs an action so many milliseconds later.
Later = Callable[[float, Callable[[], None]], object]


class Tape:
    """All that a link shows, a line each, with its time in ms."""

    def __init__(self, story: LinkStory, now_us: Callable[[], int]) -> None:
        self._now_us = now_us
        self.lines = [f"## {story.name}"]

    def tell(self, words: str) -> None:
        self.lines.append(f"{self._now_us() / 1_000:.10g} {words}")


class Opener(Protocol):
    """The link's end of a connection, as the peer reaches it."""

    def read(self, data: bytes) -> None:
        """Bytes come."""
        ...

    def ended(self, error: OSError | None) -> None:
        """The connection is gone; None: the peer has closed it."""
        ...


class Line:
    """The peer's end of one attempt to connect and of its connection."""

    def __init__(self, story: LinkStory, number: int, tape: Tape, later: Later) -> None:
        self.meeting: Meeting = story.meetings[min(number, len(story.meetings)) - 1]
        self.opener: Opener | None = None
        self._name = f"c{number}"
        self._tape = tape
        self._later = later
        self._reader = FrameReader()
        self._frames_count = 0
        self._is_over = False

    def tell(self, words: str) -> None:
        self._tape.tell(f"{self._name} {words}")

    def written(self, data: bytes) -> None:
        """The link writes."""
        for payload in self._reader.feed(data):
            header = decode_head(payload)[0]
            name, version = ApiKey(header.api_key).name, header.api_version
            number, digest = header.correlation_id, crc32(payload)
            self.tell(f"asked {name} {version} #{number}: {len(payload)} bytes {digest:08x}")
            replies = self.meeting.replies
            reply = replies[min(self._frames_count, len(replies) - 1)]
            self._frames_count += 1
            self._later(reply.after_ms, lambda reply=reply, it=header: self._reply(reply, it))

    def dropped(self) -> None:
        """The link drops it; nothing if it is over."""
        if not self._is_over:
            self._is_over = True
            self.tell("drop")

    def _reply(self, reply: Reply, header: RequestHeader) -> None:
        if reply.between_ms is None and reply.parts_count == 1:
            self._say(reply.words, b"".join(self._bytes(word, header) for word in reply.words))
            return
        for count, word in enumerate(reply.words):
            data = self._bytes(word, header)
            size = -(-len(data) // reply.parts_count) or 1
            pieces = [data[at : at + size] for at in range(0, len(data), size)] or [data]
            for part, piece in enumerate(pieces, start=1):
                # A word is told of with its last bytes.
                words = (word,) if part == len(pieces) else ()
                self._later(
                    count * (reply.between_ms or 0) + part * _PART_MS,
                    lambda words=words, piece=piece: self._say(words, piece),
                )

    def _say(self, words: tuple[Word, ...], data: bytes) -> None:
        if words:
            self.tell(f"{', '.join(words)}{' to nobody' * self._is_over}")
        if self._is_over:
            return
        assert self.opener is not None
        if data:
            self.opener.read(data)
        if words and words[-1] in _ENDS and not self._is_over:
            self._is_over = True
            self.opener.ended(ConnectionResetError("reset") if words[-1] == "reset" else None)

    def _bytes(self, word: Word, header: RequestHeader) -> bytes:
        match word:
            case "answer":
                return self._answer(header)
            case "half":
                whole = self._answer(header)
                return whole[: len(whole) // 2]
            case "misnumbered":
                other = RequestHeader(header.api_key, header.api_version, 99, header.client_id)
                return self._answer(other)
            case "refusal":
                return frame(header.correlation_id.to_bytes(4) + _REFUSAL)
            case "refused":
                error = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
                return encode_api_versions(header, served_versions({}, {}, error=error))
            case "garbage":
                return frame(header.correlation_id.to_bytes(4) + b"\xff" * 9)
            case "empty":
                return frame(b"")
            case "too-long":
                return b"\x7f" * 9
            case "closed" | "reset":
                return b""

    def _answer(self, header: RequestHeader) -> bytes:
        key = ApiKey(header.api_key)
        if key in _ANSWERS:
            return encode_answer(_ANSWERS[key], header)
        if key in _REPLIES:
            return encode_reply(_REPLIES[key], header)
        return encode_api_versions(header, self._serves())

    def _serves(self) -> ApiVersionsResponse:
        if self.meeting.serves is not None:
            told = {ApiKey(key): VersionRange(*versions) for key, *versions in self.meeting.serves}
            return served_versions(told, {})
        above = {key: TABLES[key].versions for key in _REPLIES}
        return served_versions({**SUPPORTED_VERSIONS, **above}, SUPPORTED_FEATURES)
