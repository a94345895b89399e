"""Calls to controllers: as many lines as calls under way, each used again, over hand-made links."""

from typing import Any

import msgspec

from splitbrain.nodes.quorum.identifiers import CorrelationId, NodeId
from splitbrain.nodes.transport.control_lines import ControlLines
from splitbrain.nodes.transport.link_machine import LinkOwner
from splitbrain.nodes.wire.families.brokers import AllocateProducerIdsRequest

ONE, TWO = NodeId(1), NodeId(2)


def request(number: int) -> AllocateProducerIdsRequest:
    return AllocateProducerIdsRequest(broker_id=number)


class Link:
    def __init__(self, peer: NodeId, owner: LinkOwner[Any]) -> None:
        self.peer = peer
        self.owner = owner
        self.sent: list[tuple[CorrelationId, int]] = []
        self.is_closed = False

    def send(self, correlation: CorrelationId, message: Any, timeout_ms: int) -> None:
        assert timeout_ms == 5_000
        self.sent.append((correlation, message.broker_id))

    def close(self) -> None:
        self.is_closed = True

    def answer(self) -> None:
        correlation, number = self.sent[-1]
        self.owner.answered(self.peer, correlation, request(number))

    def fail(self) -> None:
        self.owner.failed(self.peer, self.sent[-1][0], "reset", refused=False)


class Caller:
    """Has lines to two peers, and writes down what it is told."""

    def __init__(self) -> None:
        self.links: list[Link] = []
        self.heard: list[tuple[int, int | None]] = []
        self.lines = ControlLines((ONE, TWO), self._make)

    def _make(self, peer: NodeId, owner: LinkOwner[msgspec.Struct]) -> Link:
        self.links.append(Link(peer, owner))
        return self.links[-1]

    def call(self, number: int, peer: NodeId = ONE, *, then: int | None = None) -> None:
        def called(answer: Any) -> None:
            self.heard.append((number, None if answer is None else answer.broker_id))
            if then is not None:
                self.call(then)

        self.lines.call(peer, request(number), called)


def test_no_call_waits_for_another_and_each_is_told_of_its_own() -> None:
    caller = Caller()
    for number in (7, 8):
        caller.call(number)
    caller.call(9, TWO)
    assert [(link.peer, link.sent) for link in caller.links] == [
        (ONE, [(1, 7)]),
        (ONE, [(1, 8)]),
        (TWO, [(1, 9)]),
    ]
    for link in reversed(caller.links):
        link.answer()
    assert caller.heard == [(9, 9), (8, 8), (7, 7)]


def test_the_line_that_was_made_first_is_used_again_first() -> None:
    caller = Caller()
    for number in (7, 8, 9):
        caller.call(number)
    for index in (2, 0, 1):
        caller.links[index].answer()
    for number in (10, 11):
        caller.call(number)
    assert [link.sent[1:] for link in caller.links] == [[(2, 10)], [(2, 11)], []]


def test_a_call_that_is_not_answered_is_told_so_and_frees_its_line() -> None:
    caller = Caller()
    caller.call(7, then=8)
    caller.links[0].fail()
    assert caller.heard == [(7, None)]
    assert [link.sent for link in caller.links] == [[(1, 7), (2, 8)]]


def test_closed_lines_tell_nothing_and_ask_nothing_any_more() -> None:
    caller = Caller()
    caller.call(7)
    caller.lines.close()
    caller.links[0].answer()
    caller.call(8)
    assert caller.heard == []
    assert [(link.sent, link.is_closed) for link in caller.links] == [([(1, 7)], True)]
