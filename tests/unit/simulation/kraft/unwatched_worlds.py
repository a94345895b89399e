"""Worlds of real nodes with nobody who judges them: hosts, and a watcher that takes notes."""

from collections.abc import Callable
from typing import Any

import msgspec

from splitbrain.contracts.names import NodeName
from splitbrain.contracts.scenario import DiskOptions, NetworkOptions, Scenario
from splitbrain.nodes.quorum.effects import Effect
from splitbrain.nodes.quorum.events import Event
from splitbrain.nodes.quorum.identifiers import DirectoryId, NodeId
from splitbrain.nodes.quorum.persistent import Voter
from splitbrain.nodes.quorum.settings import QuorumSettings
from splitbrain.nodes.quorum.voters import ReplicaKey
from splitbrain.nodes.transport.client_protocol import ClientAnswer, ClientRequest
from splitbrain.nodes.wire.calls import ReceivedCall
from splitbrain.simulation.kraft.host import Host
from splitbrain.simulation.kraft.messages import Greeting, Knock, describe
from splitbrain.simulation.world.world import SimulatedWorld

SECOND_US = 1_000_000
SETTINGS = QuorumSettings(
    fetch_timeout_ms=150,
    election_timeout_ms_min=75,
    election_timeout_ms_max=150,
    election_back_off_ms_max=150,
    request_timeout_ms=90,
    retry_back_off_ms=10,
    fetch_max_wait_ms=30,
)


class Notes:
    """In the oracle's place: only writes down."""

    def __init__(self) -> None:
        #: Node, what, and the thing itself.
        self.lines: list[tuple[NodeName, str, object]] = []

    def started(self, host: Host) -> None:
        self.lines.append((host.name, "started", host.incarnation))

    def ended(self, host: Host) -> None:
        self.lines.append((host.name, "ended", host.incarnation))

    def taking(self, host: Host, event: Event) -> None:
        self.lines.append((host.name, "takes", event))

    def before(self, host: Host, effect: Effect) -> None:
        self.lines.append((host.name, "begins", effect))

    def after(self, host: Host, effect: Effect) -> None:
        self.lines.append((host.name, "did", effect))

    def asked(self, host: Host, request: ClientRequest) -> object:
        return request.id

    def replied(
        self, host: Host, request: ClientRequest, answer: ClientAnswer, token: object
    ) -> None:
        assert token == request.id
        self.lines.append((host.name, "replies", answer))

    def called(self, host: Host, call: ReceivedCall) -> object:
        return call

    def answered(
        self, host: Host, call: ReceivedCall, answer: msgspec.Struct, token: object
    ) -> None:
        assert token is call
        self.lines.append((host.name, "answers", answer))

    def calls(self, host: Host, message: msgspec.Struct) -> None:
        self.lines.append((host.name, "calls", message))

    def of(self, node: str, what: str) -> list[object]:
        return [thing for name, kind, thing in self.lines if (name, kind) == (node, what)]


class _Unwatched:
    """Implements as much of ``SimulatedSystem`` as a world needs."""

    happenings: tuple[str, ...] = ()
    happenings_undrawn: tuple[str, ...] = ()
    invariants: tuple[str, ...] = ()

    def planted(self, scenario: Scenario) -> "_Unwatched":
        return self

    def describe(self, message: Any) -> tuple[str, str, bool]:
        return describe(message)

    def cluster(self, world: SimulatedWorld, *, muted: frozenset[str] = frozenset()) -> Any:
        return None


class Quorum:
    """Hosts in a world; nothing runs until it is started."""

    def __init__(
        self, seed: int = 1, *, settings: QuorumSettings = SETTINGS, **changed: Any
    ) -> None:
        defaults = {
            "network": NetworkOptions(delay_us_min=100, delay_us_max=500),
            "disk": DiskOptions(latency_us_min=100, latency_us_max=500),
        }
        self.scenario = Scenario(system="kraft", seed=seed, **(defaults | changed))
        system: Any = _Unwatched()
        self.world = SimulatedWorld(self.scenario, system)
        oracle: Any = Notes()
        self.notes: Notes = oracle
        voters = tuple(
            Voter(NodeId(number), DirectoryId(f"{number:032x}"), f"n{number}", 9193)
            for number in range(1, self.scenario.nodes + 1)
        )
        self.hosts = {
            NodeName(f"n{voter.node_id}"): Host(
                self.world,
                oracle,
                ReplicaKey(voter.node_id, voter.directory_id),
                voters,
                settings,
            )
            for voter in voters
        }

    def host(self, name: str) -> Host:
        return self.hosts[NodeName(name)]

    def start(self) -> None:
        for host in self.hosts.values():
            host.start()

    def run(self, duration_us: int) -> None:
        self.world.run(self.world.now + duration_us)

    def run_until(self, condition: Callable[[], bool], patience_us: int = 20 * SECOND_US) -> None:
        if condition():
            return
        assert self.world.run(self.world.now + patience_us, condition), "it never happens"

    def leader(self) -> Host | None:
        leading = [
            host
            for host in self.hosts.values()
            if host.serves and not host.node.has_ended and host.node.replica.role == "leader"
        ]
        return max(leading, key=lambda host: host.node.replica.epoch, default=None)

    def await_leader(self) -> Host:
        """A leader that has committed in its own epoch."""

        def settled() -> bool:
            host = self.leader()
            return host is not None and host.node.replica.high_watermark >= 1

        self.run_until(settled)
        host = self.leader()
        assert host is not None
        return host

    def caller(self, node: str) -> "Caller":
        return Caller(self, node)


class Caller:
    """A bare client connection to one node."""

    def __init__(self, quorum: Quorum, node: str) -> None:
        self._quorum = quorum
        self.greetings = 0
        self.answers: list[ClientAnswer] = []
        self.losses: list[tuple[str, bool]] = []
        self._asked = 0
        self._connection = quorum.world.network.connect("c1", node, self)

    def knock(self) -> None:
        self._connection.send(Knock())

    def ask(self, kind: Any = "write", value: Any = 1, timeout_ms: int = 5_000) -> int:
        self._asked += 1
        self._connection.send(
            ClientRequest(
                id=self._asked,
                kind=kind,
                key="r1",
                value=value,
                operation=f"c1-{self._asked}",
                timeout_ms=timeout_ms,
            )
        )
        return self._asked

    def answered(self, message: Any) -> None:
        if isinstance(message, Greeting):
            self.greetings += 1
        else:
            self.answers.append(message)

    def lost(self, reason: str, *, refused: bool) -> None:
        self.losses.append((reason, refused))


def with_options(scenario: Scenario, **changed: Any) -> Scenario:
    return msgspec.structs.replace(scenario, **changed)
