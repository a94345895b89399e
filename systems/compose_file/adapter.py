"""A compose file under test: its services are the nodes, a driver asks those that clients know.

Must never start or stop a node: the runtime does.
"""

import asyncio
import os
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Final

import msgspec

from splitbrain.contracts.errors import HarnessError, UsageError, in_one_line, not_written
from splitbrain.contracts.experiment import Experiment
from splitbrain.contracts.log_pattern import LogPattern
from splitbrain.contracts.names import NodeName, RunId
from splitbrain.contracts.operations import Client, Completion, Operation
from splitbrain.contracts.runtime import (
    ContainerSpec,
    DeploymentSpec,
    ImageSource,
    Mount,
    NodeSpec,
    Runtime,
)
from splitbrain.contracts.system import (
    CLIENT_PORT,
    PEER_PORT,
    AllowedAnomaly,
    LeaderView,
    Place,
    ReadsSpeakFor,
    Route,
    System,
    Tempo,
)
from splitbrain.history.run_folder import RunFolder
from splitbrain.plugins.files import digest_of, is_file
from splitbrain.systems.compose_file.choices import DRIVER, ComposeNode, Trial, read_path, trial_of
from splitbrain.systems.compose_file.drivers.driver import Driver
from splitbrain.systems.compose_file.reading import read_compose_file
from splitbrain.systems.questions import not_yet

#: The data of a service without a volume, where nothing of it lies.
_NO_DATA: Final = "/splitbrain-data"
_PROBE_TIMEOUT_S: Final = 2.0
_PROBE: Final = Operation("read", "splitbrain-probe", None)


