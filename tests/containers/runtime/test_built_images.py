"""The images hold what nodes and the nemesis need, are small, and are found again."""

import re
import time
from pathlib import Path
from typing import Any

import pytest
from docker import DockerClient
from docker.errors import ContainerError

from splitbrain.contracts.errors import HarnessError
from splitbrain.contracts.runtime import ImageSource
from splitbrain.runtimes.docker.images import POD, Images
from splitbrain.systems.kafka.adapter import IMAGE as KAFKA
from splitbrain.systems.registry import names, system
from tests.awaiting import await_true

pytestmark = pytest.mark.containers

#: Those that need no compiler of this machine.
SOURCES = [source for name in names() for source in system(name).images() if not source.build]
KRAFT = system("kraft").images()

BYTES_MAX = 250_000_000
#: Of Java, where an image has jars.
JAVA_BYTES = 104_000_000
#: Of the cache of classes that Kafka's image has besides.
CLASSES_BYTES = 70_000_000


def test_present_images_are_not_made_again(
    engine: DockerClient, capsys: pytest.CaptureFixture[str]
) -> None:
    images = Images(engine)
    tags = images.ensure(SOURCES)
    capsys.readouterr()
    assert images.ensure(SOURCES) == tags
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("source", [POD, *SOURCES], ids=lambda source: source.name)
def test_an_image_is_smaller_than_250_megabytes_and_what_java_takes(
    engine: DockerClient, source: ImageSource
) -> None:
    tag = Images(engine).ensure([source])[source.name]
    attributes: Any = engine.images.get(tag).attrs
    java = JAVA_BYTES if source.jars else 0
    classes = CLASSES_BYTES if source == KAFKA else 0
    assert attributes["Size"] < BYTES_MAX + java + classes


def test_the_node_image_runs_the_node_with_its_native_packages(engine: DockerClient) -> None:
    ours = "splitbrain.nodes.server.machine.assembly"
    program = f"import crc32c, msgspec, uvloop, {ours}; print('complete')"
    (tag,) = (tag for name, tag in Images(engine).ensure(KRAFT).items() if name != POD.name)
    output = engine.containers.run(
        tag, ["python3", "-c", program], remove=True, network_mode="none"
    )
    assert output == b"complete\n"


def test_kafka_finds_its_cache_of_classes_unless_a_jar_is_another(engine: DockerClient) -> None:
    tag = Images(engine).ensure([KAFKA])[KAFKA.name]
    # Without the cache Java would go on, more slowly.
    must_find_it = {"JDK_JAVA_OPTIONS": "-XX:AOTMode=on"}
    start = "kafka kafka.tools.StorageTool random-uuid"
    found = engine.containers.run(
        tag, ["sh", "-c", start], environment=must_find_it, remove=True, network_mode="none"
    )
    assert re.fullmatch(rb"[\w-]{22}\n", found)
    with pytest.raises(ContainerError, match="exit status 1"):
        engine.containers.run(
            tag,
            ["sh", "-c", f"touch /opt/kafka/jars/kafka-clients-*.jar; {start}"],
            environment=must_find_it,
            remove=True,
            network_mode="none",
        )


def test_an_image_of_a_folder_elsewhere_has_what_its_command_builds_and_is_found_again(
    engine: DockerClient, tmp_path: Path
) -> None:
    folder = tmp_path / "own"
    folder.mkdir()
    (folder / "Dockerfile").write_text(
        "ARG BASE\nFROM ${BASE}\nLABEL splitbrain.image=test\nCOPY made /made\n"
    )
    command = ("sh", "-c", "date +%N%s > made; echo built >> " + str(tmp_path / "log"))
    source = ImageSource("splitbrain-test-own", str(folder), build=command)
    images = Images(engine)
    tag = images.ensure([source])[source.name]
    try:
        made = engine.containers.run(tag, ["cat", "/made"], remove=True, network_mode="none")
        assert made.strip().isdigit()
        assert images.ensure([source])[source.name] == tag
        assert (tmp_path / "log").read_text() == "built\n"
        # The user's folder stays as it is.
        assert [path.name for path in folder.iterdir()] == ["Dockerfile"]
    finally:
        engine.images.remove(tag)
    for failing in (("false",), ("no-such-program",)):
        broken = ImageSource("splitbrain-test-own", str(folder), build=failing)
        with pytest.raises(HarnessError, match=f"build what an image is made of.*{failing[0]}"):
            images.ensure([broken])


def test_a_build_that_fails_shows_why_and_names_the_users_own_dockerfile(
    engine: DockerClient, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "Dockerfile").write_text(
        "ARG BASE\nFROM ${BASE}\nLABEL splitbrain.image=test\n"
        "RUN echo no such folder, says a tool; seq 25; exit 7\n"
    )
    for build in ((), ("true",)):
        source = ImageSource("splitbrain-test-own", str(tmp_path), build=build)
        with pytest.raises(HarnessError, match=f"Mend {re.escape(str(tmp_path))}/Dockerfile"):
            Images(engine).ensure([source])
        printed = capsys.readouterr().out
        assert "  no such folder, says a tool" in printed
        assert "  25" in printed


def test_a_build_that_cannot_begin_says_where(
    engine: DockerClient, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "Dockerfile").write_text("FROM splitbrain-test-own:never-built\n")
    with pytest.raises(HarnessError, match=r"Mend .*/Dockerfile"):
        Images(engine).ensure([ImageSource("splitbrain-test-own", str(tmp_path))])
    assert "FROM splitbrain-test-own:never-built" in capsys.readouterr().out
    (tmp_path / "Dockerfile").write_text("FORM ${BASE}\n")
    with pytest.raises(HarnessError, match="FORM"):
        Images(engine).ensure([ImageSource("splitbrain-test-own", str(tmp_path))])


@pytest.mark.parametrize("folder", ["image", "/nowhere/image"])
def test_a_folder_without_a_dockerfile_is_told_with_the_way_to_name_it(
    engine: DockerClient, folder: str
) -> None:
    with pytest.raises(HarnessError, match=rf"/{folder.lstrip('/')} holds no Dockerfile.*absolute"):
        Images(engine).ensure([ImageSource("splitbrain-test-own", folder)])


def test_a_pause_container_leaves_at_once_when_asked(engine: DockerClient) -> None:
    container = engine.containers.run(
        Images(engine).ensure(())[POD.name], detach=True, network_mode="none"
    )
    try:
        # A shell that is the container's first process and has set no trap yet ignores the signal.
        await_true(lambda: "sleep" in str(container.top()["Processes"]), 60)
        began = time.monotonic()
        container.stop(timeout=30)
        assert time.monotonic() - began < 15
        assert container.wait()["StatusCode"] == 0
    finally:
        container.remove(force=True)
