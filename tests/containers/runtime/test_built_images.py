"""The images hold what nodes and the nemesis need, are small, and are found again."""

import time
from typing import Any

import pytest
from docker import DockerClient

from splitbrain.contracts.runtime import ImageSource
from splitbrain.runtimes.docker.images import POD, Images
from splitbrain.systems.registry import names, system

pytestmark = pytest.mark.containers

SOURCES = [source for name in names() for source in system(name).images()]
KRAFT = system("kraft").images()

BYTES_MAX = 250_000_000


def test_present_images_are_not_made_again(
    engine: DockerClient, capsys: pytest.CaptureFixture[str]
) -> None:
    images = Images(engine)
    tags = images.ensure(SOURCES)
    capsys.readouterr()
    assert images.ensure(SOURCES) == tags
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("source", [POD, *SOURCES], ids=lambda source: source.name)
def test_an_image_is_smaller_than_250_megabytes(engine: DockerClient, source: ImageSource) -> None:
    tag = Images(engine).ensure([source])[source.name]
    attributes: Any = engine.images.get(tag).attrs
    assert attributes["Size"] < BYTES_MAX


def test_the_node_image_runs_the_node_with_its_native_packages(engine: DockerClient) -> None:
    ours = "splitbrain.nodes.server.machine.assembly"
    program = f"import crc32c, msgspec, uvloop, {ours}; print('complete')"
    (tag,) = (tag for name, tag in Images(engine).ensure(KRAFT).items() if name != POD.name)
    output = engine.containers.run(
        tag, ["python3", "-c", program], remove=True, network_mode="none"
    )
    assert output == b"complete\n"


def test_a_pause_container_leaves_at_once_when_asked(engine: DockerClient) -> None:
    container = engine.containers.run(
        Images(engine).ensure(())[POD.name], detach=True, network_mode="none"
    )
    try:
        began = time.monotonic()
        container.stop(timeout=30)
        assert time.monotonic() - began < 15
        assert container.wait()["StatusCode"] == 0
    finally:
        container.remove(force=True)
