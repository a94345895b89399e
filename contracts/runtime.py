"""Runtimes: deploy nodes, act on them (start, kill, pause, cut), and declare capabilities."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final, Literal, Protocol, get_args

import msgspec

from splitbrain.contracts.arms import ClockArm, DiskArm, LinkArm, ProcessArm
from splitbrain.contracts.fault import Link
from splitbrain.contracts.names import NodeName, RunId


class HostProgram(msgspec.Struct, frozen=True):
    """A program that nodes start where no image brings it."""

    name: str
    #: Debian package.
    package: str


class ImageSource(msgspec.Struct, frozen=True):
    """Recipe of one image.

    Its Dockerfile may begin with ``ARG BASE`` and ``FROM ${BASE}``: a Debian that is there without
    any registry, with Python.
    """

    #: Name for ``NodeSpec.image``; the runtime adds the digest of the sources as its tag.
    name: str
    #: Folder that holds the Dockerfile and what it copies: anywhere, by its absolute path; a
    #: relative one is below splitbrain's own ``docker/``. Empty: there is no recipe, and the name
    #: is the tag of an image that must be there already.
    folder: str
    #: Folders and files of splitbrain itself that are added to the build's context, by their paths
    #: relative to its root.
    sources: tuple[str, ...] = ()
    #: Command that is run in a copy of the folder before the image is built from that copy, such as
    #: ``("go", "build", "-o", "server")``; only where folder or command changed.
    build: tuple[str, ...] = ()
    #: The folder's ``requirements.lock`` is fetched, unpacked and added as ``wheels``.
    has_wheels: bool = False
    #: The folder's ``packages.txt`` names Debian packages that the base gets besides its own.
    has_packages: bool = False
    #: Subfolder, or ``"."``, whose ``pom.xml`` names jars: they are fetched, held to the
    #: ``jars.lock`` beside it, and added as ``jars``.
    jars: str | None = None
    #: Programs that runtimes without images need on this machine instead.
    programs: tuple[HostProgram, ...] = ()


#: Name of the runtime whose nodes are no processes of their own.
SIMULATED: Final = "simulated"
#: Name of the runtime whose nodes are somebody else's: they are there already, and stay.
STANDING: Final = "standing"

Capability = Literal[
    "partition",
    "kill",
    "pause",
    "terminate",
    "cpu",
    "memory",
    "loss",
    "delay",  # jitter too
    "reorder",
    "duplicate",
    "rate",
    "black-hole",
    "reset",
    "disconnect",
    "power",
    "full-disk",
    "disk-stall",
    "disk-error",
    "file-change",
    "truncate",
    "wipe",
    "exact-disk",  # single calls that fail, bits that rot: a disk that is a program's
    "clock",
    "clock-drift",
    "membership",  # of the system: its adapter removes members and takes them in (MemberArm)
]


#: Capabilities of simulated worlds only.
EXACT_CAPABILITIES: frozenset[Capability] = frozenset({"disconnect", "exact-disk"})
#: Capabilities that simulated worlds lack, and why.
SIMULATED_LACKS: Final[Mapping[Capability, str]] = {
    "loss": "its connections, like TCP, lose nothing but time",
    "reorder": "its connections, like TCP, keep the order",
    "duplicate": "its connections, like TCP, deliver once",
    "rate": "its messages take time and no room on a link",
    "black-hole": "its messages are not cut into packets",
    "cpu": "its nodes take no processor time",
    "memory": "its nodes share the memory of one process",
    "truncate": "its disks lose bytes by crashes alone",
    "clock-drift": "how fast its clocks go is settled before it starts",
    "membership": "its voters are those that it starts with",
}
SIMULATED_CAPABILITIES: Final[frozenset[Capability]] = (
    frozenset(get_args(Capability)) - SIMULATED_LACKS.keys()
)
#: Capabilities that need a disk per node, in runtimes that have such.
DISK_CAPABILITIES: frozenset[Capability] = frozenset(
    {"power", "full-disk", "disk-stall", "disk-error", "file-change", "truncate", "wipe"}
)


class Mount(msgspec.Struct, frozen=True):
    """A host folder made visible to a node."""

    host_path: Path
    node_path: str
    read_only: bool = False


class Placement(msgspec.Struct, frozen=True):
    """Addresses and paths of one node, as the node itself sees them."""

    #: Address that its listeners bind to.
    listen_host: str
    #: Name or address by which the other nodes reach it, and which no other node has.
    peer_host: str
    #: Name of a port to the number that the node listens on.
    ports: dict[str, int]
    #: Folders: configuration (read-only), state events, data.
    config_path: str
    state_path: str
    data_path: str
    #: Interpreter for our Python programs.
    python: str = "python3"


class ContainerSpec(msgspec.Struct, frozen=True, kw_only=True):
    """Traits of a node's container besides image and program; ignored where there is none."""

    #: The image's own entry point is started, and the node's command is its arguments; empty: the
    #: image's own.
    keeps_entry_point: bool = False
    #: Host name inside; by default the node's name.
    hostname: str = ""
    #: Further names by which nodes reach it; several nodes may bear one.
    aliases: tuple[str, ...] = ()
    #: Folders that are volumes besides the data folder; faults of disks do not reach them.
    volumes: tuple[str, ...] = ()
    #: The engine's policy for a program that ends by itself: ``no``, ``always``,
    #: ``unless-stopped``, ``on-failure`` or ``on-failure:K``.
    restart: str = "no"
    #: By default the image's own.
    working_folder: str | None = None
    user: str | None = None


