"""Both makes of controllers: every body that asks for a cluster is run on Kafka's and on ours.

One cluster of a make serves all tests, and is whole again after each.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.referee.cluster import Cluster, deployed
from tests.referee.controllers import KafkaControllers, OwnControllers

_BROKERS = 2
_TRIO = 3
#: Brokers' own topics live on as long as two brokers do.
_REPLICATED = {
    "offsets.topic.replication.factor": "3",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
    "min.insync.replicas": "2",
}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A connection to a frozen broker that times out half-way kafka-python forgets to close."""
    forgotten = pytest.mark.filterwarnings(
        "ignore:Exception ignored in. <socket:pytest.PytestUnraisableExceptionWarning"
    )
    here = (item for item in items if item.path.parent == Path(__file__).parent)
    for item in here:
        if isinstance(item, pytest.Function) and {"cluster", "trio"} & set(item.fixturenames):
            item.add_marker(forgotten)


# Kafka's own controllers are the control: their version is pinned, so only a change of these tests
# or of their image bears on them, and the night sees that.
@pytest.fixture(
    scope="session",
    params=[
        pytest.param(KafkaControllers(), id="kafka", marks=pytest.mark.nightly),
        pytest.param(OwnControllers(), id="own"),
    ],
)
def shared_cluster(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Cluster]:
    """Three controllers of a make with two unmodified brokers."""
    folder = tmp_path_factory.mktemp("cluster") / "run"
    settings = {"offsets.topic.replication.factor": "2"}
    with deployed(folder, request.param, brokers=_BROKERS, settings=settings) as cluster:
        cluster.await_brokers()
        yield cluster


@pytest.fixture(
    scope="session",
    params=[pytest.param(KafkaControllers(), id="kafka"), pytest.param(OwnControllers(), id="own")],
)
def shared_trio(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Cluster]:
    """Three controllers of a make with three unmodified brokers, for nightly tests."""
    folder = tmp_path_factory.mktemp("trio") / "run"
    with deployed(folder, request.param, brokers=_TRIO, settings=_REPLICATED) as cluster:
        cluster.await_brokers()
        yield cluster


@pytest.fixture
def trio(shared_trio: Cluster) -> Iterator[Cluster]:
    """The make's cluster of three brokers, whole again after each test."""
    yield shared_trio
    shared_trio.restore()
    shared_trio.await_brokers()


@pytest.fixture
def cluster(shared_cluster: Cluster) -> Iterator[Cluster]:
    """The make's cluster, whole again after each test."""
    yield shared_cluster
    shared_cluster.restore()
