"""Links of a world: what ``nodes.transport.link_machine`` decides, on its clock and network."""

from collections.abc import Callable
from typing import Any

import pytest

from splitbrain.contracts.fault import Link
from splitbrain.contracts.names import NodeName
from splitbrain.contracts.scenario import NetworkOptions
from splitbrain.nodes.quorum.identifiers import (
    ConnectionId,
    CorrelationId,
    DirectoryId,
    Epoch,
    NodeId,
)
from splitbrain.nodes.quorum.messages import ErrorCode, VoteAnswer
from splitbrain.nodes.quorum.persistent import Voter
from splitbrain.nodes.transport.kafka_codec import KafkaCodec
from splitbrain.nodes.wire.api_versions import ApiVersionsRequest
from splitbrain.simulation.kraft.messages import PeerRequest
from splitbrain.simulation.kraft.peers import SimulatedPeers
from splitbrain.simulation.kraft.timers import LifeTimers, NodeClock
from tests.unit.nodes.quorum.replicas import vote_request
from tests.unit.simulation.kraft.unwatched_worlds import SECOND_US, Quorum

ME, PEER = NodeId(1), NodeId(2)
DELAY_US = 100
#: The question for versions, its answer, the request.
ARRIVES_US = 3 * DELAY_US
VOTERS = tuple(Voter(each, DirectoryId(f"{each:032x}"), f"n{each}", 9193) for each in (ME, PEER))
ANSWER = VoteAnswer(error=ErrorCode(0), leader_id=None, epoch=Epoch(3), granted=True)


class Pair:
    """One node's links to a peer, and the peer's listener, in one world."""

    def __init__(self, *, through_codec: bool = False, listens: bool = True) -> None:
        self.world = Quorum(
            network=NetworkOptions(
                delay_us_min=DELAY_US, delay_us_max=DELAY_US, half_open_chance=0.0
            ),
            through_codec=through_codec,
        ).world
        self.backlog: list[Callable[[], None]] | None = None
        #: Results of the requests: correlation, and the answer or why there is none.
        self.told: list[tuple[int, Any]] = []
        #: Connections on which the peer was asked for its versions, and what else it got.
        self.asked: list[int] = []
        self.received: list[tuple[int, PeerRequest]] = []
        self.gone: list[int] = []
        #: Whether the node sends another request as soon as one has failed.
        self.asks_again = False
        self.links = SimulatedPeers(self.world, "n1", {PEER: "n2"}, self._enter)
        self.surroundings = self
        self.timers = LifeTimers(self.world, NodeClock(self.world, 0), self._enter)
        self.links.attach(self, KafkaCodec(ME, VOTERS))  # type: ignore[arg-type]
        self.peer = SimulatedPeers(self.world, "n2", {}, lambda action: action())
        self.peer.attach(self, KafkaCodec(PEER, VOTERS))  # type: ignore[arg-type]
        if listens:
            self.world.network.listen("n2", self)

    def _enter(self, action: Callable[[], None]) -> None:
        if self.backlog is None:
            action()
        else:
            self.backlog.append(action)

    def thaw(self) -> None:
        backlog, self.backlog = self.backlog or [], None
        for action in backlog:
            action()

    # The node's side.

    def answered(self, peer: NodeId, correlation: CorrelationId, answer: Any) -> None:
        assert peer == PEER
        self.told.append((correlation, answer))

    def failed(
        self, peer: NodeId, correlation: CorrelationId, reason: str, *, refused: bool
    ) -> None:
        assert peer == PEER
        self.told.append((correlation, (reason, refused)))
        if self.asks_again:
            self.asks_again = False
            self.send(correlation + 1)

    def send(self, correlation: int, timeout_ms: int = 90) -> None:
        self.links.send(PEER, CorrelationId(correlation), vote_request(), timeout_ms)

    # The peer's side.

    def requested(self, connection: int, source: str, message: PeerRequest) -> None:
        assert source == "n1"
        if isinstance(message.request, ApiVersionsRequest):
            self.asked.append(connection)
            self.peer.take(ConnectionId(connection), message, self)  # type: ignore[arg-type]
            return
        assert self.peer.read(ConnectionId(connection), message) == vote_request()
        self.received.append((connection, message))

    def disconnected(self, connection: int) -> None:
        self.gone.append(connection)
        self.peer.forget(ConnectionId(connection))

    def reply(self, which: int = -1) -> None:
        connection, message = self.received[which]
        self.peer.answer(ConnectionId(connection), message.correlation, ANSWER)

    def run(self, duration_us: int = SECOND_US) -> None:
        self.world.run(self.world.now + duration_us)


