"""The archive of Spark's classes: its place, its options, and a Java that makes none."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from splitbrain.contracts.errors import HarnessError
from splitbrain.spark_analysis import class_archive, session
from splitbrain.spark_analysis.class_archive import archive_options, archive_path, make_archive
from splitbrain.spark_analysis.jdk import Jdk

JAVA = """#!/bin/sh
case "$*" in
*-XshowSettings*) echo "  java.home = {home}"; echo "  java.specification.version = 17"; exit;;
esac
for argument in "$@"; do
  case "$argument" in -XX:SharedArchiveFile=*) made="${{argument#*=}}";; esac
done
printf "%s\\n" "$@" > {home}/arguments
{end}
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home of a Java, beside a Spark that needs none."""
    home = tmp_path / "jdk"
    (home / "bin").mkdir(parents=True)

    @contextmanager
    def spark_session(**options: Any) -> Iterator[Any]:
        (option,) = options["java_options"]
        name, _, listed = option.partition("=")
        assert name == "-XX:DumpLoadedClassList"
        Path(listed).write_text("java/lang/Object\n")
        properties = {"java.class.path": "a.jar:b.jar"}
        system = SimpleNamespace(getProperty=properties.get)
        jvm = SimpleNamespace(java=SimpleNamespace(lang=SimpleNamespace(System=system)))
        yield SimpleNamespace(_jvm=jvm)

    monkeypatch.setattr(session, "spark_session", spark_session)
    monkeypatch.setattr("splitbrain.spark_analysis.analyze.analyze", lambda *_: None)
    return home


def java(home: Path, end: str) -> dict[str, str]:
    """The environment of a user who has this Java."""
    program = home / "bin" / "java"
    program.write_text(JAVA.format(home=home, end=end))
    program.chmod(0o755)
    return {"JAVA_HOME": str(home), "XDG_CACHE_HOME": str(home.parent / "cache")}


def test_an_archive_is_made_of_what_was_loaded_and_used_from_then_on(home: Path) -> None:
    environment = java(home, ': > "$made"')
    jdk = Jdk(home, 17, "JAVA_HOME")
    assert archive_options(jdk, environment) == []
    made = make_archive(home, environment)
    assert made.is_file()
    assert sorted(path.name for path in made.parent.iterdir()) == sorted([made.name, "spark"])
    arguments = (home / "arguments").read_text().splitlines()
    assert arguments[0] == "-Xshare:dump"
    assert arguments[-2:] == ["-cp", "a.jar:b.jar"]
    assert any(argument.startswith("-XX:SharedClassListFile=") for argument in arguments)
    assert archive_options(jdk, environment)[0] == f"-XX:SharedArchiveFile={made}"


@pytest.mark.parametrize(
    ("end", "problem"),
    [
        ("echo no room; exit 1", "no room"),
        ("exit 1", "Java ended with 1"),
        ("exit 0", "Java ended with 0"),
    ],
)
def test_a_java_that_makes_none_is_one_sentence_and_leaves_nothing(
    home: Path, end: str, problem: str
) -> None:
    environment = java(home, end)
    with pytest.raises(HarnessError) as caught:
        make_archive(home, environment)
    assert problem in str(caught.value)
    assert "Spark starts without" in str(caught.value)
    assert not list((home.parent / "cache").rglob("*.jsa"))
    assert not list((home.parent / "cache").rglob(".classes-*"))


def test_archives_that_fit_nothing_any_more_are_removed(home: Path, tmp_path: Path) -> None:
    environment = java(home, ': > "$made"')
    first = make_archive(home, environment)
    gone = first.parent.with_name("gone")
    gone.mkdir()
    (gone / "spark").symlink_to(tmp_path / "removed clone")
    other = first.parent.with_name("other")
    other.mkdir()
    (other / "spark").symlink_to(tmp_path)
    (home / "release").write_text('JAVA_VERSION="17.0.15"\n')
    second = make_archive(home, environment)
    assert second.is_file()
    assert not first.exists()
    assert sorted(first.parent.parent.iterdir()) == sorted([first.parent, other])


def test_a_cache_folder_that_cannot_be_made_is_one_sentence(home: Path) -> None:
    environment = java(home, ': > "$made"')
    Path(environment["XDG_CACHE_HOME"]).touch()
    with pytest.raises(HarnessError, match="Not a directory"):
        make_archive(home, environment)


def test_each_java_and_each_spark_has_its_own(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    environment = java(home, "exit 0")
    jdk = Jdk(home, 17, "JAVA_HOME")
    places = [archive_path(jdk, environment)]
    places.append(archive_path(Jdk(home.parent, 17, "JAVA_HOME"), environment))
    (home / "release").write_text('JAVA_VERSION="17.0.15"\n')
    places.append(archive_path(jdk, environment))
    monkeypatch.setattr(class_archive.pyspark, "__version__", "4.3.9")
    places.append(archive_path(jdk, environment))
    assert len(set(places)) == len(places)


def test_spark_is_not_told_of_a_path_that_it_would_take_apart(home: Path, tmp_path: Path) -> None:
    environment = {**java(home, "exit 0"), "XDG_CACHE_HOME": str(tmp_path / "a b")}
    jdk = Jdk(home, 17, "JAVA_HOME")
    path = archive_path(jdk, environment)
    path.parent.mkdir(parents=True)
    path.touch()
    assert archive_options(jdk, environment) == []


def test_a_wrong_call_ends_with_64_and_a_missing_java_with_3(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert class_archive.main([]) == 64
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr("splitbrain.spark_analysis.jdk._bundled_java", lambda: None)
    assert class_archive.main([str(tmp_path)]) == 3
    assert "could not find a Java for Spark" in capsys.readouterr().err
