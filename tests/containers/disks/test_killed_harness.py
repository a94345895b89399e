"""A harness that dies amid a disk fault leaves no mount, no loop device and no frozen disk."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from docker import DockerClient
from tenacity import RetryError

from splitbrain.contracts.names import NodeName, RunId
from splitbrain.history.run_folder import RunFolder
from splitbrain.runtimes.docker import sweep
from splitbrain.runtimes.watchdog import LOG_NAME
from tests.awaiting import await_true
from tests.containers.disks.own_disks import container_of, loop_devices, mounts
from tests.containers.real_runs import ROOT
from tests.containers.web_servers import resources
from tests.runtimes.killed_harness import killed_at_the_end

pytestmark = [pytest.mark.containers, pytest.mark.alone, pytest.mark.timeout(180)]

#: Deploys one node, begins a fault, says so and stays amid it.
HARNESS = """
import fcntl, pathlib, signal, sys
from splitbrain.contracts.names import NodeName
from splitbrain.history.run_folder import RunFolder
from splitbrain.runtimes.docker.runtime import DockerRuntime
from tests.containers.disks.own_disks import WRITER, with_disks

folder, moment = pathlib.Path(sys.argv[1]), sys.argv[2]
lock = RunFolder(folder).lock.open("w")
fcntl.flock(lock, fcntl.LOCK_EX)
runtime = DockerRuntime()
runtime.prepare([])
spec = with_disks(folder, NodeName("n1"), command=WRITER)
runtime.deploy(spec)
disks = runtime._own_disks
ask = disks._ask


def stay():
    print(spec.run_id, flush=True)
    signal.pause()


def ask_and_stay(action, command, *words):
    value = ask(action, command, *words)
    if command == moment:
        stay()
    return value


disks._ask = ask_and_stay
if moment == "freeze":
    disks.stall(NodeName("n1"))
elif moment == "fill":
    disks.fill(NodeName("n1"))
elif moment == "fail":
    disks.fail(NodeName("n1"))
else:
    disks.power_off([NodeName("n1")], 0)
"""


#: Taken in by every process of the run, its watchdog included.
WITHOUT_THE_THAW = """
from splitbrain.runtimes.docker import watchdog
watchdog.release_run = lambda *_, **__: None
"""
#: How long a watchdog is given that does the right thing; it takes less than two seconds.
PATIENCE_S = 60.0


@pytest.fixture(params=["freeze", "cut", "fill", "fail"])
def killed(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[RunId]:
    with killed_at_the_end(HARNESS, str(tmp_path), request.param) as run_id:
        pass
    yield run_id
    sweep.sweep_engine(RunFolder(tmp_path).lock)


def test_watchdog_and_clean_end_all(killed: RunId, tmp_path: Path, engine: DockerClient) -> None:
    # By the watchdog alone: a process that waits for a frozen disk could not have ended.
    log = tmp_path / LOG_NAME
    await_true(lambda: "its nodes are stopped" in log.read_text(), PATIENCE_S)
    assert container_of(engine, killed, "node").status == "exited"
    (swept,) = sweep.sweep_engine(RunFolder(tmp_path).lock)
    assert swept.problem is None
    assert resources(engine, killed) == {}
    await_true(lambda: loop_devices(killed) == [], 90)
    assert mounts(killed) == []
    # And what the node had on its disk is saved as evidence.
    assert (RunFolder(tmp_path).node(NodeName("n1")) / "data").is_dir()


def test_only_clean_ends_a_node_that_nobody_thawed(tmp_path: Path, engine: DockerClient) -> None:
    (tmp_path / "mutant").mkdir()
    (tmp_path / "mutant" / "sitecustomize.py").write_text(WITHOUT_THE_THAW)
    path = os.pathsep.join([str(tmp_path / "mutant"), str(ROOT)])
    with killed_at_the_end(HARNESS, str(tmp_path), "freeze", PYTHONPATH=path) as run_id:
        pass
    log = tmp_path / LOG_NAME
    try:
        await_true(lambda: "healing and stopping" in log.read_text(), PATIENCE_S)
        with pytest.raises(RetryError):
            await_true(lambda: "its nodes are stopped" in log.read_text(), PATIENCE_S / 3)
        assert container_of(engine, run_id, "node").status == "running"
    finally:
        (swept,) = sweep.sweep_engine(RunFolder(tmp_path).lock)
    assert swept.problem is None
    assert resources(engine, run_id) == {}
    await_true(lambda: loop_devices(run_id) == [], 90)


def test_clean_alone_removes_disks_without_keeper(tmp_path: Path, engine: DockerClient) -> None:
    with killed_at_the_end(HARNESS, str(tmp_path), "freeze") as run_id:
        container_of(engine, run_id, "disks").kill()
    (swept,) = sweep.sweep_engine(RunFolder(tmp_path).lock)
    assert swept.problem is None
    assert resources(engine, run_id) == {}
    await_true(lambda: loop_devices(run_id) == [], 90)
