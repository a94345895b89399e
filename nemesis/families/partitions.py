"""Fault kinds that cut links between nodes.

Clients on the host still reach every node, on purpose: a client of an isolated leader sees stale
answers. Sources: Jepsen's grudges; Cloudflare's post-mortem of 2020-11-02 (partial partitions).
"""

from typing import Any, Final

from splitbrain.contracts.fault import US_PER_MS, FaultTraits, Link
from splitbrain.contracts.names import NodeName
from splitbrain.contracts.runtime import Capability
from splitbrain.nemesis.acts import Cut, Kill, Restore, Start
from splitbrain.nemesis.expectations import Expectation, LinkDelivers, LinkIs, PeersFlow, PeersStall
from splitbrain.nemesis.families.processes import exited, running
from splitbrain.nemesis.fault_kind import LATER, Course, FaultKind, Setting, Step, looks_at
from splitbrain.nemesis.fault_options import CutThenKillOptions, FlapOptions, GroupOptions
from splitbrain.nemesis.targets import ALL, FOLLOWER, HALVES, ClusterView, random_target, shuffled

PAGE: Final = "partitions"
_Nodes = tuple[NodeName, ...]


def all_links(nodes: _Nodes) -> tuple[Link, ...]:
    """Return both directions of every pair of nodes."""
    return tuple(Link(a, b) for a in nodes for b in nodes if a != b)


def links_between(group: _Nodes, nodes: _Nodes) -> tuple[Link, ...]:
    """Return both directions between the group and all other nodes, in the nodes' order."""
    inside = frozenset(group)
    return tuple(
        link for link in all_links(nodes) if (link.source in inside) != (link.destination in inside)
    )


def _between(hit: _Nodes, nodes: _Nodes, _draw: int, _options: Any) -> tuple[Link, ...]:
    return links_between(hit, nodes)


def _inbound(hit: _Nodes, nodes: _Nodes, _draw: int, _options: Any) -> tuple[Link, ...]:
    return tuple(link for link in links_between(hit, nodes) if link.destination in hit)


def _outbound(hit: _Nodes, nodes: _Nodes, _draw: int, _options: Any) -> tuple[Link, ...]:
    return tuple(link for link in links_between(hit, nodes) if link.source in hit)


