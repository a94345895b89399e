"""A broker's machine asks for producer ids, and what it sent comes again, later."""

from collections import Counter
from typing import Any

import msgspec

from splitbrain.contracts.names import NodeName
from splitbrain.nodes.wire.control_plane import ReceivedCall
from splitbrain.nodes.wire.families.brokers import (
    AllocateProducerIdsResponse,
    BrokerRegistrationRequest,
)
from splitbrain.simulation.kraft.host import Host
from splitbrain.simulation.kraft.oracle import Oracle
from tests.unit.simulation.kraft.small_controllers import Controllers


class Listening:
    """What reaches controllers, what they answer, and what brokers' processes send."""

    def __init__(self, controllers: Controllers, monkeypatch: Any) -> None:
        self.sent: Counter[msgspec.Struct] = Counter()
        self.came: Counter[msgspec.Struct] = Counter()
        self.blocks: list[int] = []
        oracle = controllers.cluster.oracle
        called, told, calls = Oracle.called, Oracle.told, Oracle.calls

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
        monkeypatch.setattr(oracle, "told", on_told)
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