class ComposeSystem(System):
    """Adapter of one run; all of it follows from the experiment's settings."""

    name = "compose"
    log_patterns = (
        LogPattern(
            r"Traceback \(most recent call last\)",
            "Services log the errors so that they answer.",
            harmless=True,
        ),
    )

    @cached_property
    def trial(self) -> Trial:
        """Return the file and the choices; raises UsageError where they cannot be honoured."""
        settings = {} if self.experiment is None else self.experiment.settings
        return trial_of(read_compose_file(read_path(settings), os.environ), settings)

    @property
    def reads_speak_for(self) -> ReadsSpeakFor:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Return what the driver promises; as a rule whichever target is asked speaks for all."""
        return self._kind.reads_speak_for

    @property
    def _kind(self) -> type[Driver]:
        """The driver that is named; without a file one that promises what is usual."""
        has_file = self.experiment is not None and self.experiment.settings
        return self.trial.driver if has_file else Driver

    def allowed(self) -> Sequence[AllowedAnomaly]:
        """Return what the driver's protocol leaves open."""
        return self._kind.allowed

    def tempo(self) -> Tempo:
        """Return how long those who speak the protocol may take, and what the user knows of it."""
        tempo = self._kind.tempo
        if self._kind is Driver or self.trial.notices_s is None:
            return tempo
        return msgspec.structs.replace(tempo, notices_s=self.trial.notices_s)

    @cached_property
    def _driver(self) -> Driver:
        trial = self.trial
        workload = self.experiment.workload if self.experiment is not None else None
        first = trial.targets[0].service
        return trial.driver(trial.options, first.environment, workload or "register")

    def workloads(self, state_machine: str | None) -> Sequence[str]:
        """Return the driver's; without a file registers."""
        return self._kind.workloads

    def workload_options(self, workload: str) -> Mapping[str, str]:
        """Leave compare-and-set out where the driver has none."""
        has_none = workload == "register" and not self.trial.driver.has_compare_and_set
        return {"cas": "no"} if has_none else {}

    def observers(self, options: Experiment) -> Sequence[NodeName]:
        """Return the nodes that are spared."""
        return tuple(node.node for node in self.trial.nodes if node.is_spared)

    def images(self) -> Sequence[ImageSource]:
        """Return the services' images, which must be there."""
        if self.experiment is None:
            return ()
        tags = dict.fromkeys(node.service.image for node in self.trial.nodes)
        return tuple(ImageSource(tag, folder="") for tag in tags)

    def check_options(self, options: Experiment) -> None:
        """Refuse what the file and the driver do not have."""
        trial = self.trial
        if options.runtime != "docker":
            raise UsageError(
                f"a compose file is of images, which the runtime {options.runtime} has not",
                "Use --runtime docker",
            )
        if options.nodes != len(trial.hit):
            raise UsageError(
                f"--nodes is {options.nodes}, and faults hit {len(trial.hit)} containers of "
                f"{trial.file.path}",
                f"Give --nodes {len(trial.hit)}, or use `splitbrain try`",
            )
        if not trial.driver.has_compare_and_set and (
            options.workload == "register" and options.workload_options.get("cas", "no") != "no"
        ):
            raise UsageError(
                f"the driver {trial.driver.name} has no compare-and-set",
                "Leave --workload-option cas out",
            )
        assert self._driver, "it refuses its options when it is made"

    def deployment(
        self, run_id: RunId, run_folder: Path, options: Experiment, place: Place
    ) -> DeploymentSpec:
        """Describe the services; the file is kept in the run folder as it stands."""
        trial = self.trial
        try:
            (run_folder / "compose.yaml").write_text(trial.file.text, encoding="utf-8")
        except OSError as error:
            raise not_written("keep the compose file", run_folder, error) from error
        nodes = tuple(_node_spec(node, RunFolder(run_folder), place) for node in trial.nodes)
        return DeploymentSpec(run_id=run_id, run_folder=run_folder, nodes=nodes)

    def starts_again(self, node: NodeName) -> bool:
        """Whether its service depends on others, which start at the same time."""
        return any(known.node == node and known.service.depends_on for known in self.trial.nodes)

    def ready(self, runtime: Runtime) -> None:
        """Return when all run, every target answers a read, and one can be read."""
        for node in self.trial.nodes:
            status = runtime.status(node.node)
            if status != "running":
                raise not_yet(self.name, "start the services", f"{node.name} is {status}")
        answers = asyncio.run(self._probe(runtime))
        for node, answer in answers:
            if answer.type == "info" or (answer.type == "fail" and answer.node is None):
                problem = f"{node.name}:{node.port} does not answer: {answer.error}"
                raise not_yet(self.name, "wait for a client to be answered", problem)
        if not any(answer.type == "ok" for _, answer in answers):
            node, answer = answers[0]
            problem = f"{node.name}:{node.port} refuses to be read: {answer.error}"
            raise not_yet(self.name, "wait for a client to be served", problem)

    async def _probe(self, runtime: Runtime) -> list[tuple[ComposeNode, Completion]]:
        answers: list[tuple[ComposeNode, Completion]] = []
        driver = self._driver_at(runtime)
        for node in self.trial.targets:
            there = driver.targets[node.node]
            try:
                await driver.prepare(there)
            except Exception as error:
                why = error.problem if isinstance(error, HarnessError) else in_one_line(error)
                problem = f"{node.name}:{node.port}: {why}"
                raise not_yet(self.name, "prepare what clients need", problem) from error
            client = driver.open_client(node.node, there)
            answers.append((node, await client.invoke(_PROBE, _PROBE_TIMEOUT_S)))
            await client.close()
        return answers

    def open_client(self, runtime: Runtime, route: Route) -> Client:
        """Return a fresh client of the route's node, or of another where clients do not ask it."""
        targets = [node.node for node in self.trial.targets]
        place = [node.node for node in self.trial.nodes].index(route.node)
        node = route.node if route.node in targets else targets[place % len(targets)]
        driver = self._driver_at(runtime)
        return driver.open_client(node, driver.targets[node])

    def _driver_at(self, runtime: Runtime) -> Driver:
        """The driver, with where its targets are now."""
        targets = [node.node for node in self.trial.targets]
        self._driver.targets = {node: runtime.endpoint(node, CLIENT_PORT) for node in targets}
        return self._driver

    @property
    def names_leaders(self) -> bool:
        """Whether the driver can tell."""
        return self._kind is not Driver and self._driver.names_leaders

    def leader(self, runtime: Runtime, timeout_s: float) -> LeaderView:
        """Return the target that leads, where the driver can tell."""
        return asyncio.run(self._driver_at(runtime).leader(timeout_s))

    def converged(self, runtime: Runtime) -> None:
        """Return when the driver finds that its targets agree."""
        asyncio.run(self._driver_at(runtime).converged())

    def versions(self) -> dict[str, str]:
        """Return digests of the file and of a driver's file, and what each node is."""
        if self.experiment is None:
            return {}
        named = {node.node: f"{node.name}, {node.service.image}" for node in self.trial.nodes}
        driver = self.experiment.settings.get(DRIVER, "")
        of_driver = {"driver": digest_of(driver)} if is_file(driver) else {}
        return {"compose": self.trial.file.digest(), **of_driver, **named}


def _node_spec(node: ComposeNode, folder: RunFolder, place: Place) -> NodeSpec:
    service = node.service
    known = node.port or next(iter(service.ports), None)
    wanted = {CLIENT_PORT: node.port, PEER_PORT: known}
    ports = {name: port for name, port in wanted.items() if port is not None}
    placement = place(node.node, folder.node(node.node), ports)
    keeps = service.entry_point is None
    own_name = () if node.name == service.name else (node.name,)
    traits = ContainerSpec(
        keeps_entry_point=keeps,
        hostname=service.hostname,
        aliases=(service.name, *own_name, *service.aliases),
        volumes=service.volumes[1:],
        restart=service.restart,
        working_folder=service.working_folder,
        user=service.user,
    )
    return NodeSpec(
        name=node.node,
        image=service.image,
        command=(*(service.entry_point or ()), *(service.command or ())),
        environment=service.environment,
        ports=placement.ports,
        data_path=next(iter(service.volumes), _NO_DATA),
        mounts=tuple(Mount(Path(bind.host_path), bind.node_path, True) for bind in service.binds),
        container=traits,
    )
