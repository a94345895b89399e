"""A changed source makes a new image; what Maven fetches is used only with the locked hash."""

import hashlib
import os
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

import pytest

from splitbrain.contracts.errors import HarnessError
from splitbrain.contracts.runtime import ImageSource
from splitbrain.runtimes.docker import image_builds, jars
from splitbrain.runtimes.docker.images import POD, ROOT, Images, digest, source_files

NODE = ImageSource("some-node", "node", sources=("nodes",))
PACKED = ImageSource("packed", "packed", has_packages=True)


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """Copy the part of a clone that the images are made from."""
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
    with pytest.raises(HarnessError, match="run from a clone"):
        Images(engine, tmp_path)


#: Stands for Maven: notes its call, and puts two jars where it was told to.
MAVEN = """#!/bin/sh
set -eu
echo call >> "{calls}"
for word in "$@"; do
  case "$word" in -DoutputDirectory=*) folder="${{word#*=}}" ;; esac
done
mkdir -p "$folder"
printf one > "$folder/one-1.0.jar"
printf two > "$folder/two-2.0.jar"
"""


@pytest.fixture
def calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the Maven of this test notes how often it was called."""
    programs = tmp_path / "bin"
    programs.mkdir()
    program = programs / "mvn"
    program.write_text(MAVEN.format(calls=tmp_path / "calls"))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    return tmp_path / "calls"


@pytest.fixture(params=["kafka", "zookeeper/3.8.6"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """An image's folder with the right lock, or that of one version."""
    folder = tmp_path / "docker" / request.param
    folder.mkdir(parents=True)
    (folder / "pom.xml").write_text("<project/>")
    (tmp_path / "docker" / "maven.sh").write_text("exit 0\n")
    lines = [
        f"{hashlib.sha256(word.encode()).hexdigest()}  {name}\n"
        for word, name in (("one", "one-1.0.jar"), ("two", "two-2.0.jar"))
    ]
    (folder / "jars.lock").write_text("".join(lines))
    return folder


def test_jars_with_right_hashes_are_fetched_once(calls: Path, folder: Path, tmp_path: Path) -> None:
    fetched = jars.fetch_jars(folder, tmp_path / "cache")
    assert sorted(path.name for path in fetched.iterdir()) == ["one-1.0.jar", "two-2.0.jar"]
    assert jars.fetch_jars(folder, tmp_path / "cache") == fetched
    assert calls.read_text() == "call\n"


@pytest.mark.parametrize(
    ("before", "after", "problem"),
    [
        ("one-1.0.jar", "one-1.1.jar", "one-1.0.jar is not in the lock file"),
        (hashlib.sha256(b"two").hexdigest(), "0" * 64, "two-2.0.jar has another hash"),
    ],
)
def test_a_jar_that_is_not_the_locked_one_is_refused_and_not_kept(
    calls: Path, folder: Path, tmp_path: Path, before: str, after: str, problem: str
) -> None:
    lock = folder / "jars.lock"
    lock.write_text(lock.read_text().replace(before, after))
    for _ in range(2):
        with pytest.raises(HarnessError, match=problem):
            jars.fetch_jars(folder, tmp_path / "cache")
    assert calls.read_text() == "call\ncall\n"


def test_a_missing_jar_is_refused(calls: Path, folder: Path, tmp_path: Path) -> None:
    with (folder / "jars.lock").open("a") as lock:
        lock.write(f"{'0' * 64}  three-3.0.jar\n")
    with pytest.raises(HarnessError, match=r"three-3\.0\.jar is missing"):
        jars.fetch_jars(folder, tmp_path / "cache")
    assert calls.exists()


def test_a_jar_changed_in_the_cache_is_refused(calls: Path, folder: Path, tmp_path: Path) -> None:
    fetched = jars.fetch_jars(folder, tmp_path / "cache")
    (fetched / "one-1.0.jar").write_text("another")
    with pytest.raises(HarnessError, match=r"one-1\.0\.jar has another hash"):
        jars.fetch_jars(folder, tmp_path / "cache")
    assert calls.read_text() == "call\n"


def test_without_maven_the_user_is_told_what_to_do(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "docker" / "maven.sh").write_text("echo 'this machine needs: maven.' >&2; exit 4\n")
    with pytest.raises(HarnessError, match=r"this machine needs: maven\."):
        jars.fetch_jars(folder, tmp_path / "cache")


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (r"printf '\033[0m'; printf '\033[31mno such jar\033[0m\n' >&2", "no such jar"),
        (r"printf 'no such jar\n'; printf '\033[0m\033[0m' >&2", "no such jar"),
        (r"printf '\033[0m' >&2", "exit code 1"),
    ],
)
def test_what_a_colorful_program_says_of_its_failure_is_told(said: str, told: str) -> None:
    with pytest.raises(HarnessError) as failed:
        image_builds.run(["sh", "-c", f"{said}; exit 1"], "build an image", "kafka")
    assert failed.value.problem == told


def test_a_written_lock_is_read_again(
    calls: Path, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    right = (folder / "jars.lock").read_text()
    (folder / "jars.lock").write_text("")
    assert jars.main([str(folder)]) == 0
    assert (folder / "jars.lock").read_text() == right
    assert set(jars.read_lock(right)) == {"one-1.0.jar", "two-2.0.jar"}
    assert "2 jars" in capsys.readouterr().out
    assert calls.exists()
