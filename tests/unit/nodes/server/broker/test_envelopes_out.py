"""Requests on their way through a broker: sent again as Kafka does, or called uncertain."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from splitbrain.nodes.broker.forwarding import FORWARDING_TIMEOUT_MS, forward
from splitbrain.nodes.quorum.identifiers import Microseconds, NodeId
from splitbrain.nodes.server.broker.envelopes_out import SENT_COUNT_MAX, EnvelopesOut
from splitbrain.nodes.server.controller.topic_requests import kafka_request
from splitbrain.nodes.transport.client_protocol import ClientAnswer, ClientRequest
from splitbrain.nodes.wire.apis import ApiKey
from splitbrain.nodes.wire.calls import decode_call, decode_reply, encode_call
from splitbrain.nodes.wire.envelopes import open_envelope, refused_envelope, seal_reply
from splitbrain.nodes.wire.errors import ApiError
from splitbrain.nodes.wire.families import topics
from splitbrain.nodes.wire.families.controllers import EnvelopeRequest
from tests.planted import with_bug
from tests.unit.nodes.server.hand_made_world import World
from tests.unit.nodes.server.lone_controller import creation

PAUSE_US = Microseconds(100_000)
CREATE = ClientRequest(1, "create-topic", "t", 1, timeout_ms=1_000)
DELETE = ClientRequest(2, "delete-topic", "t", timeout_ms=1_000)


class Bench:
    """A broker's requests, with controllers made by hand."""

    def __init__(self) -> None:
        self.world = World()
        self.replica: Any = SimpleNamespace(leader_id=NodeId(1))
        self.calls: list[tuple[NodeId, EnvelopeRequest]] = []
        self.callbacks: list[Callable[[msgspec.Struct | None], None]] = []
        self.answers: list[ClientAnswer] = []
        self.frames: list[bytes | None] = []
        self.out = EnvelopesOut(self.replica, self.world, self._call, PAUSE_US)

    def _call(
        self, peer: NodeId, message: msgspec.Struct, called: Callable[[msgspec.Struct | None], None]
    ) -> None:
        assert isinstance(message, EnvelopeRequest)
        self.calls.append((peer, message))
        self.callbacks.append(called)

    def change(self, request: ClientRequest) -> None:
        kafka_call = kafka_request(request)
        assert kafka_call is not None
        self.out.change(request, self.answers.append, kafka_call)

    def relay(self) -> None:
        frame = encode_call(creation("t"), 5, 77, "client")
        self.out.relay(forward(frame[4:], b"\x7f\0\0\1"), self.frames.append)

    def answer(self, code: ApiError) -> None:
        """The controller answers the last envelope: one topic, with this code."""
        call = open_envelope(self.calls[-1][1])
        reply: msgspec.Struct
        if isinstance(call.message, topics.CreateTopicsRequest):
            created = topics.CreatedTopic(name="t", error_code=code, error_message="said")
            reply = topics.CreateTopicsResponse(throttle_time_ms=0, topics=(created,))
        else:
            deleted = topics.DeletedTopic(name="t", topic_id="0" * 32, error_code=code)
            reply = topics.DeleteTopicsResponse(throttle_time_ms=0, responses=(deleted,))
        self.callbacks[-1](seal_reply(reply, call.header))

    @property
    def answered(self) -> list[tuple[str, bool, Any]]:
        return [(each.outcome, each.definite, each.result) for each in self.answers]


@pytest.fixture
def bench() -> Bench:
    return Bench()


@pytest.mark.parametrize("request_", [CREATE, DELETE])
@pytest.mark.parametrize(
    ("code", "answered"),
    [
        (ApiError.NONE, ("ok", True, True)),
        (ApiError.TOPIC_ALREADY_EXISTS, ("ok", True, False)),
        (ApiError.UNKNOWN_TOPIC_OR_PARTITION, ("ok", True, False)),
        (ApiError.INVALID_TOPIC_EXCEPTION, ("invalid-request", True, None)),
        (ApiError.UNKNOWN_SERVER_ERROR, ("unknown", False, None)),
        # Told by the envelope: it may be in the log of who led.
        (ApiError.NOT_CONTROLLER, ("unknown", False, None)),
    ],
)
def test_what_the_controller_says_is_what_the_client_hears(
    bench: Bench, request_: ClientRequest, code: ApiError, answered: tuple[str, bool, Any]
) -> None:
    bench.change(request_)
    bench.answer(code)
    assert bench.answered == [answered]
    assert len(bench.calls) == 1


def test_a_change_that_nobody_answers_is_uncertain_and_is_not_sent_again(bench: Bench) -> None:
    bench.change(CREATE)
    bench.callbacks[0](None)
    assert bench.answered == [("unknown", False, None)]
    while bench.world.turn():
        pass
    assert len(bench.calls) == 1


def test_an_answer_that_makes_no_sense_is_no_answer(bench: Bench) -> None:
    bench.change(CREATE)
    bench.callbacks[0](refused_envelope(ApiError.NONE))
    assert bench.answered == [("unknown", False, None)]


def test_a_change_waits_for_a_controller_and_is_certain_until_it_is_sent(bench: Bench) -> None:
    bench.replica.leader_id = None
    bench.change(CREATE)
    bench.change(DELETE)
    bench.world.until(lambda: bool(bench.answers))
    assert bench.answered[0] == ("timeout", True, None)
    assert bench.calls == []
    bench.replica.leader_id = NodeId(2)
    while bench.world.turn():
        pass
    assert bench.calls == []


