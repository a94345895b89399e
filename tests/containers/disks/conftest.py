"""A cluster with disks for the tests of a module."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from splitbrain.contracts.runtime import DeploymentSpec
from splitbrain.runtimes.docker.runtime import DockerRuntime
from tests.containers.disks.own_disks import with_disks


@pytest.fixture(scope="module")
def spec(run_folder: Path) -> DeploymentSpec:
    return with_disks(run_folder)


@pytest.fixture(scope="module")
def deployed(spec: DeploymentSpec) -> Iterator[DockerRuntime]:
    runtime = DockerRuntime()
    runtime.prepare([])
    try:
        runtime.deploy(spec)
        yield runtime
    finally:
        runtime.teardown()
