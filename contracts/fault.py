"""Faults as data: as planned, and as injected."""

from collections.abc import Mapping
from typing import Any, Final, Literal

import msgspec

from splitbrain.contracts.names import Int64, NodeName

#: Unit of times in a plan; moments count from the start of the client load.
Microseconds = int
#: As users write times, and as courses of acts count them.
Milliseconds = int
US_PER_MS: Final = 1_000
#: Option of a fault that names the nodes to be hit, whatever its target means by now.
PINNED_NODES: Final = "nodes"
#: Options of a fault in a simulated world: the happening after which it heals, which of those it
#: is, and how much later.
UNTIL: Final = "until"
UNTIL_COUNT: Final = "until_count"
UNTIL_DELAY_US: Final = "until_delay_us"
#: Not told by a node: no fault is in force and all nodes take part again.
RECOVERED: Final = "recovered"


def in_us(time_ms: float) -> Microseconds:
    """Milliseconds, which may have a fraction, in whole microseconds."""
    return round(time_ms * US_PER_MS)


def in_ms(time_us: Microseconds) -> float:
    """Microseconds in milliseconds; a whole number where it is one."""
    return time_us // US_PER_MS if time_us % US_PER_MS == 0 else time_us / US_PER_MS


class Link(msgspec.Struct, frozen=True, order=True):
    """One direction between two nodes: packets from ``source`` to ``destination``."""

    source: NodeName
    destination: NodeName


class Awaited(msgspec.Struct, frozen=True, omit_defaults=True):
    """The happening that a fault waits for.

    "After the leader's third commit in epoch 5": ``Awaited("commits", "leader", 5, 3)``.
    """

    #: One of ``nemesis.awaiting.HAPPENINGS``, or one that only simulated nodes tell of, or
    #: ``RECOVERED``.
    on: str
    #: Place: a node's name, ``leader`` (whoever leads when it happens), or ``any``.
    node: str = "any"
    #: In this leader epoch alone; None: in any.
    epoch: Int64 | None = None
    #: Ordinal among those that fit, from 1, counted from ``at_us`` on.
    count: Int64 = 1
    #: How much later to strike; 0 strikes, in simulation, between two effects of the node.
    delay_us: Microseconds = 0
    #: How long to wait, from ``at_us`` on; then the fault is not applicable. None: while clients
    #: work.
    timeout_us: Microseconds | None = None


class Fault(msgspec.Struct, frozen=True):
    """One fault of a plan, for containers and for simulated worlds; target still symbolic."""

    #: Names the fault, also after others were taken away; drawn schedules count from 0.
    index: Int64
    #: Registered fault kind: ``partition``, ``kill``, ``pause``.
    kind: str
    #: ``leader``, ``last-leader``, ``follower``, ``laggard``, ``random:K``, ``all``, ``nK``,
    #: ``halves``, and ``there``: where what ``when`` waits for has happened.
    target: str
    #: When to inject; with ``when``: from when on to wait.
    at_us: Microseconds
    #: Until it is healed; 0 for what is over at once.
    duration_us: Microseconds
    #: Integer drawn from the seed that settles every later choice (which follower, which half).
    draw: Int64
    #: Kind-specific options.
    options: dict[str, Any] = {}
    #: Happening to wait for; None: the time alone.
    when: Awaited | None = None

    @property
    def waits_for_node(self) -> bool:
        """Whether its moment is what a node does, and no time of the plan."""
        return self.when is not None and self.when.on != RECOVERED


class ActualFault(msgspec.Struct, frozen=True):
    """A scheduled fault whose symbolic target was resolved."""

    index: Int64
    kind: str
    target: str
    #: Nodes hit.
    nodes: tuple[NodeName, ...]
    #: Links cut, both directions listed.
    links: tuple[Link, ...] = ()
    #: Node that led when the target was resolved, None if none was known.
    leader: NodeName | None = None
    #: The scheduled fault's integer, for choices that are made when it is injected.
    draw: Int64 = 0
    #: Options of the kind, defaults and draws filled in.
    options: dict[str, Any] = {}


