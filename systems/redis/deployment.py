"""Describes a cluster of Redis servers and Sentinels to a runtime: configuration files, commands.

The Sentinels know each other and all replicas from the first moment, as their own rewritten
configuration would tell them after a while; else it takes up to ten seconds until the last one has
found the last replica. Must never start anything.
"""

import hashlib
import shutil
from pathlib import Path
from typing import Final

from splitbrain.contracts.errors import UsageError, not_written
from splitbrain.contracts.experiment import Experiment
from splitbrain.contracts.names import NodeName, RunId
from splitbrain.contracts.runtime import (
    DeploymentSpec,
    HostProgram,
    ImageSource,
    Mount,
    NodeSpec,
    Placement,
)
from splitbrain.contracts.scenario import NODES_MAX
from splitbrain.contracts.system import Place
from splitbrain.history.run_folder import RunFolder
from splitbrain.systems.redis import run_node
from splitbrain.systems.redis.settings import (
    MASTER_NAME,
    SENTINEL_PORT,
    SERVER_PORT,
    Member,
    Membership,
    Settings,
    settings,
)

#: Image that runtimes with images start: the base with Debian's packages.
IMAGE: Final = ImageSource(
    "splitbrain-redis",
    "redis",
    has_packages=True,
    # Debian's packages bear the names of their programs.
    programs=tuple(HostProgram(name, package=name) for name in run_node.PROGRAMS),
)
#: Ports that the programs get where each node has a network of its own.
PORTS: Final = {SERVER_PORT: 6379, SENTINEL_PORT: 26379}
#: Folder below a node's folder in the run folder.
CONFIGURATION_FOLDER: Final = "config"
#: Program in it that runs the node.
PROGRAM: Final = "run_node.py"


def check_options(options: Experiment) -> None:
    """Refuse what cannot be deployed, before anything is made."""
    if not 1 <= options.nodes <= NODES_MAX:
        raise UsageError(
            f"{options.nodes} nodes were asked for", f"Choose between 1 and {NODES_MAX}"
        )
    if options.bugs:
        raise UsageError(
            f"redis has no planted bug {options.bugs[0]!r}", "Leave --bug out: it brings its own"
        )
    settings(options.settings, options.nodes)


def deployment(
    run_id: RunId, run_folder: Path, options: Experiment, place: Place
) -> tuple[DeploymentSpec, Membership]:
    """Write every node's configuration below the run folder and describe the cluster.

    Raises:
        UsageError: the number of nodes or a setting is wrong.
        HarnessError: the run folder cannot be written.
    """
    check_options(options)
    names = [NodeName(f"n{number}") for number in range(1, options.nodes + 1)]
    placements = {name: place(name, RunFolder(run_folder).node(name), PORTS) for name in names}
    membership = Membership(
        tuple(_member(run_id, name, placement) for name, placement in placements.items())
    )
    in_force = settings(options.settings, options.nodes)
    nodes = tuple(
        _node(run_folder, membership, member, placements[member.node], in_force)
        for member in membership.members
    )
    return DeploymentSpec(run_id=run_id, run_folder=run_folder, nodes=nodes), membership


def server_configuration(
    membership: Membership, member: Member, placement: Placement, in_force: Settings
) -> str:
    """Return the first ``redis.conf`` of a node."""
    first = membership.members[0]
    lines = [
        f"bind {placement.listen_host}",
        "protected-mode no",
        f"port {placement.ports[SERVER_PORT]}",
        f"dir {placement.data_path}",
        'logfile ""',
        # Snapshots by timer would only hide what the append-only file loses or keeps.
        'save ""',
        # For the digests of members' states (DEBUG DIGEST), which clients of the harness ask for.
        "enable-debug-command yes",
        f"replica-announce-ip {member.host}",
        f"replica-announce-port {member.server_port}",
        *(f"{name} {value}" for name, value in in_force.server.items()),
    ]
    if member != first:
        lines.append(f"replicaof {first.host} {first.server_port}")
    return "\n".join(lines) + "\n"


def sentinel_configuration(
    membership: Membership, member: Member, placement: Placement, in_force: Settings
) -> str:
    """Return the first ``sentinel.conf`` of a node."""
    first, *replicas = membership.members
    others = [other for other in membership.members if other != member]
    group = f"{MASTER_NAME} {first.host} {first.server_port} {in_force.sentinel['quorum']}"
    numbers = {name: value for name, value in in_force.sentinel.items() if name != "quorum"}
    lines = [
        f"bind {placement.listen_host}",
        "protected-mode no",
        f"port {placement.ports[SENTINEL_PORT]}",
        f"dir {placement.data_path}",
        'logfile ""',
        f"sentinel myid {member.sentinel_id}",
        "sentinel resolve-hostnames yes",
        "sentinel announce-hostnames yes",
        f"sentinel announce-ip {member.host}",
        f"sentinel announce-port {member.sentinel_port}",
        f"sentinel monitor {group}",
        *(f"sentinel {name} {MASTER_NAME} {value}" for name, value in numbers.items()),
        *(
            f"sentinel known-replica {MASTER_NAME} {replica.host} {replica.server_port}"
            for replica in replicas
        ),
        *(
            f"sentinel known-sentinel {MASTER_NAME} {other.host} {other.sentinel_port} "
            f"{other.sentinel_id}"
            for other in others
        ),
    ]
    return "\n".join(lines) + "\n"


def _member(run_id: RunId, name: NodeName, placement: Placement) -> Member:
    return Member(
        node=name,
        host=placement.peer_host,
        server_port=placement.ports[SERVER_PORT],
        sentinel_port=placement.ports[SENTINEL_PORT],
        # Shaped as Sentinel's own, and the same for the same run.
        sentinel_id=hashlib.sha256(f"sentinel {run_id} {name}".encode()).hexdigest()[:40],
    )


def _node(
    run_folder: Path,
    membership: Membership,
    member: Member,
    placement: Placement,
    in_force: Settings,
) -> NodeSpec:
    folder = RunFolder(run_folder).node(member.node) / CONFIGURATION_FOLDER
    try:
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(Path(run_node.__file__), folder / PROGRAM)
        (folder / "redis.conf").write_text(
            server_configuration(membership, member, placement, in_force)
        )
        (folder / "sentinel.conf").write_text(
            sentinel_configuration(membership, member, placement, in_force)
        )
    except OSError as error:
        raise not_written("write a node's configuration", folder, error) from error
    return NodeSpec(
        name=member.node,
        image=IMAGE.name,
        command=(
            placement.python,
            f"{placement.config_path}/{PROGRAM}",
            placement.config_path,
            placement.data_path,
        ),
        environment={"PYTHONUNBUFFERED": "1"},
        ports=placement.ports,
        data_path=placement.data_path,
        mounts=(Mount(folder, placement.config_path, read_only=True),),
    )
