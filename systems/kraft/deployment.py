"""Describes a KRaft cluster to a runtime: identities, configuration files, commands.

Identities follow from the run's id: the same run gives the same cluster and directory ids.
"""

import base64
import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec

from splitbrain.contracts.distribution import PACKAGE
from splitbrain.contracts.errors import not_written
from splitbrain.contracts.experiment import Experiment
from splitbrain.contracts.names import NodeName, RunId
from splitbrain.contracts.runtime import DeploymentSpec, ImageSource, Mount, NodeSpec, Placement
from splitbrain.contracts.system import CLIENT_PORT, PEER_PORT, Place
from splitbrain.history.run_folder import RunFolder
from splitbrain.nodes.quorum.identifiers import NO_DIRECTORY, DirectoryId, NodeId
from splitbrain.nodes.quorum.persistent import Voter
from splitbrain.nodes.server.machine.configuration import (
    Listener,
    NodeConfiguration,
    encode_configuration,
)
from splitbrain.patched.loading import installed_patches, module_words
from splitbrain.patched.patch import Patch
from splitbrain.systems.kraft.planted_bugs import patches_of
from splitbrain.systems.kraft.state_machines import (
    broker_ids,
    check_options,
    node_name,
    node_settings,
    state_machine_of,
)

#: Port at which a node tells its figures.
METRICS_PORT: Final = "metrics"
#: Image that runtimes with images start.
IMAGE: Final = ImageSource(
    "splitbrain-kraft", "kraft", sources=("nodes", "patched"), has_wheels=True
)
#: Ports that the listeners get where each node has a network of its own.
PORTS: Final = {CLIENT_PORT: 9190, PEER_PORT: 9193, METRICS_PORT: 9194}
#: Names of the files in the configuration and state folders.
CONFIGURATION_FILE: Final = "node.json"
STATE_EVENT_FILE: Final = "state_events.jsonl"
DURABLE_LENGTH_FILE: Final = "durable_lengths.jsonl"
#: Folders below a node's folder in the run folder.
CONFIGURATION_FOLDER: Final = "config"
STATE_FOLDER: Final = "state"


def cluster_id(run_id: RunId) -> str:
    """Kafka's form of a cluster id, 22 characters, the same for the same run."""
    digest = bytearray(hashlib.sha256(f"cluster {run_id}".encode()).digest()[:16])
    digest[0] &= 0x7F  # never starts with a dash, which command lines take for an option
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()


def directory_id(run_id: RunId, node_id: int) -> DirectoryId:
    """Directory id of a node's first disk, the same for the same run."""
    digest = hashlib.sha256(f"directory {run_id} {node_id}".encode()).hexdigest()
    return DirectoryId(digest[:32])


def state_folder(run_folder: Path, node: NodeName) -> Path:
    """Host folder that the node writes its state events to."""
    return RunFolder(run_folder).node(node) / STATE_FOLDER


def deployment(
    run_id: RunId, run_folder: Path, options: Experiment, place: Place
) -> DeploymentSpec:
    """Write every node's configuration below the run folder and describe the cluster.

    Raises:
        UsageError: the number of nodes, a bug or a setting is unknown.
        HarnessError: the run folder cannot be written.
    """
    check_options(options)
    ids = (*range(1, options.nodes + 1), *broker_ids(options))
    placements = {
        node_id: place(node_name(node_id), RunFolder(run_folder).node(node_name(node_id)), PORTS)
        for node_id in ids
    }
    voters = tuple(
        Voter(
            NodeId(node_id),
            directory_id(run_id, node_id),
            placements[node_id].peer_host,
            placements[node_id].ports[PEER_PORT],
        )
        for node_id in ids[: options.nodes]
    )
    nodes = tuple(
        _node(run_id, run_folder, options, voters, node_id, placement)
        for node_id, placement in placements.items()
    )
    return DeploymentSpec(run_id=run_id, run_folder=run_folder, nodes=nodes)


