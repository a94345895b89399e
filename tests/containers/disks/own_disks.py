"""A small cluster whose nodes have disks of their own, and what is to be seen of them."""

from pathlib import Path
from typing import Any

import msgspec
from docker import DockerClient

from splitbrain.contracts.names import NodeName, RunId
from splitbrain.contracts.runtime import DeploymentSpec
from splitbrain.runtimes.docker.names import NODE_LABEL, ROLE_LABEL, RUN_LABEL
from tests.awaiting import await_true
from tests.containers.web_servers import SERVER, specification

#: Small, so that filling it takes no time.
DISK_MIB = 32


#: A node that never ceases to write.
WRITER = ("sh", "-c", "while :; do date > /data/now; done")


def with_disks(
    run_folder: Path, *names: NodeName, command: tuple[str, ...] = ("sh", "-c", SERVER)
) -> DeploymentSpec:
    spec = specification(run_folder, *names, command=command)
    return msgspec.structs.replace(spec, disks="own", disk_mib=DISK_MIB)


def container_of(engine: DockerClient, run_id: RunId, role: str, node: str = "") -> Any:
    labels = [f"{RUN_LABEL}={run_id}", f"{ROLE_LABEL}={role}"]
    containers: Any = engine.containers
    found = containers.list(
        all=True, filters={"label": [*labels, *([f"{NODE_LABEL}={node}"] if node else [])]}
    )
    assert len(found) == 1, found
    return found[0]


def beside(engine: DockerClient, run_id: RunId, node: str, script: str) -> tuple[int, str]:
    """Exit code and output of a shell script that is run where the node's program runs."""
    result = container_of(engine, run_id, "node", node).exec_run(["sh", "-c", script])
    return int(result.exit_code), bytes(result.output).decode()


def only_what_is_synced_is_kept(engine: DockerClient, run_id: RunId, node: str) -> None:
    """From now on nothing but a node's own sync brings its changes to its disk.

    Without this the journal commits five seconds after a change, and once for the canary's file:
    on a machine that is busy that may be before the power is cut.
    """
    await_true(lambda: beside(engine, run_id, node, "test -e /data/.splitbrain-synced")[0] == 0)
    keeper = container_of(engine, run_id, "disks")
    again = f"mount -o remount,commit=3600 /run/splitbrain-disks/*/{node}"
    result = keeper.exec_run(["sh", "-c", again])
    assert result.exit_code == 0, result.output


def loop_devices(run_id: RunId) -> list[str]:
    """The loop devices of a run, by the files behind them.

    One whose file is deleted goes with the last mount namespace that has a copy of its mount.
    """
    found: list[str] = []
    for backing in Path("/sys/block").glob("loop*/loop/backing_file"):
        text = backing.read_text()
        if run_id in text:
            found.append(text.strip())
    return sorted(found)


def mounts(run_id: RunId) -> list[str]:
    """The run's mounts as this process sees them, those of containers apart."""
    lines = Path("/proc/self/mounts").read_text().splitlines()
    return [line for line in lines if run_id in line]
