"""One node's pod: the pause container that owns its network, and the node's own container.

The pause container outlives every kill of the node, so addresses, published ports and firewall
rules do too. Changes of the network are made in the pause container, whose image has the
tools; nothing is asked of the node's image.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import docker.errors
from docker import DockerClient
from docker.models.containers import Container
from docker.types import LogConfig, Mount
from tenacity import Retrying, retry_if_exception, stop_after_attempt, wait_fixed

from splitbrain.contracts.errors import HarnessError
from splitbrain.contracts.runtime import Address, NodeSpec, NodeStatus
from splitbrain.runtimes.docker.engine import engine_action
from splitbrain.runtimes.docker.names import Role, RunMark
from splitbrain.runtimes.wall_clocks import LIBRARY, clock_environment

#: Where the pause container has them.
TOOLS = "/opt/splitbrain"
#: Where the volume with a node's clock is seen, by the pause container and by the node.
CLOCK_IN_POD = f"{TOOLS}/clock"
CLOCK_IN_NODE = "/splitbrain-clock"
_BYTES_PER_MIB = 1024 * 1024
_ASK_DOCTOR = "`splitbrain doctor` says what this kernel can do"

#: Tries until a refusal to freeze is believed; a process amid a write is frozen when that ends.
_TRIES: Final = 50
_WAIT_S: Final = 0.2

_STATUS: Mapping[str, NodeStatus] = {
    "running": "running",
    "paused": "paused",
    "restarting": "running",
    "created": "exited",
    "exited": "exited",
    "dead": "exited",
    "removing": "missing",
}


class Pod:
    """Handles of one node's two containers and its volume; the address is in the run's network."""

    def __init__(self, client: DockerClient, mark: RunMark, spec: NodeSpec, address: str) -> None:
        self._client = client
        self._mark = mark
        self.spec = spec
        self.address = address
        #: Mount for the node's data; empty: a plain volume of its own.
        self.device = ""
        #: Whether the node's program has a wall clock of its own; to be set before it is created.
        self.has_clock = False
        self.ports: dict[str, Address] = {}
        self._pause: Container | None = None
        self._node: Container | None = None

    def create(
        self, network: str, pod_image_id: str, image_id: str, hosts: Sequence[tuple[str, str]]
    ) -> None:
        """Make and start both containers; of what an engine refuses, what was made stays.

        ``hosts`` are the names of every node, each with an address. The node's image is resolved
        once for a run.
        """
        spec = self.spec
        with engine_action(f"start the pod of {spec.name}", self._mark.name(spec.name, "pod")):
            self._pause = self._create_pause(network, pod_image_id, hosts)
            self._pause.start()
            self._read_ports()
        with engine_action(f"start {spec.name}", self._mark.name(spec.name)):
            self._node = self._create_node(image_id)
            self._node.start()

    def _create_pause(
        self, network: str, image_id: str, hosts: Sequence[tuple[str, str]]
    ) -> Container:
        spec = self.spec
        hostname = spec.container.hostname or spec.name
        client: Any = self._client
        volumes: dict[str, dict[str, str]] = {}
        if self.has_clock:
            # Empty as it is, the engine fills it with what the image has there.
            name = self._mark.name(spec.name, "clock")
            client.volumes.create(name=name, labels=self._labels("pod"))
            volumes[name] = {"bind": CLOCK_IN_POD, "mode": "rw"}
        return client.containers.create(
            image_id,
            name=self._mark.name(spec.name, "pod"),
            hostname=hostname,
            labels=self._labels("pod"),
            network=network,
            networking_config={
                network: client.api.create_endpoint_config(ipv4_address=self.address)
            },
            # The node knows itself by its own name in the engine's hosts file.
            extra_hosts=[f"{name}:{address}" for name, address in hosts if name != hostname],
            ports={f"{port}/tcp": ("127.0.0.1", None) for port in spec.ports.values()},
            cap_add=["NET_ADMIN"],
            volumes=volumes,
            log_config=LogConfig(type="json-file"),
        )

    def _create_node(self, image_id: str) -> Container:
        spec = self.spec
        client: Any = self._client
        volume = self._mark.name(spec.name, "data")
        client.volumes.create(name=volume, labels=self._labels("node"), **self._volume_options())
        volumes = {volume: {"bind": spec.data_path, "mode": "rw"}}
        for mount in spec.mounts:
            volumes[str(mount.host_path.resolve())] = {
                "bind": mount.node_path,
                "mode": "ro" if mount.read_only else "rw",
            }
        environment = spec.environment
        if self.has_clock:
            volumes[self._mark.name(spec.name, "clock")] = {"bind": CLOCK_IN_NODE, "mode": "ro"}
            library, file = f"{CLOCK_IN_NODE}/{LIBRARY}", f"{CLOCK_IN_NODE}/now"
            environment = environment | clock_environment(library, file, environment)
        memory = spec.memory_limit_mib
        limit = memory * _BYTES_PER_MIB if memory is not None else None
        assert self._pause is not None
        traits = spec.container
        # Program and arguments, whatever the image would start by itself; else that.
        argument = "command" if traits.keeps_entry_point else "entrypoint"
        program = {argument: list(spec.command) or None}
        return client.containers.create(
            image_id,
            **program,
            name=self._mark.name(spec.name),
            labels=self._labels("node"),
            environment=environment,
            network_mode=f"container:{self._pause.id}",
            volumes=volumes,
            # Without a name, so that they go with the container.
            mounts=[Mount(folder, None, type="volume") for folder in traits.volumes],
            restart_policy=_restart_policy(traits.restart),
            working_dir=traits.working_folder,
            user=traits.user,
            log_config=LogConfig(type="json-file"),
            # No swap: a node that outgrows its limit is killed, not slowed.
            **({"mem_limit": limit, "memswap_limit": limit} if limit is not None else {}),
        )

    def _volume_options(self) -> dict[str, Any]:
        # The engine mounts it when the container starts and lets it go when the container ends.
        options = {"type": "ext4", "device": self.device, "o": "errors=remount-ro"}
        return {"driver_opts": options} if self.device else {}

    def _labels(self, role: Role) -> dict[str, str]:
        return self._mark.node_labels(self.spec.name, role, self.spec.data_path)

    def _read_ports(self) -> None:
        assert self._pause is not None
        self._pause.reload()
        attributes: Any = self._pause.attrs
        published: dict[str, list[dict[str, str]] | None] = attributes["NetworkSettings"]["Ports"]
        for name, port in self.spec.ports.items():
            bindings = published.get(f"{port}/tcp") or []
            if not bindings:
                raise HarnessError(
                    f"publish port {name} of {self.spec.name}",
                    self._mark.name(self.spec.name, "pod"),
                    f"the engine published no host port for {port}",
                    "The engine's own log says more",
                )
            self.ports[name] = Address(host="127.0.0.1", port=int(bindings[0]["HostPort"]))

    @property
    def pause_container(self) -> Container:
        """The pause container; HarnessError: the pod was not created."""
        return self._made(self._pause)

    @property
    def node_container(self) -> Container:
        """The node's own container; HarnessError: the pod was not created."""
        return self._made(self._node)

    def _made(self, container: Container | None) -> Container:
        if container is None:
            raise HarnessError(
                "use a node", self.spec.name, "it was never deployed", "Call deploy before"
            )
        return container

    # --- the node's process -------------------------------------------------------------------

    def status(self) -> NodeStatus:
        """Return the state of the node's process by the engine."""
        if self._node is None:
            return "missing"
        with engine_action(f"look at {self.spec.name}", str(self._node.name)):
            try:
                self._node.reload()
            except docker.errors.NotFound:
                return "missing"
        return _STATUS.get(str(self._node.status), "missing")

    def exit_code(self) -> int | None:
        """Exit code of the last incarnation, None while it runs."""
        if self.status() != "exited":
            return None
        attributes: Any = self.node_container.attrs
        return int(attributes["State"]["ExitCode"])

    def start(self) -> None:
        """Start the node's process again; nothing where it runs."""
        with engine_action(f"start {self.spec.name}", str(self.node_container.name)):
            self.node_container.start()

    def kill(self) -> None:
        """SIGKILL, also where it is paused; returns when the process is gone."""
        with engine_action(f"kill {self.spec.name}", str(self.node_container.name)):
            try:
                self.node_container.kill("SIGKILL")
            except docker.errors.APIError as error:
                if "is not running" not in str(error):
                    raise
            self.node_container.wait(timeout=30)

    def pause(self) -> None:
        """Freeze every process of the node; nothing where it is frozen."""
        with engine_action(f"pause {self.spec.name}", str(self.node_container.name)):
            freeze(self.node_container)

    def resume(self) -> None:
        """Undo pause; nothing where it is not frozen."""
        with engine_action(f"resume {self.spec.name}", str(self.node_container.name)):
            try:
                self.node_container.unpause()
            except docker.errors.APIError as error:
                text = str(error)
                if "is not paused" not in text and "is not running" not in text:
                    raise

    # --- its network --------------------------------------------------------------------------

    def firewall(self, action: str, sources: Iterable[str] = ()) -> str:
        """Run the pod's firewall script (``cut``, ``resets``, ``heal``, ...); what it printed."""
        return self.run(f"{action} links into {self.spec.name}", "firewall.sh", action, *sources)

    def run(self, action: str, *command: str, next_step: str = _ASK_DOCTOR) -> str:
        """Run one of the pod's tools in the pause container; what it printed.

        Raises:
            HarnessError: it failed, or the engine refused.
        """
        code, output = self.execute(list(command))
        if code != 0:
            problem = output.strip().replace("\n", " | ") or f"exit code {code}"
            raise HarnessError(action, str(self.pause_container.name), problem, next_step)
        return output

    def execute(self, command: list[str]) -> tuple[int, str]:
        """Run one of the pod's tools in the pause container; exit code and output."""
        container = self.pause_container
        program, *arguments = command
        with engine_action(f"run {program} for {self.spec.name}", str(container.name)):
            result: Any = container.exec_run([f"{TOOLS}/{program}", *arguments])
        return int(result.exit_code), bytes(result.output).decode(errors="replace")


def _restart_policy(word: str) -> dict[str, Any]:
    name, _, count = word.partition(":")
    return {"Name": name, "MaximumRetryCount": int(count or 0)}


def freeze(container: Container) -> None:
    """Freeze every process of a container; nothing where they are frozen.

    In control groups of version 1 the kernel freezes a group process by process; under load the
    engine gives up on that after a moment, thaws what it froze, and says "unable to freeze".
    Nothing is wrong with the container then: the next try mostly does it. Must never take any other
    refusal for that.
    """
    tries = Retrying(
        retry=retry_if_exception(_is_too_busy),
        stop=stop_after_attempt(_TRIES),
        wait=wait_fixed(_WAIT_S),
        reraise=True,
    )
    try:
        tries(container.pause)
    except docker.errors.APIError as error:
        if "already paused" not in str(error):
            raise


def _is_too_busy(error: BaseException) -> bool:
    return isinstance(error, docker.errors.APIError) and "unable to freeze" in str(error)
