"""One process of a simulated machine: the node and what is its own around it.

Must never begin a life, nor end one in disorder: that is the machine's.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from contracts.names import NodeName
from contracts.simulation import Network
from nodes.quorum.identifiers import NodeId
from nodes.quorum.persistent import Voter
from nodes.server.node import Node
from systems.kraft.simulation.calls import SimulatedCalls
from systems.kraft.simulation.disk_jobs import SimulatedDiskJobs
from systems.kraft.simulation.peers import SimulatedPeers


class Life(NamedTuple):
    """One process."""

    node: Node
    peers: SimulatedPeers
    jobs: SimulatedDiskJobs
    #: None where nothing is asked but what the quorum's links carry.
    calls: SimulatedCalls | None

    def wind_up(self, network: Network, name: NodeName, closed: Callable[[], None]) -> None:
        """What follows the end of a node, in the order of ``nodes.server.assembly``.

        Clients that wait are answered, all connections closed, and ``closed`` is called when the
        disk has done what it was given.
        """
        self.node.service.stop()
        network.hang_up(name)
        self.peers.close()
        if self.calls is not None:
            self.calls.close()

        def close() -> None:
            self.node.close()
            closed()

        self.jobs.finish(close)


def places_of(voters: Sequence[Voter], me: NodeId) -> dict[NodeId, str]:
    """Where the voters live that a node has links to."""
    return {voter.node_id: f"n{voter.node_id}" for voter in voters if voter.node_id != me}
