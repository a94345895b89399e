"""Where the logs of simulated nodes end, by what the nodes last told."""

from splitbrain.contracts.names import NodeName
from splitbrain.contracts.simulation import SimulatedCluster


def ends_of(cluster: SimulatedCluster) -> dict[NodeName, int]:
    """End offset of each node's log, of those that ever told."""
    ends: dict[NodeName, int] = {}
    for node in cluster.nodes:
        for event in reversed(cluster.state_events(node)):
            if event.kind in ("append", "truncate") and event.offset is not None:
                ends[node] = event.offset
                break
    return ends
