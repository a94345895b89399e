"""``NAME@VERSION``: a version of a system, from the command line to the record of the run."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from splitbrain.contracts.errors import UsageError
from splitbrain.harness.campaign.gate.selection import select
from splitbrain.harness.cli.completion import values_of
from splitbrain.harness.cli.main import run
from splitbrain.history.plan import encode_plan, reproduce_command
from splitbrain.history.run_folder import RunFolder
from splitbrain.spark_analysis.damage import Damage
from splitbrain.spark_analysis.run_record import identify
from splitbrain.systems import registry
from tests.plans import plan_with
from tests.unit.systems.test_systems_of_packages import SOUND

OFFERS = "    offered_versions = ('2.1', '2.0')\n"


@pytest.fixture(autouse=True)
def own_variable(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv(registry.VARIABLE, "")
    yield
    registry._by_name.cache_clear()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A system with two versions."""
    made = tmp_path / "at@home.py"
    name = '    name = "sound"\n'
    assert name in SOUND
    made.write_text(SOUND.replace(name, f"{name}{OFFERS}", 1))
    return made


def test_the_usual_version_is_the_first_and_a_name_chooses_another(file: Path) -> None:
    assert registry.admitted(f"{file}:Sound") == "sound"
    assert registry.system("sound").version == "2.1"
    assert registry.system("sound@2.0").version == "2.0"
    # An adapter is made for each run.
    assert registry.system("sound").version == "2.1"
    assert registry.system("kraft").version is None


def test_a_version_stands_behind_the_class_of_a_file(file: Path) -> None:
    assert registry.admitted(f"{file}:Sound@2.0") == "sound@2.0"
    assert registry.file_of("sound@2.0") == f"{file}:Sound@2.0"
    assert registry.file_of("sound") == f"{file}:Sound"
    assert registry.system_option("sound@2.0").endswith(":Sound@2.0")


@pytest.mark.parametrize(
    ("name", "problem", "next_step"),
    [
        ("sound@1.9", "there is no version '1.9' of the system 'sound'", "2.1"),
        ("sound@", "there is no version '' of the system 'sound'", "2.0"),
        ("kraft@3", "there is no version '3' of the system 'kraft'", "write kraft"),
        ("nothing@3", "there is no system called 'nothing'", "systems"),
    ],
)
def test_a_version_that_there_is_not_is_refused(
    file: Path, name: str, problem: str, next_step: str
) -> None:
    registry.admitted(f"{file}:Sound")
    with pytest.raises(UsageError, match=problem) as refused:
        registry.system(name)
    assert next_step in refused.value.next_step


def test_a_wrong_version_of_a_file_is_refused_on_the_command_line(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["test", "--system", f"{file}:Sound@3", "--dry-run"]) == 64
    assert "no version '3' of the system 'sound'" in capsys.readouterr().err


def test_versions_are_listed_and_completed(
    file: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    registry.admitted(f"{file}:Sound")
    assert values_of("--system", ["test", "--system", "sound"]) == [
        "sound",
        "sound@2.1",
        "sound@2.0",
    ]
    assert run(["systems", "--json"]) == 0
    listed = {each["name"]: each for each in json.loads(capsysbinary.readouterr().out)}
    assert listed["sound"]["offered_versions"] == ["2.1", "2.0"]
    assert run(["systems"]) == 0
    assert b"sound@2.1 or sound@2.0" in capsysbinary.readouterr().out


def test_a_record_says_the_choice_and_sums_go_by_name_and_version(tmp_path: Path) -> None:
    plan = plan_with(
        system="sound@2.0", system_file="own.py:Sound@2.0", system_versions={"sound": "2.0"}
    )
    assert " --system own.py:Sound@2.0 " in reproduce_command(plan)
    chosen = plan_with(system="sound@2.0")
    assert " --system sound@2.0 " in reproduce_command(chosen)
    (tmp_path / "plan.json").write_bytes(encode_plan(plan))
    assert identify(RunFolder(tmp_path), Damage()).system == "sound"
    (gated,) = select([str(tmp_path)]).runs
    assert (gated.system, gated.version) == ("sound", "2.0")
