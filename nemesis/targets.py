"""From a symbolic target (``leader``, ``random:2``) to the nodes that it means now.

The symbolic target stands in the plan, drawn from the seed; which nodes it means is settled when
the fault is injected, from who leads then and from the ``draw`` that the plan carries. Same draw
and same cluster, same nodes.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import msgspec

from splitbrain.contracts.errors import UsageError
from splitbrain.contracts.fault import PINNED_NODES, Fault
from splitbrain.contracts.names import NodeName

#: Option of a scheduled fault: the nodes to hit, whatever the symbolic target means now.

LEADER = "leader"
FOLLOWER = "follower"
LAST_LEADER = "last-leader"
#: The node that decides about metadata, of a system whose data have leaders of their own.
CONTROLLER = "controller"
ALL = "all"
HALVES = "halves"
#: The node whose log ends first.
LAGGARD = "laggard"
#: Where what the fault waits for has happened.
THERE = "there"

#: Every name of a target but ``random:K``, nodes' names, and what only a fault that waits can have.
_SYMBOLS = (LEADER, FOLLOWER, LAST_LEADER, CONTROLLER, LAGGARD, ALL, HALVES)

_RANDOM = re.compile(r"random(?::([1-9][0-9]?))?")


class ClusterView(msgspec.Struct, frozen=True):
    """The cluster at the moment of an injection."""

    #: Those that vote: what targets other than names mean.
    nodes: tuple[NodeName, ...]
    #: Present leader, None where none is known.
    leader: NodeName | None = None
    #: Leader before the present one; while nobody leads, the last one.
    last_leader: NodeName | None = None
    #: None where none is known.
    controller: NodeName | None = None
    #: End offset of each node's log, as far as known.
    ends: Mapping[NodeName, int] = {}
    #: Where what the fault waits for has happened.
    there: NodeName | None = None
    #: Those that do not vote; only a name means them.
    observers: tuple[NodeName, ...] = ()

    @property
    def everyone(self) -> tuple[NodeName, ...]:
        """All nodes, those that vote first."""
        return (*self.nodes, *self.observers)


def random_target(count: int) -> str:
    """Return the name of the target "``count`` nodes drawn from the seed"."""
    return f"random:{count}"


def is_random(target: str) -> bool:
    """Whether the target is ``random:K``."""
    return _RANDOM.fullmatch(target) is not None


def canonical(target: str) -> str:
    """``random`` means ``random:1``; all other names stay."""
    return random_target(1) if target == "random" else target


def shuffled(nodes: Sequence[NodeName], draw: int) -> tuple[NodeName, ...]:
    """Return the nodes in the order that ``draw`` settles; every order occurs."""
    rest = list(nodes)
    order: list[NodeName] = []
    while rest:
        draw, place = divmod(draw, len(rest))
        order.append(rest.pop(place))
    return tuple(order)


def check_target(
    target: str,
    nodes: Sequence[NodeName],
    *,
    leave_one: bool,
    observers: Sequence[NodeName] = (),
) -> None:
    """Refuse a target that cannot exist in this cluster.

    Args:
        target: canonical name.
        nodes: all nodes that vote.
        leave_one: whether at least one node must be left out (a partition needs another side).
        observers: all others.

    Raises:
        UsageError: there is no such node, or there are not enough nodes.
    """
    if target in observers:
        return
    if len(nodes) == 1 and (leave_one or target in (FOLLOWER, HALVES, LAGGARD)):
        raise UsageError(
            f"the target {target!r} needs another node beside it, and the cluster is one node",
            "Choose at least --nodes 2, or another fault",
        )
    if target in _SYMBOLS or target in nodes:
        return
    if is_random(target):
        count = int(target.partition(":")[2])
        if count <= len(nodes) - leave_one:
            return
        raise UsageError(
            f"the target {target!r} asks for {count} of {len(nodes)} nodes",
            f"Ask for at most {len(nodes) - leave_one}",
        )
    raise UsageError(
        f"there is no target {target!r} in a cluster of {', '.join((*nodes, *observers))}",
        "Use leader, follower, last-leader, controller, laggard, random:K, halves, all or a node's "
        "name",
    )


def check_pinned(options: Mapping[str, Any], nodes: Sequence[NodeName]) -> None:
    """Refuse an option of a fault that pins nodes which do not exist.

    Raises:
        UsageError: says which nodes there are.
    """
    if PINNED_NODES not in options:
        return
    pinned = options[PINNED_NODES]
    if not isinstance(pinned, list) or not pinned or any(node not in nodes for node in pinned):  # pyright: ignore[reportUnknownVariableType]
        raise UsageError(
            f"the option {PINNED_NODES!r} of a fault cannot be {pinned!r}",
            f"It is a list of nodes, of {', '.join(nodes)}",
        )


def nodes_hit(fault: Fault, view: ClusterView) -> tuple[NodeName, ...] | None:
    """The nodes that the fault hits now: the pinned ones in their order, else the target's."""
    pinned: Sequence[NodeName] | None = fault.options.get(PINNED_NODES)
    if pinned is not None:
        return tuple(node for node in pinned if node in view.everyone)
    return resolve(fault.target, fault.draw, view)


def resolve(target: str, draw: int, view: ClusterView) -> tuple[NodeName, ...] | None:
    """Return the nodes that the target means now, None where it does not exist (nobody leads).

    ``halves`` is the smaller half; the others are the other one.
    """
    if target in _ROLES:
        named = _ROLES[target](view)
        return None if named is None else (named,)
    if target == FOLLOWER:
        if view.leader is None:
            return None
        followers = [node for node in view.nodes if node != view.leader]
        return shuffled(followers, draw)[:1] or None
    if target == LAGGARD:
        return _laggard(draw, view)
    if target == ALL:
        return view.nodes
    if target == HALVES:
        return _in_order(shuffled(view.nodes, draw)[: len(view.nodes) // 2], view)
    if is_random(target):
        count = int(canonical(target).partition(":")[2])
        return _in_order(shuffled(view.nodes, draw)[:count], view)
    node = NodeName(target)
    return (node,) if node in view.everyone else None


#: Targets that are one node that the view names.
_ROLES: Final[dict[str, Callable[[ClusterView], NodeName | None]]] = {
    LEADER: lambda view: view.leader,
    LAST_LEADER: lambda view: view.last_leader,
    CONTROLLER: lambda view: view.controller,
    THERE: lambda view: view.there,
}


def _in_order(chosen: Sequence[NodeName], view: ClusterView) -> tuple[NodeName, ...]:
    return tuple(node for node in view.nodes if node in chosen)


def _laggard(draw: int, view: ClusterView) -> tuple[NodeName, ...] | None:
    """Of the nodes that do not lead one whose log ends first; None where no end is known."""
    ends = {
        node: view.ends[node] for node in view.nodes if node in view.ends and node != view.leader
    }
    if not ends:
        return None
    last = [node for node, end in ends.items() if end == min(ends.values())]
    return shuffled(last, draw)[:1]
