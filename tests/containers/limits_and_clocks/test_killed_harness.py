"""A harness that dies amid a drift leaves nobody who rewrites a clock, and no volume."""

from pathlib import Path
from typing import Any

import pytest
from docker import DockerClient

from splitbrain.contracts.names import RunId
from splitbrain.history.run_folder import RunFolder
from splitbrain.runtimes.docker import sweep
from splitbrain.runtimes.docker.names import ROLE_LABEL, RUN_LABEL
from splitbrain.runtimes.watchdog import LOG_NAME
from tests.awaiting import await_true
from tests.containers.web_servers import resources
from tests.runtimes.killed_harness import killed_at_the_end

pytestmark = [pytest.mark.containers, pytest.mark.alone, pytest.mark.timeout(180)]

#: Deploys one node, lets its clock drift and its processor be scarce, says so and stays.
HARNESS = """
import fcntl, pathlib, signal, sys
import msgspec
from splitbrain.contracts.arms import ClockWarp
from splitbrain.contracts.names import NodeName
from splitbrain.history.run_folder import RunFolder
from splitbrain.runtimes.docker.runtime import DockerRuntime
from tests.containers.web_servers import specification

folder, node = pathlib.Path(sys.argv[1]), NodeName("n1")
lock = RunFolder(folder).lock.open("w")
fcntl.flock(lock, fcntl.LOCK_EX)
runtime = DockerRuntime()
runtime.prepare([])
spec = msgspec.structs.replace(specification(folder, node), clocks="own", limits="own")
runtime.deploy(spec)
runtime.clocks.warp(node, ClockWarp(drift_ppm=100_000))
runtime.processes.throttle(node, 0.5)
print(spec.run_id, flush=True)
signal.pause()
"""


def programs(engine: DockerClient, run_id: RunId) -> str:
    """Return the processes of the node's pause container."""
    containers: Any = engine.containers
    labels = [f"{RUN_LABEL}={run_id}", f"{ROLE_LABEL}=pod"]
    (pod,) = containers.list(filters={"label": labels})
    return " ".join(" ".join(words) for words in pod.top()["Processes"])


def test_the_watchdog_ends_a_drift_a_sweep_the_clock(tmp_path: Path, engine: DockerClient) -> None:
    with killed_at_the_end(HARNESS, str(tmp_path)) as run_id:
        before = programs(engine, run_id)
        volumes = resources(engine, run_id)["volumes"]
    try:
        assert "clock.py tick" in before
        assert len(volumes) == 2
        await_true(lambda: "its nodes are stopped" in (tmp_path / LOG_NAME).read_text(), 60)
        assert "clock.py" not in programs(engine, run_id)
    finally:
        (swept,) = sweep.sweep_engine(RunFolder(tmp_path).lock)
    assert swept.problem is None
    assert resources(engine, run_id) == {}