@pytest.mark.parametrize("through_codec", [False, True])
def test_a_request_is_answered_once_and_the_connection_is_used_again(
    *, through_codec: bool
) -> None:
    pair = Pair(through_codec=through_codec)
    for correlation in (1, 2):
        pair.send(correlation)
        assert not pair.links.is_idle
        pair.run(ARRIVES_US)
        pair.reply()
        pair.run()
        assert pair.links.is_idle
    assert pair.told == [(1, ANSWER), (2, ANSWER)]
    assert len({connection for connection, _ in pair.received}) == 1
    assert all((message.frame is not None) == through_codec for _, message in pair.received)
    assert pair.asked == [pair.received[0][0]], "once a connection, before the first request"


def test_a_timeout_is_told_once_and_closes_the_connection_so_a_late_answer_meets_nobody() -> None:
    pair = Pair()
    pair.send(1, timeout_ms=90)
    pair.run(89_999)
    assert pair.told == []
    pair.run(1)
    assert pair.told == [(1, ("no answer within 90 ms", False))]
    pair.reply()
    pair.send(2)
    pair.run(40_000)
    pair.reply()
    pair.run(40_000)
    assert pair.told[1:] == [(2, ANSWER)]
    assert pair.gone == [pair.received[0][0]]
    assert pair.received[0][0] != pair.received[1][0]


def test_an_abandoned_request_is_told_to_nobody() -> None:
    pair = Pair()
    pair.send(1)
    pair.run(ARRIVES_US)
    pair.links.abandon(PEER, CorrelationId(7))
    assert not pair.links.is_idle, "that was another request"
    pair.links.abandon(PEER, CorrelationId(1))
    assert pair.links.is_idle
    pair.reply()
    pair.run()
    assert pair.told == []
    assert len(pair.gone) == 1


def test_nobody_listens_the_request_is_refused() -> None:
    pair = Pair(listens=False)
    pair.send(1)
    pair.run()
    assert pair.told == [(1, ("refused", True))]


def test_a_peer_that_dies_resets_the_connection() -> None:
    pair = Pair()
    pair.send(1)
    pair.run(ARRIVES_US)
    pair.world.network.crash("n2")
    pair.run()
    assert pair.told == [(1, ("reset", False))]


def after_refusals() -> Pair:
    """A pair whose next connection waits for long; the peer has begun to listen."""
    pair = Pair(listens=False)
    for correlation in range(1, 10):
        pair.send(correlation, timeout_ms=10_000)
        pair.run()
    pair.world.network.listen("n2", pair)
    return pair


def attempt(pair: Pair, correlation: int) -> int:
    """How long the question of a connection for a request that nobody answers takes to arrive."""
    began, count = pair.world.now, len(pair.asked)
    pair.send(correlation)
    while len(pair.asked) == count:
        pair.run(10)
    took_us = pair.world.now - began
    pair.run()
    return took_us


def test_a_connection_that_was_made_forgives_also_where_no_answer_came() -> None:
    pair = after_refusals()
    assert attempt(pair, 20) > 10_000
    assert attempt(pair, 21) == DELAY_US, "as a frozen process's kernel still accepts"


def test_a_connection_of_which_nothing_is_heard_forgives_nothing() -> None:
    pair = after_refusals()
    pair.world.network.cut([Link(NodeName("n2"), NodeName("n1"))])
    assert attempt(pair, 20) > 10_000
    assert attempt(pair, 21) > 10_000


