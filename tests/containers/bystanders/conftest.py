"""A foreign container, and the lock of helpers."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from docker import DockerClient

from splitbrain.history.run_folder import RunFolder
from tests.containers.bystanders.helper_containers import (
    FOREIGN_LABEL,
    WebServer,
    helper_image,
    sweep_foreign,
)
from tests.runtimes.node_programs import living


@pytest.fixture
def helper_lock(tmp_path: Path) -> Iterator[Path]:
    """The lock of this test's helpers, held until it ends."""
    with living(tmp_path) as folder:
        yield RunFolder(folder).lock


@pytest.fixture
def foreign_container(engine: DockerClient, helper_lock: Path) -> Iterator[WebServer]:
    """A web server in a container that is nobody's of ours: no sweep and no run may touch it."""
    sweep_foreign(engine)
    with WebServer(helper_image(engine), {FOREIGN_LABEL: str(helper_lock)}) as server:
        yield server
