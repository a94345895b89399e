"""Cuts the target's power: its processes end and its disk forgets what was not flushed.

The one fault that shows a missing fsync: after a kill the kernel still writes what lies in its
page cache, after a power cut nobody does. Healed by starting the nodes again.
"""

from contracts.fault import ActualFault, ScheduledFault
from contracts.names import NodeName
from contracts.runtime import Capability, Runtime
from nemesis.expectations import Expectation, NodeIs
from nemesis.targets import ALL, HALVES, ClusterView, nodes_hit, random_target


class Power:
    """Power cut, then restart."""

    name = "power"
    needs: frozenset[Capability] = frozenset({"power"})
    other_targets = ("follower", random_target(1), ALL)
    refused_targets: frozenset[str] = frozenset({HALVES})
    leaves_one = False

    def actual(self, fault: ScheduledFault, view: ClusterView) -> ActualFault | None:
        """The nodes that lose power."""
        nodes = nodes_hit(fault, view)
        if nodes is None:
            return None
        return ActualFault(
            index=fault.index,
            kind=self.name,
            target=fault.target,
            nodes=nodes,
            leader=view.leader,
            draw=fault.draw,
        )

    def inject(self, runtime: Runtime, fault: ActualFault) -> str:
        """All of them at one moment, as when a rack goes dark; what each has lost."""
        return runtime.power_off(fault.nodes, fault.draw)

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
        """The nodes that lost power."""
        return frozenset(fault.nodes)
