"""A system of an installed package is one like ours; a broken package costs no other system."""

import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from splitbrain.contracts.errors import UsageError
from splitbrain.contracts.system import System
from splitbrain.harness.cli.main import run
from splitbrain.plugins.offers import entry_points_of
from splitbrain.systems import registry
from tests.packages import offer

SOUND = """
from splitbrain.contracts.system import System

class Sound(System):
    name = "sound"
    def deployment(self, run_id, run_folder, options, place): raise NotImplementedError
    def ready(self, runtime): return None
    def open_client(self, runtime, route): raise NotImplementedError

class Misnamed(Sound):
    name = "another"

class Nameless(System):
    deployment = ready = open_client = None

class NoSystem: ...

class Late(Sound):
    def __init__(self): raise OSError("no licence\\nfor this machine")
"""


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator["Install"]:
    monkeypatch.syspath_prepend(str(tmp_path))
    before = set(sys.modules)
    yield Install(tmp_path)
    for name in set(sys.modules) - before:
        if name.startswith("plugged_"):
            del sys.modules[name]
    entry_points_of.cache_clear()


class Install:
    """Packages below one folder of the path, each with a module and entry points of it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __call__(self, package: str, content: str, **entry_points: str) -> None:
        (self.folder / f"plugged_{package}.py").write_text(content)
        systems = {name: f"plugged_{package}:{of}" for name, of in entry_points.items()}
        offer(self.folder, package, systems=systems)
        entry_points_of.cache_clear()


def test_it_is_found_by_the_name_of_its_entry_point(install: Install) -> None:
    install("acme", SOUND, sound="Sound")
    assert registry.names() == tuple(sorted([*registry._FACTORIES, "sound"]))
    first, second = registry.system("sound"), registry.system("sound")
    assert isinstance(first, System)
    assert first is not second


def test_names_are_listed_without_an_import(install: Install) -> None:
    install("acme", "raise RuntimeError('imported')", sound="Sound")
    assert "sound" in registry.names()
    assert registry.system("kraft").name == "kraft"


@pytest.mark.parametrize(
    ("content", "of", "problem"),
    [
        ("import no_such_module", "Sound", "ModuleNotFoundError: No module named"),
        ("syntax error", "Sound", "SyntaxError"),
        ("raise SystemExit(3)", "Sound", "SystemExit: 3"),
        (SOUND, "Missing", "AttributeError"),
        (SOUND, "System", "TypeError: Can't instantiate abstract class System"),
        (SOUND, "Late", "OSError: no licence for this machine"),
        (SOUND, "NoSystem", "is no system but of type NoSystem"),
        (SOUND, "Nameless", "calls itself None"),
        (SOUND, "Misnamed", "calls itself 'another'"),
    ],
)
def test_a_package_that_cannot_be_used_is_one_sentence_and_costs_no_other_system(
    install: Install, content: str, of: str, problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    install("acme", content, sound=of)
    with pytest.raises(UsageError) as caught:
        registry.system("sound")
    assert problem in caught.value.problem
    assert f"acme (plugged_acme:{of})" in caught.value.problem
    assert "\n" not in str(caught.value)
    assert [found.name for found in registry.usable_systems()] == sorted(registry._FACTORIES)

    assert run(["test", "--system", "sound", "--runtime", "local"]) == 64
    assert problem in " ".join(capsys.readouterr().err.split())
    assert run(["systems", "--json"]) == 0
    listed = {row["name"]: row for row in msgspec.json.decode(capsys.readouterr().out)}
    assert problem in listed["sound"]["problem"]
    assert listed["kraft"]["problem"] == ""
    assert run(["systems"]) == 0
    assert "unusable" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "origins"),
    [
        ("kraft", ("splitbrain itself", "acme (plugged_acme:Sound)")),
        ("sound", ("acme (plugged_acme:Sound)", "other (plugged_other:Sound)")),
    ],
)
def test_two_systems_of_one_name_are_refused_with_both_origins(
    install: Install, name: str, origins: tuple[str, str]
) -> None:
    install("acme", SOUND, **{name: "Sound"})
    install("other", SOUND, sound="Sound")
    with pytest.raises(UsageError) as caught:
        registry.system(name)
    assert [origin for origin in origins if origin not in caught.value.problem] == []
    assert registry.system("redis").name == "redis"


def test_a_name_that_nobody_offers_is_answered_with_the_nearest(install: Install) -> None:
    install("acme", SOUND, sound="Sound")
    with pytest.raises(UsageError, match="Did you mean 'sound'"):
        registry.system("sond")