def _ring(_hit: _Nodes, nodes: _Nodes, draw: int, _options: Any) -> tuple[Link, ...]:
    """Cut all links but those to the nearest on a ring: each node still reaches a majority."""
    ring = shuffled(nodes, draw)
    place = {node: number for number, node in enumerate(ring)}
    # A majority is the node itself and its neighbours on both sides.
    neighbours = (len(nodes) // 2 + 1) // 2

    def distance(link: Link) -> int:
        apart = abs(place[link.source] - place[link.destination])
        return min(apart, len(ring) - apart)

    return tuple(link for link in all_links(nodes) if distance(link) > neighbours)


def _halves_beside(hit: _Nodes, nodes: _Nodes, draw: int, _options: Any) -> tuple[Link, ...]:
    """Return the links between two halves of the other nodes; nodes hit reach both halves."""
    rest = [node for node in nodes if node not in hit]
    first = frozenset(shuffled(rest, draw)[: len(rest) // 2])
    return tuple(
        link
        for link in all_links(nodes)
        if link.source not in hit
        and link.destination not in hit
        and (link.source in first) != (link.destination in first)
    )


def _within(hit: _Nodes, nodes: _Nodes, _draw: int, _options: Any) -> tuple[Link, ...]:
    return tuple(
        link for link in all_links(nodes) if link.source in hit and link.destination in hit
    )


def _with_drawn(hit: _Nodes, among: _Nodes, view: ClusterView, draw: int, count: int) -> _Nodes:
    """Return the nodes hit and ``count`` others drawn from ``among``, voters first."""
    others = [node for node in among if node not in hit]
    chosen = (*hit, *shuffled(others, draw)[:count])
    voters = tuple(node for node in view.nodes if node in chosen)
    return (*voters, *(node for node in chosen if node not in voters))


def _beside(hit: _Nodes, view: ClusterView, draw: int, options: GroupOptions) -> _Nodes:
    """Add the drawn voters and observers, leaving out at least one voter."""
    count = min(options.beside, len(view.nodes) - len(hit) - 1)
    voters = _with_drawn(hit, view.nodes, view, draw, count)
    return _with_drawn(voters, view.observers, view, draw, options.observers)


def _third(hit: _Nodes, view: ClusterView, draw: int, _options: Any) -> _Nodes:
    """Return fewer than a third of the nodes, at least one, with the target."""
    count = max(1, (len(view.nodes) - 1) // 3) - 1
    return _with_drawn(hit[:1], view.nodes, view, draw, count)


def _pair(hit: _Nodes, view: ClusterView, draw: int, _options: Any) -> _Nodes:
    return _with_drawn(hit[:1], view.nodes, view, draw, 1)


def _cut_off(setting: Setting) -> _Nodes:
    """Return the nodes with a cut link to or from the leader."""
    hit = {
        node
        for link in setting.links
        for node in (link.source, link.destination)
        if setting.leader in (link.source, link.destination)
    }
    return tuple(node for node in setting.nodes if node in hit and node != setting.leader)


def _seen(setting: Setting) -> tuple[Expectation, ...]:
    cut = frozenset(setting.links)
    return (
        *(LinkIs(link, open=link not in cut) for link in all_links(setting.nodes)),
        *(PeersStall(node) for node in _cut_off(setting)),
    )


def flows(setting: Setting) -> tuple[Expectation, ...]:
    """Return the expectations that peer traffic flows at every node of the fault's links."""
    touched = {node for link in setting.links for node in (link.source, link.destination)}
    return tuple(PeersFlow(node) for node in setting.nodes if node in touched)


def _open(setting: Setting) -> tuple[Expectation, ...]:
    return tuple(LinkIs(link, open=True) for link in setting.links)


def _cut_course(setting: Setting, _options: Any) -> Course:
    return Course(
        steps=(Step((Cut(setting.links),), seen=_seen(setting)),),
        heal=(Restore(setting.links),),
        healed=_open(setting),
        resumed=flows(setting),
    )


def _one_way_course(setting: Setting, _options: Any) -> Course:
    """Probe by datagrams: a connection needs both directions and cannot show which is cut."""
    cut = frozenset(setting.links)
    back = tuple(Link(link.destination, link.source) for link in setting.links)
    seen = (
        *(LinkDelivers(link, delivers=False) for link in setting.links),
        *(LinkDelivers(link, delivers=True) for link in back if link not in cut),
        *(PeersStall(node) for node in _cut_off(setting)),
    )
    return Course(
        steps=(Step((Cut(setting.links),), seen=seen),),
        heal=(Restore(setting.links),),
        healed=(*(LinkDelivers(link, delivers=True) for link in setting.links), *_open(setting)),
        resumed=flows(setting),
    )


def _flap_course(setting: Setting, options: FlapOptions) -> Course:
    """Cut and restore for equal times, at least as long as a probe takes."""
    links, count = setting.links, options.count
    half_us = max(1, setting.probe_us, setting.duration_us // (2 * count))
    cut = tuple(LinkIs(link, open=False) for link in links)
    steps = [Step((Cut(links),), seen=_seen(setting))]
    for number in range(1, count):
        is_seen = looks_at(number, count, half_us // US_PER_MS)
        whole, again = (_open(setting), cut) if is_seen else ((), ())
        steps.append(Step((Restore(links),), (2 * number - 1) * half_us, seen=whole))
        steps.append(Step((Cut(links),), 2 * number * half_us, seen=again))
    return Course(
        steps=tuple(steps),
        heal=(Restore(setting.links),),
        healed=_open(setting),
        resumed=flows(setting),
    )


def _cut_then_kill_course(setting: Setting, options: CutThenKillOptions) -> Course:
    """Kill while cut off: records only the target held return after the others went on."""
    kill_ms = min(options.kill_after_ms, max(1, setting.duration_ms * 2 // 3))
    return Course(
        steps=(
            Step((Cut(setting.links),), seen=_seen(setting)),
            Step((Kill(setting.hit),), kill_ms * US_PER_MS, seen=exited(setting.hit)),
        ),
        heal=(Restore(setting.links), Start(setting.hit)),
        healed=(*running(setting.hit), *_open(setting)),
        resumed=flows(setting),
    )


_CUTS: Final[frozenset[Capability]] = frozenset({"partition"})
_CUT: Final = FaultTraits(silences="links")
_GROUPS: Final = (FOLLOWER, random_target(1), HALVES)
_ONE: Final = (FOLLOWER, random_target(1))

KINDS: Final = (
    FaultKind(
        name="partition", page=PAGE, needs=_CUTS, course=_cut_course, joined=_beside,
        links=_between, options=GroupOptions, other_targets=_GROUPS, leaves_one=True,
        refused_targets=frozenset({ALL}), needs_up=False,
        is_silent=True, traits=_CUT,
        summary="Cuts the target off from all other nodes, in both directions.",
        reveals=(
            "An isolated leader must neither acknowledge writes nor answer reads, and those who "
            "elect another one must not lose what was committed before. Both are where consensus "
            "breaks most often."
        ),
        picture=(
            "clients ---> n1 (leader) --x-- n2 (elected meanwhile) <--- clients\n"
            "                       \\--x-- n3"
        ),
    ),
    FaultKind(
        name="majorities-ring", page=PAGE, needs=_CUTS, course=_cut_course, links=_ring,
        first_target=ALL, other_targets=(ALL,), only_targets=frozenset({ALL}), nodes_min=4,
        needs_up=False,
        is_silent=True, traits=_CUT,
        summary="Every node reaches a majority, and no two the same one.",
        reveals=(
            "Everybody reaches a majority, so everybody can elect or be elected, while no two "
            "agree on who is there: leaders may change for ever."
        ),
        picture=(
            "n1 --- n2     each node reaches its two neighbours on either side of\n"
            " |       |    a drawn ring, and none of the others\n"
            "n5       n3\n"
            "  \\-- n4 -/"
        ),
    ),
    FaultKind(
        name="bridge", page=PAGE, needs=_CUTS, course=_cut_course, links=_halves_beside,
        other_targets=_ONE, refused_targets=frozenset({ALL, HALVES}), nodes_min=3, needs_up=False,
        is_silent=True, traits=_CUT,
        summary="Two halves that reach each other through the target alone.",
        reveals=(
            "Two halves that share one voter: each half has a majority with it. A voter that "
            "serves both, or forgets whom it follows, lets both halves lead."
        ),
        picture=(
            "n1 \\       / n4\n"
            "    > n3 <         n1, n2 and n4, n5 do not reach each other\n"
            "n2 /       \\ n5"
        ),
    ),
    FaultKind(
        name="minority-third", page=PAGE, needs=_CUTS, course=_cut_course,
        joined=_third, links=_between, other_targets=_ONE, leaves_one=True,
        refused_targets=frozenset({ALL, HALVES}), needs_up=False,
        is_silent=True, traits=_CUT,
        summary="Cuts off fewer than a third of the nodes, the target among them.",
        reveals=(
            "The majority must go on without those that are cut off, and they must stand still, "
            "then catch up, or truncate what only they hold."
        ),
        picture=(
            "n1 n2 n3 n4 n5   go on\n"
            "      --x--\n"
            "n6 n7            stand still, then catch up"
        ),
    ),
    FaultKind(
        name="one-way-in", page=PAGE, needs=_CUTS, course=_one_way_course,
        links=_inbound, other_targets=_GROUPS, leaves_one=True, refused_targets=frozenset({ALL}),
        needs_up=False,
        is_silent=True, traits=_CUT,
        summary="The target hears nothing from the other nodes, and they hear it.",
        reveals=(
            "The target still sends heartbeats or requests for votes, and hears no answer. "
            "Whoever counts what it sent, instead of what was answered, leads without a majority."
        ),
        picture=(
            "n1  ---------> n2      n1 is heard\n"
            "n1  x--------- n2      and hears nothing"
        ),
    ),
    FaultKind(
        name="one-way-out", page=PAGE, needs=_CUTS, course=_one_way_course,
        links=_outbound, other_targets=_GROUPS, leaves_one=True, refused_targets=frozenset({ALL}),
        needs_up=False,
        is_silent=True, traits=_CUT,
        summary="The target hears the other nodes, and they hear nothing from it.",
        reveals=(
            "The target follows all that happens and is heard by nobody. Its elections raise "
            "epochs that nobody else asked for, which pre-vote is to prevent."
        ),
        picture=(
            "n1  x--------> n2      n1 is not heard\n"
            "n1  <--------- n2      and hears all"
        ),
    ),
    FaultKind(
        name="partial", page=PAGE, needs=_CUTS, course=_cut_course, joined=_pair,
        links=_within, other_targets=_ONE, refused_targets=frozenset({ALL, HALVES}), nodes_min=3,
        needs_up=False,
        is_silent=True, traits=_CUT,
        summary="The target and one other node lose each other; all others reach both.",
        reveals=(
            "Leader and follower disagree on whether the leader lives, and the third node hears "
            "both. Without pre-vote and check-quorum leaders are elected over and over, as in "
            "Cloudflare's outage of November 2020."
        ),
        picture=(
            "n1 --x-- n2\n"
            "  \\     /\n"
            "   \\   /\n"
            "    n3         reaches both"
        ),
    ),
    FaultKind(
        name="cut-then-kill", page=PAGE, needs=frozenset({"partition", "kill"}),
        course=_cut_then_kill_course, links=_between, options=CutThenKillOptions,
        other_targets=_ONE, leaves_one=True, refused_targets=frozenset({ALL}),
        traits=LATER,
        is_silent=True,
        summary="Cuts the target off, kills it a while later, and brings it back connected.",
        reveals=(
            "The target wrote records that nobody else has, and comes back with them after others "
            "have committed something else. It must give them up, and must not count them as "
            "committed."
        ),
        picture=(
            "n1 (leader)  a b c x y   cut off, killed\n"
            "n2 (next)    a b c d e   commits d and e\n"
            "n1           a b c ...   is back: must drop x and y"
        ),
    ),
    FaultKind(
        name="flap", page=PAGE, needs=_CUTS, course=_flap_course, links=_between,
        options=FlapOptions, other_targets=_GROUPS, leaves_one=True,
        refused_targets=frozenset({ALL}), needs_up=False,
        summary="Cuts the target off and lets it back, again and again.",
        reveals=(
            "Connections come and go faster than timeouts. Elections, retries and half-sent "
            "answers overlap, and bugs of stale answers and leaked connections show."
        ),
        picture=(
            "n1 ----x    ----x    ----x    ---- n2\n"
            "       1 s      1 s      1 s       each time new connections, old answers"
        ),
    ),
)  # fmt: skip
