"""The runtime ``local``: a deployed cluster of processes of this machine.

All of a cluster lives below one host process, which dies with this one; so nothing but empty
control groups can be left behind, and no watchdog is needed. Memory limits of nodes are enforced as
faults only: an ordinary user has no control groups.
"""

import platform
import shutil
import socket
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from splitbrain.contracts.arms import ClockArm, DiskArm, LinkArm, ProcessArm
from splitbrain.contracts.errors import CapabilityError, HarnessError
from splitbrain.contracts.fault import Link
from splitbrain.contracts.names import NodeName
from splitbrain.contracts.runtime import (
    OUTPUT,
    Address,
    Capability,
    DeploymentSpec,
    ImageSource,
    NodeSample,
    NodeSpec,
    NodeStatus,
    Placement,
)
from splitbrain.runtimes.control_groups import possible_bases
from splitbrain.runtimes.lacking import LackingLinks, no_such_port
from splitbrain.runtimes.link_shapes import Means, NetworkLinks, link_capabilities
from splitbrain.runtimes.local import sweep
from splitbrain.runtimes.local.clocks import LocalClocks, clocks_of
from splitbrain.runtimes.local.control import HostLink, HostLinks
from splitbrain.runtimes.local.disks import LocalDisks
from splitbrain.runtimes.local.launch import start_host, take_address
from splitbrain.runtimes.local.mode import (
    Mode,
    Way,
    program_digests,
    refuse_missing,
    wanted_mode,
)
from splitbrain.runtimes.local.processes import LocalProcesses

_DATA: Final = "data"
#: Capabilities that need neither namespaces nor root.
_ALWAYS: Final[frozenset[Capability]] = frozenset(
    {"kill", "pause", "terminate", "power", "file-change", "truncate", "wipe"}
)