def test_a_request_that_is_given_up_before_it_connects_is_no_attempt() -> None:
    pair = Pair(listens=False)
    pair.send(1, timeout_ms=10_000)
    pair.run()
    for correlation in range(2, 9):
        pair.send(correlation, timeout_ms=10_000)
        pair.links.abandon(PEER, CorrelationId(correlation))
    began = pair.world.now
    pair.send(9, timeout_ms=10_000)
    while len(pair.told) < 2:
        pair.run(10)
    assert pair.world.now - began < 12_000, "the pause after one failure"


def test_a_request_that_is_abandoned_while_it_waits_to_connect_never_leaves() -> None:
    pair = Pair(listens=False)
    for correlation in range(1, 6):
        pair.send(correlation, timeout_ms=10_000)
        pair.run()
    pair.world.network.listen("n2", pair)
    pair.send(9)
    pair.links.abandon(PEER, CorrelationId(9))
    pair.run()
    assert len(pair.told) == 5
    assert pair.received == []


def test_closed_links_tell_nothing_any_more() -> None:
    pair = Pair()
    pair.send(1)
    pair.run(ARRIVES_US)
    pair.reply()
    pair.links.close()
    pair.links.close()
    pair.run()
    assert pair.told == []
    assert pair.links.is_idle


def test_frozen_past_its_timeout_the_node_hears_what_came_first() -> None:
    """The answer lay in the kernel before the timer rang, so it wins; the timer tells nothing."""
    pair = Pair()
    pair.send(1)
    pair.run(ARRIVES_US)
    pair.backlog = []
    pair.reply()
    pair.run()
    assert pair.told == []
    pair.thaw()
    pair.run()
    assert pair.told == [(1, ANSWER)]


def test_an_answer_that_comes_to_a_frozen_node_after_the_timeout_is_of_no_use() -> None:
    pair = Pair()
    pair.send(1, timeout_ms=90)
    pair.run(ARRIVES_US)
    pair.backlog = []
    pair.run()
    pair.reply()
    pair.run()
    pair.thaw()
    pair.run()
    assert pair.told == [(1, ("no answer within 90 ms", False))]


def test_an_answer_that_lay_behind_the_timeout_never_meets_the_next_request() -> None:
    """1. Frozen. 2. The timer rings. 3. The answer comes. 4. Thawed, it asks anew."""
    pair = Pair()
    pair.asks_again = True
    pair.send(1, timeout_ms=90)
    pair.run(ARRIVES_US)
    pair.backlog = []
    pair.run()
    pair.reply()
    pair.run()
    pair.thaw()
    assert pair.told == [(1, ("no answer within 90 ms", False))]
    assert not pair.links.is_idle
    pair.run(60_000)
    pair.reply()
    pair.run()
    assert pair.told[1:] == [(2, ANSWER)]


def test_across_a_cut_a_request_stalls_until_its_timeout_and_may_still_arrive_later() -> None:
    pair = Pair()
    pair.send(1)
    pair.run(ARRIVES_US)
    pair.reply()
    pair.run()
    there = [Link(NodeName("n1"), NodeName("n2"))]
    pair.world.network.cut(there)
    pair.send(2, timeout_ms=90)
    pair.run()
    assert pair.told[1:] == [(2, ("no answer within 90 ms", False))]
    assert len(pair.received) == 1
    pair.world.network.restore(there)
    pair.run()
    assert len(pair.received) == 2
    assert len(pair.gone) == 1
    pair.reply()
    pair.run()
    assert len(pair.told) == 2


def test_across_a_cut_a_new_connection_never_gets_beyond_the_question_for_versions() -> None:
    pair = Pair()
    back = [Link(NodeName("n2"), NodeName("n1"))]
    pair.world.network.cut(back)
    pair.send(1, timeout_ms=90)
    pair.run()
    assert (len(pair.asked), pair.received) == (1, [])
    assert pair.told == [(1, ("no answer within 90 ms", False))]
    pair.world.network.restore(back)
    pair.send(2)
    pair.run(ARRIVES_US + 20_000)
    assert len(pair.received) == 1


def test_through_the_codec_an_answer_on_a_connection_that_is_gone_is_dropped() -> None:
    pair = Pair(through_codec=True)
    pair.send(1, timeout_ms=1)
    pair.run()
    pair.reply()
    pair.run()
    assert pair.told == [(1, ("no answer within 1 ms", False))]
