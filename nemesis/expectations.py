"""Expectations: what must be seen from outside when a fault has bitten or is healed, as data.

A fault that nobody has seen bite proves nothing, so each fault kind says what to look for. The
harness looks (probes, process states, the clients' and the nodes' own traffic); nothing here does.
"""

import math
from typing import ClassVar

import msgspec

from splitbrain.contracts.arms import DiskState, LinkQuality, Shape
from splitbrain.contracts.fault import Link
from splitbrain.contracts.names import NodeName
from splitbrain.contracts.runtime import NodeStatus


class LinkIs(msgspec.Struct, frozen=True):
    """A probe along the link opens and is answered (``open``), or is not."""

    link: Link
    open: bool

    def sentence(self) -> str:
        """Return the expectation in words."""
        state = "open" if self.open else "cut"
        return f"{self.link.source} to {self.link.destination} {state}"


class LinkDelivers(msgspec.Struct, frozen=True):
    """Datagrams along the link arrive, or none does: one direction, whatever the other does."""

    link: Link
    delivers: bool

    def sentence(self) -> str:
        """Return the expectation in words."""
        state = "delivers" if self.delivers else "delivers nothing"
        return f"{self.link.source} to {self.link.destination} {state}"


class LinkBehaves(msgspec.Struct, frozen=True):
    """Probes along the link see figures within the bounds of what was asked for.

    Bounds are shares of what was sent, 0 to 1, wide enough for chance among so few probes.
    """

    link: Link
    lost_min: float = 0.0
    lost_max: float = 1.0
    doubled_min: float = 0.0
    doubled_max: float = 1.0
    overtaking_min: float = 0.0
    median_ms_min: float = 0.0
    median_ms_max: float = math.inf
    large_lost_min: float = 0.0
    small_lost_max: float = 1.0
    #: Kilobits a second that came through; infinite: whatever.
    kbit_max: float = math.inf

    def holds(self, quality: LinkQuality) -> bool:
        """Whether what was seen lies within the bounds."""
        if not quality.sent:
            return False
        small_sent = quality.sent - quality.large_sent
        small_arrived = quality.arrived - quality.large_arrived
        median = quality.median_ms
        return (
            self.lost_min <= 1 - quality.arrived / quality.sent <= self.lost_max
            and self.doubled_min <= quality.doubled / quality.sent <= self.doubled_max
            and quality.overtaking / quality.sent >= self.overtaking_min
            and (median is None or self.median_ms_min <= median <= self.median_ms_max)
            and (median is not None or self.median_ms_min == 0.0)
            and _lost(quality.large_sent, quality.large_arrived) >= self.large_lost_min
            and _lost(small_sent, small_arrived) <= self.small_lost_max
            and (self.kbit_max == math.inf or (quality.kbit or math.inf) <= self.kbit_max)
        )

    def sentence(self) -> str:
        """Return the expectation in words."""
        bounds = [
            f"{name} {getattr(self, field):g}"
            for field, name, usual in _BOUNDS
            if getattr(self, field) != usual
        ]
        return (
            f"{self.link.source} to {self.link.destination} with {', '.join(bounds) or 'answers'}"
        )


_BOUNDS = (
    ("lost_min", "lost at least", 0.0),
    ("lost_max", "lost at most", 1.0),
    ("doubled_min", "doubled at least", 0.0),
    ("doubled_max", "doubled at most", 1.0),
    ("overtaking_min", "overtaking at least", 0.0),
    ("median_ms_min", "milliseconds at least", 0.0),
    ("median_ms_max", "milliseconds at most", math.inf),
    ("large_lost_min", "large ones lost at least", 0.0),
    ("small_lost_max", "small ones lost at most", 1.0),
    ("kbit_max", "kbit/s at most", math.inf),
)


class LinkShaped(msgspec.Struct, frozen=True):
    """The link has this shape, as its runtime reads it back from the kernel; None: it has none.

    Runtimes tell it as it was asked for where the kernel differs by its rounding alone.
    """

    link: Link
    shape: Shape | None

    def sentence(self) -> str:
        """Return the expectation in words."""
        state = "shaped as asked" if self.shape is not None else "as it was"
        return f"{self.link.source} to {self.link.destination} {state}"