class FaultTraits(msgspec.Struct, frozen=True, omit_defaults=True):
    """Traits of a fault's kind that the judgement of its run depends on."""

    #: When the processes of the nodes hit end by it: with its first step, in a later step or its
    #: heal, or perhaps, as the node meets what was done to its disk. None: they do not.
    ends_process: Literal["at-once", "later", "perhaps"] | None = None
    #: Of a kind that asks a node to end by itself: its stated reason has one of these words.
    reasons: tuple[str, ...] = ()
    #: Whether the disk stays as the fault left it: its node may read that when it has been healed.
    stays: bool = False
    #: Whether the kernel may kill its nodes, which then state no reason.
    starves: bool = False
    #: From when it is seen until it is healed nothing comes from the nodes hit, or over the links
    #: hit. None: something may.
    silences: Literal["nodes", "links"] | None = None


FaultPhase = Literal[
    "invoked",  # the runtime was asked to inject
    "verified",  # seen from outside to have bitten
    "not-bitten",  # evidence did not come in time
    "not-applicable",  # the target did not exist for 5 s
    "healing",  # the runtime was asked to heal
    "removed",  # rule removed, process running again: verified from outside
    "resumed",  # application traffic seen again
    "not-healed",  # evidence of healing did not come in time
]


class FaultEvent(msgspec.Struct, frozen=True, omit_defaults=True):
    """One line of ``faults.jsonl``."""

    #: Nanoseconds since the run's start, monotonic.
    time: Int64
    #: Index of the scheduled fault.
    index: Int64
    kind: str
    phase: FaultPhase
    #: Symbolic target.
    target: str
    nodes: tuple[NodeName, ...] = ()
    links: tuple[Link, ...] = ()
    #: Leader at injection, where known.
    leader: NodeName | None = None
    #: Observation, in words and figures.
    evidence: str | None = None
    #: Traits of its kind, when it is invoked; None also in folders that recorded none, for which
    #: ``TRAITS_OF_OLD`` speaks.
    traits: FaultTraits | None = None


_FAILED: Final = ("fsync", "sync failed", "input/output error", "i/o error", "eio")
_CORRUPT: Final = ("corrupt", "checksum", "crc")
_CHANGED: Final = FaultTraits("at-once", _CORRUPT, stays=True)
_ROT: Final = FaultTraits("perhaps", _CORRUPT, stays=True)

#: Traits of kinds by name, for run folders and lakes made before faults recorded theirs, when
#: ``stop`` and ``disk-full`` were names of sweeps. A test holds it to what the kinds say.
TRAITS_OF_OLD: Final[Mapping[str, FaultTraits]] = {
    **dict.fromkeys(("crash-loop", "restart"), FaultTraits("at-once")),
    **dict.fromkeys(
        ("kill", "power", "stop", "terminate", "wipe"), FaultTraits("at-once", silences="nodes")
    ),
    "pause": FaultTraits(silences="nodes"),
    **dict.fromkeys(
        (
            "bridge",
            "majorities-ring",
            "minority-third",
            "one-way-in",
            "one-way-out",
            "partial",
            "partition",
        ),
        FaultTraits(silences="links"),
    ),
    **dict.fromkeys(("cut-then-kill", "roll-back", "rolling-restart"), FaultTraits("later")),
    **dict.fromkeys(("flip", "truncate"), _CHANGED),
    **dict.fromkeys(("rot-checkpoint", "rot-identity", "rot-log", "rot-mark", "rot-state"), _ROT),
    **dict.fromkeys(("fsync-fails", "read-errors"), FaultTraits(reasons=_FAILED)),
    **dict.fromkeys(("rename-fails", "write-fails"), FaultTraits("perhaps", _FAILED)),
    "disk-error": FaultTraits("later", (*_FAILED, "read-only", "erofs")),
    **dict.fromkeys(
        ("disk-full", "full-disk"),
        FaultTraits(reasons=("disk full", "disk is full", "no space", "enospc")),
    ),
    "memory": FaultTraits(reasons=("memory",), starves=True),
    "restore": FaultTraits("later", _CORRUPT),
}
