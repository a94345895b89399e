"""Changes by every runtime to the files of a node that is down, and the node that meets them."""

from collections.abc import Callable

import msgspec
import pytest

from splitbrain.contracts.arms import FileChange
from splitbrain.contracts.errors import CapabilityError, HarnessError
from splitbrain.contracts.runtime import DISK_CAPABILITIES, DeploymentSpec
from tests.awaiting import await_true
from tests.runtimes.node_programs import N1, N2, NAMES, PORT, AnyRuntime, ask, link

LOOK_S = 10.0


@pytest.fixture(scope="module")
def dress() -> Callable[[DeploymentSpec], DeploymentSpec]:
    """As everywhere here, with disks of their own where a runtime has such."""
    return lambda spec: msgspec.structs.replace(spec, disks="own", disk_mib=32)


def started_again(cluster: AnyRuntime) -> str:
    cluster.start(N1)
    await_true(lambda: cluster.reachable(link(N1, N1), PORT, 1.0))
    return ask(cluster, N1, "starts")


def test_a_flipped_byte_is_met_by_the_node_and_put_back_again(cluster: AnyRuntime) -> None:
    cluster.disks.keep(N1)
    before = ask(cluster, N1, "starts").encode()
    cluster.kill(N1)
    flipped = cluster.disks.change(N1, FileChange("flip", "starts", draw=1, offset=2))
    assert flipped is not None
    there = cluster.disks.read(N1, "starts", 0, 1000)
    assert there[2:3].hex() == flipped.after != flipped.before
    assert there[:2] + bytes.fromhex(flipped.before) + there[3:] == before
    restored = cluster.disks.change(N1, FileChange("restore", "starts", draw=1))
    assert restored is not None
    assert cluster.disks.read(N1, "starts", 0, 1000) == before
    assert started_again(cluster).encode() == before + b"started\n"


def test_a_truncated_file_is_met_by_the_node(cluster: AnyRuntime) -> None:
    cluster.kill(N1)
    cut = cluster.disks.change(N1, FileChange("truncate", "sta*", draw=1, offset=3))
    assert cut is not None
    assert cut.size_after == 3
    assert started_again(cluster) == "stastarted\n"


def test_a_wiped_node_knows_nothing_of_its_past(cluster: AnyRuntime) -> None:
    cluster.kill(N1)
    assert "1 files" in cluster.disks.wipe(N1)
    assert started_again(cluster) == "started\n"


def test_files_of_a_running_node_are_left_alone(cluster: AnyRuntime) -> None:
    with pytest.raises(HarnessError, match="the node is running"):
        cluster.disks.wipe(N2)
    with pytest.raises(HarnessError, match="the node is running"):
        cluster.disks.change(N2, FileChange("flip", "starts", draw=1))
    assert "started" in ask(cluster, N2, "starts")


def test_a_disk_that_nobody_harms_is_writable(cluster: AnyRuntime) -> None:
    assert [cluster.disks.state(node, LOOK_S) for node in NAMES] == ["writable"] * 3


def test_missing_disk_faults_are_refused_and_others_undone(cluster: AnyRuntime) -> None:
    able = cluster.capabilities() & DISK_CAPABILITIES
    assert {"power", "file-change", "wipe"} <= able
    for capability, act, undo in (
        ("full-disk", cluster.disks.fill, cluster.disks.drain),
        ("disk-stall", cluster.disks.stall, cluster.disks.unstall),
    ):
        if capability in able:
            act(N1)
            assert cluster.disks.state(N1, 1.0) in ("full", "stalled")
        else:
            with pytest.raises(CapabilityError, match="disks of their own"):
                act(N1)
        undo(N1)
        assert cluster.disks.state(N1, LOOK_S) == "writable"
