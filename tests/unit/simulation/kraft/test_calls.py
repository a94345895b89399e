"""A broker's machine: asks for producer ids, repeats what it sent, lets proposals wait."""

from collections import Counter
from typing import Any

import msgspec

from splitbrain.contracts.names import NodeName
from splitbrain.nodes.quorum.identifiers import NodeId
from splitbrain.nodes.wire.calls import ReceivedCall
from splitbrain.nodes.wire.families.brokers import (
    AllocateProducerIdsResponse,
    BrokerRegistrationRequest,
)
from splitbrain.nodes.wire.families.partitions import AlterPartitionRequest
from splitbrain.simulation.kraft.calls import HeldCalls
from splitbrain.simulation.kraft.happenings import PROPOSES_ISR
from splitbrain.simulation.kraft.host import Host
from splitbrain.simulation.kraft.oracle import Oracle
from tests.unit.simulation.kraft.small_controllers import Controllers, beat


class Listening:
    """Requests at controllers, their answers, and messages of brokers' processes."""

    def __init__(self, controllers: Controllers, monkeypatch: Any) -> None:
        self.sent: Counter[msgspec.Struct] = Counter()
        self.came: Counter[msgspec.Struct] = Counter()
        self.blocks: list[int] = []
        oracle = controllers.cluster.oracle
        called, told, calls = Oracle.called, Oracle.answered, Oracle.calls

        def on_called(host: Host, call: ReceivedCall) -> object:
            self.came[call.message] += 1
            return called(oracle, host, call)

        def on_told(host: Host, call: ReceivedCall, answer: msgspec.Struct, token: object) -> None:
            if isinstance(answer, AllocateProducerIdsResponse) and not answer.error_code:
                self.blocks.append(answer.producer_id_start)
            told(oracle, host, call, answer, token)

        def on_calls(host: Host, message: msgspec.Struct) -> None:
            self.sent[message] += 1
            calls(oracle, host, message)

        monkeypatch.setattr(oracle, "called", on_called)
        monkeypatch.setattr(oracle, "answered", on_told)
        monkeypatch.setattr(oracle, "calls", on_calls)


def test_brokers_get_blocks_of_producer_ids_and_their_requests_come_again(
    monkeypatch: Any,
) -> None:
    controllers = Controllers(brokers=2)
    listening = Listening(controllers, monkeypatch)
    controllers.run(30_000_000)
    assert len(listening.blocks) >= 3
    assert len(set(listening.blocks)) == len(listening.blocks)
    again = [
        message for message, count in listening.came.items() if count > listening.sent[message]
    ]
    assert len({type(message) for message in again}) >= 2
    assert not any(isinstance(message, BrokerRegistrationRequest) for message in again)


def test_what_a_life_sent_arrives_after_its_end(monkeypatch: Any) -> None:
    controllers = Controllers(brokers=1)
    broker = NodeName("n4")
    late = 0
    for _ in range(30):
        listening = Listening(controllers, monkeypatch)
        controllers.run(300_000)
        controllers.cluster.kill(broker, 0)
        controllers.run(20_000)
        before = listening.came.total()
        controllers.run(1_500_000)
        # Nobody but it calls a controller, once they are all registered.
        late += listening.came.total() - before
        controllers.cluster.start(broker)
        controllers.until(lambda: controllers.unfenced == {4})
    assert late


PROPOSAL = AlterPartitionRequest(broker_id=4, broker_epoch=1, topics=())
BEAT = beat(1, 4, 1)
LONGEST_US = 4_000_000


def test_some_proposals_wait_for_a_moment_and_some_for_seconds() -> None:
    held = HeldCalls(Controllers().world, NodeId(4))
    waits_us = [held.wait_us(PROPOSAL) for _ in range(200)]
    assert 50 <= waits_us.count(0) <= 150
    assert min(wait_us for wait_us in waits_us if wait_us) < 200_000
    assert 1_000_000 < max(waits_us) <= LONGEST_US


def test_nothing_else_waits() -> None:
    held = HeldCalls(Controllers().world, NodeId(4))
    assert not any(held.wait_us(BEAT) for _ in range(50))


def test_a_broker_that_comes_back_is_proposed_for_the_isr_and_taken_in_however_late(
    monkeypatch: Any,
) -> None:
    controllers = Controllers(brokers=2)
    world, sent_us, told_us = controllers.world, list[int](), list[int]()
    happened: Counter[str] = Counter()
    oracle = controllers.cluster.oracle
    calls = Oracle.calls

    def on_calls(host: Host, message: msgspec.Struct) -> None:
        if isinstance(message, AlterPartitionRequest):
            sent_us.append(world.now)
        calls(oracle, host, message)

    def on_happened(node: NodeName, name: str) -> None:
        happened[node] += 1
        told_us.append(world.now)
        assert name == PROPOSES_ISR

    monkeypatch.setattr(oracle, "calls", on_calls)
    world.watch(PROPOSES_ISR, on_happened)
    leader = controllers.cluster.leader().leader
    assert leader is not None
    assert controllers.ask(leader, "create-topic", "t", 1).outcome == "ok"
    for _ in range(6):
        controllers.cluster.kill(NodeName("n5"), 0)
        controllers.until(lambda: controllers.unfenced == {4})
        controllers.cluster.start(NodeName("n5"))
        controllers.until(lambda: len(in_sync(controllers)) == 2)
    assert happened[NodeName("n4")] >= 6
    waits_us = [sent - told for told, sent in zip(told_us, sent_us, strict=True)]
    assert max(waits_us) > 0


def in_sync(controllers: Controllers) -> tuple[int, ...]:
    return controllers.partitions("t")[0].isr
