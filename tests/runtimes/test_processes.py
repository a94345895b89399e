"""Acts of runtimes on a node's processes besides killing and freezing them."""

import http.client
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from splitbrain.contracts.arms import MemoryState
from splitbrain.contracts.errors import CapabilityError
from splitbrain.contracts.runtime import DeploymentSpec
from splitbrain.runtimes.local.sweep import sweep_machine
from tests.awaiting import await_true
from tests.runtimes.killed_harness import killed_at_the_end
from tests.runtimes.node_programs import N1, N2, N3, NAMES, PROGRAM, AnyRuntime, ask, serves

#: Of one processor; so little that any slack of the kernel's is far off.
SHARE = 0.2

#: n1 ends as it should when it is asked to, n2 does not, n3 works all the time.
ORDERLY = "import signal, os; signal.signal(15, lambda *_: os._exit(7))\n"
STUBBORN = "import signal; signal.signal(15, signal.SIG_IGN)\n"
BUSY = """
import threading, time
def burn():
    while True:
        pass
threading.Thread(target=burn, daemon=True).start()
"""
#: Takes memory when it is asked for its greeting.
GREEDY = PROGRAM.replace(
    'return os.environ["GREETING"]',
    'return str(len(opened.setdefault("taken", bytearray(b"x") * (48 << 20))))',
)


def programmed(spec: DeploymentSpec) -> DeploymentSpec:
    """As everywhere here, with limits where they must be prepared."""
    nodes = [
        msgspec.structs.replace(
            node, command=tuple(text + GREEDY if word == PROGRAM else word for word in node.command)
        )
        for node, text in zip(spec.nodes, (ORDERLY, STUBBORN, BUSY), strict=True)
    ]
    return msgspec.structs.replace(spec, nodes=tuple(nodes), limits="own")


@pytest.fixture(scope="module")
def dress() -> Callable[[DeploymentSpec], DeploymentSpec]:
    return programmed


def test_a_terminated_node_ends_by_itself_and_tells_how(cluster: AnyRuntime) -> None:
    assert cluster.processes.terminate(N1, 20.0) == 7
    assert cluster.status(N1) == "exited"
    assert cluster.exit_code(N1) == 7
    # Once more is the same as once.
    assert cluster.processes.terminate(N1, 20.0) == 7


def test_a_node_that_does_not_end_in_time_is_left_alone(cluster: AnyRuntime) -> None:
    assert cluster.processes.terminate(N2, 0.5) is None
    assert cluster.status(N2) == "running"
    assert serves(cluster, N2)


def used_cpu(cluster: AnyRuntime) -> float:
    sample = cluster.sample(N3)
    assert sample is not None
    return sample.cpu_seconds_total


def has_share(cluster: AnyRuntime, share: float | None) -> bool:
    there = cluster.processes.throttled(N3)
    if share is None or there is None:
        return there is share
    return abs(there - share) < 0.01


def test_a_throttled_node_gets_its_share_until_it_is_let_go(cluster: AnyRuntime) -> None:
    if "cpu" not in cluster.capabilities():
        with pytest.raises(CapabilityError, match=r"control group"):
            cluster.processes.throttle(N3, SHARE)
        return
    assert has_share(cluster, None)
    cluster.processes.throttle(N3, SHARE)
    cluster.processes.throttle(N3, SHARE)
    assert has_share(cluster, SHARE)
    assert cluster.processes.throttled(N1) is None
    # By the node's own clock: what it used in one of its seconds.
    before, began = used_cpu(cluster), float(ask(cluster, N3, "beat"))
    await_true(lambda: float(ask(cluster, N3, "beat")) - began > 2.0)
    took = float(ask(cluster, N3, "beat")) - began
    assert (used_cpu(cluster) - before) / took < 2 * SHARE
    # It outlasts the node's life.
    cluster.kill(N3)
    cluster.start(N3)
    assert has_share(cluster, SHARE)
    cluster.processes.unthrottle(N3)
    cluster.processes.unthrottle(N3)
    assert has_share(cluster, None)


