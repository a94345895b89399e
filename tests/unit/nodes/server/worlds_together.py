"""Several nodes made by hand, without a loop: one clock, and messages that take a turn each."""

from collections.abc import Callable
from random import Random
from typing import Any

import msgspec

from splitbrain.nodes.broker.settings import BrokerSettings
from splitbrain.nodes.controller.basis.settings import ControllerSettings
from splitbrain.nodes.controller.roles.active import Identity
from splitbrain.nodes.metadata.image import MetadataImage
from splitbrain.nodes.metadata.machine import MetadataMachine
from splitbrain.nodes.quorum.identifiers import ConnectionId, CorrelationId, NodeId
from splitbrain.nodes.quorum.messages import Answer, FetchAnswer, Request
from splitbrain.nodes.server.broker.broker_service import (
    BrokerMaterials,
    BrokerService,
    broker_layer,
)
from splitbrain.nodes.server.broker.clean_stop import CleanStop
from splitbrain.nodes.server.controller.controller_service import metadata_layer
from splitbrain.nodes.server.host.layer import Layer
from splitbrain.nodes.server.host.node import Node
from splitbrain.nodes.transport.client_protocol import ClientAnswer, ClientRequest
from splitbrain.nodes.wire.apis import RequestHeader
from splitbrain.nodes.wire.batches import split_batches
from splitbrain.nodes.wire.calls import TABLES, api_key_of_call
from tests.unit.nodes.server.hand_made_world import CLUSTER, FOLDER, World

#: The one voter.
CONTROLLER = NodeId(1)
Told = Callable[[msgspec.Struct | None], None]


class Member(World):
    """One machine, and the node that lives on it."""

    def __init__(self, together: "Together", node_id: int) -> None:
        super().__init__(node_id=node_id)
        self.together = together
        self.node: Node | None = None
        self.call_peer = self.call
        self.told: dict[int, Told] = {}
        self.called_count = 0
        #: Nothing that it sends arrives, and nothing arrives at it.
        self.is_cut = False
        #: Its calls, in order.
        self.calls: list[msgspec.Struct] = []

    def at_work(self) -> Node:
        assert self.node is not None
        return self.node

    @property
    def image(self) -> MetadataImage:
        machine = self.at_work().parts.applier.machine
        assert isinstance(machine, MetadataMachine)
        return machine.image

    @property
    def broker(self) -> BrokerService:
        service = self.at_work().service
        assert isinstance(service, BrokerService)
        return service

    def send(
        self, peer: NodeId, correlation: CorrelationId, request: Request, timeout_ms: int
    ) -> None:
        other, me = self.together.members[peer], ConnectionId(self.identity.node_id)
        if self.is_cut or other.is_cut or other.node is None:
            self.call_later(timeout_ms * 1_000, lambda: self._failed(peer, correlation))
            return
        other.turns.append(lambda: other.at_work().requested(me, correlation, request))

    def _failed(self, peer: NodeId, correlation: CorrelationId) -> None:
        if self.node is not None:
            self.node.failed(peer, correlation, "nobody there", refused=False)

    def answer(self, connection: ConnectionId, correlation: CorrelationId, answer: Answer) -> None:
        if isinstance(answer, FetchAnswer) and answer.records and not answer.batches:
            answer = msgspec.structs.replace(answer, batches=split_batches(answer.records))
        asker, me = self.together.members[int(connection)], self.identity.node_id
        if self.is_cut or asker.is_cut:
            asker.call_later(500_000, lambda: asker._failed(me, correlation))
            return

        def arrive() -> None:
            if asker.node is not None:
                asker.node.answered(me, correlation, answer)

        asker.turns.append(arrive)

    def call(self, peer: NodeId, message: msgspec.Struct, told: Told) -> None:
        """``Surroundings.call_peer``."""
        self.calls.append(message)
        other = self.together.members[peer]
        self.called_count += 1
        number = self.called_count * 1_000 + self.identity.node_id
        self.told[number] = told
        if self.is_cut or other.is_cut or other.node is None:
            self.call_later(500_000, lambda: self.told.pop(number)(None))
            return
        api_key = api_key_of_call(message)
        header = RequestHeader(api_key, TABLES[api_key].versions.highest, number, "test")
        me = ConnectionId(self.identity.node_id)
        other.turns.append(
            lambda: other.at_work().called(me, CorrelationId(number), header, message)
        )

    def reply(
        self, _: ConnectionId, correlation: CorrelationId, reply: msgspec.Struct | bytes | None
    ) -> None:
        """``Surroundings.reply_to_call``."""
        assert isinstance(reply, msgspec.Struct)
        asker = self.together.members[int(correlation) % 1_000]

        def arrive() -> None:
            told = asker.told.pop(int(correlation), None)
            if told is not None and asker.node is not None:
                told(reply)

        asker.turns.append(arrive)


