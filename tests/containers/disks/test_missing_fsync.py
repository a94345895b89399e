"""A power cut shows a missing fsync of our own quorum; a kill of the same nodes does not."""

import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from splitbrain.contracts.experiment import Experiment
from splitbrain.contracts.names import RunId
from splitbrain.contracts.operations import Operation
from splitbrain.nodes.storage.layout import EPOCH_CHECKPOINT, LOG_FOLDER
from splitbrain.runtimes.docker.runtime import DockerRuntime
from splitbrain.systems.kraft.adapter import KraftSystem
from tests.integration.three_nodes import Cluster, awaited
from tests.runtimes.node_programs import living

CHECKPOINT = f"{LOG_FOLDER}/{EPOCH_CHECKPOINT}"
pytestmark = [pytest.mark.containers, pytest.mark.timeout(300)]


class PodCluster(Cluster):
    """The same cluster and steps, in pods with disks of their own."""

    runtime: Any

    def __init__(self, folder: Path, bugs: tuple[str, ...]) -> None:
        self.folder = folder
        self.system = KraftSystem()
        self.runtime = DockerRuntime()
        self.runtime.prepare(self.system.images())
        spec = self.system.deployment(
            RunId(f"test-{uuid.uuid4().hex[:8]}"),
            folder,
            Experiment(system="kraft", nodes=3, bugs=bugs),
            self.runtime.place,
        )
        self.spec = msgspec.structs.replace(spec, disks="own", disk_mib=64)


@pytest.fixture
def made(tmp_path: Path) -> Iterator[Callable[..., PodCluster]]:
    """Makes a ready cluster with the planted bugs named."""
    clusters: list[PodCluster] = []

    def make(*bugs: str) -> PodCluster:
        cluster = PodCluster(tmp_path, bugs)
        clusters.append(cluster)
        cluster.runtime.deploy(cluster.spec)
        cluster.await_ready()
        return cluster

    with living(tmp_path):
        try:
            yield make
        finally:
            for cluster in clusters:
                cluster.runtime.teardown()


def lost(cluster: PodCluster, name: str, strike: Callable[[], object]) -> int:
    """Write ten registers, strike all nodes, start again; how many acknowledged are gone."""
    awaited(lambda: epoch_is_durable(cluster))
    keys = [f"{name}-{number}" for number in range(10)]
    written = cluster.invoke(*(Operation("write", key, 1) for key in keys))
    acknowledged = [key for key, each in zip(keys, written, strict=True) if each.type == "ok"]
    assert acknowledged
    strike()
    for node in cluster.runtime.nodes():
        cluster.runtime.start(node)
    cluster.await_ready()
    return sum(cluster.value_of(key) != 1 for key in acknowledged)


def epoch_is_durable(cluster: PodCluster) -> None:
    """All nodes know the epoch from their disks: what they write in it survives a kill."""
    epoch = cluster.system.leader(cluster.runtime, 1.0).epoch
    for node in cluster.runtime.nodes():
        lines = cluster.runtime.disks.read(node, CHECKPOINT, 0, 4096).decode().split("\n")
        assert str(epoch) in {line.split(" ")[0] for line in lines[2:]}, lines


def kill_all(cluster: PodCluster) -> None:
    for node in cluster.runtime.nodes():
        cluster.runtime.kill(node)


def power_off_all(cluster: PodCluster) -> None:
    losses = cluster.runtime.disks.power_off(cluster.runtime.nodes(), 1)
    assert all(loss.synced_is_there and not loss.unsynced_is_there for loss in losses)


def test_ack_before_fsync_loses_in_power_cuts_not_in_kills(made: Callable[..., PodCluster]) -> None:
    cluster = made("ack-before-fsync")
    assert lost(cluster, "kill", lambda: kill_all(cluster)) == 0
    assert max(lost(cluster, f"cut{n}", lambda: power_off_all(cluster)) for n in range(3)) > 0


def test_acknowledged_writes_survive_power_cuts_of_all(made: Callable[..., PodCluster]) -> None:
    cluster = made()
    assert [lost(cluster, f"cut{n}", lambda: power_off_all(cluster)) for n in range(3)] == [0] * 3