def test_healing_all_ends_a_throttle(cluster: AnyRuntime) -> None:
    if "cpu" not in cluster.capabilities():
        return
    cluster.processes.throttle(N3, SHARE)
    cluster.heal_all()
    assert has_share(cluster, None)


def refused_memory(cluster: AnyRuntime) -> bool:
    if "memory" in cluster.capabilities():
        return False
    with pytest.raises(CapabilityError, match=r"control group"):
        cluster.processes.limit_memory(N1, 40)
    return True


def test_a_node_that_needs_more_memory_is_killed_by_the_kernel(cluster: AnyRuntime) -> None:
    if refused_memory(cluster):
        return
    assert cluster.processes.memory(N1) == MemoryState(None, was_ended=False)
    cluster.processes.limit_memory(N1, 40)
    assert cluster.processes.memory(N1) == MemoryState(40, was_ended=False)
    assert cluster.status(N1) == "running"
    with pytest.raises((OSError, http.client.HTTPException)):
        ask(cluster, N1, "greeting")
    await_true(lambda: cluster.status(N1) == "exited")
    assert cluster.exit_code(N1) == 137
    assert cluster.processes.memory(N1) == MemoryState(40, was_ended=True)
    cluster.processes.unlimit_memory(N1)
    cluster.start(N1)
    await_true(lambda: serves(cluster, N1))
    # The end of an earlier life says nothing of this one.
    assert cluster.processes.memory(N1) == MemoryState(None, was_ended=False)
    assert ask(cluster, N1, "greeting") == str(48 << 20)


def test_a_node_that_uses_more_than_its_new_limit_is_killed_at_once(cluster: AnyRuntime) -> None:
    if refused_memory(cluster):
        return
    assert ask(cluster, N2, "greeting") == str(48 << 20)
    cluster.processes.limit_memory(N2, 40)
    await_true(lambda: cluster.status(N2) == "exited")
    assert cluster.exit_code(N2) == 137
    cluster.heal_all()
    cluster.start(N2)
    await_true(lambda: serves(cluster, N2))
    assert ask(cluster, N2, "greeting") == str(48 << 20)


def test_limits_of_one_node_are_no_others(cluster: AnyRuntime) -> None:
    if refused_memory(cluster):
        return
    # Memory taken in another test is gone with its life.
    cluster.kill(N1)
    cluster.start(N1)
    await_true(lambda: serves(cluster, N1))
    cluster.processes.limit_memory(N1, 40)
    assert [cluster.status(node) for node in NAMES] == ["running"] * 3
    assert ask(cluster, N2, "greeting") == str(48 << 20)


#: Deploys a node with limits, throttles it, says where its groups are and stays.
HARNESS = """
import fcntl, pathlib, signal, sys
import msgspec
from splitbrain.history.run_folder import RunFolder
from splitbrain.runtimes.control_groups import possible_bases
from tests.runtimes.node_programs import N1, RUNTIMES, specification

folder = pathlib.Path(sys.argv[1])
lock = RunFolder(folder).lock.open("w")
fcntl.flock(lock, fcntl.LOCK_EX)
runtime = RUNTIMES["processes"]()
spec = msgspec.structs.replace(specification(runtime, folder, [N1]), limits="own")
runtime.deploy(spec)
if possible_bases():
    runtime.processes.throttle(N1, 0.5)
print(*runtime._node_processes.folders(N1), flush=True)
signal.pause()
"""


@pytest.mark.slow
def test_control_groups_of_a_dead_harness_are_swept(tmp_path: Path) -> None:
    with killed_at_the_end(HARNESS, str(tmp_path)) as line:
        groups = [Path(word) for word in line.split()]
        there = [group.is_dir() for group in groups]
    assert all(there)

    def is_swept() -> bool:
        # The processes die after their harness; until then the kernel keeps their groups.
        sweep_machine()
        return not any(group.parent.exists() for group in groups)

    await_true(is_swept)
