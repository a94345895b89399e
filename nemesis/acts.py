"""Acts on nodes and links, one at a time, as data.

Each act says which capability it needs and, in words, what it does. An act that *holds* puts
something in force on each of its nodes or links until an act that *releases* the same; who carries
acts out counts holders, so that what two faults hold comes free when both are healed. The module is
longer than 400 lines because every act is here. Must never act: ``harness.run.acting`` does that on
real runtimes, ``harness.run.world.acting`` in worlds.
"""

from collections.abc import Sequence
from typing import ClassVar, Literal

import msgspec

from splitbrain.contracts.arms import ClockWarp, FileChange, Shape
from splitbrain.contracts.fault import Link
from splitbrain.contracts.names import NodeName
from splitbrain.contracts.runtime import Capability
from splitbrain.contracts.words import counted

#: States that acts put in force. A node or link has at most one of a kind, whoever asked.
Held = Literal[
    "cut", "shape", "reset", "down", "paused", "cpu", "memory", "full", "stalled", "slow",
    "failing", "clock", "removed",
]  # fmt: skip

#: Calls to a disk that can be made to fail.
DiskCall = Literal["sync", "read", "write", "rename"]
#: Files that rot: records, epoch and vote, epochs' starts, the flushed length, the disk's owner.
Rotten = Literal["log", "state", "checkpoint", "mark", "identity"]


class _Traits:
    needs: ClassVar[Capability]
    holds: ClassVar[Held | None] = None
    releases: ClassVar[Held | None] = None
    verb: ClassVar[str]


class _OnLinks(_Traits, msgspec.Struct, frozen=True, tag=True):
    links: tuple[Link, ...]

    def sentence(self) -> str:
        """Return the act in words."""
        return f"{self.verb} {counted(len(self.links), 'link')}"


class _OnNodes(_Traits, msgspec.Struct, frozen=True, tag=True):
    nodes: tuple[NodeName, ...]

    def sentence(self) -> str:
        """Return the act in words."""
        return f"{self.verb} {', '.join(self.nodes)}"


class Cut(_OnLinks, frozen=True):
    """Drop every packet on the links."""

    needs = "partition"
    holds = "cut"
    verb = "cut"


class Restore(_OnLinks, frozen=True):
    """Undo ``Cut``."""

    needs = "partition"
    releases = "cut"
    verb = "restore"


class ShapeLinks(_OnLinks, frozen=True):
    """Give the links a quality: what is lost, late, doubled, overtaken or slow."""

    shape: Shape

    needs = "loss"
    holds = "shape"
    verb = "worsen"


class UnshapeLinks(_OnLinks, frozen=True):
    """Undo ``ShapeLinks``."""

    needs = "loss"
    releases = "shape"
    verb = "better"


class ResetLinks(_OnLinks, frozen=True):
    """Answer what open connections send along the links with a reset."""

    needs = "reset"
    holds = "reset"
    verb = "reset what travels on"


class UnresetLinks(_OnLinks, frozen=True):
    """Undo ``ResetLinks``."""

    needs = "reset"
    releases = "reset"
    verb = "reset no more on"


class Kill(_OnNodes, frozen=True):
    """SIGKILL, of several nodes at one moment."""

    needs = "kill"
    holds = "down"
    verb = "kill"


class Start(_OnNodes, frozen=True):
    """Start what is down; nothing happens to what runs."""

    needs = "kill"
    releases = "down"
    verb = "start"


class Terminate(_OnNodes, frozen=True):
    """SIGTERM, as an operator stops a node; one that does not end in time is left alone."""

    patience_s: float = 10.0

    needs = "terminate"
    holds = "down"
    verb = "terminate"


class PowerOff(_OnNodes, frozen=True):
    """Take power from all of them at one moment; what was not flushed is lost."""

    #: Settles what else a runtime without disks of its own loses.
    draw: int = 0

    needs = "power"
    holds = "down"
    verb = "cut the power of"


class Pause(_OnNodes, frozen=True):
    """Freeze every process."""

    needs = "pause"
    holds = "paused"
    verb = "freeze"