def _node(
    run_id: RunId,
    run_folder: Path,
    options: Experiment,
    voters: tuple[Voter, ...],
    node_id: int,
    placement: Placement,
) -> NodeSpec:
    name = node_name(node_id)
    configuration = msgspec.structs.replace(
        _configuration(name, node_id, cluster_id(run_id), voters, placement),
        directory_id=directory_id(run_id, node_id),
        settings=node_settings(options),
        state_machine=state_machine_of(options),
    )
    bugs = patches_of(options.bugs, state_machine_of(options))
    return _spec(configuration, RunFolder(run_folder).node(name), placement, bugs)


def controller(
    cluster: str,
    name: NodeName,
    node_id: int,
    folder: Path,
    placed: Mapping[int, Placement],
    settings: Mapping[str, str],
) -> NodeSpec:
    """Write a controller's configuration below the node's folder and describe it.

    Its voters are static, as brokers know them that are told ``controller.quorum.voters``;
    ``placed`` has the places of all of them, its own included, by their node ids.

    Raises:
        HarnessError: the folder cannot be written.
    """
    voters = tuple(
        Voter(NodeId(number), NO_DIRECTORY, there.peer_host, there.ports[PEER_PORT])
        for number, there in sorted(placed.items())
    )
    configuration = msgspec.structs.replace(
        _configuration(name, node_id, cluster, voters, placed[node_id]),
        settings=dict(settings),
        state_machine="metadata",
    )
    return _spec(configuration, folder, placed[node_id], ())


def _configuration(
    name: NodeName, node_id: int, cluster: str, voters: tuple[Voter, ...], placement: Placement
) -> NodeConfiguration:
    return NodeConfiguration(
        name=name,
        node_id=node_id,
        directory_id=directory_id(RunId(cluster), node_id),
        cluster_id=cluster,
        voters=voters,
        quorum_listener=Listener(placement.listen_host, placement.ports[PEER_PORT]),
        client_listener=Listener(placement.listen_host, placement.ports[CLIENT_PORT]),
        metrics_listener=Listener(placement.listen_host, placement.ports[METRICS_PORT]),
        data_folder=placement.data_path,
        state_event_file=f"{placement.state_path}/{STATE_EVENT_FILE}",
        durable_length_file=f"{placement.state_path}/{DURABLE_LENGTH_FILE}",
        settings={},
    )


def _spec(
    configuration: NodeConfiguration, folder: Path, placement: Placement, bugs: Sequence[Patch]
) -> NodeSpec:
    configuration_folder, state = folder / CONFIGURATION_FOLDER, folder / STATE_FOLDER
    try:
        configuration_folder.mkdir(parents=True, exist_ok=True)
        state.mkdir(parents=True, exist_ok=True)
        (configuration_folder / CONFIGURATION_FILE).write_bytes(encode_configuration(configuration))
        module = module_words(
            f"{PACKAGE}.nodes",
            lambda: configuration_folder,
            placement.config_path,
            bugs,
        )
    except OSError as error:
        raise not_written("write a node's configuration", configuration_folder, error) from error
    return NodeSpec(
        name=NodeName(configuration.name),
        image=IMAGE.name,
        command=(
            placement.python,
            *module,
            "run",
            "--config",
            f"{placement.config_path}/{CONFIGURATION_FILE}",
            "--format-if-empty",
        ),
        environment={"PYTHONUNBUFFERED": "1"},
        ports=placement.ports,
        data_path=placement.data_path,
        mounts=(
            Mount(configuration_folder, placement.config_path, read_only=True),
            Mount(state, placement.state_path),
        ),
        durable_lengths_path=configuration.durable_length_file,
    )


def source_digest() -> str:
    """Digest of the nodes' source, patches of this process included: tells which build ran."""
    root = Path(__file__).resolve().parents[2] / "nodes"
    digest = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        digest.update(path.relative_to(root).as_posix().encode())
        digest.update(path.read_bytes())
    for patch in installed_patches():
        digest.update(patch.text.encode())
    return digest.hexdigest()[:16]
