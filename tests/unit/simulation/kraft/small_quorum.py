"""A real simulated quorum at work, with the oracle that watches it."""

from typing import Any

from splitbrain.contracts.names import NodeName
from splitbrain.contracts.operations import Completion, Operation
from splitbrain.contracts.scenario import Scenario
from splitbrain.contracts.system import Route
from splitbrain.nodes.transport.client_protocol import ClientAnswer, ClientRequest
from splitbrain.simulation.kraft.cluster import KraftCluster
from splitbrain.simulation.kraft.ghost import Machine
from splitbrain.simulation.kraft.system import KraftSimulation
from splitbrain.simulation.world.world import SimulatedWorld


class Quorum:
    """Nodes at work that have committed one write of 7 to key ``k``."""

    def __init__(
        self,
        muted: frozenset[str] = frozenset(),
        *,
        voters: int = 3,
        observers: int = 0,
        beyond_promise: bool = False,
        settings: dict[str, str] | None = None,
    ) -> None:
        scenario = Scenario(
            system="kraft",
            seed=1,
            nodes=voters,
            observers=observers,
            beyond_promise=beyond_promise,
            settings=settings or {},
        )
        self.world = SimulatedWorld(scenario, KraftSimulation(), muted=muted)
        cluster = self.world.cluster
        assert isinstance(cluster, KraftCluster)
        self.cluster = cluster
        self.oracle = cluster.oracle
        self.ghost = cluster.oracle.ghost
        for node in cluster.nodes:
            cluster.start(node)
        while cluster.leader().leader is None:
            self.run(100_000)
        self.write(7)

    @property
    def leader(self) -> Machine:
        return next(m for m in self.machines if m.host.node.replica.role == "leader")

    @property
    def followers(self) -> list[Machine]:
        return [m for m in self.machines if m.host.node.replica.role == "follower"]

    @property
    def machines(self) -> list[Machine]:
        return list(self.ghost.machines.values())

    @property
    def epoch(self) -> int:
        return self.leader.host.node.replica.epoch

    @property
    def end(self) -> int:
        return len(self.ghost.committed)

    def run(self, duration_us: int) -> None:
        self.world.run(self.world.now + duration_us, None)

    def before(self, machine: Machine, effect: Any) -> None:
        self.oracle.before(machine.host, effect)

    def after(self, machine: Machine, effect: Any) -> None:
        self.oracle.after(machine.host, effect)

    def reply(self, request: ClientRequest, floor: int = 0, **answer: Any) -> None:
        said = ClientAnswer(1, **{"outcome": "ok", "definite": True, **answer})
        self.oracle.replied(self.leader.host, request, said, floor)

    def write(self, value: int) -> None:
        """Write to key ``k`` and wait until everybody has heard of it."""
        client = self.cluster.open_client(0, Route("leader", self.cluster.nodes[0]))
        done: list[Completion] = []
        client.invoke(Operation(f="write", key="k", value=value), 1_000_000, done.append)
        self.run(1_000_000)
        assert [completion.type for completion in done] == ["ok"]

    def restart(self, name: NodeName) -> None:
        """Cut a node's power and start it again."""
        self.cluster.power_off([name], 0)
        self.cluster.start(name)
        self.run(100_000)

    def wipe(self, name: NodeName) -> None:
        """Let a node come back without a past."""
        self.cluster.kill(name, 0)
        self.cluster.disk(name).wipe()
        self.cluster.start(name)
        self.run(1_000_000)
