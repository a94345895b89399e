"""The quorum's client as a machine, walked at random: what it may never do, and mutants that do."""

import random
from collections.abc import Callable

import pytest

from splitbrain.contracts.names import NodeName
from splitbrain.contracts.operations import Completion, Operation
from splitbrain.contracts.system import Route
from splitbrain.nodes.transport.client_protocol import AnswerOutcome, ClientAnswer, ClientRequest
from splitbrain.systems.kraft import outcomes
from splitbrain.systems.kraft.client_machine import (
    Answered,
    Awaiting,
    ClientMachine,
    Closed,
    Complete,
    Connect,
    Disconnect,
    Event,
    Greeted,
    Invoked,
    Lost,
    NotSent,
    Pause,
    Send,
    TimePassed,
)

NODES = tuple(NodeName(f"n{number}") for number in (1, 2, 3))
OPERATIONS = (
    Operation("write", "k", 1),
    Operation("cas", "k", [1, 2]),
    Operation("create", "t", 3),
    Operation("read", "k", None),
)
OUTCOMES: tuple[AnswerOutcome, ...] = (
    "ok", "not-leader", "timeout", "unknown", "invalid-request", "stopping", "fenced",
)  # fmt: skip
WALKS = 300
OPERATIONS_EACH = 12


class Walk:
    """One client, met by chance, and what is known of its present operation."""

    def __init__(self, seed: int) -> None:
        self.stream = random.Random(seed)
        kind = self.stream.choice(("leader", "pinned"))
        self.machine = ClientMachine("c", NODES, Route(kind, self.stream.choice(NODES)))
        self.is_pinned = kind == "pinned"
        self.now = 0
        self.is_connected = self.is_greeted = False
        self.operation = OPERATIONS[0]
        self.deadline = 0
        #: The node took it, or may have.
        self.may_be_appended = False
        self.sent_count = 0
        self.completion: Completion | None = None

    def go(self) -> None:
        """Some operations, one after the other."""
        for _ in range(OPERATIONS_EACH):
            self.operation = self.stream.choice(OPERATIONS)
            timeout_us = self.stream.choice((900, 150_000, 900_000))
            self.deadline = self.now + timeout_us
            self.may_be_appended, self.completion, self.sent_count = False, None, 0
            awaiting = self.tell(Invoked(self.operation, timeout_us))
            while awaiting is not None:
                awaiting = self.meet(awaiting)
            assert self.completion is not None
            self.judge(self.completion)
            if self.is_connected and self.stream.random() < 0.2:
                self.is_connected = self.is_greeted = False
                assert self.tell(Lost()) is None

    def meet(self, awaiting: Awaiting) -> Awaiting | None:
        """Tell what came of the last effect, and before it what does not matter."""
        draw = self.stream.random()
        if draw < 0.1:
            assert self.tell(self.stray(awaiting)) is None, "a stray event changes nothing"
        elif draw < 0.13:
            assert self.tell(Closed()) is None
        self.now += self.stream.randrange(1, awaiting.limit_us + 1) if awaiting.limit_us else 0
        if draw > 0.9:
            self.now += 30_000  # its driver is late
        event = self.drawn(awaiting)
        match event:
            case Greeted():
                self.is_connected = self.is_greeted = True
            case Lost():
                self.is_connected = self.is_greeted = False
            case NotSent() if isinstance(awaiting, Send):
                self.may_be_appended = False
            case Answered(answer) if answer.definite and answer.outcome != "ok":
                self.may_be_appended = False
            case _:
                pass
        following = self.tell(event)
        assert following is not None or self.completion is not None, "it goes on, or has ended"
        return following

    def drawn(self, awaiting: Awaiting) -> Event:
        match awaiting:
            case Pause():
                return TimePassed()
            case Connect():
                return self.stream.choice((Greeted(), Greeted(), NotSent(), Lost(), TimePassed()))
            case Send(request):
                answered = Answered(self.answer(request))
                return self.stream.choice((answered, answered, NotSent(), Lost(), TimePassed()))

    def answer(self, request: ClientRequest) -> ClientAnswer:
        outcome = self.stream.choice((*OUTCOMES, "not-leader"))
        definite = outcome == "ok" or self.stream.random() < 0.7
        leader = self.stream.choice((None, 1, 2, 3, 9))
        return ClientAnswer(request.id, outcome, definite, True, leader, 3, 17)

    def stray(self, awaiting: Awaiting) -> Event:
        stranger = Answered(ClientAnswer(-1, "ok", definite=True))
        return (
            stranger if isinstance(awaiting, Connect) else self.stream.choice((stranger, Greeted()))
        )

    def tell(self, event: Event) -> Awaiting | None:
        """Carry out what the machine says; the last effect, if it is one to wait for."""
        awaiting: Awaiting | None = None
        for effect in self.machine.step(event, self.now):
            assert awaiting is None, "nothing comes behind what is waited for"
            match effect:
                case Connect():
                    assert not self.is_connected, "one connection at a time"
                    assert not self.is_pinned or effect.node in NODES
                    awaiting = effect
                case Send():
                    self.sent()
                    awaiting = effect
                case Pause():
                    awaiting = effect
                case Disconnect():
                    self.is_connected = self.is_greeted = False
                case Complete(completion):
                    assert self.completion is None, "told once"
                    self.completion = completion
        return awaiting

    def sent(self) -> None:
        assert self.is_greeted, "nothing is sent before the node has greeted"
        assert self.now < self.deadline, "nothing is sent when it is too late to hear of it"
        assert self.operation.f == "read" or not self.may_be_appended, "sent twice"
        self.sent_count += 1
        assert not self.is_pinned or self.sent_count == 1, "a pinned client asks once"
        self.may_be_appended = True

    def judge(self, completion: Completion) -> None:
        """The outcome says no more than is certain."""
        if completion.type == "fail":
            assert self.operation.f == "read" or not self.may_be_appended, "fail is certain"
        if completion.type == "info":
            assert not self.is_connected, "a late answer must never meet a later operation"


