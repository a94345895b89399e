"""Fault kinds, and a fault's course over time: data, and the functions that make it.

A kind turns a scheduled fault into an ``ActualFault`` when its symbolic target is settled, and that
into a ``Course`` of timed steps: what is done when, how it is healed, and what must be seen.
Healing is part of the fault and is done also where it never bit. Must never act.
"""

from collections.abc import Callable
from typing import Any, Final, Literal

import msgspec

from splitbrain.contracts.fault import (
    PINNED_NODES,
    US_PER_MS,
    ActualFault,
    Fault,
    FaultTraits,
    Link,
    Microseconds,
    Milliseconds,
)
from splitbrain.contracts.names import NodeName
from splitbrain.contracts.runtime import Capability
from splitbrain.nemesis.acts import Act
from splitbrain.nemesis.expectations import Expectation
from splitbrain.nemesis.fault_options import NoOptions, filled, read_options
from splitbrain.nemesis.targets import LEADER, ClusterView, nodes_hit, random_target


class Step(msgspec.Struct, frozen=True):
    """Some acts at one time."""

    acts: tuple[Act, ...]
    #: Since the injection.
    after_us: Microseconds = 0
    #: Expectation once they are done; nothing where only an exact world can do them, which
    #: knows what it did.
    seen: tuple[Expectation, ...] = ()
    #: Whether a node must start before it can be seen, which takes longer than a fault to bite.
    awaits_start: bool = False


#: Between strokes that come faster than this there is no time to look: a probe of what is cut waits
#: its whole timeout.
LOOK_MS_MIN: Final[Milliseconds] = 600


def looks_at(number: int, count: int, apart_ms: Milliseconds) -> bool:
    """Whether a stroke of several is looked at: all of them, of fast ones the first and last two.

    Two, since there may be strokes of two sorts in turn.

    Args:
        number: of the stroke, from 0.
        count: of all strokes.
        apart_ms: from one stroke to the next.
    """
    return apart_ms >= LOOK_MS_MIN or number == 0 or number >= count - 2


class Course(msgspec.Struct, frozen=True, kw_only=True):
    """One fault from its injection to what shows that it is over."""

    #: By their times; the first is the injection.
    steps: tuple[Step, ...]
    #: Expectation before the heal: a node may still be about to meet what was done to it.
    settled: tuple[Expectation, ...] = ()
    #: Undoes every step, whichever of them were done.
    heal: tuple[Act, ...]
    #: Expectation once it is healed, else the environment has failed.
    healed: tuple[Expectation, ...] = ()
    #: Expectation of the system's own traffic then, else the system has not recovered.
    resumed: tuple[Expectation, ...] = ()


class Setting(msgspec.Struct, frozen=True):
    """Input of a kind's course."""

    #: All nodes of the cluster.
    nodes: tuple[NodeName, ...]
    #: The nodes hit.
    hit: tuple[NodeName, ...]
    #: The links hit.
    links: tuple[Link, ...]
    #: Leader when the target was resolved.
    leader: NodeName | None
    duration_us: Microseconds
    #: Settles what is open.
    draw: int
    #: How long the probe of a cut link takes; 0 where nobody probes.
    probe_us: Microseconds = 0

    @property
    def duration_ms(self) -> Milliseconds:
        """The duration in whole milliseconds, as most courses are made of."""
        return self.duration_us // US_PER_MS


#: How a kind stands to what consensus promises (design, section 9). ``forgets``: a voter loses what
#: it had flushed, which the cluster must be able to bear; ``lies``: and nobody can tell.
Rule = Literal["keeps", "forgets", "lies"]
#: Of what a node can have but one fault at a time: the heal of one would end them all.
Exclusive = Literal["disk", "clock", "memory"]

#: Words of a node that has met a failing disk, and of one that has found its files changed.
FAILED: Final = ("fsync", "sync failed", "input/output error", "i/o error", "eio")
CORRUPT: Final = ("corrupt", "checksum", "crc")
#: Traits of kinds whose first step, or a later one, ends the processes of the nodes hit.
AT_ONCE: Final = FaultTraits("at-once")
UNTIL_STARTED: Final = FaultTraits("at-once", silences="nodes")
LATER: Final = FaultTraits("later")

#: The nodes hit: the target's, and others beside them; of the cluster, the draw, the options.
Joined = Callable[[tuple[NodeName, ...], ClusterView, int, Any], tuple[NodeName, ...]]
#: The links hit: the nodes hit, all, the draw, the options.
LinksOf = Callable[[tuple[NodeName, ...], tuple[NodeName, ...], int, Any], tuple[Link, ...]]


