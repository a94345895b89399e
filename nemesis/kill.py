"""Ends the target's processes at once (SIGKILL) and starts them again when healed.

The node loses its memory, not its disk, and not what the kernel still holds in its page cache:
this fault cannot show a missing fsync.
"""

from contracts.fault import ActualFault, ScheduledFault
from contracts.names import NodeName
from contracts.runtime import Capability, Runtime
from nemesis.expectations import Expectation, NodeIs
from nemesis.targets import HALVES, ClusterView, nodes_hit, random_target


class Kill:
    """Kill, then restart."""

    name = "kill"
    needs: frozenset[Capability] = frozenset({"kill"})
    other_targets = ("follower", random_target(1))
    refused_targets: frozenset[str] = frozenset({HALVES})
    leaves_one = False

    def actual(self, fault: ScheduledFault, view: ClusterView) -> ActualFault | None:
        """The nodes to kill."""
        nodes = nodes_hit(fault, view)
        if nodes is None:
            return None
        return ActualFault(
            index=fault.index,
            kind=self.name,
            target=fault.target,
            nodes=nodes,
            leader=view.leader,
        )

    def inject(self, runtime: Runtime, fault: ActualFault) -> None:
        """Kill them, one after the other."""
        for node in fault.nodes:
            runtime.kill(node)

    def heal(self, runtime: Runtime, fault: ActualFault) -> None:
        """Start them again."""
        for node in fault.nodes:
            runtime.start(node)

    def when_bitten(
        self, fault: ActualFault, _nodes: tuple[NodeName, ...], /
    ) -> tuple[Expectation, ...]:
        """Exited as the runtime sees it."""
        return tuple(NodeIs(node, "exited") for node in fault.nodes)

    def when_healed(
        self, fault: ActualFault, _nodes: tuple[NodeName, ...], /
    ) -> tuple[Expectation, ...]:
        """Running again."""
        return tuple(NodeIs(node, "running") for node in fault.nodes)

    def downs(self, fault: ActualFault) -> frozenset[NodeName]:
        """The nodes killed."""
        return frozenset(fault.nodes)
