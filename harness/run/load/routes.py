"""Routes of a load's worker slots: which follow the leader, and which keep to one node.

About half of the slots follow the leader and half are pinned to one node each, because only a
client that stays with a deposed leader sees what that leader still answers.
"""

from collections.abc import Sequence

from splitbrain.contracts.names import NodeName
from splitbrain.contracts.system import ROUTE_KINDS, Route


def routes(
    nodes: Sequence[NodeName], slots: int, observers: Sequence[NodeName] = (), readers: int = 0
) -> list[Route]:
    """Return the route of each slot: following and pinned in turn, each over the nodes round robin.

    Where there are nodes that do not vote, it is they whom slots are pinned to. The last
    ``readers`` slots are pinned to nodes that vote.
    """
    result: list[Route] = []
    for slot in range(slots - readers):
        turn, kind = divmod(slot, len(ROUTE_KINDS))
        if ROUTE_KINDS[kind] == "leader":
            result.append(Route("leader", nodes[turn % len(nodes)]))
        else:
            among = observers or nodes
            result.append(Route("pinned", among[turn % len(among)]))
    result += [Route("pinned", nodes[place % len(nodes)]) for place in range(readers)]
    return result


def reader_slots(
    nodes: Sequence[NodeName], slots: int, observers: Sequence[NodeName] = (), readers: int = 0
) -> frozenset[int]:
    """The first slot that is pinned to each node, if that leaves pinned slots that also write.

    Nodes that do not vote are only ever read: there it is every pinned slot. The last ``readers``
    slots only read in any case.
    """
    if readers:
        others = reader_slots(nodes, slots - readers, observers)
        return others.union(range(slots - readers, slots))
    if observers:
        found = routes(nodes, slots, observers)
        return frozenset(slot for slot, route in enumerate(found) if route.kind == "pinned")
    pinned: dict[NodeName, list[int]] = {}
    for slot, route in enumerate(routes(nodes, slots)):
        if route.kind == "pinned":
            pinned.setdefault(route.node, []).append(slot)
    return (
        frozenset(taken[0] for taken in pinned.values()) if slots > 2 * len(nodes) else frozenset()
    )
