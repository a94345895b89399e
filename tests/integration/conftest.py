"""Fixtures: clusters of three node processes that end with their test."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.integration.three_nodes import Cluster


@pytest.fixture
def make_cluster(tmp_path: Path) -> Iterator[Callable[..., Cluster]]:
    """Makes a ready cluster with the planted bugs named; ends its processes after the test."""
    clusters: list[Cluster] = []

    def make(*bugs: str) -> Cluster:
        cluster = Cluster(tmp_path / str(len(clusters)), bugs)
        clusters.append(cluster)
        cluster.runtime.deploy(cluster.spec)
        cluster.await_ready()
        return cluster

    try:
        yield make
    finally:
        for cluster in clusters:
            cluster.runtime.teardown()


@pytest.fixture
def cluster(make_cluster: Callable[..., Cluster]) -> Cluster:
    """A ready cluster without bugs."""
    return make_cluster()
