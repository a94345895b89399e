"""Arms of a runtime: acts on links, processes, disks and clocks beyond cut, kill and pause.

An arm that a runtime lacks refuses every act by ``CapabilityError``, and its capability is missing
from ``Runtime.capabilities``. All methods block. Injecting and undoing are idempotent; undoing
restores the state of before. Each arm can also observe, from outside the node's program, whether
its act is in force.
"""

import glob
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, Protocol

import msgspec

from splitbrain.contracts.fault import Link, Microseconds
from splitbrain.contracts.names import NodeName


class Shape(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Effect of a link on the packets that travel along it. Shares are of packets, 0 to 1."""

    #: Lost.
    loss: float = 0.0
    #: Delay of each packet; varied by up to the jitter either way.
    delay_us: Microseconds = 0
    jitter_us: Microseconds = 0
    #: Overtaken by those behind them (needs a delay: an undelayed packet cannot be overtaken).
    reorder: float = 0.0
    #: Delivered twice.
    duplicate: float = 0.0
    #: Kilobits per second; None: no limit.
    rate_kbit: int | None = None
    #: Packets with more bytes than this (IP header included) vanish, smaller ones pass.
    bytes_max: int | None = None


class LinkQuality(msgspec.Struct, frozen=True):
    """Figures of probes along one link; one direction, measured at the far end."""

    sent: int
    arrived: int
    #: Arrived more than once.
    doubled: int
    #: Arrived before one that was sent earlier.
    overtaking: int
    #: Of the round trip, milliseconds; None where nothing came back.
    median_ms: float | None
    #: Of the probes of more than ``LARGE_PROBE_BYTES``.
    large_sent: int = 0
    large_arrived: int = 0
    #: Kilobits a second that arrived, headers included; bounds the link's rate only where it is
    #: below the rate sent, up to 3,000.
    kbit: float | None = None
    #: Between the fastest and the slowest round trip, a twentieth left out at each end.
    spread_ms: float | None = None


#: Bytes of a large probe, headers apart: fits an ordinary frame, and no black hole of ours.
LARGE_PROBE_BYTES = 1_400


class LinkArm(Protocol):
    """Bad networks: quality per link and direction, and connections that are reset."""

    def shape(self, links: Iterable[Link], shape: Shape) -> str:
        """Give these links this quality, open connections included; cuts stay in force.

        Returns the means, in words: ``netem``, ``statistic``, ``a queue in user space``.
        """
        ...

    def unshape(self, links: Iterable[Link]) -> None:
        """Undo shape."""
        ...

    def shaped(self) -> dict[Link, Shape]:
        """Return the links with a shape, read from the kernel, its rounding undone."""
        ...

    def reset(self, links: Iterable[Link]) -> None:
        """Answer each packet of open connections along these links with a reset, until undone."""
        ...

    def unreset(self, links: Iterable[Link]) -> None:
        """Undo reset."""
        ...

    def measure(self, link: Link, probes: int, timeout_s: float) -> LinkQuality:
        """Probe the link with datagrams, small and large in turn."""
        ...


class MemoryState(msgspec.Struct, frozen=True):
    """Memory limit of a node, and whether the kernel ended the node by it."""

    #: Limit in force, MiB; None: the one it was deployed with.
    limit_mib: float | None
    #: Whether the kernel killed a process of the latest incarnation for want of memory.
    was_ended: bool


class ProcessArm(Protocol):
    """Acts on a node's processes besides killing and freezing them."""

    def terminate(self, node: NodeName, patience_s: float) -> int | None:
        """Send SIGTERM; return the exit code, None for a node still running after the patience."""
        ...

    def throttle(self, node: NodeName, cpu_share: float) -> None:
        """Limit the node's processes to this share of one processor, 0.01 to 1."""
        ...

    def unthrottle(self, node: NodeName) -> None:
        """Undo throttle."""
        ...

    def throttled(self, node: NodeName) -> float | None:
        """Return the share that the kernel enforces now, None for no limit."""
        ...

    def limit_memory(self, node: NodeName, limit_mib: int) -> None:
        """Limit the node's memory; the kernel kills processes that need more."""
        ...

    def unlimit_memory(self, node: NodeName) -> None:
        """Undo limit_memory."""
        ...

    def memory(self, node: NodeName) -> MemoryState:
        """Return the limit in force, and whether the kernel has ended the node."""
        ...


#: State of a node's disk, seen by a canary file beside the node's own.
DiskState = Literal["writable", "full", "stalled", "read-only", "failing"]
ChangeKind = Literal["flip", "truncate", "restore"]


class FileChange(msgspec.Struct, frozen=True):
    """One change of one file of a stopped node's data folder."""

    kind: ChangeKind
    #: Below the data folder; a glob (``log/*.log``), of which the draw settles one.
    file: str
    #: Settles what is open: the file, the byte, how much is cut off.
    draw: int
    #: Byte from which on to change; None: settled by the draw.
    offset: int | None = None
    #: Bytes to flip one bit of each in, or to cut off.
    length: int = 1


class FileChanged(msgspec.Struct, frozen=True):
    """A change of a file, for the record and for the evidence."""

    kind: ChangeKind
    #: Below the data folder.
    file: str
    offset: int
    #: Bytes there before and after, hexadecimal, at most 64 each.
    before: str
    after: str
    size_before: int
    size_after: int

    def sentence(self) -> str:
        """Describe the change in words."""
        if self.kind == "flip":
            return f"{self.file} byte {self.offset}: {self.before} became {self.after}"
        sizes = f"{self.size_before:,} bytes became {self.size_after:,}"
        done = "cut off" if self.kind == "truncate" else "put back to what was kept"
        return f"{self.file} from byte {self.offset} on {done}: {sizes}"

    def undoing(self) -> FileChange:
        """Return the change that restores this file from its kept copy."""
        # Its name may look like a pattern.
        return FileChange("restore", glob.escape(self.file), 0)


class DataFiles(Protocol):
    """The plain files of one data folder, by their path below it. Each write is durable."""

    def sizes(self) -> Mapping[str, int]:
        """Return the size of each file."""
        ...

    def kept(self) -> Mapping[str, int]:
        """Return the size of each kept copy."""
        ...

    def read(self, file: str, offset: int, length: int) -> bytes:
        """Read bytes from the disk, not from memory."""
        ...

    def write(self, file: str, offset: int, content: bytes) -> None:
        """Overwrite bytes."""
        ...

    def truncate(self, file: str, size: int) -> None:
        """Cut a file off."""
        ...

    def difference(self, file: str) -> int | None:
        """Return the first byte in which a file differs from its kept copy, if any."""
        ...

    def exchange(self, file: str) -> None:
        """Swap a file, whether it is there or not, with its kept copy."""
        ...


class PowerLoss(msgspec.Struct, frozen=True):
    """Loss by a power cut, shown by canaries written right before it."""

    node: NodeName
    #: Whether the canary that was synced is there, whole.
    synced_is_there: bool
    #: Whether the one that was not synced is there.
    unsynced_is_there: bool
    #: Further known losses, in words.
    lost: str = ""


class DiskArm(Protocol):
    """Bad disks: each node's data folder is a file system of its own where this can be had."""

    def power_off(self, nodes: Sequence[NodeName], draw: int) -> tuple[PowerLoss, ...]:
        """Cut the power of all at one moment, losing unflushed bytes; they stay down."""
        ...

    def fill(self, node: NodeName) -> str:
        """Leave no room for the node; return in words the means."""
        ...

    def drain(self, node: NodeName) -> None:
        """Undo fill."""
        ...

    def stall(self, node: NodeName) -> None:
        """Let no write come to an end (fsfreeze); undone by the watchdog if the harness dies."""
        ...

    def unstall(self, node: NodeName) -> None:
        """Undo stall."""
        ...

    def fail(self, node: NodeName) -> str:
        """Have the file system go read-only by an error; return in words the means."""
        ...

    def repair(self, node: NodeName) -> None:
        """Check the file system and mount it for writing again; the node must be down."""
        ...

    def change(self, node: NodeName, change: FileChange) -> FileChanged | None:
        """Change a file of a node that is down; None where no file fits.

        ``restore`` puts back what ``keep`` has kept, and keeps what was there instead.
        """
        ...

    def keep(self, node: NodeName) -> None:
        """Copy the node's data folder as it is durable now, for a later ``restore``."""
        ...

    def read(self, node: NodeName, file: str, offset: int, length: int) -> bytes:
        """Read a file of the data folder as the node would."""
        ...

    def wipe(self, node: NodeName) -> str:
        """Empty the data folder of a node that is down; return in words its content."""
        ...

    def state(self, node: NodeName, timeout_s: float) -> DiskState:
        """Probe the disk by a write and sync of a canary file."""
        ...


class ClockWarp(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A node's wall clock beside the true one."""

    #: Positive: ahead.
    offset_us: Microseconds = 0
    #: Faster by this many parts per million, from the moment of the warp.
    drift_ppm: int = 0


class ClockArm(Protocol):
    """Wrong wall clocks, of one node each; monotonic clocks are refused."""

    def warp(self, node: NodeName, warp: ClockWarp) -> None:
        """Warp the node's clock; CapabilityError: its program goes by the true time anyway."""
        ...

    def unwarp(self, node: NodeName) -> None:
        """Give the node the true time."""
        ...

    def offset_ms(self, node: NodeName) -> int:
        """Return how far ahead the node's clock is, read from inside the node."""
        ...


class MemberArm(Protocol):
    """Changes of a cluster's membership, by the system's own requests.

    Unlike the other arms it is the system's (``System.members``), whatever the runtime.
    """

    def remove(self, node: NodeName) -> None:
        """Have the others remove the node; returns once they say that they did.

        Raises:
            HarnessError: they refuse, or nobody answers.
        """
        ...

    def add(self, node: NodeName) -> None:
        """Take a removed node in again, which is down and has an empty disk.

        Raises as ``remove``.
        """
        ...

    def is_member(self, node: NodeName) -> bool | None:
        """Whether the others count the node as a member; None: nobody tells."""
        ...
