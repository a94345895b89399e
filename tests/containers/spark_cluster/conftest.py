"""One cluster for all tests of this folder."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from docker import DockerClient

from tests.containers.spark_cluster.standalone import Cluster, standalone


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that every member of the cluster sees under the same name."""
    return tmp_path_factory.mktemp("cluster") / "shared"


@pytest.fixture(scope="session")
def cluster(engine: DockerClient, shared: Path) -> Iterator[Cluster]:
    with standalone(engine, shared.parent) as running:
        yield running
