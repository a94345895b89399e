"""The engine, and a cluster that the tests of one module share, whole again after each of them."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from docker import DockerClient

from splitbrain.runtimes.docker.engine import connect
from splitbrain.runtimes.docker.runtime import DockerRuntime
from tests.awaiting import await_true
from tests.containers.leftovers.engine_relay import EngineRelay
from tests.containers.web_servers import NAMES
from tests.runtimes.node_programs import link, living


@pytest.fixture(scope="session")
def engine() -> Iterator[DockerClient]:
    client = connect()
    yield client
    client.close()


@pytest.fixture
def relay(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EngineRelay]:
    # The test's own folder has a name too long for a socket.
    with EngineRelay(tmp_path_factory.mktemp("r") / "s") as relay:
        yield relay


@pytest.fixture(scope="module")
def run_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A run folder whose lock is held, as a living run holds it."""
    with living(tmp_path_factory.mktemp("run")) as folder:
        yield folder


@pytest.fixture
def cluster(deployed: DockerRuntime) -> Iterator[DockerRuntime]:
    """The module's cluster, whole again after each test."""
    yield deployed
    deployed.heal_all()
    for name in NAMES:
        deployed.start(name)
        await_true(lambda name=name: deployed.reachable(link(name, name), "client", 1.0))