class Together:
    """One controller and its brokers."""

    def __init__(self, *broker_ids: int) -> None:
        self.members: dict[int, Member] = {
            node_id: Member(self, node_id) for node_id in (CONTROLLER, *broker_ids)
        }
        for node_id in self.members:
            self.start(node_id)

    @property
    def controller(self) -> Member:
        return self.members[CONTROLLER]

    def start(self, node_id: int) -> Member:
        """A life of a node begins."""
        member = self.members[node_id]
        make = self._controller_layer if node_id == CONTROLLER else self._broker_layer
        member.node = member.assemble(make_layer=lambda: make(member))
        member.node.start()
        return member

    def crash(self, node_id: int) -> None:
        """A life ends, and nobody is told."""
        member = self.members[node_id]
        member.at_work().end(70, "killed by the test")
        member.at_work().close()
        member.node = None
        member.told.clear()
        member.crash()

    def _controller_layer(self, member: Member) -> Layer:
        settings = ControllerSettings(
            max_idle_interval_ms=0,
            leader_imbalance_check_interval_s=0,
            default_replication_factor=len(self.members) - 1,
        )
        return metadata_layer(
            Identity(
                cluster_id=CLUSTER,
                node_id=member.identity.node_id,
                settings=settings,
                random=Random(member.time_us),
            )
        )

    def _broker_layer(self, member: Member) -> Layer:
        return broker_layer(
            BrokerMaterials(
                settings=BrokerSettings(),
                host="localhost",
                port=int(member.identity.node_id),
                random=Random(member.time_us + member.identity.node_id),
                clean_stop=CleanStop(member.filesystem, FOLDER),
            )
        )

    def turn(self) -> bool:
        """One turn of any node: what waits first, then whose time comes next."""
        for member in self.members.values():
            if member.turns or member.jobs:
                member.turn()
                return True
        due = [
            (handle.time_us, node_id)
            for node_id, member in self.members.items()
            for handle in member.handles
            if handle.action is not None
        ]
        if not due:
            return False
        time_us, node_id = min(due)
        for member in self.members.values():
            member.time_us = max(member.time_us, time_us)
        self.members[node_id].turn()
        return True

    def until(self, condition: Callable[[], bool]) -> None:
        for _ in range(50_000):
            if condition():
                return
            assert self.turn(), "nothing is left to happen"
        raise AssertionError("it did not come about")

    def running(self, *broker_ids: int) -> None:
        """Waits until the brokers have been unfenced, and know it."""
        self.until(
            lambda: not any(self.members[each].broker.lifecycle.is_fenced for each in broker_ids)
        )

    def handed_in(self, node_id: int, kind: Any, key: str = "t", value: Any = None) -> list[Any]:
        """Where the answer to a request will be."""
        answers: list[ClientAnswer] = []
        request = ClientRequest(1, kind, key, value, timeout_ms=20_000)
        self.members[node_id].at_work().handle(request, answers.append)
        return answers

    def ask(self, node_id: int, kind: Any, key: str = "t", value: Any = None) -> ClientAnswer:
        """Ask a node, and wait for its answer."""
        answers = self.handed_in(node_id, kind, key, value)
        self.until(lambda: bool(answers))
        return answers[0]