def test_a_change_goes_to_the_controller_that_becomes_known(bench: Bench) -> None:
    bench.replica.leader_id = None
    bench.change(CREATE)
    bench.world.turn()
    bench.replica.leader_id = NodeId(2)
    bench.world.until(lambda: bool(bench.calls))
    assert bench.calls[0][0] == 2
    bench.world.until(lambda: bool(bench.answers))
    assert bench.answered == [("timeout", False, None)]
    bench.answer(ApiError.NONE)
    assert len(bench.answers) == 1


def test_a_stop_tells_what_is_uncertain(bench: Bench) -> None:
    bench.change(CREATE)
    bench.replica.leader_id = None
    bench.change(DELETE)
    bench.out.stop()
    assert bench.answered == [("unknown", False, None), ("stopping", True, None)]


def test_kafkas_clients_are_served_by_the_next_controller(bench: Bench) -> None:
    bench.relay()
    bench.callbacks[0](None)
    bench.world.turn()
    bench.callbacks[1](refused_envelope(ApiError.NOT_CONTROLLER))
    bench.replica.leader_id = NodeId(3)
    bench.world.turn()
    assert [peer for peer, _ in bench.calls] == [1, 1, 3]
    assert len({call.request_data for _, call in bench.calls}) == 1
    assert decode_call(bench.calls[0][1].request_data).header.correlation_id == 77
    bench.answer(ApiError.NONE)
    (frame,) = bench.frames
    assert frame is not None
    reply: Any = decode_reply(frame[4:], ApiKey.CREATE_TOPICS, 5)
    assert reply.correlation_id == 77
    assert [topic.error_code for topic in reply.message.topics] == [ApiError.NONE]


def test_kafkas_clients_are_cut_off_where_the_versions_have_changed(bench: Bench) -> None:
    bench.relay()
    bench.callbacks[0](refused_envelope(ApiError.UNSUPPORTED_VERSION))
    assert bench.frames == [None]


def test_kafkas_clients_hear_when_the_time_is_up(bench: Bench) -> None:
    bench.replica.leader_id = None
    began = bench.world.time_us
    bench.relay()
    bench.world.until(lambda: bool(bench.frames))
    assert bench.world.time_us - began >= FORWARDING_TIMEOUT_MS * 1_000
    assert bench.frames[0] is not None
    reply: Any = decode_reply(bench.frames[0][4:], ApiKey.CREATE_TOPICS, 5)
    assert [each.error_code for each in reply.message.topics] == [ApiError.REQUEST_TIMED_OUT]


@pytest.mark.parametrize("has_bug", [False, with_bug("change-sent-again", True)])
def test_a_change_that_may_have_been_carried_out_is_sent_again_by_the_planted_bug_alone(
    bench: Bench, has_bug: bool
) -> None:
    bench.change(DELETE)
    bench.callbacks[0](None)
    bench.world.turn()
    assert len(bench.calls) == (2 if has_bug else 1)
    assert bench.answered == ([] if has_bug else [("unknown", False, None)])


@pytest.mark.parametrize("timeout_ms", [2**63 - 1, 2**31, 60_001, 0, -1, -(2**63)])
@pytest.mark.parametrize("kind", ["create-topic", "delete-topic"])
def test_whatever_time_a_client_gives_the_envelope_can_say_it(
    bench: Bench, kind: Any, timeout_ms: int
) -> None:
    bench.change(ClientRequest(1, kind, "t", 1, timeout_ms=timeout_ms))
    sent: Any = open_envelope(bench.calls[-1][1]).message
    assert 1 <= sent.timeout_ms <= 60_000
    bench.answer(ApiError.NONE)
    assert bench.answered == [("ok", True, True)]


def test_so_many_are_with_a_controller_at_a_time_and_the_others_follow(bench: Bench) -> None:
    count = 3 * SENT_COUNT_MAX
    for number in range(count):
        if number % 2:
            bench.relay()
        else:
            bench.change(ClientRequest(number, "delete-topic", "t"))
    assert len(bench.calls) == SENT_COUNT_MAX
    for number in range(count):
        bench.callbacks[number](refused_envelope(ApiError.UNKNOWN_SERVER_ERROR))
        assert len(bench.calls) == min(count, SENT_COUNT_MAX + number + 1)
    assert len(bench.answers) + len(bench.frames) == count


def test_one_that_waited_too_long_is_not_sent_any_more(bench: Bench) -> None:
    for number in range(SENT_COUNT_MAX + 1):
        bench.change(ClientRequest(number, "delete-topic", "t", timeout_ms=1_000))
    while bench.world.turn():
        pass
    outcomes = [(answer.outcome, answer.definite) for answer in bench.answers]
    assert outcomes == [("timeout", False)] * SENT_COUNT_MAX + [("timeout", True)]
    for callback in bench.callbacks:
        callback(None)
    assert len(bench.calls) == SENT_COUNT_MAX


def test_what_waits_for_a_controller_has_a_limit_and_what_was_answered_makes_room(
    bench: Bench,
) -> None:
    bench.replica.leader_id = None
    large = encode_call(creation("x" * 30_000), 5, 77, "client")[4:]
    refused = 0
    while not refused:
        bench.out.relay(forward(large, b"\x7f\0\0\1"), bench.frames.append)
        refused = len(bench.frames)
        assert bench.world.handles
    assert bench.frames == [None]
    bench.change(ClientRequest(1, "delete-topic", "x" * 30_000))
    assert bench.answered == [("timeout", True, None)]
    bench.world.time_us += FORWARDING_TIMEOUT_MS * 1_000
    while bench.world.turn():
        pass
    bench.replica.leader_id = NodeId(1)
    bench.change(ClientRequest(2, "delete-topic", "x" * 30_000))
    assert len(bench.calls) == 1
