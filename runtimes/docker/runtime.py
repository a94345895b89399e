"""The runtime ``docker``: a deployed cluster of pods in a container engine.

It acts on one run's resources only, and does what it is asked: choosing targets and times is the
nemesis' business, judging what came of it the checkers'.
"""

import ipaddress
import platform
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from docker import DockerClient

from splitbrain.contracts.arms import ClockArm, DiskArm, LinkArm, ProcessArm
from splitbrain.contracts.errors import HarnessError
from splitbrain.contracts.fault import Link
from splitbrain.contracts.names import NodeName
from splitbrain.contracts.runtime import (
    DISK_CAPABILITIES,
    Address,
    Capability,
    DeploymentSpec,
    ImageSource,
    NodeSample,
    NodeStatus,
    Placement,
)
from splitbrain.history.run_folder import RunFolder
from splitbrain.runtimes.docker import archives, names, sampling, sweep
from splitbrain.runtimes.docker.clocks import DockerClocks
from splitbrain.runtimes.docker.disks import DockerDisks, why_no_disks
from splitbrain.runtimes.docker.engine import connect, engine_action
from splitbrain.runtimes.docker.images import POD, Images
from splitbrain.runtimes.docker.links import PodLinks, engine_means
from splitbrain.runtimes.docker.network import create_network, pod_address
from splitbrain.runtimes.docker.pods import Pod
from splitbrain.runtimes.docker.processes import DockerProcesses
from splitbrain.runtimes.link_shapes import Means, NetworkLinks, link_capabilities
from splitbrain.runtimes.owners import this_process
from splitbrain.runtimes.waiting import on_all
from splitbrain.runtimes.watchdog import Watchdog

#: Capabilities of every engine.
_ALWAYS: frozenset[Capability] = frozenset(
    {"partition", "kill", "pause", "terminate", "cpu", "memory", "clock", "clock-drift"}
)


#: A port on which no program listens.
_CLOSED_PORT = 1


