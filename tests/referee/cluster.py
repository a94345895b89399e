"""Controllers of either make with Kafka's own brokers and tools, as pods of one network.

Made as a run's are, so that a sweep finds what a killed test leaves. Clients of this machine reach
brokers through ports of its loopback interface; brokers, controllers and tools meet in the network.
"""

import fcntl
import uuid
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from docker import DockerClient
from tenacity import RetryError, Retrying, retry_if_not_result, stop_after_delay, wait_fixed

from splitbrain.contracts.fault import Link
from splitbrain.contracts.names import NodeName, RunId
from splitbrain.contracts.runtime import Address, DeploymentSpec, NodeSpec
from splitbrain.history.run_folder import RunFolder
from splitbrain.nodes.quorum.persistent import Voter
from splitbrain.runtimes.docker.archives import DATA
from splitbrain.runtimes.docker.engine import connect
from splitbrain.runtimes.docker.names import NODE_LABEL, ROLE_LABEL, RUN_LABEL
from splitbrain.runtimes.docker.runtime import DockerRuntime
from splitbrain.systems.kafka.adapter import IMAGE
from splitbrain.systems.kraft import deployment as kraft
from tests.referee.controllers import (
    PROPERTIES,
    Controllers,
    Quorum,
    configuration_folder,
    kafka_node,
)
from tests.referee.properties import CLIENT_PORT, INTERNAL_PORT, broker_properties

_CLIENT: Final = "client"
_INTERNAL: Final = "internal"
_TOOLS: Final = NodeName("tools")
#: Brokers' node ids begin after every voter's.
_FIRST_BROKER: Final = 11
_TAIL_LINES: Final = 15
_TAIL_CHARACTERS: Final = 300
_INTERVAL_S: Final = 0.1
#: Line of a broker once it is unfenced and has opened its listeners.
_STARTED: Final = "Kafka Server started"
_START_PATIENCE_S: Final = 90.0


