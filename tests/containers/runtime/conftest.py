"""A cluster of web servers for the tests of a module."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from splitbrain.contracts.runtime import DeploymentSpec
from splitbrain.runtimes.docker.runtime import DockerRuntime
from tests.awaiting import await_true
from tests.containers.web_servers import NAMES, specification
from tests.runtimes.node_programs import link


@pytest.fixture(scope="module")
def spec(run_folder: Path) -> DeploymentSpec:
    return specification(run_folder)


@pytest.fixture(scope="module")
def deployed(spec: DeploymentSpec) -> Iterator[DockerRuntime]:
    runtime = DockerRuntime()
    runtime.deploy(spec)
    try:
        for name in NAMES:
            await_true(lambda name=name: runtime.reachable(link(name, name), "client", 1.0))
        yield runtime
    finally:
        runtime.teardown()