class Resume(_OnNodes, frozen=True):
    """Undo ``Pause``."""

    needs = "pause"
    releases = "paused"
    verb = "thaw"


class Throttle(_OnNodes, frozen=True):
    """Let them have a share of one processor."""

    cpu_share: float

    needs = "cpu"
    holds = "cpu"
    verb = "throttle"


class Unthrottle(_OnNodes, frozen=True):
    """Undo ``Throttle``."""

    needs = "cpu"
    releases = "cpu"
    verb = "let run freely"


class LimitMemory(_OnNodes, frozen=True):
    """Let them have so much memory; what needs more is killed by the kernel."""

    #: None: three quarters of what each uses then.
    limit_mib: int | None

    needs = "memory"
    holds = "memory"
    verb = "limit the memory of"


class UnlimitMemory(_OnNodes, frozen=True):
    """Undo ``LimitMemory``."""

    needs = "memory"
    releases = "memory"
    verb = "lift the memory limit of"


class Fill(_OnNodes, frozen=True):
    """Leave no room on the disks."""

    #: Bytes that still fit; more than 0 only where disks are exact.
    spare_bytes: int = 0

    needs = "full-disk"
    holds = "full"
    verb = "fill the disk of"


class Drain(_OnNodes, frozen=True):
    """Undo ``Fill``."""

    needs = "full-disk"
    releases = "full"
    verb = "make room on the disk of"


class Stall(_OnNodes, frozen=True):
    """Let no write come to an end."""

    needs = "disk-stall"
    holds = "stalled"
    verb = "stall the disk of"


class Unstall(_OnNodes, frozen=True):
    """Undo ``Stall``."""

    needs = "disk-stall"
    releases = "stalled"
    verb = "let the writes go on of"


class Fail(_OnNodes, frozen=True):
    """Have the file systems report an error and go read-only."""

    needs = "disk-error"
    holds = "failing"
    verb = "make the disk fail of"


class Repair(_OnNodes, frozen=True):
    """Undo ``Fail``; the nodes must be down."""

    needs = "disk-error"
    releases = "failing"
    verb = "repair the disk of"


class SlowDisk(_OnNodes, frozen=True):
    """Have each job of the disks take so many times as long."""

    factor: int

    needs = "exact-disk"
    holds = "slow"
    verb = "slow down the disk of"


class HastenDisk(_OnNodes, frozen=True):
    """Undo ``SlowDisk``."""

    needs = "exact-disk"
    releases = "slow"
    verb = "let go as fast as before the disk of"


class FailCalls(_OnNodes, frozen=True):
    """Have calls to the disks fail with EIO."""

    call: DiskCall
    #: How many of the next ones; None: all until ``MendCalls``.
    count: int | None = 1

    needs = "exact-disk"
    holds = "failing"
    verb = "have calls to the disk fail of"


class MendCalls(_OnNodes, frozen=True):
    """Undo ``FailCalls``."""

    needs = "exact-disk"
    releases = "failing"
    verb = "have calls to the disk succeed again of"


class Restart(_OnNodes, frozen=True):
    """SIGKILL, and start again at once."""

    needs = "exact-disk"
    verb = "restart"


class Rot(_OnNodes, frozen=True):
    """Flip bits of one flushed byte, which the disk does not tell."""

    what: Rotten
    draw: int

    needs = "exact-disk"
    verb = "have bits rot on the disk of"


class RollBack(_OnNodes, frozen=True):
    """Put the whole disk back to what ``Keep`` found; the nodes must be down."""

    needs = "exact-disk"
    verb = "put back the disk of"


class Disconnect(_OnNodes, frozen=True):
    """Break every connection of the nodes once; new ones may be made at once."""

    needs = "disconnect"
    verb = "break every connection of"


class Keep(_OnNodes, frozen=True):
    """Copy the data folders as they are durable now."""

    needs = "file-change"
    verb = "keep a copy of the data of"


class ChangeFile(_OnNodes, frozen=True):
    """Change a file of nodes that are down."""

    change: FileChange

    needs = "file-change"
    verb = "change a file of"


