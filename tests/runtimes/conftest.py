"""One fixture for all runtimes: a cluster that a module's tests share, whole again after each."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from splitbrain.contracts.runtime import DeploymentSpec
from tests.runtimes.node_programs import (
    NAMES,
    RUNTIMES,
    AnyRuntime,
    await_serving,
    living,
    specification,
)

DOCKER = pytest.param("docker", marks=pytest.mark.containers)
NAMESPACES = pytest.param("namespaces", marks=pytest.mark.slow)
PROCESSES = pytest.param("processes", marks=pytest.mark.slow)


@pytest.fixture(scope="module")
def dress() -> Callable[[DeploymentSpec], DeploymentSpec]:
    """Dress of a module's nodes: none beyond a program, unless the module overrides it."""
    return lambda spec: spec


@pytest.fixture(scope="module", params=[DOCKER, NAMESPACES, PROCESSES])
def deployed(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    dress: Callable[[DeploymentSpec], DeploymentSpec],
) -> Iterator[AnyRuntime]:
    """Three nodes in the runtime that the parameter names; a test may leave some out."""
    runtime = RUNTIMES[request.param]()
    with living(tmp_path_factory.mktemp("run")) as folder:
        runtime.deploy(dress(specification(runtime, folder)))
        try:
            await_serving(runtime)
            yield runtime
        finally:
            runtime.teardown()


@pytest.fixture
def cluster(deployed: AnyRuntime) -> Iterator[AnyRuntime]:
    """The module's cluster, whole again after each test."""
    yield deployed
    deployed.heal_all()
    for name in NAMES:
        deployed.start(name)
    await_serving(deployed)


@pytest.fixture(params=[DOCKER, NAMESPACES, PROCESSES])
def runtime(request: pytest.FixtureRequest) -> Iterator[AnyRuntime]:
    """A runtime that has deployed nothing yet; the test need not take it down."""
    made = RUNTIMES[request.param]()
    yield made
    made.teardown()


@pytest.fixture
def run_folder(tmp_path: Path) -> Iterator[Path]:
    """A run folder whose lock is held, as a living run holds it."""
    with living(tmp_path / "run") as folder:
        yield folder
