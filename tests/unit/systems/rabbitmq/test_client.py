"""The client against a fake broker: what it makes of confirms, refusals and silence."""

import asyncio
from collections import deque

import pytest

from splitbrain.contracts.names import NodeName
from splitbrain.contracts.operations import Completion, Operation
from splitbrain.systems.rabbitmq import client as client_module
from splitbrain.systems.rabbitmq.client import Declarations, RabbitClient
from tests.unit.systems.rabbitmq.fake_broker import ACK, DECLARE, GET, PUBLISH, FakeBroker, Hang

N1, N2 = NodeName("n1"), NodeName("n2")
ENQUEUE = Operation("enqueue", "q", 1234)
DEQUEUE = Operation("dequeue", "q", None)
RETURN, NACK = (60, 50), (60, 120)


def performed(
    broker: FakeBroker, *operations: Operation, arguments: dict[str, str] | None = None
) -> list[Completion]:
    async def perform() -> list[Completion]:
        async with broker.listening() as there:
            client = RabbitClient({N1: there}, Declarations(arguments or {}, are_shared=True))
            found = [await client.invoke(operation, 5.0) for operation in operations]
            await client.close()
            return found

    return asyncio.run(perform())


def hanging(at: tuple[int, int], when: str) -> FakeBroker:
    broker = FakeBroker()
    broker.queues["q"] = deque([b"1234"])

    def hang(method: tuple[int, int]) -> None:
        if method == at:
            raise Hang

    setattr(broker, when, hang)
    return broker


def test_elements_come_and_go() -> None:
    broker = FakeBroker()
    found = performed(broker, DEQUEUE, ENQUEUE, DEQUEUE, DEQUEUE)
    assert [(one.type, one.value) for one in found] == [
        ("ok", None),
        ("ok", 1234),
        ("ok", 1234),
        ("ok", None),
    ]
    assert not broker.queues["q"]


def test_queues_are_declared_with_their_type() -> None:
    broker = FakeBroker()
    performed(broker, DEQUEUE, arguments={"x-queue-type": "quorum"})
    assert broker.declared_with["q"].endswith(b"\x0cx-queue-typeS\0\0\0\x06quorum")


@pytest.mark.parametrize(
    ("confirms", "outcome"),
    [
        ([(RETURN, b"\x01\x38\0\0\0"), (ACK, b"")], ("fail", "unroutable")),
        ([(NACK, b"")], ("info", "rejected")),
        ([(ACK, bytes(8) + b"\x01")], ("ok", None)),
    ],
    ids=["given back", "refused", "confirmed with all before"],
)
def test_a_publish_is_what_the_broker_says(
    confirms: list[tuple[tuple[int, int], bytes]], outcome: tuple[str, str | None]
) -> None:
    broker = FakeBroker()
    broker.confirms = confirms
    (found,) = performed(broker, ENQUEUE)
    assert (found.type, found.error) == outcome


@pytest.mark.parametrize(
    ("operation", "at", "when", "outcome"),
    [
        (ENQUEUE, PUBLISH, "after", "info"),
        (ENQUEUE, DECLARE, "before", "fail"),
        (DEQUEUE, GET, "before", "fail"),
        # Handed out and not acknowledged: it goes back.
        (DEQUEUE, GET, "after", "fail"),
        (DEQUEUE, ACK, "before", "info"),
        (DEQUEUE, ACK, "after", "info"),
    ],
)
def test_a_connection_that_broke(
    operation: Operation, at: tuple[int, int], when: str, outcome: str
) -> None:
    broker = hanging(at, when)
    (found,) = performed(broker, operation)
    assert (found.type, found.error) == (outcome, "connection-lost")


def test_what_was_not_acknowledged_can_be_taken_again() -> None:
    broker = hanging(GET, "after")
    performed(broker, DEQUEUE)
    broker.after = lambda method: None
    (found,) = performed(broker, DEQUEUE)
    assert found.value == 1234


def test_a_declaration_that_is_refused_certainly_publishes_nothing() -> None:
    broker = FakeBroker()
    broker.refusal = 404
    (found,) = performed(broker, ENQUEUE)
    assert (found.type, found.error) == ("fail", "closed-404")


@pytest.mark.parametrize("first_serves", [True, False])
def test_a_following_client_goes_on_to_a_node_that_serves(
    monkeypatch: pytest.MonkeyPatch, first_serves: bool
) -> None:
    monkeypatch.setattr(client_module, "CHANNEL_PATIENCE_S", 5.0)

    async def perform() -> Completion:
        first, second = FakeBroker(), FakeBroker()
        first.serves = first_serves
        async with first.listening() as one, second.listening() as two:
            client = RabbitClient({N1: one, N2: two}, Declarations({}, are_shared=True))
            found = await client.invoke(ENQUEUE, 5.0)
            await client.close()
            return found

    found = asyncio.run(perform())
    assert (found.type, found.node) == ("ok", N1 if first_serves else N2)


@pytest.mark.parametrize(("are_shared", "count"), [(True, 1), (False, 3)])
def test_clients_share_their_declarations_unless_told_otherwise(
    are_shared: bool, count: int
) -> None:
    broker = FakeBroker()
    declared: list[int] = []
    broker.before = lambda method: declared.append(1) if method == DECLARE else None

    async def perform() -> None:
        async with broker.listening() as there:
            declarations = Declarations({}, are_shared=are_shared)
            clients = [RabbitClient({N1: there}, declarations) for _ in range(3)]
            found = await asyncio.gather(*(client.invoke(DEQUEUE, 5.0) for client in clients))
            assert {one.type for one in found} == {"ok"}
            for client in clients:
                await client.close()

    asyncio.run(perform())
    assert len(declared) == count


def test_a_queue_whose_declaration_was_not_answered_stays_unused_until_the_end() -> None:
    broker = FakeBroker()
    methods: list[tuple[int, int]] = []

    def hang_once(method: tuple[int, int]) -> None:
        methods.append(method)
        if methods.count(DECLARE) == 1 and method == DECLARE:
            raise Hang

    broker.before = hang_once
    final = Operation("dequeue", "q", None, final=True, drains=True)
    declaring, enqueue, last = performed(broker, DEQUEUE, ENQUEUE, final)
    assert (declaring.type, declaring.error) == ("fail", "connection-lost")
    assert (enqueue.type, enqueue.error) == ("fail", "declaration-unanswered")
    assert PUBLISH not in methods
    assert (last.type, last.value) == ("ok", None)


def test_a_refused_declaration_is_made_again() -> None:
    broker = FakeBroker()
    broker.refusal = 404

    declared: list[int] = []

    def refuse_once(method: tuple[int, int]) -> None:
        if method == DECLARE:
            declared.append(1)
            broker.refusal = 404 if len(declared) == 1 else None

    broker.before = refuse_once
    found = performed(broker, ENQUEUE, ENQUEUE)
    assert [(one.type, one.error) for one in found] == [("fail", "closed-404"), ("ok", None)]


def test_a_queue_that_is_gone_is_found_empty_at_the_end() -> None:
    broker = FakeBroker()
    declared: list[int] = []
    broker.before = lambda method: declared.append(1) if method == DECLARE else None
    final = Operation("dequeue", "q", None, final=True, drains=True)
    performed(broker, DEQUEUE, final)
    assert len(declared) == 2


def test_a_pinned_client_keeps_to_its_node() -> None:
    broker = FakeBroker()
    broker.serves = False
    (found,) = performed(broker, ENQUEUE)
    assert (found.type, found.error) == ("fail", "no-connection")