class LocalRuntime:
    """Implements :class:`contracts.runtime.Runtime` without an engine; one instance per run.

    ``way``: None for what ``SPLITBRAIN_LOCAL`` says, else namespaces where this machine has them.
    """

    name = "local"
    cuts_power_by_durable_lengths = True

    def __init__(self, way: Way | None = None) -> None:
        self._mode: Mode = wanted_mode(way)
        #: Digests of the programs of the host that nodes start.
        self._programs: dict[str, str] = {}
        self._places: dict[NodeName, tuple[Placement, Path]] = {}
        #: Sockets that hold the addresses of plain processes.
        self._holders: list[socket.socket] = []
        self._specs: dict[NodeName, NodeSpec] = {}
        self._endpoints: dict[tuple[NodeName, str], Address] = {}
        self._host: HostLink | None = None
        self._network_links: NetworkLinks | None = None
        self.links: LinkArm = self._make_links()
        self._node_processes = LocalProcesses(self._ask)
        self.processes: ProcessArm = self._node_processes
        self.disks: DiskArm = LocalDisks(self._spec, self.status, self._kill_all)
        self.clocks: ClockArm = clocks_of(self._mode, self._folder, self._ask)
        self._own_clocks = self.clocks if isinstance(self.clocks, LocalClocks) else None

    def _make_links(self) -> LinkArm:
        if self._mode.way == "processes":
            next_step = "Use --runtime docker, or leave this fault out of the plan"
            return LackingLinks(self.name, next_step, f"nodes are {self._mode.text()}")
        tools = HostLinks(self._link, self.nodes, self._spec)
        self._network_links = NetworkLinks(tools, lambda: Means(self._mode.links, self.name))
        return self._network_links

    @property
    def mode(self) -> Mode:
        """Whether nodes have namespaces, and why not."""
        return self._mode

    @property
    def host_process(self) -> int:
        """Number of the process that all of the deployed cluster lives below."""
        return self._link().process_id

    def capabilities(self) -> frozenset[Capability]:
        """Return what can be done anywhere; links and clocks where there are namespaces."""
        able: set[Capability] = {*_ALWAYS, *possible_bases()}
        if self._own_clocks is not None:
            able |= {"clock", "clock-drift"}
        if self._mode.way == "namespaces":
            able |= {"partition", *link_capabilities(self._mode.links)}
        return frozenset(able)

    # --- deployment ---------------------------------------------------------------------------

    def prepare(self, images: Sequence[ImageSource]) -> None:
        """Refuse images of whose programs this machine lacks one."""
        refuse_missing(images)
        self._programs = program_digests(images)

    def place(self, node: NodeName, host_folder: Path, ports: Mapping[str, int]) -> Placement:
        """The folders of the run folder as they are, and an address that no other node has."""
        if self._mode.way == "namespaces":
            listen_host, peer_host = "0.0.0.0", str(node)  # noqa: S104 - a network of its own
        else:
            listen_host, holder = take_address(ports.values())
            self._holders.append(holder)
            peer_host = listen_host
        folder = host_folder.absolute()
        placement = Placement(
            listen_host=listen_host,
            peer_host=peer_host,
            ports=dict(ports),
            config_path=str(folder / "config"),
            state_path=str(folder / "state"),
            data_path=str(folder / _DATA),
            python=sys.executable,
        )
        self._places[node] = placement, folder
        return placement

    def deploy(self, spec: DeploymentSpec) -> None:
        """Make the namespaces and start all nodes; on failure leave nothing behind."""
        sweep.sweep_machine()
        try:
            for node in spec.nodes:
                self._check(node)
                self._specs[node.name] = node
                self._folder(node.name).mkdir(parents=True, exist_ok=True)
                Path(node.data_path).mkdir(parents=True, exist_ok=True)
            spec = self._equipped(spec)
            names = [node.name for node in spec.nodes]
            groups = self._node_processes.make_groups(names if spec.limits == "own" else ())
            self._host, self._endpoints = start_host(self._mode.way, spec, self._places, groups)
            for name in names:
                self.start(name)
            if self._own_clocks is not None:
                self._own_clocks.check_all()
        except BaseException:
            self.teardown()
            raise

    def _equipped(self, spec: DeploymentSpec) -> DeploymentSpec:
        clocks = self._own_clocks
        if spec.clocks != "own" or clocks is None:
            return spec
        nodes = tuple(clocks.equip(node) for node in spec.nodes)
        self._specs |= {node.name: node for node in nodes}
        return msgspec.structs.replace(spec, nodes=nodes)

    def _check(self, node: NodeSpec) -> None:
        placed = self._places.get(node.name)
        shown = all(str(mount.host_path.absolute()) == mount.node_path for mount in node.mounts)
        if placed is None or node.data_path != placed[0].data_path or not shown:
            raise HarnessError(
                "deploy a node",
                node.name,
                "its paths are not those that this runtime gave it",
                "A system must ask the runtime where its nodes will live (Runtime.place).",
            )

    def nodes(self) -> Sequence[NodeName]:
        """Names of the deployed nodes, in the order of the spec."""
        return list(self._specs)

    def teardown(self) -> None:
        """End all that deploy made. Safe to call twice and after a failed deploy."""
        host, self._host = self._host, None
        if self._own_clocks is not None:
            self._own_clocks.forget()
        if host is not None:
            host.close()
        self._node_processes.remove_groups()
        self._specs.clear()
        while self._holders:
            self._holders.pop().close()

    # --- nodes --------------------------------------------------------------------------------

    def endpoint(self, node: NodeName, port: str) -> Address:
        """Return the port's address for clients on this machine."""
        self._spec(node)
        try:
            return self._endpoints[node, port]
        except KeyError:
            raise no_such_port(node, port) from None

    def start(self, node: NodeName) -> None:
        """Start a node that was killed or has exited."""
        self._ask(f"start {node}", node, "start")

    def kill(self, node: NodeName) -> None:
        """SIGKILL; returns when all of the node's processes are gone. A paused node dies too."""
        self._ask(f"kill {node}", node, "kill")

    def _kill_all(self, nodes: Sequence[NodeName]) -> None:
        self._link().call("cut the power", ", ".join(nodes), "kill_all", list(nodes))

    def pause(self, node: NodeName) -> None:
        """Freeze every process of the node."""
        self._ask(f"pause {node}", node, "pause")

    def resume(self, node: NodeName) -> None:
        """Undo pause."""
        self._ask(f"resume {node}", node, "resume")

    def status(self, node: NodeName) -> NodeStatus:
        """Return the state of the node's processes."""
        return self._ask(f"look at {node}", node, "status")

    def exit_code(self, node: NodeName) -> int | None:
        """Exit code of the last life (137 after a kill), None while running."""
        return self._ask(f"look at {node}", node, "exit_code")

    def _ask(self, action: str, node: NodeName, method: str, *arguments: Any) -> Any:
        self._spec(node)
        return self._link().call(action, node, method, node, *arguments)

    def _spec(self, node: NodeName) -> NodeSpec:
        spec = self._specs.get(node)
        if spec is None:
            deployed = ", ".join(self._specs) or "none"
            raise HarnessError(
                "use a node", node, f"it is not deployed (deployed: {deployed})", "Deploy it first"
            )
        return spec

    def _link(self) -> HostLink:
        if self._host is None:
            raise HarnessError("use the cluster", "local", "it is not deployed", "Deploy it first")
        return self._host

    def _folder(self, node: NodeName) -> Path:
        self._spec(node)
        return self._places[node][1]

    # --- links --------------------------------------------------------------------------------

    def cut(self, links: Iterable[Link]) -> None:
        """Drop every packet on these links from now on, of open connections too."""
        self._change("cut", links)

    def restore(self, links: Iterable[Link]) -> None:
        """Undo cut for these links."""
        if self._mode.way == "namespaces":
            self._change("restore", links)

    def _change(self, method: str, links: Iterable[Link]) -> None:
        pairs = sorted({(link.source, link.destination) for link in links})
        if self._mode.way != "namespaces":
            raise CapabilityError(
                "cut links (partition)",
                "runtime local",
                f"nodes are {self._mode.text()}",
                "Use --runtime docker, or leave partition out.",
            )
        for node in {node for pair in pairs for node in pair}:
            self._spec(node)
        self._link().call(f"{method} links", "the nodes' firewalls", method, pairs)

    def cut_links(self) -> frozenset[Link]:
        """Return the links that are cut now, as the kernel tells it."""
        pairs = self._link().call("list cut links", "the nodes' firewalls", "cut_links")
        return frozenset(Link(NodeName(source), NodeName(to)) for source, to in pairs)

    def heal_all(self) -> None:
        """Remove every rule and limit, resume every node; does not start exited ones."""
        self._node_processes.heal_all()
        if self._own_clocks is not None:
            self._own_clocks.heal_all()
        self._link().call("heal all", "the cluster", "heal")
        if self._network_links is not None:
            self._network_links.forget()

    def reachable(self, link: Link, port: str, timeout_s: float) -> bool:
        """Whether a new connection along the link opens and is answered within the time.

        Answered means that the destination's process notices the end of the connection, so a paused
        node is not reachable.
        """
        self._spec(link.source)
        destination = self._spec(link.destination)
        port = destination.probed_port(port) or port
        number = destination.ports[port]
        if self._mode.way == "processes":
            from splitbrain.runtimes.local.network import probe

            address = self.endpoint(link.destination, port)
            return probe(address.host, str(number), str(timeout_s))
        action, where = f"probe {link.source} to {link.destination}", (str(number), str(timeout_s))
        return self._link().call(
            action, link.source, "probe", link.source, link.destination, *where, timeout_s=timeout_s
        )

    # --- evidence -----------------------------------------------------------------------------

    def sample(self, node: NodeName) -> NodeSample | None:
        """CPU seconds since the node's last start, and memory in RAM; None where it is down."""
        use = self._ask(f"measure {node}", node, "use")
        if use is None:
            return None
        return NodeSample(node=node, cpu_seconds_total=use[0], memory_bytes=use[1])

    def log_tail(self, node: NodeName, lines: int) -> str:
        """Last lines that the node printed, on either stream."""
        self._spec(node)
        path = self._folder(node) / OUTPUT
        try:
            text = path.read_text(errors="replace")
        except FileNotFoundError:
            return ""
        return "\n".join(text.splitlines()[-lines:])

    def collect(self, node: NodeName, folder: Path, *, with_data: bool) -> None:
        """Copy the node's output and data, but for what lies there already."""
        spec, source = self._spec(node), self._folder(node)
        if folder.absolute() == source:
            return
        try:
            folder.mkdir(parents=True, exist_ok=True)
            if (source / OUTPUT).exists():
                shutil.copyfile(source / OUTPUT, folder / OUTPUT)
            if with_data:
                _copy_data(Path(spec.data_path), folder / _DATA, spec.collected)
        except (OSError, shutil.Error) as error:
            raise HarnessError(
                f"copy the files of {node}", str(folder), str(error), "Make room on that disk."
            ) from error

    def versions(self) -> dict[str, str]:
        """Kernel, how the nodes are kept apart, and the digests of the machine's programs.

        ``limits`` where something was not possible.
        """
        found = {"kernel": platform.release(), "local": self._mode.text(), **self._programs}
        if self._mode.way == "processes":
            found["limits"] = "plain processes, no partitions were possible"
        return found


def _copy_data(source: Path, target: Path, parts: Sequence[str] | None) -> None:
    """Copy a data folder, or those of its files and folders that are asked for and there."""
    if parts is None:
        shutil.copytree(source, target, dirs_exist_ok=True)
        return
    target.mkdir(exist_ok=True)
    for part in parts:
        if (source / part).is_dir():
            shutil.copytree(source / part, target / part, dirs_exist_ok=True)
        elif (source / part).exists():
            (target / part).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source / part, target / part)
