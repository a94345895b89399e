"""Each disk fault bites the program that it is meant for, is seen from outside, and is undone."""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from docker import DockerClient

from splitbrain.contracts.errors import CapabilityError, HarnessError
from splitbrain.contracts.names import NodeName
from splitbrain.contracts.runtime import DeploymentSpec
from splitbrain.runtimes.docker.disks import why_no_disks
from splitbrain.runtimes.docker.runtime import DockerRuntime
from splitbrain.runtimes.local.runtime import LocalRuntime
from tests.awaiting import await_true
from tests.containers.disks.own_disks import (
    beside,
    container_of,
    loop_devices,
    mounts,
    only_what_is_synced_is_kept,
    with_disks,
)
from tests.containers.web_servers import NAMES, specification
from tests.runtimes import node_programs
from tests.runtimes.node_programs import living

pytestmark = [pytest.mark.containers, pytest.mark.timeout(180)]

N1, N2, N3 = NAMES
LOOK_S = 2.0
#: Runs a script where a node's program runs: exit code and output.
Shell = Callable[[str, str], tuple[int, str]]


@pytest.fixture
def shell(engine: DockerClient, spec: DeploymentSpec) -> Shell:
    return partial(beside, engine, spec.run_id)


def test_disks_can_be_had_here() -> None:
    assert why_no_disks() == ""


def test_power_cut_takes_what_was_not_synced_and_no_more(
    cluster: DockerRuntime, shell: Shell, spec: DeploymentSpec, engine: DockerClient
) -> None:
    for node in NAMES:
        only_what_is_synced_is_kept(engine, spec.run_id, node)
        write = "echo safe > /data/safe && sync /data/safe /data && echo lost > /data/lost"
        assert shell(node, write)[0] == 0
    losses = cluster.disks.power_off(NAMES, 1)
    assert [(loss.node, loss.synced_is_there, loss.unsynced_is_there) for loss in losses] == [
        (node, True, False) for node in NAMES
    ]
    assert [cluster.status(node) for node in NAMES] == ["exited"] * 3
    for node in NAMES:
        cluster.start(node)
        assert shell(node, "cat /data/safe") == (0, "safe\n")
        # Its very name was never flushed, nor by the canary.
        assert shell(node, "test -e /data/lost")[0] == 1


def test_a_kill_takes_nothing(cluster: DockerRuntime, shell: Shell) -> None:
    shell(N1, "echo there > /data/unsynced")
    cluster.kill(N1)
    assert cluster.disks.read(N1, "unsynced", 0, 9) == b"there\n"
    cluster.start(N1)
    assert shell(N1, "cat /data/unsynced") == (0, "there\n")


def test_cuts_of_nothing_are_noticed(
    cluster: DockerRuntime, spec: DeploymentSpec, engine: DockerClient, monkeypatch: Any
) -> None:
    keeper = container_of(engine, spec.run_id, "disks")
    folder = next(iter(keeper.exec_run(["sh", "-c", "echo /disks/*"]).output.decode().split()))
    ask = cluster._own_disks._ask

    def without_shutdown(action: str, command: str, *words: str) -> Any:
        if command != "cut":
            return ask(action, command, *words)
        program = (
            "import sys; sys.path.insert(0, '/opt/splitbrain'); import disk_mounts, disks; "
            "disk_mounts.shut_down = lambda folders: None; sys.exit(disks.main(sys.argv[1:]))"
        )
        result = keeper.exec_run(["python3", "-c", program, "cut", folder, *words])
        assert result.exit_code == 0
        return None

    monkeypatch.setattr(cluster._own_disks, "_ask", without_shutdown)
    (loss,) = cluster.disks.power_off([N1], 1)
    assert loss.synced_is_there
    assert loss.unsynced_is_there


def test_power_cut_forgets_although_another_namespace_holds_the_mount(
    cluster: DockerRuntime, shell: Shell, spec: DeploymentSpec, engine: DockerClient
) -> None:
    volumes: Any = engine.volumes
    (volume,) = [
        each
        for each in volumes.list(filters={"label": f"splitbrain.run={spec.run_id}"})
        if each.name.endswith("n1-data")
    ]
    holder = volume.attrs["Mountpoint"].rpartition("/")[0]
    containers: Any = engine.containers
    shell(N1, "sync")
    image = container_of(engine, spec.run_id, "disks").attrs["Image"]
    # The engine copies the mounts below the folder, and the copies outlive the node's own.
    bystander = containers.run(
        image, entrypoint=["sleep", "60"], detach=True, network_mode="none", auto_remove=True,
        volumes={holder: {"bind": "/copy", "mode": "rw"}},
    )  # fmt: skip
    try:
        shell(N1, "echo lost > /data/lost-behind-a-copy")
        (loss,) = cluster.disks.power_off([N1], 1)
        assert loss.synced_is_there
        assert not loss.unsynced_is_there
        cluster.start(N1)
        assert cluster.disks.state(N1, LOOK_S) == "writable"
        code, _ = shell(N1, "echo new > /data/new && sync /data/new")
        assert code == 0
    finally:
        bystander.kill()
    await_true(lambda: len(loop_devices(spec.run_id)) == len(NAMES), 90)


