"""What Maven fetches is used only if every jar has the locked hash; nothing is fetched twice."""

import hashlib
import os
from pathlib import Path

import pytest

from splitbrain.contracts.errors import HarnessError
from splitbrain.runtimes.docker import jars

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


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An image's folder with the right lock."""
    folder = tmp_path / "docker" / "kafka"
    folder.mkdir(parents=True)
    (folder / "pom.xml").write_text("<project/>")
    (folder.parent / "maven.sh").write_text("exit 0\n")
    lines = [
        f"{hashlib.sha256(word.encode()).hexdigest()}  {name}\n"
        for word, name in (("one", "one-1.0.jar"), ("two", "two-2.0.jar"))
    ]
    (folder / "jars.lock").write_text("".join(lines))
    return folder


def test_jars_with_the_locked_hashes_are_fetched_once(
    calls: Path, folder: Path, tmp_path: Path
) -> None:
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


def test_a_jar_that_changed_in_the_cache_is_refused(
    calls: Path, folder: Path, tmp_path: Path
) -> None:
    fetched = jars.fetch_jars(folder, tmp_path / "cache")
    (fetched / "one-1.0.jar").write_text("another")
    with pytest.raises(HarnessError, match=r"one-1\.0\.jar has another hash"):
        jars.fetch_jars(folder, tmp_path / "cache")
    assert calls.read_text() == "call\n"


def test_without_maven_the_user_is_told_what_to_do(folder: Path, tmp_path: Path) -> None:
    (folder.parent / "maven.sh").write_text("echo 'this machine needs: maven.' >&2; exit 4\n")
    with pytest.raises(HarnessError, match=r"this machine needs: maven\."):
        jars.fetch_jars(folder, tmp_path / "cache")


def test_a_written_lock_says_what_is_there_and_is_read_again(
    calls: Path, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    right = (folder / "jars.lock").read_text()
    (folder / "jars.lock").write_text("")
    assert jars.main([str(folder)]) == 0
    assert (folder / "jars.lock").read_text() == right
    assert set(jars.read_lock(right)) == {"one-1.0.jar", "two-2.0.jar"}
    assert "2 jars" in capsys.readouterr().out
    assert calls.exists()


def test_the_project_locks_kafka_as_its_pom_names_it() -> None:
    folder = Path(__file__).parents[3] / "docker" / "kafka"
    locked = set(jars.read_lock((folder / "jars.lock").read_text()))
    assert {
        "kafka_2.13-4.3.1.jar",
        "kafka-tools-4.3.1.jar",
        "log4j-slf4j-impl-2.25.4.jar",
    } <= locked
