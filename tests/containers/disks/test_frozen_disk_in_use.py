"""The container that keeps the disks never waits for a disk that is frozen."""

import os
import signal
from pathlib import Path

import pytest
from docker import DockerClient

from splitbrain.contracts.names import NodeName
from splitbrain.history.run_folder import RunFolder
from splitbrain.runtimes.docker import sweep
from splitbrain.runtimes.docker.runtime import DockerRuntime
from tests.awaiting import await_true
from tests.containers.disks.own_disks import beside, container_of, with_disks

pytestmark = [pytest.mark.containers, pytest.mark.timeout(180)]

N1 = NodeName("n1")
#: It sleeps between two looks at the disks, and is switched away from a few times a look.
LOOKS = 20


def test_a_disk_first_used_as_it_freezes_stops_nobody(tmp_path: Path, engine: DockerClient) -> None:
    runtime = DockerRuntime()
    runtime.prepare([])
    spec = with_disks(tmp_path, N1)
    try:
        runtime.deploy(spec)
        keeper = container_of(engine, spec.run_id, "disks")
        first_process = int(keeper.attrs["State"]["Pid"])
        # Between its looks the node writes its first file and the disk freezes.
        await_true(lambda: stopped_between_looks(first_process))
        assert beside(engine, spec.run_id, N1, "echo first > /data/first") == (0, "")
        runtime.disks.stall(N1)
        seen = switches(first_process)
        os.kill(first_process, signal.SIGCONT)
        await_true(lambda: switches(first_process) >= seen + LOOKS or waits(first_process))
        # Whoever waits for a frozen disk cannot be killed.
        assert not waits(first_process)
        keeper.kill()
        await_true(lambda: container_of(engine, spec.run_id, "disks").status == "exited")
    finally:
        runtime.teardown()
        sweep.sweep_engine(RunFolder(tmp_path).lock)


def stopped_between_looks(process: int) -> bool:
    """Whether it could be stopped without the lock of a disk: else whoever freezes it waits."""
    os.kill(process, signal.SIGSTOP)
    await_true(lambda: word(process, "State") == "T")
    if not any("lock:" in held.read_text() for held in Path(f"/proc/{process}/fdinfo").iterdir()):
        return True
    os.kill(process, signal.SIGCONT)
    return False


def switches(process: int) -> int:
    """How often it gave the processor away by itself."""
    return int(word(process, "voluntary_ctxt_switches"))


def waits(process: int) -> bool:
    """Whether it waits for something that no signal interrupts."""
    return word(process, "State") == "D"


def word(process: int, field: str) -> str:
    status = Path(f"/proc/{process}/status").read_text()
    return next(line.split()[1] for line in status.splitlines() if line.startswith(f"{field}:"))