class PutBack(_OnNodes, frozen=True):
    """Give nodes that refuse a changed file what it was before, and leave the others alone.

    A node that has ended at the file promised nothing since, so that its past is whole again.
    """

    needs = "file-change"
    verb = "put back the file of"


class Wipe(_OnNodes, frozen=True):
    """Empty the data folders of nodes that are down."""

    needs = "wipe"
    verb = "wipe the data of"


class Warp(_OnNodes, frozen=True):
    """Have the wall clocks go wrong."""

    warp: ClockWarp

    needs = "clock"
    holds = "clock"
    verb = "set wrong the clock of"


class Unwarp(_OnNodes, frozen=True):
    """Undo ``Warp``."""

    needs = "clock"
    releases = "clock"
    verb = "set right the clock of"


class RemoveMember(_OnNodes, frozen=True):
    """Remove the nodes from the cluster's membership, by the system's own request."""

    needs = "membership"
    holds = "removed"
    verb = "remove from the membership"


class ReplaceMember(_OnNodes, frozen=True):
    """Kill those of the nodes that are no members any more, and take them in with empty disks.

    They are left down. A member is left alone: one that the others refused to remove would not bear
    the loss of its disk.
    """

    needs = "membership"
    releases = "removed"
    verb = "take into the membership again"


LinkAct = Cut | Restore | ShapeLinks | UnshapeLinks | ResetLinks | UnresetLinks
NodeAct = (
    Kill | Start | Terminate | PowerOff | Pause | Resume | Throttle | Unthrottle | LimitMemory
    | UnlimitMemory | Fill | Drain | Stall | Unstall | Fail | Repair | Keep | ChangeFile | PutBack
    | Wipe | Warp | Unwarp | SlowDisk | HastenDisk | FailCalls | MendCalls | Restart | Rot
    | RollBack | Disconnect | RemoveMember | ReplaceMember
)  # fmt: skip
Act = LinkAct | NodeAct

#: Object of an act.
Place = NodeName | Link


def places(act: Act) -> tuple[Place, ...]:
    """Return the nodes or links that an act is done to."""
    return act.links if isinstance(act, LinkAct) else act.nodes


def at(act: Act, kept: Sequence[Place]) -> Act:
    """Return the same act, done to these of its nodes or links alone."""
    field = "links" if isinstance(act, LinkAct) else "nodes"
    return msgspec.structs.replace(act, **{field: tuple(kept)})


def needed(act: Act) -> frozenset[Capability]:
    """Say what a runtime must be able to do for the act; a shape needs what its parts need.

    Every runtime can start its nodes.
    """
    if isinstance(act, Start):
        return frozenset()
    if isinstance(act, ReplaceMember):
        return frozenset({act.needs, "kill", "wipe"})
    if isinstance(act, ChangeFile) and act.change.kind == "truncate":
        return frozenset({act.needs, "truncate"})
    if isinstance(act, Warp) and act.warp.drift_ppm:
        return frozenset({act.needs, "clock-drift"})
    if not isinstance(act, ShapeLinks):
        return frozenset({act.needs})
    shape = act.shape
    parts: tuple[tuple[Capability, object], ...] = (
        ("loss", shape.loss),
        ("delay", shape.delay_us or shape.jitter_us),
        ("reorder", shape.reorder),
        ("duplicate", shape.duplicate),
        ("rate", shape.rate_kbit),
        ("black-hole", shape.bytes_max),
    )
    return frozenset(capability for capability, is_asked in parts if is_asked)


def ended_by(act: Act) -> tuple[NodeName, ...]:
    """Nodes whose process the act ends, and leaves down."""
    if isinstance(act, LinkAct):
        return ()
    return act.nodes if act.holds == "down" or isinstance(act, ReplaceMember) else ()


def forgets(act: Act) -> bool:
    """Whether a node may lack afterwards what it had flushed before."""
    return isinstance(act, ChangeFile | Wipe | Rot | RollBack)


def started_by(act: Act) -> tuple[NodeName, ...]:
    """Nodes that the act lets run again."""
    return act.nodes if isinstance(act, Start) else ()
