"""``--json``: one line of JSON on standard output, and everything else on standard error."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from splitbrain.harness.cli import main as cli
from splitbrain.harness.cli.main import app
from splitbrain.harness.console.standard_streams import answer, output
from tests.unit.harness.small_worlds import QUICK_BUG

Told = Callable[..., tuple[int, Any, str]]
SIMULATED = ("--runtime", "simulated", "--time-limit", "2s", "--nemesis", "none")


@pytest.fixture
def told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Told:
    """Run a command line with --json; its exit code, its answer, and its words."""
    monkeypatch.chdir(tmp_path)

    def told(*words: str) -> tuple[int, Any, str]:
        capsys.readouterr()
        code = cli.run([*words, "--json"])
        printed = capsys.readouterr()
        (line,) = printed.out.splitlines()
        return code, json.loads(line), printed.err

    return told


@pytest.mark.parametrize("command", [name for name in app if not name.startswith("-")])
def test_every_command_takes_the_option(command: str) -> None:
    names = {name for one in app[command].assemble_argument_collection() for name in one.names}
    # These two print what people and shells read.
    assert "--json" in names or command in ("help", "completion")


def test_a_test_answers_with_its_results(told: Told) -> None:
    code, answered, words = told("test", *SIMULATED, "--seed", "4")
    assert code == answered["exit_code"] == 0
    (results,) = answered["runs"]
    assert (results["verdict"], results["seed"]) == ("valid", 4)
    assert "Reproduce" in words


def test_seeds_answer_with_the_results_of_each(told: Told) -> None:
    code, answered, words = told("test", *SIMULATED, "--seeds", "4:6", "--bug", QUICK_BUG)
    assert code == answered["exit_code"] == 1
    assert [(run["seed"], run["verdict"]) for run in answered["runs"]] == [
        (4, "invalid"),
        (5, "invalid"),
    ]
    assert "2 seeds: 2 invalid" in words


def test_a_dry_run_answers_with_its_schedules(told: Told) -> None:
    _, answered, words = told("test", "--dry-run", "--seeds", "3:5", "--time-limit", "1m")
    assert answered["schedules"].keys() == {"3", "4"}
    assert answered["schedules"]["3"][0]["kind"] == "kill"
    assert "nothing was started" in words


def test_a_sweep_answers_with_its_failures_and_their_lines(told: Told, tmp_path: Path) -> None:
    code, answered, words = told("sim", "--seeds", "2:4", "--bug", QUICK_BUG)
    assert code == answered["exit_code"] == 1
    assert (answered["done"], answered["seeds"]) == (2, "2:4")
    first = answered["failures"][0]
    assert first["reproduce"].startswith(f"splitbrain sim --seed 2 --bug {QUICK_BUG} --made-by ")
    assert Path(first["folder"]).is_relative_to(tmp_path)
    assert "2 of 2 seeds failed" in words
    clean, answered, _ = told("sim", "--seed", "2")
    assert (clean, answered["failures"]) == (0, [])


def test_a_world_its_replays_and_its_search_answer(told: Told) -> None:
    _, answered, _ = told("sim", "--seed", "2", "--bug", QUICK_BUG)
    folder = answered["failures"][0]["folder"]
    code, answered, words = told("replay", folder, "--times", "2")
    assert code == answered["exit_code"] == 1
    assert len(answered["replays"]) == 2
    assert answered["replays"][0] == answered["replays"][1]
    assert "2 of 2 replays failed; 2 had the same trace." in words
    code, answered, _ = told("sim", "--scenario", f"{folder}/scenario.json")
    assert code == answered["exit_code"] == 1
    assert answered["failed_by"]
    code, answered, words = told("shrink", folder, "--replays", "3")
    assert code == answered["exit_code"] == 0
    assert answered["reproduce"].startswith("splitbrain replay --scenario blob:")
    assert answered["result"]["after"]["faults"] <= answered["result"]["before"]["faults"]
    assert f"folder:    {answered['folder']}" in words


def test_a_new_system_answers_with_its_files(told: Told) -> None:
    code, answered, words = told("new-system", "my-store")
    assert code == 0
    assert answered["system"] == "my_store.py:MyStore"
    assert sorted(answered["files"]) == ["my_store.py", "pyproject.toml"]
    assert "systems check my_store.py:MyStore" in words


def test_a_refusal_is_no_answer(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["sim", "--seed", "lucky", "--json"]) == 64
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "--seed cannot be 'lucky'" in printed.err


def test_without_the_option_nothing_is_answered(capsys: pytest.CaptureFixture[str]) -> None:
    answer(output(), {"exit_code": 0})
    assert capsys.readouterr() == ("", "")