def walk_all() -> None:
    for seed in range(WALKS):
        Walk(seed).go()


def test_no_operation_is_sent_twice_that_may_have_been_appended() -> None:
    walk_all()


def resend_on_loss(self: ClientMachine, error: str, now: int) -> object:
    del error
    return self._conclude(self._unsent(), None, now)


def keep_the_connection(self: ClientMachine) -> object:
    del self
    return ()


def greeted_by_anybody(self: ClientMachine, now: int) -> object:
    return self._send(now)


@pytest.mark.parametrize(
    ("name", "mutant"), [("may_go_on", lambda *_: True), ("_unanswered", resend_on_loss)]
)
def test_a_client_that_sends_twice_is_caught(
    name: str, mutant: Callable[..., object], monkeypatch: pytest.MonkeyPatch
) -> None:
    mutate(name, mutant, monkeypatch)
    with pytest.raises(AssertionError, match="fail is certain"):
        walk_all()
    # Its sends, too, not only its reports.
    monkeypatch.setattr(Walk, "judge", lambda *_: None)
    with pytest.raises(AssertionError, match="sent twice"):
        walk_all()


@pytest.mark.parametrize(
    ("name", "mutant", "claim"),
    [
        ("_disconnect", keep_the_connection, "one connection|never meet"),
        ("_greeted", greeted_by_anybody, "before the node has greeted"),
        ("_attempt", ClientMachine._send, "before the node has greeted"),
    ],
)
def test_a_mutant_is_caught(
    name: str, mutant: Callable[..., object], claim: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    mutate(name, mutant, monkeypatch)
    with pytest.raises(AssertionError, match=claim):
        walk_all()


def mutate(name: str, mutant: Callable[..., object], monkeypatch: pytest.MonkeyPatch) -> None:
    """Replace a rule of the machine, or one that it uses."""
    place = outcomes if hasattr(outcomes, name) else ClientMachine
    monkeypatch.setattr(place, name, mutant)