class Cluster:
    """A deployed one. Controllers are known by node id, brokers too."""

    def __init__(
        self,
        engine: DockerClient,
        runtime: DockerRuntime,
        spec: DeploymentSpec,
        voters: tuple[Voter, ...],
        brokers: tuple[int, ...],
    ) -> None:
        self._engine = engine
        self._runtime = runtime
        self._spec = spec
        self.voters = voters
        self.brokers = brokers
        self._killed: set[NodeName] = set()
        self._frozen: set[NodeName] = set()
        self._cut: set[Link] = set()

    @property
    def run_folder(self) -> Path:
        return self._spec.run_folder

    @property
    def run_id(self) -> RunId:
        return self._spec.run_id

    @property
    def cluster_id(self) -> str:
        """As its storage was formatted."""
        return kraft.cluster_id(self._spec.run_id)

    @property
    def own_names(self) -> dict[str, str]:
        """Return this cluster's own id and ports, and their stand-ins."""
        ports = {self.client_address(broker): f"CLIENT-OF-{broker}" for broker in self.brokers}
        return {self.cluster_id: "CLUSTER", **ports}

    @property
    def bootstrap(self) -> str:
        """Where clients of this machine find the brokers."""
        return ",".join(self.client_address(broker) for broker in self.brokers)

    def client_address(self, broker: int) -> str:
        """Where clients of this machine find one broker."""
        address = self._runtime.endpoint(broker_name(broker), _CLIENT)
        return f"{address.host}:{address.port}"

    @property
    def inner_bootstrap(self) -> str:
        """Where tools find the brokers."""
        return ",".join(self.inner_address(broker) for broker in self.brokers)

    def inner_address(self, broker: int) -> str:
        """Where tools find one broker."""
        return f"{broker_name(broker)}:{INTERNAL_PORT}"

    @property
    def inner_controllers(self) -> str:
        return ",".join(f"{voter.host}:{voter.port}" for voter in self.voters)

    def address(self, node_id: int, port: str) -> Address:
        """Where this machine finds a port of a node."""
        return self._runtime.endpoint(self.name_of(node_id), port)

    def memory_bytes(self, node_id: int) -> int:
        sample = self._runtime.sample(self.name_of(node_id))
        assert sample is not None
        return sample.memory_bytes

    def kill(self, node_id: int) -> None:
        """SIGKILL; returns when the process is gone."""
        self._killed.add(self.name_of(node_id))
        self._runtime.kill(self.name_of(node_id))

    def terminate(self, node_id: int, patience_s: float) -> None:
        """SIGTERM; returns when the process has ended by itself."""
        name = self.name_of(node_id)
        self._killed.add(name)
        self._container(name).kill(signal="SIGTERM")
        self.await_true(
            f"{name} ends as it is asked to",
            lambda: self._runtime.status(name) == "exited",
            patience_s,
        )

    def start(self, node_id: int) -> None:
        self._runtime.start(self.name_of(node_id))
        self._killed.discard(self.name_of(node_id))

    def pause(self, node_id: int) -> None:
        self._frozen.add(self.name_of(node_id))
        self._runtime.pause(self.name_of(node_id))

    def resume(self, node_id: int) -> None:
        self._runtime.resume(self.name_of(node_id))
        self._frozen.discard(self.name_of(node_id))

    def isolate(self, node_id: int) -> None:
        """Cut it off from all other nodes, not from this machine."""
        name = self.name_of(node_id)
        others = [other for other in self._members() if other != name]
        links = {link for other in others for link in (Link(name, other), Link(other, name))}
        self._cut |= links
        self._runtime.cut(links)

    def heal(self) -> None:
        self._runtime.restore(self._cut)
        self._cut.clear()

    def restore(self) -> None:
        """Start what was killed, let go on what was frozen, heal what was cut."""
        self.heal()
        for name in sorted(self._frozen):
            self._runtime.resume(name)
        for name in sorted(self._killed):
            self._runtime.start(name)
        self._frozen.clear()
        self._killed.clear()

    def log(self, node_id: int, lines: int = 100_000) -> str:
        return self._runtime.log_tail(self.name_of(node_id), lines)

    def name_of(self, node_id: int) -> NodeName:
        return broker_name(node_id) if node_id in self.brokers else kraft.node_name(node_id)

    def await_brokers(self) -> None:
        """Return when every broker has been unfenced and serves."""
        for broker in self.brokers:
            self.await_true(
                f"broker {broker} serves",
                lambda broker=broker: _STARTED in self.log(broker),
                _START_PATIENCE_S,
            )

    def await_true(self, claim: str, condition: Callable[[], bool], patience_s: float) -> None:
        """Ask until it holds; fails with the claim and the end of every log.

        Fails at once when a node has exited that nobody killed.
        """

        def checked() -> bool:
            gone = [name for name in self._members() if self._runtime.status(name) == "exited"]
            assert set(gone) <= self._killed, f"{claim}: {gone} exited\n{self.tails()}"
            return condition()

        try:
            Retrying(
                retry=retry_if_not_result(bool),
                stop=stop_after_delay(patience_s),
                wait=wait_fixed(_INTERVAL_S),
            )(checked)
        except RetryError as error:
            raise AssertionError(f"{claim}: not within {patience_s} s\n{self.tails()}") from error

    def _members(self) -> list[NodeName]:
        return [name for name in self._runtime.nodes() if name != _TOOLS]

    def tails(self) -> str:
        """The end of every node's log, long lines cut."""
        texts: list[str] = []
        for name in self._members():
            lines = self._runtime.log_tail(name, _TAIL_LINES).splitlines()
            texts.append(f"--- {name} ({self._runtime.status(name)})")
            texts += [line[:_TAIL_CHARACTERS] for line in lines]
        return "\n".join(texts)

    def run_tool(self, *command: str) -> tuple[int, str, str]:
        """Run a program beside the nodes: exit code, standard output, standard error."""
        done = self._container(_TOOLS).exec_run(list(command), demux=True)
        output, errors = ((stream or b"").decode(errors="replace") for stream in done.output)
        return int(done.exit_code), output, errors

    def _container(self, name: NodeName) -> Any:
        labels = [f"{RUN_LABEL}={self._spec.run_id}", f"{NODE_LABEL}={name}", f"{ROLE_LABEL}=node"]
        containers: Any = self._engine.containers
        (container,) = containers.list(filters={"label": labels})
        return container

    def collect(self) -> None:
        """Keep what every node printed, in the run folder."""
        for name in self._runtime.nodes():
            self._runtime.collect(name, RunFolder(self.run_folder).node(name), with_data=False)

    def collect_data(self, node_id: int) -> Path:
        """Copy a stopped node's data into the run folder; the copy."""
        name = self.name_of(node_id)
        assert self._runtime.status(name) == "exited", f"{name} still writes"
        folder = RunFolder(self.run_folder).node(name)
        self._runtime.collect(name, folder, with_data=True)
        return folder / DATA

    def tell_ports(self, settings: Mapping[str, str], data_paths: Mapping[int, str]) -> None:
        """Give the brokers their properties, now that their ports are known; they start."""
        for broker in self.brokers:
            name = broker_name(broker)
            port = self._runtime.endpoint(name, _CLIENT).port
            text = broker_properties(broker, name, port, self.voters, data_paths[broker], settings)
            folder = configuration_folder(self.run_folder, name)
            unfinished = folder / f"{PROPERTIES}.new"
            unfinished.write_text(text)
            unfinished.rename(folder / PROPERTIES)