class DockerRuntime:
    """Implements :class:`contracts.runtime.Runtime` with one engine; one instance per run.

    The client is closed by :meth:`teardown`; None: of the engine that the environment names. If
    watched, a watchdog process stops the nodes when this process dies.
    """

    name = "docker"
    cuts_power_by_durable_lengths = False

    def __init__(self, client: DockerClient | None = None, *, watched: bool = True) -> None:
        self._client = client if client is not None else connect()
        self._watched = watched
        self._mark: names.RunMark | None = None
        self._pods: dict[NodeName, Pod] = {}
        self._gauges: dict[NodeName, sampling.Gauge] = {}
        self._watchdog: Watchdog | None = None
        #: Names of prepared images to their tags, and images in use to their ids.
        self._tags: dict[str, str] = {}
        self._images: dict[str, str] = {}
        self._network_links = NetworkLinks(PodLinks(self._pods, self._pod), self._link_means)
        self.links: LinkArm = self._network_links
        self._node_processes = DockerProcesses(self._client, self._pod, self.kill)
        self.processes: ProcessArm = self._node_processes
        self._own_disks = DockerDisks(self._pod)
        self.disks: DiskArm = self._own_disks
        #: Where the engine finds the disks of nodes that have their own.
        self._devices: Mapping[NodeName, str] = {}
        self._own_clocks = DockerClocks(self._pod)
        self.clocks: ClockArm = self._own_clocks

    def capabilities(self) -> frozenset[Capability]:
        """Return cuts, processes and clocks; other links and disks as the engine can."""
        tag = Images(self._client).tags(())[POD.name]
        disks = () if why_no_disks(self._client) else DISK_CAPABILITIES
        links = link_capabilities(engine_means(self._client, tag))
        return frozenset({*_ALWAYS, *links, *disks})

    def _link_means(self) -> Means:
        return Means(engine_means(self._client, self._images[POD.name]), self.name)

    # --- deployment ---------------------------------------------------------------------------

    def prepare(self, images: Sequence[ImageSource]) -> None:
        """Find or build the images, from the sources as they are now."""
        self._tags |= Images(self._client).ensure(images)

    def place(self, node: NodeName, host_folder: Path, ports: Mapping[str, int]) -> Placement:
        """Return a pod: the wanted ports and fixed paths, reached by its name."""
        # its subfolders are mounted into the pod
        return Placement(
            listen_host="0.0.0.0",  # noqa: S104 - all of the pod's own network, nothing else
            peer_host=node,
            ports=dict(ports),
            config_path="/config",
            state_path="/state",
            data_path="/data",
        )

    def deploy(self, spec: DeploymentSpec) -> None:
        """Make network and pods and start all nodes side by side; on failure leave nothing.

        Dead runs' leftovers are swept first. The caller holds the lock of the run folder, or the
        next sweep takes this run for dead.
        """
        sweep.sweep(self._client)
        mark = names.mark_of_run(
            spec.run_id, RunFolder(spec.run_folder).lock, this_process().word()
        )
        if (mark.run_id, mark.lock) in {(m.run_id, m.lock) for m in sweep.runs(self._client)}:
            raise HarnessError(
                "deploy the cluster",
                spec.run_id,
                "another living run has the same id",
                "Start it again: ids come from the clock and the seed",
            )
        spec.run_folder.mkdir(parents=True, exist_ok=True)
        self._mark = mark
        try:
            self._images = self._resolve_images(spec)
            if self._watched:
                self._watchdog = Watchdog(self.name, spec.run_id, spec.run_folder)
            if spec.disks == "own":
                nodes, pod = [node.name for node in spec.nodes], self._images[POD.name]
                self._devices = self._own_disks.make(self._client, mark, pod, nodes, spec.disk_mib)
            network, subnet = create_network(self._client, mark)
            self._make_pods(spec, mark, str(network.name), subnet)
            if spec.clocks == "own":
                self._own_clocks.check(self._pods.values())
        except BaseException:
            # The rest is left to a second teardown, or to the watchdog.
            with suppress(HarnessError):
                self.teardown()
            raise

    def _resolve_images(self, spec: DeploymentSpec) -> dict[str, str]:
        resolved: dict[str, str] = {}
        if POD.name not in self._tags:
            self._tags |= Images(self._client).tags(())
        for image in dict.fromkeys([POD.name, *(node.image for node in spec.nodes)]):
            tag = self._tags.get(image, image)
            with engine_action("find an image", tag):
                resolved[image] = str(self._client.images.get(tag).id)
        return resolved

    def _make_pods(
        self, spec: DeploymentSpec, mark: names.RunMark, network: str, subnet: ipaddress.IPv4Network
    ) -> None:
        for position, node in enumerate(spec.nodes):
            address = pod_address(subnet, position)
            self._pods[node.name] = Pod(self._client, mark, node, address)
            self._pods[node.name].device = self._devices.get(node.name, "")
            self._pods[node.name].has_clock = spec.clocks == "own"
        hosts = [
            (name, pod.address)
            for node, pod in self._pods.items()
            for name in dict.fromkeys((node, *pod.spec.container.aliases))
        ]
        on_all(
            self._pods.values(),
            lambda pod: pod.create(
                network, self._images[POD.name], self._images[pod.spec.image], hosts
            ),
        )

    def nodes(self) -> Sequence[NodeName]:
        """Names of the deployed nodes, in the order of the spec."""
        return list(self._pods)

    def teardown(self) -> None:
        """Remove all that deploy made. Safe to call twice and after a failed deploy."""
        if self._mark is not None:
            sweep.remove_run(self._client, self._mark)
            self._mark = None
        # Only now: should this process die before all is removed, the watchdog stops the nodes.
        if self._watchdog is not None:
            self._watchdog.dismiss()
            self._watchdog = None
        self._pods.clear()
        self._client.close()

    # --- nodes --------------------------------------------------------------------------------

    def endpoint(self, node: NodeName, port: str) -> Address:
        """Return the port's address for clients on this machine."""
        try:
            return self._pod(node).ports[port]
        except KeyError:
            raise HarnessError(
                "find a port",
                f"{node}/{port}",
                "the node publishes none of that name",
                "Name it in the node's spec",
            ) from None

    def start(self, node: NodeName) -> None:
        """Start a node that was killed or has exited."""
        self._pod(node).start()

    def kill(self, node: NodeName) -> None:
        """SIGKILL; returns when the process is gone. A paused node dies too."""
        self._own_disks.let_die(node)
        self._pod(node).kill()

    def pause(self, node: NodeName) -> None:
        """Freeze every process of the node."""
        self._pod(node).pause()

    def resume(self, node: NodeName) -> None:
        """Undo pause."""
        self._pod(node).resume()

    def status(self, node: NodeName) -> NodeStatus:
        """Return the state of the node's process by the engine."""
        return self._pod(node).status()

    def exit_code(self, node: NodeName) -> int | None:
        """Exit code of the last incarnation (137 after a kill), None while running."""
        return self._pod(node).exit_code()

    def _pod(self, node: NodeName) -> Pod:
        pod = self._pods.get(node)
        if pod is None:
            deployed = ", ".join(self._pods) or "none"
            raise HarnessError(
                "use a node", node, f"it is not deployed (deployed: {deployed})", "Deploy it first"
            )
        return pod

    # --- links --------------------------------------------------------------------------------

    def cut(self, links: Iterable[Link]) -> None:
        """Drop every packet on these links from now on, of open connections too."""
        self._change("cut", links)

    def restore(self, links: Iterable[Link]) -> None:
        """Undo cut for these links."""
        self._change("restore", links)

    def _change(self, action: str, links: Iterable[Link]) -> None:
        sources: defaultdict[NodeName, list[str]] = defaultdict(list)
        for link in sorted(set(links)):
            sources[link.destination].append(self._pod(link.source).address)
        # Packets are dropped where they arrive: a drop on the sender's side would be told to it.
        on_all(
            [(self._pod(node), addresses) for node, addresses in sources.items()],
            lambda change: change[0].firewall(action, change[1]),
        )

    def cut_links(self) -> frozenset[Link]:
        """Return the links that are cut now, as the kernel tells it."""
        names = {pod.address: name for name, pod in self._pods.items()}
        listings = on_all(
            self._pods.items(), lambda item: (item[0], item[1].firewall("list").split())
        )
        return frozenset(
            Link(names[address], node) for node, addresses in listings for address in addresses
        )

    def heal_all(self) -> None:
        """Remove every rule and limit, resume every node; does not start exited ones."""

        def heal(pod: Pod) -> None:
            pod.firewall("heal")
            pod.resume()

        self._own_disks.heal_all()
        self._node_processes.heal_all()
        self._own_clocks.heal_all()
        on_all(self._pods.values(), heal)
        self._network_links.forget()

    def reachable(self, link: Link, port: str, timeout_s: float) -> bool:
        """Whether a new connection along the link opens and is answered within the time.

        Answered means that the destination's process notices the end of the connection, so a paused
        node is not reachable. A connection needs both directions: ``links.measure`` looks at one
        alone. Where nobody has said on which port the destination listens, a refusal is an answer.
        """
        destination = self._pod(link.destination)
        probed = destination.spec.probed_port(port)
        number = _CLOSED_PORT if probed is None else destination.spec.ports[probed]
        code, word = self._pod(link.source).execute(
            ["probe.py", "connect", destination.address, str(number), str(timeout_s)]
        )
        return code == 0 or (probed is None and word.strip() == "refused")

    # --- evidence -----------------------------------------------------------------------------

    def sample(self, node: NodeName) -> NodeSample | None:
        """Resource use since the node's last start, page cache apart; None where it is down."""
        pod = self._pod(node)
        figures = None
        gauge = self._gauges.get(node)
        if gauge is not None:
            figures = gauge.read()
        if figures is None:
            if pod.status() not in ("running", "paused"):
                return None
            attributes: Any = pod.node_container.attrs
            gauge = sampling.Gauge(int(attributes["State"]["Pid"]))
            self._gauges[node] = gauge
            figures = gauge.read() or self._ask_engine(pod)
        if figures is None:
            return None
        return NodeSample(node=node, cpu_seconds_total=figures[0], memory_bytes=figures[1])

    def _ask_engine(self, pod: Pod) -> tuple[float, int] | None:
        with engine_action(f"measure {pod.spec.name}", str(pod.node_container.name)):
            return sampling.ask_engine(pod.node_container)

    def log_tail(self, node: NodeName, lines: int) -> str:
        """Last lines that the node printed, on either stream."""
        container: Any = self._pod(node).node_container
        with engine_action(f"read the output of {node}", str(container.name)):
            return bytes(container.logs(tail=lines)).decode(errors="replace")

    def collect(self, node: NodeName, folder: Path, *, with_data: bool) -> None:
        """Copy the node's output to ``folder/output.log`` and its data to ``folder/data/``."""
        pod = self._pod(node)
        folder.mkdir(parents=True, exist_ok=True)
        archives.copy_output(pod.node_container, folder)
        if with_data:
            archives.copy_data(pod.node_container, pod.spec.data_path, folder, pod.spec.collected)

    def versions(self) -> dict[str, str]:
        """Engine, kernel, and the digest of each image in use."""
        with engine_action("ask for the engine's version", "docker"):
            engine: Any = self._client.version()
        return {
            "engine": str(engine["Version"]),
            "kernel": str(engine.get("KernelVersion") or platform.release()),
            **{f"image {name}": digest for name, digest in self._images.items()},
        }
