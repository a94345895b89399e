"""Power cuts of all nodes at one moment: what was acknowledged stays, unless a bug is planted."""

from collections.abc import Callable

import pytest

from splitbrain.contracts.operations import Operation
from tests.integration.three_nodes import Cluster

pytestmark = pytest.mark.slow


def lost(cluster: Cluster, cut: int) -> int:
    """Write ten registers, cut the power of all, start again; how many acknowledged are gone."""
    keys = [f"cut{cut}-{number}" for number in range(10)]
    written = cluster.invoke(*(Operation("write", key, 1) for key in keys))
    acknowledged = [key for key, each in zip(keys, written, strict=True) if each.type == "ok"]
    assert acknowledged
    nodes = cluster.runtime.nodes()
    losses = cluster.runtime.disks.power_off(nodes, cut)
    assert [cluster.runtime.status(node) for node in nodes] == ["exited"] * 3
    assert [loss.node for loss in losses] == list(nodes)
    assert all(loss.lost.startswith("lost ") for loss in losses)
    for node in nodes:
        cluster.runtime.start(node)
    cluster.await_ready()
    return sum(cluster.value_of(key) != 1 for key in acknowledged)


def test_acknowledged_writes_survive_power_cuts_of_all_nodes(cluster: Cluster) -> None:
    assert [lost(cluster, cut) for cut in range(4)] == [0] * 4
    cluster.await_converged()


def test_ack_before_fsync_loses_acknowledged_writes_in_power_cuts(
    make_cluster: Callable[..., Cluster],
) -> None:
    cluster = make_cluster("ack-before-fsync")
    # How much survives is drawn anew each time.
    assert max(lost(cluster, cut) for cut in range(4)) > 0
