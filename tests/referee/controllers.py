"""Three controllers, Kafka's or ours: whoever uses them knows their voters and nothing else."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Protocol

import msgspec

from splitbrain.contracts.experiment import Experiment
from splitbrain.contracts.names import NodeName, RunId
from splitbrain.contracts.runtime import ImageSource, Mount, NodeSpec, Placement
from splitbrain.contracts.system import PEER_PORT, Place
from splitbrain.history.run_folder import RunFolder
from splitbrain.nodes.quorum.identifiers import NO_DIRECTORY, NodeId
from splitbrain.nodes.quorum.persistent import Voter
from splitbrain.nodes.server.machine.configuration import encode_configuration, read_configuration
from splitbrain.nodes.server.start.metadata_settings import CONTROLLER_SETTING_NAMES
from splitbrain.systems.kafka.adapter import IMAGE
from splitbrain.systems.kraft import deployment as kraft
from tests.referee.properties import controller_properties, format_options

COUNT: Final = 3
PROPERTIES: Final = "server.properties"
_HEAP_MIB: Final = "128"
#: Folders of a node's data below its data path.
KAFKA_DATA: Final = "log"
OWN_DATA: Final = "own"
#: Where a node finds the folder that its data begin as.
_SEED_PATH: Final = "/seed"
#: Node ids to folders that their data begin as.
Seeds = Mapping[int, Path]


@dataclass(frozen=True)
class Quorum:
    nodes: tuple[NodeSpec, ...]
    voters: tuple[Voter, ...]


class Controllers(Protocol):
    """A make of controllers."""

    @property
    def images(self) -> tuple[ImageSource, ...]: ...

    def quorum(self, run_id: RunId, run_folder: Path, place: Place) -> Quorum:
        """Write their configurations below the run folder and describe them."""
        ...


def kafka_node(
    name: NodeName,
    run_folder: Path,
    placement: Placement,
    cluster_id: str,
    environment: Mapping[str, str],
) -> NodeSpec:
    """A controller or a broker of Kafka; starts once its properties are in its folder."""
    folder = configuration_folder(run_folder, name)
    folder.mkdir(parents=True, exist_ok=True)
    return NodeSpec(
        name=name,
        image=IMAGE.name,
        command=(
            "kafka-node",
            f"{placement.config_path}/{PROPERTIES}",
            cluster_id,
            *format_options(),
        ),
        environment={"KAFKA_HEAP": _HEAP_MIB, **environment},
        ports=placement.ports,
        data_path=placement.data_path,
        mounts=(Mount(folder, placement.config_path, read_only=True),),
    )


def seeded(node: NodeSpec, folder: Path | None, target: str) -> NodeSpec:
    """The node, whose folder ``target`` is a copy of this one in its first life; None: as it is."""
    if folder is None:
        return node
    copied = f"[ -e {target} ] || {{ mkdir -p {target}.new && cp -r {_SEED_PATH}/. {target}.new"
    begin = f'{copied} && mv {target}.new {target}; }} && exec "$@"'
    return msgspec.structs.replace(
        node,
        command=("sh", "-c", begin, "sh", *node.command),
        mounts=(*node.mounts, Mount(folder, _SEED_PATH, read_only=True)),
    )


def configuration_folder(run_folder: Path, name: NodeName) -> Path:
    return RunFolder(run_folder).node(name) / kraft.CONFIGURATION_FOLDER


@dataclass(frozen=True)
class KafkaControllers:
    """Apache Kafka's own, dedicated, with static voters."""

    settings: Mapping[str, str] = field(default_factory=dict[str, str])
    environment: Mapping[str, str] = field(default_factory=dict[str, str])
    seeds: Seeds = field(default_factory=dict[int, Path])
    images: tuple[ImageSource, ...] = (IMAGE,)

    def quorum(self, run_id: RunId, run_folder: Path, place: Place) -> Quorum:
        port = {PEER_PORT: kraft.PORTS[PEER_PORT]}
        names = [kraft.node_name(node_id) for node_id in range(1, COUNT + 1)]
        placed = {name: place(name, RunFolder(run_folder).node(name), port) for name in names}
        voters = tuple(
            Voter(NodeId(node_id), NO_DIRECTORY, placement.peer_host, placement.ports[PEER_PORT])
            for node_id, placement in enumerate(placed.values(), start=1)
        )
        nodes: list[NodeSpec] = []
        for (name, placement), voter in zip(placed.items(), voters, strict=True):
            node = kafka_node(
                name, run_folder, placement, kraft.cluster_id(run_id), self.environment
            )
            text = controller_properties(voter, voters, placement.data_path, self.settings)
            (configuration_folder(run_folder, name) / PROPERTIES).write_text(text)
            seed = self.seeds.get(voter.node_id)
            nodes.append(seeded(node, seed, f"{placement.data_path}/{KAFKA_DATA}"))
        return Quorum(tuple(nodes), voters)


@dataclass(frozen=True)
class OwnControllers:
    """Ours, with static voters too; their listener for peers is what brokers call CONTROLLER."""

    settings: dict[str, str] = field(default_factory=dict[str, str])
    seeds: Seeds = field(default_factory=dict[int, Path])
    images: tuple[ImageSource, ...] = (kraft.IMAGE,)

    def quorum(self, run_id: RunId, run_folder: Path, place: Place) -> Quorum:
        of_quorum = {
            name: value
            for name, value in self.settings.items()
            if name not in CONTROLLER_SETTING_NAMES
        }
        options = Experiment(system="kraft", nodes=COUNT, settings=of_quorum)
        spec = kraft.deployment(run_id, run_folder, options, place)
        voters: tuple[Voter, ...] = ()
        nodes: list[NodeSpec] = []
        for node in spec.nodes:
            path = configuration_folder(run_folder, node.name) / kraft.CONFIGURATION_FILE
            written = read_configuration(path)
            voters = tuple(
                msgspec.structs.replace(voter, directory_id=NO_DIRECTORY)
                for voter in written.voters
            )
            # The adapter deploys registers, whose voters are their disks as well.
            as_controller = msgspec.structs.replace(
                written,
                state_machine="metadata",
                voters=voters,
                data_folder=f"{written.data_folder}/{OWN_DATA}",
                settings={**written.settings, **self.settings},
            )
            path.write_bytes(encode_configuration(as_controller))
            seed = self.seeds.get(NodeId(written.node_id))
            nodes.append(seeded(node, seed, as_controller.data_folder))
        return Quorum(tuple(nodes), voters)


@dataclass(frozen=True)
class MixedControllers:
    """Two of Kafka's and one of ours in one quorum."""

    kafka: KafkaControllers
    own: OwnControllers
    own_id: int = COUNT

    @property
    def images(self) -> tuple[ImageSource, ...]:
        return (*self.kafka.images, *self.own.images)

    def quorum(self, run_id: RunId, run_folder: Path, place: Place) -> Quorum:
        kafka = self.kafka.quorum(run_id, run_folder, place)
        own = self.own.quorum(run_id, run_folder, place)
        assert kafka.voters == own.voters
        nodes = list(kafka.nodes)
        nodes[self.own_id - 1] = own.nodes[self.own_id - 1]
        return Quorum(tuple(nodes), kafka.voters)
