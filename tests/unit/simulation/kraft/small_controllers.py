"""A real simulated quorum of controllers at work, with a stranger who calls them as brokers do."""

from typing import Any

import msgspec

from splitbrain.contracts.scenario import Scenario
from splitbrain.nodes.metadata.records import (
    MetadataRecord,
    PartitionRecord,
    RegisterControllerRecord,
)
from splitbrain.nodes.metadata.serde import encode_record
from splitbrain.nodes.quorum.effects import AdvanceHighWatermark
from splitbrain.nodes.quorum.identifiers import CorrelationId, Offset
from splitbrain.nodes.transport.client_protocol import ClientAnswer, ClientRequest
from splitbrain.nodes.wire.families.brokers import BrokerHeartbeatRequest
from splitbrain.simulation.kraft.cluster import KraftCluster
from splitbrain.simulation.kraft.ghost import Machine
from splitbrain.simulation.kraft.messages import PeerCall
from splitbrain.simulation.kraft.metadata.ledger import MetadataLedger
from splitbrain.simulation.kraft.metadata.state import Metadata
from splitbrain.simulation.kraft.mirrored_log import Entry
from splitbrain.simulation.kraft.system import KraftSimulation
from splitbrain.simulation.world.world import SimulatedWorld

SETTINGS = {
    "max_idle_interval_ms": "100",
    "snapshot_max_new_record_bytes": "400",
    "broker_session_timeout_ms": "900",
    "heartbeat_interval_ms": "200",
}


def beat(
    epoch: int, broker_id: int = 7, offset: int = 0, *, want_fence: bool = False
) -> BrokerHeartbeatRequest:
    """A broker that wants to serve."""
    return BrokerHeartbeatRequest(
        broker_id=broker_id,
        broker_epoch=epoch,
        current_metadata_offset=offset,
        want_fence=want_fence,
        want_shut_down=False,
    )


class Controllers:
    """Three of them, all registered; brokers, the first of them n4, are unfenced."""

    def __init__(
        self,
        *,
        seed: int = 1,
        through_codec: bool = False,
        bugs: tuple[str, ...] = (),
        settings: dict[str, str] | None = None,
        muted: frozenset[str] = frozenset(),
        brokers: int = 0,
    ) -> None:
        scenario = Scenario(
            system="kraft",
            seed=seed,
            nodes=3,
            observers=brokers,
            state_machine="metadata",
            through_codec=through_codec,
            bugs=bugs,
            settings=SETTINGS if settings is None else settings,
        )
        self.world = SimulatedWorld(scenario, KraftSimulation(), muted=muted)
        assert isinstance(self.world.cluster, KraftCluster)
        self.cluster = self.world.cluster
        self.ghost = self.cluster.oracle.ghost
        assert isinstance(self.ghost.ledger, MetadataLedger)
        self.ledger = self.ghost.ledger
        self._asked = 0
        for node in self.cluster.nodes:
            self.cluster.start(node)
        self.until(lambda: len(self.registered) == 3)
        self.until(lambda: self.unfenced == set(range(4, 4 + brokers)))

    @property
    def metadata(self) -> Metadata:
        """Return what is committed."""
        return self.ledger.metadata

    @property
    def registered(self) -> dict[int, RegisterControllerRecord]:
        """Return the controllers that are registered, by id."""
        told = self.metadata.others.values()
        return {
            each.controller_id: each for each in told if isinstance(each, RegisterControllerRecord)
        }

    def partitions(self, name: str) -> list[PartitionRecord]:
        """Return the partitions of a topic that is there."""
        topic = self.metadata.named(name)
        assert topic is not None
        return [*self.metadata.partitions[topic.topic_id]]

    @property
    def unfenced(self) -> set[int]:
        """Brokers that may lead."""
        return {number for number, broker in self.metadata.brokers.items() if not broker.fenced}

    def ask(self, node: str, kind: str, topic: str, value: Any = None) -> ClientAnswer:
        """Return the answer to a client of ours."""
        self._asked += 1
        operation = f"c0.1-{self._asked}"
        request = ClientRequest(self._asked, kind, topic, value, operation)  # type: ignore[arg-type]
        end = _End()
        connection = self.world.network.connect("stranger", node, end)
        connection.send(request)
        self.until(lambda: end.said)
        connection.close()
        assert isinstance(end.said[0], ClientAnswer)
        return end.said[0]

    @property
    def leader(self) -> Machine:
        """Return the leader."""
        name = self.cluster.leader().leader
        return next(one for one in self.ghost.machines.values() if one.host.name == name)

    def commit(self, *records: MetadataRecord, epoch: int | None = None) -> int:
        """Let the oracle see a batch committed that nobody wrote; where it begins."""
        leader = self.leader
        assert leader.log is not None
        first = len(self.ghost.committed)
        leader.log.truncate(first)
        written = leader.host.node.replica.epoch if epoch is None else epoch
        entries = [Entry(written, encode_record(record)) for record in records]
        leader.log.append(entries, 0, 1)
        committed = AdvanceHighWatermark(Offset(first + len(entries)))
        self.cluster.oracle.before(leader.host, committed)
        self.cluster.oracle.after(leader.host, committed)
        return first

    def reply(self, request: ClientRequest, floor: int = 0, **answer: Any) -> None:
        """Let the oracle see an answer of the leader that nobody gave."""
        said = ClientAnswer(1, **{"outcome": "ok", "definite": True, **answer})
        self.cluster.oracle.replied(self.leader.host, request, said, floor)

    def run(self, duration_us: int) -> None:
        self.world.run(self.world.now + duration_us, None)

    def until(self, is_so: Any) -> None:
        deadline = self.world.now + 20_000_000
        while not is_so():
            assert self.world.now < deadline, "it never comes to that"
            self.run(10_000)

    def call(self, node: str, message: msgspec.Struct) -> Any:
        """The answer of one controller; None if the connection is lost."""
        end = _End()
        connection = self.world.network.connect("stranger", node, end)
        connection.send(PeerCall(CorrelationId(7), message))
        self.until(lambda: end.said)
        connection.close()
        answer = end.said[0]
        assert answer is None or answer.correlation == 7
        return None if answer is None else answer.answer


class _End:
    """One connection's end; implements ``contracts.simulation.ClientEnd``."""

    def __init__(self) -> None:
        self.said: list[Any] = []

    def answered(self, message: Any) -> None:
        self.said.append(message)

    def lost(self, reason: str, *, refused: bool) -> None:
        self.said.append(None)
