"""A small cluster of web servers: any program that listens will do to test a runtime."""

import uuid
from pathlib import Path
from typing import Any

from docker import DockerClient

from splitbrain.contracts.names import NodeName, RunId
from splitbrain.contracts.runtime import DeploymentSpec, NodeSpec
from splitbrain.runtimes.docker.images import POD
from splitbrain.runtimes.docker.names import RUN_LABEL

NAMES = (NodeName("n1"), NodeName("n2"), NodeName("n3"))

#: Counts its starts in its data folder, then serves it.
SERVER = "echo started >> /data/starts; exec python3 -u -m http.server 8000 --directory /data"


def specification(
    run_folder: Path,
    *names: NodeName,
    image: str = POD.name,
    command: tuple[str, ...] = ("sh", "-c", SERVER),
) -> DeploymentSpec:
    return DeploymentSpec(
        run_id=RunId(f"test-{uuid.uuid4().hex[:8]}"),
        run_folder=run_folder,
        nodes=tuple(
            NodeSpec(
                name=name,
                image=image,
                command=command,
                environment={"GREETING": f"I am {name}"},
                ports={"client": 8000},
                data_path="/data",
                memory_limit_mib=128,
            )
            for name in names or NAMES
        ),
    )


def resources(engine: DockerClient, run_id: RunId) -> dict[str, list[str]]:
    """Names of the run's containers, networks and volumes, by kind; empty when all is gone."""
    api: Any = engine.api
    mine = {"label": f"{RUN_LABEL}={run_id}"}
    found: dict[str, list[str]] = {
        "containers": sorted(thing["Names"][0] for thing in api.containers(all=True, filters=mine)),
        "networks": sorted(thing["Name"] for thing in api.networks(filters=mine)),
        "volumes": sorted(thing["Name"] for thing in api.volumes(filters=mine)["Volumes"] or []),
    }
    return {kind: names for kind, names in found.items() if names}


def states(engine: DockerClient, run_id: RunId) -> list[str]:
    """Return the states of the run's containers, sorted."""
    api: Any = engine.api
    found = api.containers(all=True, filters={"label": f"{RUN_LABEL}={run_id}"})
    return sorted(str(thing["State"]) for thing in found)