def _around(hit: tuple[NodeName, ...], view: ClusterView) -> tuple[NodeName, ...]:
    """Whom the links of a fault may lead to.

    Acts on all voters concern them alone: a majority is one of theirs.
    """
    return view.nodes if set(view.nodes) <= set(hit) else view.everyone


class FaultKind(msgspec.Struct, frozen=True, kw_only=True):
    """One kind of fault."""

    name: str
    #: Its effect, one sentence.
    summary: str
    #: Defects that it brings out, and why they matter, in sentences.
    reveals: str = ""
    #: Picture of a breaking case in plain text, at most 76 columns; empty for none.
    picture: str = ""
    #: Its page: ``docs/faults/<page>.md``; a package's kind has none.
    page: str = ""
    #: Capabilities that the runtime must have.
    needs: frozenset[Capability]
    #: Its course, given the setting and its options.
    course: Callable[[Setting, Any], Course]
    #: Its options; every field has a default.
    options: type[msgspec.Struct] = NoOptions
    #: Those that only an exact disk obeys.
    exact_options: frozenset[str] = frozenset()
    joined: Joined | None = None
    #: None: it is about nodes alone.
    links: LinksOf | None = None
    #: Target of the first fault of this kind that a plan draws.
    first_target: str = LEADER
    #: Targets that the plan draws from where the user names none, besides the first.
    other_targets: tuple[str, ...] = ("follower", random_target(1))
    #: Symbolic targets that make no sense for it.
    refused_targets: frozenset[str] = frozenset()
    #: The only targets that it may have; None: all but the refused.
    only_targets: frozenset[str] | None = None
    #: Whether at least one node must stay out of the target.
    leaves_one: bool = False
    #: Nodes that the cluster must have.
    nodes_min: int = 1
    #: Whether it does nothing to a node that is down.
    needs_up: bool = True
    #: Told with the fault, for whoever judges the run.
    traits: FaultTraits = FaultTraits()
    rule: Rule = "keeps"
    exclusive: Exclusive | None = None
    #: Whether it is over at once, whatever its duration.
    is_instant: bool = False
    #: Whether the nodes hit live on unheard, so that others learn of it by waiting alone; of whose
    #: process ends their kernel tells.
    is_silent: bool = False
    #: Whether its node would take an earlier rot of the same disk for a torn tail.
    hides_rot: bool = False

    def refuses(self, target: str) -> bool:
        """Whether the symbolic target makes no sense for it."""
        if self.only_targets is not None and target not in self.only_targets:
            return True
        return target in self.refused_targets

    def needs_of(self, fault: Fault) -> frozenset[Capability]:
        """Capabilities of a runtime that carries out this fault."""
        is_exact = any(fault.options.get(name) for name in self.exact_options)
        more: frozenset[Capability] = frozenset({"exact-disk"} if is_exact else ())
        return self.needs | more

    def targets(self) -> tuple[str, ...]:
        """Targets to offer to who named a wrong one."""
        return tuple(dict.fromkeys((self.first_target, *self.other_targets)))

    def actual(self, fault: Fault, view: ClusterView) -> ActualFault | None:
        """Resolve the scheduled fault now; None where its target does not exist.

        Raises:
            UsageError: an option does not exist or has a value that cannot be.
        """
        hit = nodes_hit(fault, view)
        if hit is None or len(view.nodes) < self.nodes_min:
            return None
        options = read_options(self.name, self.options, fault.options)
        if self.joined is not None and PINNED_NODES not in fault.options:
            hit = self.joined(hit, view, fault.draw, options)
        links = (
            () if self.links is None else self.links(hit, _around(hit, view), fault.draw, options)
        )
        if self.links is not None and not links:
            return None
        return ActualFault(
            index=fault.index,
            kind=self.name,
            target=fault.target,
            nodes=hit,
            links=links,
            leader=view.leader,
            draw=fault.draw,
            options=filled(options),
        )

    def course_of(
        self,
        fault: ActualFault,
        duration_us: Microseconds,
        nodes: tuple[NodeName, ...],
        probe_us: Microseconds = 0,
    ) -> Course:
        """Return the acts and their times, how they are healed, and what must be seen.

        ``nodes``: all of the cluster's; ``probe_us``: how long the probe of a cut link takes, 0
        where nobody probes.
        """
        setting = Setting(
            nodes=nodes,
            hit=fault.nodes,
            links=fault.links,
            leader=fault.leader,
            duration_us=duration_us,
            draw=fault.draw,
            probe_us=probe_us,
        )
        return self.course(setting, read_options(self.name, self.options, fault.options))