class NodeSpec(msgspec.Struct, frozen=True):
    """One node to be deployed; the same record for every runtime."""

    name: NodeName
    #: Name of an image source that the runtime has prepared, or any image with its tag; ignored by
    #: runtimes without images.
    image: str
    #: Program and arguments, as started inside the node; empty: as the image has them.
    command: tuple[str, ...]
    environment: dict[str, str]
    #: Name of a port (``client``, ``peer``) to the number that the node listens on.
    ports: dict[str, int]
    #: Folder inside the node that holds its data and outlives kill and start.
    data_path: str
    #: Files and folders below it that are fetched at the end, where not all is worth the time, such
    #: as logs that are allocated beforehand. Of runs that died all is fetched. None: all.
    collected: tuple[str, ...] | None = None
    mounts: tuple[Mount, ...] = ()
    memory_limit_mib: int | None = None
    #: File (path as the node sees it) of the durable length of each data file; None: not written.
    #: See ``docs/decisions/0008-local-runtime.md``.
    durable_lengths_path: str | None = None
    container: ContainerSpec = ContainerSpec()
    #: Where a node that is there already is reached; other runtimes settle that themselves.
    host: str = ""

    def probed_port(self, name: str) -> str | None:
        """Return the name of a port, or of the first where there is none of this name, or None.

        Nodes may talk to each other where their clients do; a link to them is probed there.
        """
        return name if name in self.ports else next(iter(self.ports), None)


class DeploymentSpec(msgspec.Struct, frozen=True):
    """A whole cluster to be deployed."""

    run_id: RunId
    #: Where logs and state events are put, ``nodes/<n>/`` below it.
    run_folder: Path
    nodes: tuple[NodeSpec, ...]
    #: ``own``: each node's data lie on a disk of its own, so that disk faults can be had.
    disks: Literal["plain", "own"] = "plain"
    #: Size of each such disk.
    disk_mib: int = 256
    #: ``own``: each node's program sees a wall clock of its own, so that clock faults can be had.
    clocks: Literal["true", "own"] = "true"
    #: ``own``: processor and memory of each node can be limited, where that must be prepared.
    limits: Literal["none", "own"] = "none"


class Address(msgspec.Struct, frozen=True):
    """An address on this machine that a client can connect to."""

    host: str
    port: int


