"""Freezes every process of the target, as a long garbage collection or a stalled machine would.

The node loses no memory and no connection: it wakes up believing what it believed before.
"""

from contracts.fault import ActualFault, ScheduledFault
from contracts.names import NodeName
from contracts.runtime import Capability, Runtime
from nemesis.expectations import Expectation, NodeIs, NodeIsSilent
from nemesis.targets import HALVES, ClusterView, nodes_hit, random_target


class Pause:
    """Freeze, then thaw."""

    name = "pause"
    needs: frozenset[Capability] = frozenset({"pause"})
    other_targets = ("follower", random_target(1))
    refused_targets: frozenset[str] = frozenset({HALVES})
    leaves_one = False

    def actual(self, fault: ScheduledFault, view: ClusterView) -> ActualFault | None:
        """The nodes to freeze."""
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
        """Freeze them."""
        for node in fault.nodes:
            runtime.pause(node)

    def heal(self, runtime: Runtime, fault: ActualFault) -> None:
        """Thaw them."""
        for node in fault.nodes:
            runtime.resume(node)

    def when_bitten(
        self, fault: ActualFault, _nodes: tuple[NodeName, ...], /
    ) -> tuple[Expectation, ...]:
        """Frozen as the runtime sees it, and silent as the clients see it."""
        frozen = tuple(NodeIs(node, "paused") for node in fault.nodes)
        return frozen + tuple(NodeIsSilent(node) for node in fault.nodes)

    def when_healed(
        self, fault: ActualFault, _nodes: tuple[NodeName, ...], /
    ) -> tuple[Expectation, ...]:
        """Running again."""
        return tuple(NodeIs(node, "running") for node in fault.nodes)

    def downs(self, _fault: ActualFault, /) -> frozenset[NodeName]:
        """None: a frozen process has not exited."""
        return frozenset()
