"""A system that is named as a file and a class is one like ours, in every process."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from splitbrain.contracts.errors import UsageError
from splitbrain.harness.campaign.suite.attempt import new_attempt, start
from splitbrain.harness.campaign.suite.conductor import TOOL
from splitbrain.harness.cli.main import run
from splitbrain.harness.pool.child_environment import child_environment
from splitbrain.harness.pool.frames import frame
from splitbrain.systems import registry
from tests.unit.systems.test_systems_of_packages import SOUND


@pytest.fixture(autouse=True)
def own_variable(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv(registry.VARIABLE, "")
    yield
    registry._by_name.cache_clear()


@pytest.fixture
def sound(tmp_path: Path) -> Path:
    file = tmp_path / "sound_system.py"
    file.write_text(f"{SOUND}\nfrom beside_sound import HELP\n")
    (tmp_path / "beside_sound.py").write_text("HELP = 1\n")
    return file


def test_it_is_known_by_its_name_from_then_on_whatever_the_folder(
    sound: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert registry.admitted("sound_system.py:Sound") == "sound"
    monkeypatch.chdir("/")
    assert registry.names() == tuple(sorted([*registry._FACTORIES, "sound"]))
    assert registry.system("sound").name == "sound"
    assert registry.file_of("sound") == f"{sound}:Sound"
    assert registry.file_of("kraft") is None
    # Named a second time it is the same one.
    assert registry.admitted(f"{sound}:Sound") == "sound"
    assert os.environ[registry.VARIABLE] == f"{sound}:Sound"


def test_processes_that_it_starts_know_it_and_can_be_sent_its_adapter(sound: Path) -> None:
    registry.admitted(f"{sound}:Sound")
    program = (
        "import sys; from splitbrain.harness.pool.frames import read_body; import pickle; "
        "from splitbrain.systems.registry import names; "
        "print(pickle.loads(read_body(sys.stdin.buffer)).name, *names())"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", program],
        check=True,
        input=frame(registry.system("sound")),
        env=child_environment(),
        stdout=subprocess.PIPE,
    )
    names = sorted([*registry._FACTORIES, "sound"])
    assert done.stdout.decode().split() == ["sound", *names]


@pytest.mark.parametrize(
    ("content", "of", "problem"),
    [
        ("import no_such_module", "Sound", "cannot be run: ModuleNotFoundError"),
        ("raise SystemExit(3)", "Sound", "cannot be run: SystemExit: 3"),
        (SOUND, "Missing", "holds no Missing. Its systems are: Sound, Misnamed, Nameless, Late"),
        (SOUND, "", "holds no nameless system"),
        ("x = 1", "x", "is no system but of type int"),
        (SOUND, "NoSystem", "is no system but of type NoSystem"),
        (SOUND, "Nameless", "has no name"),
        (SOUND, "Late", "cannot be made without arguments: OSError: no licence"),
        (SOUND.replace('"sound"', '"kraft"'), "Sound", "'kraft' is offered by splitbrain itself"),
    ],
)
def test_a_file_that_cannot_be_used_is_one_sentence(
    content: str, of: str, problem: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "own.py"
    file.write_text(content)
    assert run(["test", "--system", f"{file}:{of}", "--runtime", "local"]) == 64
    said = " ".join(capsys.readouterr().err.split())
    assert problem in said
    assert "Traceback" not in said


def test_what_the_variable_names_costs_no_other_system(
    sound: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    missing = f"{tmp_path / 'missing.py'}:Sound"
    monkeypatch.setenv(registry.VARIABLE, f" {missing}, {sound}:Sound,shelf ")
    named = sorted([missing, *registry._FACTORIES, "shelf", "sound"])
    assert registry.names() == tuple(named)
    usable = sorted([*registry._FACTORIES, "sound"])
    assert [found.name for found in registry.usable_systems()] == usable
    with pytest.raises(UsageError, match="there is no file"):
        registry.system(missing)
    with pytest.raises(UsageError, match="'shelf' names no class of a file"):
        registry.system("shelf")


def test_two_files_with_one_name_are_refused_with_both(sound: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.py"
    other.write_text(SOUND)
    registry.admitted(f"{sound}:Sound")
    with pytest.raises(UsageError, match=r"sound_system\.py:Sound and by .*other\.py:Sound"):
        registry.admitted(f"{other}:Sound")


def test_a_path_with_a_comma_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a,b.py").write_text(SOUND)
    with pytest.raises(UsageError, match="has a comma"):
        registry.admitted(f"{tmp_path / 'a,b.py'}:Sound")


def test_a_name_that_is_not_there_is_said_with_the_file_that_would_have_had_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "shelf.py"
    file.write_text("from shelf import errors")
    monkeypatch.setenv(registry.VARIABLE, f"{file}:Shelf")
    with pytest.raises(
        UsageError, match=r"no system called 'shelf', and .*shelf\.py cannot be run: ImportError"
    ):
        registry.system("shelf")


def test_a_suites_children_import_the_package_that_the_file_is_named_as(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library, work = tmp_path / "library", tmp_path / "work"
    (library / "sound").mkdir(parents=True)
    (library / "sound" / "__init__.py").write_text("errors = 1\n")
    work.mkdir()
    (work / "sound.py").write_text(f"from sound import errors\n{SOUND}")
    (work / "beside_sound.py").write_text("HELP = 1\n")
    monkeypatch.syspath_prepend(library)
    monkeypatch.chdir(work)
    monkeypatch.setenv(registry.VARIABLE, f"{work / 'sound.py'}:Sound")
    attempt = new_attempt(tmp_path)
    child = start(attempt, [*TOOL, "systems"], child_environment())
    assert child.has_ended(60)
    assert child.exit_code == 0, attempt.output.read_text()
    assert "sound" in attempt.output.read_text().split()