class _OfNode(msgspec.Struct, frozen=True):
    #: The sentence, with the names of fields in braces.
    words: ClassVar[str]

    node: NodeName

    def sentence(self) -> str:
        """Return the expectation in words."""
        return self.words.format(**msgspec.structs.asdict(self))


class NodeIs(_OfNode, frozen=True):
    """The node's process is in this state."""

    status: NodeStatus

    words = "{node} {status}"


class NodeIsSilent(_OfNode, frozen=True):
    """The node answers no client's operation that was sent after the fault."""

    words = "{node} answers no client"


class NodeAnswers(msgspec.Struct, frozen=True):
    """A question to the node's own program is answered (``answers``), or times out."""

    node: NodeName
    answers: bool

    def sentence(self) -> str:
        """Return the expectation in words."""
        return f"{self.node} {'answers' if self.answers else 'lets a question time out'}"


class PeersStall(_OfNode, frozen=True):
    """The node's log no longer grows: nothing of the leader's traffic reaches it."""

    words = "{node} takes in nothing from its peers"


class PeersFlow(_OfNode, frozen=True):
    """The node's log has grown since the fault was healed: the peers' traffic is back."""

    words = "{node} takes in records from its peers"


class ProcessorShare(msgspec.Struct, frozen=True):
    """The kernel gives the node this share of a processor; None: no limit."""

    node: NodeName
    cpu_share: float | None

    def sentence(self) -> str:
        """Return the expectation in words."""
        if self.cpu_share is None:
            return f"{self.node} with a processor of its own"
        return f"{self.node} with {self.cpu_share:.0%} of a processor"


class MemoryPressed(_OfNode, frozen=True):
    """The node uses most of the memory that it may have, or the kernel has ended it."""

    #: Whether a node that the runtime ended counts too, where the kernel refuses a limit below what
    #: is in use.
    may_be_killed: bool = False

    words = "{node} short of memory"


class MemoryFree(_OfNode, frozen=True):
    """The kernel holds the node to no limit but the one that it was deployed with."""

    words = "{node} with all its memory"


class DiskIs(msgspec.Struct, frozen=True):
    """A canary beside the node's files sees the disk in one of these states."""

    node: NodeName
    states: tuple[DiskState, ...]

    def sentence(self) -> str:
        """Return the expectation in words."""
        return f"the disk of {self.node} {' or '.join(self.states)}"


class CanariesTell(_OfNode, frozen=True):
    """Of two files written right before the power cut the synced one is there, the other gone."""

    words = "{node} lost an unsynced file and kept a synced one"


class FileReads(_OfNode, frozen=True):
    """A re-read of the file sees what it was changed to."""

    words = "{node} would read the changed file"


class NodeTookBack(_OfNode, frozen=True):
    """The node has read its files again: it runs, or has ended and stated why."""

    words = "{node} has read its files again"


class DataGone(_OfNode, frozen=True):
    """The wipe found something and took it."""

    words = "the data of {node} gone"


class MemberIs(msgspec.Struct, frozen=True):
    """The other members count the node as one of them, or no more."""

    node: NodeName
    there: bool

    def sentence(self) -> str:
        """Return the expectation in words."""
        return f"{self.node} {'a member' if self.there else 'no member any more'}"


class ClockIs(_OfNode, frozen=True):
    """The node's program sees its clock ahead of the true one by so much; bounds included."""

    ahead_ms_min: float
    ahead_ms_max: float

    words = "the clock of {node} {ahead_ms_min} to {ahead_ms_max} ms ahead"


class ClockOff(_OfNode, frozen=True):
    """The node's program sees its clock wrong by at least so much, ahead or behind."""

    off_ms_min: int

    words = "the clock of {node} wrong by {off_ms_min} ms or more"


Expectation = (
    LinkIs | LinkDelivers | LinkBehaves | LinkShaped | NodeIs | NodeIsSilent | NodeAnswers
    | PeersStall | PeersFlow | ProcessorShare | MemoryPressed | MemoryFree | DiskIs | CanariesTell
    | FileReads | NodeTookBack | DataGone | ClockIs | ClockOff | MemberIs
)  # fmt: skip


def _lost(sent: int, arrived: int) -> float:
    return 0.0 if not sent else 1 - arrived / sent
