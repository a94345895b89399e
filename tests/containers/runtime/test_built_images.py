"""The images hold what nodes and the nemesis need, are small, and are found again."""

import time
from typing import Any

import pytest
from docker import DockerClient

from runtimes.docker.images import KRAFT_IMAGE, POD_IMAGE, Images

pytestmark = pytest.mark.containers

BYTES_MAX = 250_000_000


def test_images_that_are_there_are_found_and_not_made_again(
    engine: DockerClient, capsys: pytest.CaptureFixture[str]
) -> None:
    images = Images(engine)
    tags = images.ensure()
    capsys.readouterr()
    assert images.ensure() == tags
    assert capsys.readouterr().out == ""


def test_the_current_image_is_the_one_made_from_the_sources(engine: DockerClient) -> None:
    tags = Images(engine).ensure()
    for tag in tags.values():
        name = tag.split(":")[0]
        assert engine.images.get(f"{name}:current").id == engine.images.get(tag).id


@pytest.mark.parametrize("image", [KRAFT_IMAGE, POD_IMAGE])
def test_an_image_is_smaller_than_250_megabytes(engine: DockerClient, image: str) -> None:
    attributes: Any = engine.images.get(image).attrs
    assert attributes["Size"] < BYTES_MAX


def test_the_node_image_runs_the_node_with_its_native_packages(engine: DockerClient) -> None:
    program = "import crc32c, msgspec, uvloop, nodes.server.node; print('complete')"
    output = engine.containers.run(
        KRAFT_IMAGE, ["python3", "-c", program], remove=True, network_mode="none"
    )
    assert output == b"complete\n"


def test_a_pause_container_leaves_at_once_when_asked(engine: DockerClient) -> None:
    container = engine.containers.run(POD_IMAGE, detach=True, network_mode="none")
    try:
        began = time.monotonic()
        container.stop(timeout=30)
        assert time.monotonic() - began < 15
        assert container.wait()["StatusCode"] == 0
    finally:
        container.remove(force=True)