def test_a_local_run_beside_holds_no_copy_of_a_disk(
    cluster: DockerRuntime, spec: DeploymentSpec, tmp_path: Path
) -> None:
    beside_it = LocalRuntime("namespaces")
    try:
        with living(tmp_path) as folder:
            beside_it.deploy(node_programs.specification(beside_it, folder, [N1]))
            cluster.kill(N1)
            before = set(loop_devices(spec.run_id))
            cluster.disks.power_off([N1], 1)
            # Else the node would go on with a copy, and the old image would be deleted.
            assert not {each for each in loop_devices(spec.run_id) if "deleted" in each} - before
    finally:
        beside_it.teardown()


def test_full_disk_refuses_writes_until_it_is_drained(cluster: DockerRuntime, shell: Shell) -> None:
    write = "head -c 100000 /dev/zero > /data/more"
    assert "bytes" in cluster.disks.fill(N1)
    cluster.disks.fill(N1)
    assert cluster.disks.state(N1, LOOK_S) == "full"
    code, said = shell(N1, write)
    assert code != 0
    assert "No space left" in said
    assert cluster.disks.state(N2, LOOK_S) == "writable"
    cluster.disks.drain(N1)
    cluster.disks.drain(N1)
    assert cluster.disks.state(N1, LOOK_S) == "writable"
    assert shell(N1, write)[0] == 0


def test_stalled_disk_lets_no_write_end_until_it_thaws(
    cluster: DockerRuntime, shell: Shell, spec: DeploymentSpec, engine: DockerClient
) -> None:
    cluster.disks.stall(N1)
    cluster.disks.stall(N1)
    assert cluster.disks.state(N1, LOOK_S) == "stalled"
    node = container_of(engine, spec.run_id, "node", N1)
    node.exec_run(["sh", "-c", "echo late > /data/late"], detach=True)
    assert cluster.disks.state(N1, 0.5) == "stalled"
    assert shell(N1, "test -e /data/late")[0] == 1
    cluster.disks.unstall(N1)
    cluster.disks.unstall(N1)
    assert cluster.disks.state(N1, LOOK_S) == "writable"
    await_true(lambda: shell(N1, "cat /data/late") == (0, "late\n"))


@pytest.mark.parametrize("end", ["kill", "heal_all", "power_off"])
def test_nothing_waits_for_a_stalled_disk(
    cluster: DockerRuntime, spec: DeploymentSpec, engine: DockerClient, end: str
) -> None:
    node = container_of(engine, spec.run_id, "node", N1)
    node.exec_run(["sh", "-c", "while :; do date > /data/now; done"], detach=True)
    cluster.disks.stall(N1)
    if end == "kill":
        cluster.kill(N1)
    elif end == "heal_all":
        cluster.heal_all()
    else:
        (loss,) = cluster.disks.power_off([N1], 1)
        assert not loss.unsynced_is_there
    assert cluster.disks.state(N1, LOOK_S) == "writable"


def test_a_failed_disk_is_read_only_until_repaired(cluster: DockerRuntime, shell: Shell) -> None:
    cluster.disks.fail(N1)
    assert cluster.disks.state(N1, LOOK_S) == "read-only"
    code, said = shell(N1, "echo more > /data/more-than-before")
    assert code != 0
    assert "Read-only" in said
    with pytest.raises(HarnessError, match="the node is running"):
        cluster.disks.repair(N1)
    cluster.kill(N1)
    assert cluster.disks.state(N1, LOOK_S) == "read-only"
    cluster.disks.repair(N1)
    assert cluster.disks.state(N1, LOOK_S) == "writable"
    cluster.start(N1)
    assert shell(N1, "echo more > /data/more-than-before")[0] == 0


def test_power_cuts_leave_one_device_a_node(cluster: DockerRuntime, spec: DeploymentSpec) -> None:
    for turn in range(20):
        node = NAMES[turn % 3]
        cluster.kill(node)
        cluster.start(node)
        (loss,) = cluster.disks.power_off([node], turn)
        assert loss.synced_is_there
        assert not loss.unsynced_is_there
        cluster.start(node)
        # Other runs on this machine may hold a copy of a mount for a while.
        await_true(lambda: len(loop_devices(spec.run_id)) == len(NAMES), 90)


@pytest.fixture
def own_run(tmp_path: Path) -> Iterator[Path]:
    """Folder of one test's run, alive: else a sweep in another worker removes its nodes."""
    with living(tmp_path) as folder:
        yield folder


def test_teardown_leaves_no_device_and_no_mount(own_run: Path) -> None:
    spec = with_disks(own_run, NodeName("n1"))
    runtime = DockerRuntime(watched=False)
    try:
        runtime.deploy(spec)
        assert len(loop_devices(spec.run_id)) == 1
        runtime.disks.stall(N1)
    finally:
        runtime.teardown()
    await_true(lambda: loop_devices(spec.run_id) == [], 90)
    assert mounts(spec.run_id) == []


def test_nodes_without_disks_refuse_disk_faults_by_name(own_run: Path) -> None:
    runtime = DockerRuntime(watched=False)
    try:
        runtime.deploy(specification(own_run, N1))
        with pytest.raises(
            CapabilityError, match=r"fill the disk of n1.*without disks of their own"
        ):
            runtime.disks.fill(N1)
    finally:
        runtime.teardown()