NodeStatus = Literal["running", "paused", "exited", "missing"]
#: Exit code of a process that was killed: by us, or by the kernel for its memory.
KILLED_CODE: Final = 137
#: Name of the file with a node's output, below its folder, once that is collected.
OUTPUT: Final = "output.log"


class NodeSample(msgspec.Struct, frozen=True):
    """Resource use of one node at one moment."""

    node: NodeName
    cpu_seconds_total: float
    memory_bytes: int


class Runtime(Protocol):
    """One deployed cluster. All methods block; callers put them on threads.

    Every method raises ``HarnessError`` where the environment fails, ``CapabilityError`` where the
    runtime cannot do it at all. Injecting and healing are idempotent.
    """

    #: ``docker``, ``local``, ``standing``.
    name: str
    #: Whether it cuts the power by ``durable_lengths_path`` instead of by disks of their own.
    cuts_power_by_durable_lengths: bool
    #: Further acts; a missing arm refuses every act.
    links: LinkArm
    processes: ProcessArm
    disks: DiskArm
    clocks: ClockArm

    def capabilities(self) -> frozenset[Capability]:
        """Return the capabilities on this kernel, with this engine."""
        ...

    def prepare(self, images: Sequence[ImageSource]) -> None:
        """Find or build the images, before anything of a run is made.

        Runtimes without images refuse where the machine lacks a program that the images would
        bring. Called before or after ``place``, always before ``deploy``.
        """
        ...

    def place(self, node: NodeName, host_folder: Path, ports: Mapping[str, int]) -> Placement:
        """Settle where a node will live; called once per node, in order, before ``deploy``.

        ``config/`` and ``state/`` in its folder of the run folder are what the placement's paths of
        these names show. The ports' numbers are preferred ones.
        """
        ...

    def deploy(self, spec: DeploymentSpec) -> None:
        """Make network and pods and start all nodes; on failure leave nothing behind."""
        ...

    def nodes(self) -> Sequence[NodeName]:
        """Return the deployed nodes, in the order of the spec."""
        ...

    def endpoint(self, node: NodeName, port: str) -> Address:
        """Return the port's address for clients on this machine; it outlives kill and start."""
        ...

    def start(self, node: NodeName) -> None:
        """Start a node that was killed or has exited."""
        ...

    def kill(self, node: NodeName) -> None:
        """Send SIGKILL and return when the process is gone."""
        ...

    def pause(self, node: NodeName) -> None:
        """Freeze every process of the node."""
        ...

    def resume(self, node: NodeName) -> None:
        """Undo pause."""
        ...

    def cut(self, links: Iterable[Link]) -> None:
        """Drop every packet on these links from now on."""
        ...

    def restore(self, links: Iterable[Link]) -> None:
        """Undo cut for these links."""
        ...

    def heal_all(self) -> None:
        """Remove every rule, resume every node; does not start exited ones."""
        ...

    def status(self, node: NodeName) -> NodeStatus:
        """Return the state of the node's process, seen from outside."""
        ...

    def exit_code(self, node: NodeName) -> int | None:
        """Return the exit code of the last incarnation, None while running."""
        ...

    def reachable(self, link: Link, port: str, timeout_s: float) -> bool:
        """Return whether a new connection, made inside the source's network, is answered.

        A destination without a port of this name is probed at its first one; of one without ports
        it is asked whether its machine answers.
        """
        ...

    def sample(self, node: NodeName) -> NodeSample | None:
        """Return the resource use now; None while the node is not running."""
        ...

    def log_tail(self, node: NodeName, lines: int) -> str:
        """Return the last lines that the node printed."""
        ...

    def collect(self, node: NodeName, folder: Path, *, with_data: bool) -> None:
        """Copy the node's output to ``OUTPUT`` in ``folder``, and its data folder to ``data``."""
        ...

    def versions(self) -> dict[str, str]:
        """Return engine, kernel and image digests, for ``plan.json``."""
        ...

    def teardown(self) -> None:
        """Remove all that deploy made. Safe to call twice and after a failed deploy."""
        ...
