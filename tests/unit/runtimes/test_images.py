"""A changed source makes a new image, an unchanged one is found; caches are no source."""

import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

import pytest

from splitbrain.contracts.errors import HarnessError
from splitbrain.contracts.image import ImageSource
from splitbrain.runtimes.docker import image_builds
from splitbrain.runtimes.docker.images import POD, ROOT, Images, digest, source_files

NODE = ImageSource("some-node", "node", sources=("nodes",))
PACKED = ImageSource("packed", "packed", has_packages=True)


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """What of a clone the images are made from."""
    for name in ("docker/base.sh", "docker/base/packages.txt", "docker/pod/Dockerfile"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    for name in ("docker/node/Dockerfile", "docker/packed/packages.txt", "nodes/quorum/role.py"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    return tmp_path


def tags(clone: Path) -> dict[str, str]:
    engine: Any = None
    return dict(Images(engine, clone).tags((NODE, PACKED)))


def changed(before: dict[str, str], after: dict[str, str]) -> set[str]:
    return {name for name in before if before[name] != after[name]}


def test_a_changed_source_makes_a_new_image_of_its_nodes_alone(clone: Path) -> None:
    before = tags(clone)
    assert tags(clone) == before
    (clone / "nodes" / "quorum" / "role.py").write_text("changed")
    assert changed(before, tags(clone)) == {NODE.name}


def test_a_new_base_makes_all_images_anew(clone: Path) -> None:
    before = tags(clone)
    (clone / "docker" / "base" / "packages.txt").write_text("python3 tcpdump")
    assert changed(before, tags(clone)) == {POD.name, NODE.name, PACKED.name}


def test_further_packages_make_a_new_image_of_theirs_alone(clone: Path) -> None:
    before = tags(clone)
    (clone / "docker" / "packed" / "packages.txt").write_text("a-server")
    assert changed(before, tags(clone)) == {PACKED.name}


def test_a_renamed_file_is_a_change(tmp_path: Path) -> None:
    folder = tmp_path / "nodes"
    folder.mkdir()
    (folder / "a.py").write_text("x")
    before = digest([folder])
    (folder / "a.py").rename(folder / "b.py")
    assert digest([folder]) != before


def test_caches_are_no_source(clone: Path) -> None:
    before = tags(clone)
    cache = clone / "nodes" / "quorum" / "__pycache__"
    cache.mkdir()
    (cache / "role.cpython-311.pyc").write_bytes(b"x")
    assert tags(clone) == before
    assert [path.name for path in source_files(clone / "nodes")] == ["role.py"]


@pytest.mark.parametrize("tool", ["clock.py", "disks.py", "links.py", "probe.py"])
def test_the_tools_of_the_pod_have_in_its_image_what_they_import(tmp_path: Path, tool: str) -> None:
    extra = {name: ROOT / name for name in POD.sources}
    with tarfile.open(fileobj=image_builds._context(ROOT / "docker" / "pod", extra)) as context:
        context.extractall(tmp_path, filter="data")
    # As the Dockerfile copies it.
    (tmp_path / "splitbrain").mkdir()
    (tmp_path / "runtimes").rename(tmp_path / "splitbrain" / "runtimes")
    # Without this project, and without what is installed beside it.
    done = subprocess.run([sys.executable, "-E", "-S", tool], check=False, cwd=tmp_path)
    assert done.returncode == 64


def test_without_the_source_tree_the_way_out_is_named(tmp_path: Path) -> None:
    engine: Any = None
    with pytest.raises(HarnessError, match="Run from a clone"):
        Images(engine, tmp_path)