def broker_name(node_id: int) -> NodeName:
    return NodeName(f"b{node_id}")


@contextmanager
def deployed(
    run_folder: Path,
    controllers: Controllers,
    *,
    brokers: int,
    settings: Mapping[str, str] | None = None,
    environment: Mapping[str, str] | None = None,
    run_id: RunId | None = None,
) -> Generator[Cluster]:
    """A cluster in a new run folder; removed at the end, its logs kept.

    ``settings`` and ``environment`` are the brokers'; ``run_id``: of a cluster that is no more, to
    have its cluster id.
    """
    run_folder.mkdir(parents=True)
    with RunFolder(run_folder).lock.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        runtime = DockerRuntime()
        runtime.prepare(list(dict.fromkeys([*controllers.images, IMAGE])))
        run_id = run_id or RunId(f"referee-{uuid.uuid4().hex[:8]}")
        quorum = controllers.quorum(run_id, run_folder, runtime.place)
        ids = tuple(range(_FIRST_BROKER, _FIRST_BROKER + brokers))
        placed = [
            _broker(run_id, run_folder, runtime, node_id, environment or {}) for node_id in ids
        ]
        spec = _specification(run_id, run_folder, quorum, placed)
        runtime.deploy(spec)
        try:
            engine = connect()
            try:
                cluster = Cluster(engine, runtime, spec, quorum.voters, ids)
                paths = {node_id: node.data_path for node_id, node in zip(ids, placed, strict=True)}
                cluster.tell_ports(settings or {}, paths)
                try:
                    yield cluster
                finally:
                    cluster.collect()
            finally:
                engine.close()
        finally:
            runtime.teardown()


def _broker(
    run_id: RunId,
    run_folder: Path,
    runtime: DockerRuntime,
    node_id: int,
    environment: Mapping[str, str],
) -> NodeSpec:
    name = broker_name(node_id)
    ports = {_CLIENT: CLIENT_PORT, _INTERNAL: INTERNAL_PORT}
    placement = runtime.place(name, RunFolder(run_folder).node(name), ports)
    return kafka_node(name, run_folder, placement, kraft.cluster_id(run_id), environment)


def _specification(
    run_id: RunId, run_folder: Path, quorum: Quorum, brokers: list[NodeSpec]
) -> DeploymentSpec:
    tools = NodeSpec(
        name=_TOOLS,
        image=IMAGE.name,
        command=("sleep", "infinity"),
        environment={"LOG_LEVEL": "ERROR"},
        ports={},
        data_path="/data",
    )
    return DeploymentSpec(run_id, run_folder, (*quorum.nodes, *brokers, tools))
