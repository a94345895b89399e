"""Watched quorums without clients and without chance: what goes wrong, a test does by hand.

Messages take one and the same time, whoever dies resets its connections, and the settings are those
of production unless said otherwise, so that what is measured on the virtual clock is the quorum's
own doing.
"""

from collections.abc import Callable, Sequence
from typing import Final

from splitbrain.contracts.fault import Link
from splitbrain.contracts.names import NodeName
from splitbrain.contracts.scenario import NetworkOptions, Scenario
from splitbrain.nodes.quorum.settings import QuorumSettings
from splitbrain.simulation.kraft.cluster import KraftCluster
from splitbrain.simulation.kraft.host import Host
from splitbrain.simulation.kraft.system import KraftSimulation
from splitbrain.simulation.world.world import SimulatedWorld

MS: Final = 1_000
SECOND: Final = 1_000 * MS
DEFAULTS: Final = QuorumSettings()


class CalmQuorum:
    """Machines that are down until they are started."""

    def __init__(
        self,
        seed: int = 1,
        *,
        voters: int = 3,
        one_way_us: int = 1 * MS,
        settings: dict[str, str] | None = None,
        muted: frozenset[str] = frozenset(),
    ) -> None:
        """``muted`` invariants do not watch."""
        scenario = Scenario(
            system="kraft",
            seed=seed,
            nodes=voters,
            settings=settings or {},
            network=NetworkOptions(
                delay_us_min=one_way_us, delay_us_max=one_way_us, half_open_chance=0.0
            ),
        )
        self.world = SimulatedWorld(scenario, KraftSimulation(), muted=muted)
        cluster = self.world.cluster
        assert isinstance(cluster, KraftCluster)
        self.cluster = cluster

    @property
    def hosts(self) -> list[Host]:
        return list(self.cluster.hosts.values())

    @property
    def leader(self) -> Host:
        """The acting leader of the highest epoch; there must be one."""
        name = self.cluster.leader().leader
        assert name is not None
        return self.cluster.hosts[name]

    @property
    def followers(self) -> list[Host]:
        """All others, by node id."""
        return [host for host in self.hosts if host is not self.leader]

    def start(self, *hosts: Host) -> None:
        """Start these nodes, or all of them."""
        for host in hosts or self.hosts:
            self.cluster.start(host.name)

    def run(self, duration_us: int) -> None:
        self.world.run(self.world.now + duration_us)

    def wait_us(self, happens: Callable[[], bool], patience_us: int = 10 * SECOND) -> int:
        """How long until it happens; the whole patience if it does not."""
        began = self.world.now
        if not happens():
            self.world.run(began + patience_us, happens)
        return self.world.now - began

    def await_leader(self) -> Host:
        """A leader that all others follow, and have heard of for a second."""
        self.wait_us(lambda: all(follows_or_leads(host) for host in self.hosts))
        assert all(follows_or_leads(host) for host in self.hosts)
        self.run(SECOND)
        return self.leader

    def wait_for_leader_us(self) -> int:
        """How long until there is an acting leader."""
        return self.wait_us(lambda: self.cluster.leader().leader is not None)

    def cut(self, source: Host, destinations: Sequence[Host]) -> None:
        """Hold the messages from one to the others from now on."""
        self.world.network.cut(links(source, destinations))

    def restore(self, source: Host, destinations: Sequence[Host]) -> None:
        """Send on the held messages."""
        self.world.network.restore(links(source, destinations))

    def roles_taken(self, duration_us: int) -> list[str]:
        """Return the nodes that change their role meanwhile."""
        taken: list[str] = []

        def take(node: NodeName, _: str) -> None:
            taken.append(node)

        self.world.watch("leads", take)
        self.world.watch("changes-role", take)
        self.run(duration_us)
        self.world.forget_watchers()
        return taken


def links(source: Host, destinations: Sequence[Host]) -> list[Link]:
    return [Link(source.name, destination.name) for destination in destinations]


def follows_or_leads(host: Host) -> bool:
    return host.serves and host.node.replica.role in ("follower", "leader")


def started(
    seed: int = 1,
    *,
    voters: int = 3,
    one_way_us: int = 1 * MS,
    settings: dict[str, str] | None = None,
) -> CalmQuorum:
    """A quorum whose followers hear their leader."""
    quorum = CalmQuorum(seed, voters=voters, one_way_us=one_way_us, settings=settings)
    quorum.start()
    quorum.await_leader()
    return quorum
