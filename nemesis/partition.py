"""Cuts the network between the target and all other nodes, in both directions.

Clients on the host still reach every node: that is the point, a client that talks to an isolated
leader sees the lies that a deposed leader can tell.
"""

from contracts.fault import ActualFault, Link, ScheduledFault
from contracts.names import NodeName
from contracts.runtime import Capability, Runtime
from nemesis.expectations import Expectation, LinkIs
from nemesis.targets import ALL, HALVES, ClusterView, nodes_hit, random_target


class Partition:
    """Symmetric cut between a group of nodes and the rest."""

    name = "partition"
    needs: frozenset[Capability] = frozenset({"partition"})
    other_targets = ("follower", random_target(1), HALVES)
    refused_targets: frozenset[str] = frozenset({ALL})
    leaves_one = True

    def actual(self, fault: ScheduledFault, view: ClusterView) -> ActualFault | None:
        """The group and the links between it and the rest."""
        group = nodes_hit(fault, view)
        if group is None:
            return None
        return ActualFault(
            index=fault.index,
            kind=self.name,
            target=fault.target,
            nodes=group,
            links=links_between(group, view.nodes),
            leader=view.leader,
        )

    def inject(self, runtime: Runtime, fault: ActualFault) -> None:
        """Cut the links."""
        runtime.cut(fault.links)

    def heal(self, runtime: Runtime, fault: ActualFault) -> None:
        """Restore the links."""
        runtime.restore(fault.links)

    def when_bitten(
        self, fault: ActualFault, nodes: tuple[NodeName, ...], /
    ) -> tuple[Expectation, ...]:
        """Each cut link is cut, and each other link still works."""
        cut = frozenset(fault.links)
        return tuple(LinkIs(link, open=link not in cut) for link in all_links(nodes))

    def when_healed(
        self, fault: ActualFault, _nodes: tuple[NodeName, ...], /
    ) -> tuple[Expectation, ...]:
        """Every link that was cut works again."""
        return tuple(LinkIs(link, open=True) for link in fault.links)

    def downs(self, _fault: ActualFault, /) -> frozenset[NodeName]:
        """None: processes go on."""
        return frozenset()


def links_between(group: tuple[NodeName, ...], nodes: tuple[NodeName, ...]) -> tuple[Link, ...]:
    """Links between the group and all other nodes, both directions, in the nodes' order."""
    inside = frozenset(group)
    return tuple(
        link for link in all_links(nodes) if (link.source in inside) != (link.destination in inside)
    )


def all_links(nodes: tuple[NodeName, ...]) -> tuple[Link, ...]:
    """Every direction between two nodes."""
    return tuple(Link(a, b) for a in nodes for b in nodes if a != b)
