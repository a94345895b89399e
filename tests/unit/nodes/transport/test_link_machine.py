"""The link to a peer alone, without a loop: effects are what a hand-made port was asked for."""

from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from splitbrain.nodes.quorum.identifiers import (
    NO_EPOCH,
    CorrelationId,
    DirectoryId,
    Epoch,
    NodeId,
    Offset,
)
from splitbrain.nodes.quorum.messages import (
    BeginQuorumEpochAnswer,
    BeginQuorumEpochRequest,
    ErrorCode,
    VoteAnswer,
    VoteRequest,
)
from splitbrain.nodes.quorum.persistent import Voter
from splitbrain.nodes.transport.kafka_codec import KafkaCodec
from splitbrain.nodes.transport.link_machine import LinkMachine, back_off_us
from splitbrain.nodes.wire.api_versions import served_versions
from splitbrain.nodes.wire.apis import ApiKey, VersionRange
from splitbrain.nodes.wire.calls import decode_head
from splitbrain.nodes.wire.messages import encode_answer, encode_api_versions

ONE, TWO = NodeId(1), NodeId(2)
DIRECTORY = DirectoryId("ab" * 16)
VOTE = VoteRequest("c", TWO, DIRECTORY, Epoch(1), ONE, DIRECTORY, NO_EPOCH, Offset(0), True)
#: A request that older releases know too.
OLD_VOTE = msgspec.structs.replace(VOTE, pre_vote=False)
BEGIN = BeginQuorumEpochRequest("c", TWO, DIRECTORY, ONE, Epoch(1))
GRANTED = VoteAnswer(ErrorCode.NONE, None, Epoch(1), granted=True)
BEGUN = BeginQuorumEpochAnswer(ErrorCode.NONE, ONE, Epoch(1))
LATE = "no answer within 90 ms"
keeps_connections = pytest.mark.planted("stale-answer-accepted")


class Timer:
    def __init__(self, action: Callable[[], None]) -> None:
        self.action: Callable[[], None] | None = action

    def cancel(self) -> None:
        self.action = None


class Port:
    """Writes down what the machine asks for, and what its owner is told."""

    def __init__(self) -> None:
        codec = KafkaCodec(ONE, (Voter(TWO, DIRECTORY, "n2", 9093),))
        self.actions: list[Any] = []
        self.heard: list[tuple[int, Any]] = []
        self.frames: list[bytes] = []
        self.soon: list[Callable[[], None]] = []
        self.timer = Timer(lambda: None)
        self.link = LinkMachine(TWO, codec, self, self)

    # The port.

    def call_soon(self, action: Callable[[], None]) -> None:
        self.soon.append(action)

    def call_later(self, delay_us: int, action: Callable[[], None]) -> Timer:
        assert delay_us == 90_000
        self.timer = Timer(action)
        return self.timer

    def connect(self, pause_us: int) -> None:
        self.actions.append(pause_us)

    def write(self, frame: bytes) -> None:
        self.frames.append(frame)

    def drop(self) -> None:
        self.actions.append("drop")

    # The owner.

    def answered(self, peer: NodeId, correlation: CorrelationId, answer: Any) -> None:
        assert peer == TWO
        self.heard.append((correlation, answer))

    def failed(
        self, peer: NodeId, correlation: CorrelationId, reason: str, *, refused: bool
    ) -> None:
        assert peer == TWO
        self.heard.append((correlation, reason))

    # The story.

    def send(self, correlation: int, request: Any = VOTE) -> None:
        self.link.send(CorrelationId(correlation), request, 90)

    def connected(self, vote_max: int = 2) -> None:
        """The connection is made, and the peer has told its versions, of votes up to this one."""
        self.link.attempted()
        self.link.accepted()
        self.link.connected()
        header = decode_head(self.frames.pop()[4:])[0]
        assert header.api_key == ApiKey.API_VERSIONS
        keys = (ApiKey.VOTE, ApiKey.BEGIN_QUORUM_EPOCH)
        serves = served_versions({key: VersionRange(0, vote_max) for key in keys}, {})
        self.link.received(encode_api_versions(header, serves)[4:])

    def ring(self) -> None:
        assert self.timer.action is not None
        self.timer.action()

    def answer(self, frame: bytes, answer: Any = GRANTED) -> None:
        self.link.received(encode_answer(answer, decode_head(frame[4:])[0])[4:])


def after_a_timeout() -> Port:
    """A port whose first request was sent and not answered in time, and whose second is asked."""
    port = Port()
    port.send(1)
    port.connected()
    port.ring()
    assert port.heard == [(1, LATE)]
    port.send(2, BEGIN)
    return port


