"""A changed source makes a new image, an unchanged one is found; caches are no source."""

from pathlib import Path
from typing import Any

import pytest

from contracts.errors import HarnessError
from runtimes.docker.images import BASE, KRAFT, POD, Images, digest, source_files


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """What of a clone the images are made from."""
    for name in ("docker/base.sh", "docker/base/packages.txt", "docker/pod/Dockerfile"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    for name in ("docker/kraft/Dockerfile", "nodes/quorum/role.py"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    return tmp_path


def tags(clone: Path) -> dict[str, str]:
    engine: Any = None
    return dict(Images(engine, clone).tags())


def changed(before: dict[str, str], after: dict[str, str]) -> set[str]:
    return {name for name in before if before[name] != after[name]}


def test_the_nodes_source_makes_a_new_kraft_image_alone(clone: Path) -> None:
    before = tags(clone)
    assert tags(clone) == before
    (clone / "nodes" / "quorum" / "role.py").write_text("changed")
    assert changed(before, tags(clone)) == {KRAFT}


def test_a_new_base_makes_all_images_anew(clone: Path) -> None:
    before = tags(clone)
    (clone / "docker" / "base" / "packages.txt").write_text("python3 tcpdump")
    assert changed(before, tags(clone)) == {BASE, POD, KRAFT}


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


def test_without_the_source_tree_the_way_out_is_named(tmp_path: Path) -> None:
    engine: Any = None
    with pytest.raises(HarnessError, match="Run from a clone"):
        Images(engine, tmp_path)
