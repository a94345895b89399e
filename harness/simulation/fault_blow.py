"""What a fault's act is given, what it gives back, and what an act is."""

from collections.abc import Callable, Mapping
from typing import Any, Literal

import msgspec

from contracts.fault import ActualFault, Fault, Link
from contracts.names import NodeName
from harness.simulation.fault_reach import Reach
from nemesis.targets import FOLLOWER, LEADER, ClusterView, nodes_hit, random_target
from workloads.draws import Draws

#: How an act stands to what Raft promises (design, section 9). ``forgets``: a voter loses what it
#: had flushed, which the cluster must be able to bear; ``lies``: it loses it and nobody can tell.
Rule = Literal["keeps", "forgets", "lies"]
#: Of the two uses of a fault's integer: which nodes it hits, and how.
_WHERE, _HOW = 1, 2


class Blow(msgspec.Struct, frozen=True):
    """All that a fault's act needs to know of the fault."""

    reach: Reach
    actual: ActualFault
    duration_us: int
    options: Mapping[str, Any]
    #: Settles what is still open; the same for the same fault.
    draws: Draws

    @property
    def nodes(self) -> tuple[NodeName, ...]:
        """The nodes hit."""
        return self.actual.nodes

    @property
    def links(self) -> tuple[Link, ...]:
        """The links hit."""
        return self.actual.links

    def chosen(self, option: str, drawn: int) -> int:
        """What the scenario says, else what was drawn."""
        return int(self.options.get(option, drawn))


class Struck(msgspec.Struct, frozen=True):
    """An act that was done."""

    #: What was done, in words and figures.
    evidence: str
    #: Undoes it, and says how that went.
    heal: Callable[[], str]


def nodes_of_target(fault: Fault, view: ClusterView) -> ActualFault | None:
    """The nodes that the target means now."""
    nodes = nodes_hit(fault, view)
    if nodes is None:
        return None
    return ActualFault(
        index=fault.index, kind=fault.kind, target=fault.target, nodes=nodes, leader=view.leader,
        draw=fault.draw,
    )  # fmt: skip


class Act(msgspec.Struct, frozen=True):
    """One kind of fault in the simulated world."""

    name: str
    strike: Callable[[Blow], Struck]
    resolve: Callable[[Fault, ClusterView], ActualFault | None] = nodes_of_target
    rule: Rule = "keeps"
    #: Whether it does nothing to a node that is down.
    needs_up: bool = True
    #: Targets that plans draw from.
    targets: tuple[str, ...] = (LEADER, FOLLOWER, random_target(1))
    #: Whether it is over at once, whatever its duration.
    is_instant: bool = False
    #: Whether it would hide an earlier rot of the same disk from its node.
    needs_sound: bool = False
    #: Whether a node can have but one such fault at a time: its heal ends them all.
    is_exclusive: bool = False


def where(draw: int) -> Draws:
    """What settles which nodes and links a fault hits."""
    return Draws(draw, _WHERE, 0)


def how(draw: int) -> Draws:
    """What settles everything else of it."""
    return Draws(draw, _HOW, 0)


def spread(draws: Draws, low: int, doublings: int) -> int:
    """An integer from ``low`` on, its size spread evenly over the doublings; two draws."""
    size = low << draws.below(doublings)
    return size + draws.below(size)


def in_ms(time_us: int) -> str:
    """Microseconds in milliseconds, as everywhere in texts."""
    return f"{time_us / 1_000:,.3f} ms"


def named(nodes: tuple[NodeName, ...]) -> str:
    """The nodes in one clause."""
    return ", ".join(nodes)