def test_a_request_asks_for_a_connection_and_goes_out_once_the_versions_are_known() -> None:
    port = Port()
    port.send(1)
    assert (port.actions, port.frames, port.link.is_idle) == ([0], [], False)
    port.connected()
    port.answer(port.frames[0])
    assert port.heard == [(1, GRANTED)]
    assert (port.timer.action, port.link.is_idle) == (None, True)
    port.send(2)
    assert (len(port.frames), port.actions) == (2, [0])


def test_two_requests_at_a_time_are_a_defect_of_the_caller() -> None:
    port = Port()
    port.send(1)
    with pytest.raises(RuntimeError, match="two requests at a time to node 2"):
        port.send(2)


def test_a_connection_asks_once_and_sends_in_the_peers_version() -> None:
    port = Port()
    port.send(1, OLD_VOTE)
    port.connected(vote_max=1)
    port.answer(port.frames[0])
    port.send(2, OLD_VOTE)
    versions = [decode_head(frame[4:])[0].api_version for frame in port.frames]
    assert versions == [1, 1]


def test_a_peer_without_a_common_version_gets_nothing_and_is_named_and_is_asked_anew() -> None:
    port = Port()
    port.send(1)
    port.connected(vote_max=1)
    assert (port.frames, port.heard, port.link.is_idle) == ([], [], False), "heard later"
    port.soon.pop()()
    ((number, reason),) = port.heard
    assert (number, port.link.is_idle) == (1, True)
    assert reason == "the peer serves VOTE in versions 0 to 1, this node speaks versions 2 to 2"
    port.send(2)
    port.connected()
    port.answer(port.frames[0])
    assert port.heard[1:] == [(2, GRANTED)], "it was upgraded between two connections"


def test_a_request_given_up_before_its_refusal_spoils_no_other() -> None:
    port = Port()
    port.send(1)
    port.connected(vote_max=1)
    port.link.abandon(CorrelationId(1))
    port.send(2, OLD_VOTE)
    port.soon.pop()()
    port.connected(vote_max=1)
    port.answer(port.frames[0])
    assert port.heard == [(2, GRANTED)]


def test_a_connection_that_was_asked_for_and_never_made_makes_the_next_wait() -> None:
    port = Port()
    port.send(1)
    port.link.attempted()
    port.ring()
    port.send(2)
    assert port.actions == [0, "drop", 10_000]


def test_after_a_timeout_the_next_request_has_another_connection() -> None:
    port = after_a_timeout()
    assert port.actions == [0, "drop", 0]
    assert len(port.frames) == 1


@keeps_connections
def test_with_the_planted_defect_a_late_answer_is_handed_on_and_spoils_no_other() -> None:
    port = after_a_timeout()
    assert port.actions == [0]
    first, second = port.frames
    port.answer(first)
    assert port.heard[1:] == [(1, GRANTED)]
    assert not port.link.is_idle
    port.answer(second, BEGUN)
    assert port.heard[2:] == [(2, BEGUN)]


@keeps_connections
def test_with_the_planted_defect_answers_come_in_any_order_and_each_once() -> None:
    port = after_a_timeout()
    first, second = port.frames
    port.answer(second, BEGUN)
    assert port.link.is_idle
    port.answer(first)
    assert port.heard[1:] == [(2, BEGUN), (1, GRANTED)]
    port.answer(first)
    assert port.actions == [0, "drop"], "nobody waits for that"


@keeps_connections
def test_with_the_planted_defect_too_what_answers_nothing_ends_the_connection() -> None:
    port = after_a_timeout()
    port.link.received(b"\xff" * 9)
    assert str(port.heard[-1][1]).startswith("unreadable answer")
    assert port.actions == [0, "drop"]
    port.send(3)
    port.connected()
    first, _, _ = port.frames
    port.answer(first)
    assert str(port.heard[-1][1]).startswith("unreadable answer"), "of an earlier connection"


@keeps_connections
@pytest.mark.parametrize("is_abandoned", [True, False])
def test_with_the_planted_defect_a_request_that_never_went_out_takes_its_connection_with_it(
    *, is_abandoned: bool
) -> None:
    port = Port()
    port.send(1)
    port.link.attempted()
    port.link.accepted()
    port.link.connected()
    if is_abandoned:
        port.link.abandon(CorrelationId(1))
    else:
        port.ring()
    assert port.actions == [0, "drop"]


@given(st.integers(1, 1_000), st.integers(1, 60_000))
def test_the_pause_before_an_attempt_leaves_it_half_of_the_timeout(
    failed_attempts_count: int, timeout_ms: int
) -> None:
    """Found by the simulation: a back-off above the timeout meant that nothing was ever tried."""
    pause_us = back_off_us(failed_attempts_count, timeout_ms)
    assert 0 < pause_us * 2 <= timeout_ms * 1_000
    assert pause_us <= back_off_us(failed_attempts_count + 1, timeout_ms), "it never shrinks"
