"""A failing seed travels: the lines of commands that make a failure again on another machine."""

import json
import re
import shlex
import subprocess
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from splitbrain.harness.cli import main as cli
from splitbrain.harness.folder.scenario_file import read_scenario
from splitbrain.harness.folder.tool_version import this_tool
from splitbrain.history.plan import decode_plan
from splitbrain.history.reproduce_line import line_of, maker_words
from splitbrain.history.run_folder import RunFolder
from tests.synthetic_runs import seal
from tests.unit.harness.small_worlds import QUICK_BUG

Told = Callable[..., tuple[int, str, str]]
OTHER = "splitbrain 0.0.1, feedbee"
DIFFERS = f"made by {OTHER}; this is {this_tool()}, with which it may come out otherwise"
#: A line without a run folder, so without a folder of this machine.
LINE = re.compile(r"(?m)^(?: *|\w+:? +)(splitbrain (?:sim|test|replay --scenario) .*--made-by .*)$")


@pytest.fixture
def told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Told:
    """Run a command line; its exit code, output and errors."""

    def told(*words: str) -> tuple[int, str, str]:
        places = ["--runs-folder", str(tmp_path / "runs")] if words[0] in ("sim", "test") else []
        code = cli.run([*words, *places])
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    return told


def line_in(text: str) -> list[str]:
    """The words of the only line that reproduces a failure."""
    (line,) = set(LINE.findall(text))
    words = shlex.split(line, comments=True)
    assert words[-2:] == maker_words(this_tool())
    assert not any(word.startswith("/") for word in words)
    return words[1:-2]


def latest(runs: Path, name: str) -> RunFolder:
    return RunFolder(max((runs / name).iterdir()))


def test_a_seed_of_a_sweep_travels_as_its_seed(told: Told, tmp_path: Path) -> None:
    code, said, _ = told("sim", "--seeds", "2", "--bug", QUICK_BUG)
    assert code == 1
    again = line_in(said)
    assert again == ["sim", "--seed", "2", "--bug", QUICK_BUG]
    assert told(*again)[0] == 1
    folder = latest(tmp_path / "runs", "sim-kraft-register")
    told("check", str(folder.root))
    results = json.loads(folder.results.read_bytes())
    assert line_in(results["reproduce"]) == again


def test_an_edited_world_travels_within_the_line(told: Told, tmp_path: Path) -> None:
    told("sim", "--seed", "2", "--bug", QUICK_BUG)
    kept = latest(tmp_path / "runs", "sim-kraft-register")
    edited = msgspec.structs.replace(read_scenario(kept.scenario), load_us=700_000)
    path = tmp_path / "edited.json"
    path.write_bytes(msgspec.json.encode(edited))
    code, said, _ = told("sim", "--scenario", str(path))
    assert code == 1
    again = line_in(said)
    assert again[:2] == ["replay", "--scenario"]
    code, replayed, _ = told(*again)
    assert code == 1
    assert replayed.startswith("failed in step ")
    # The same word is the world of a sweep's command too, which keeps a folder of it.
    code, swept, _ = told("sim", *again[1:])
    assert code == 1
    assert "the world of the scenario.json of the line" in swept
    assert line_in(swept) == again


def test_a_plan_file_travels_within_the_line_and_a_replay_keeps_it(
    told: Told, tmp_path: Path
) -> None:
    path = tmp_path / "cut.toml"
    path.write_text(
        "[[faults]]\nkind = 'partition'\ntarget = 'leader'\nat_ms = 500\nduration_ms = 900\n"
    )
    simulated = ["test", "--runtime", "simulated", "--time-limit", "2500ms", "--seed", "3"]
    told(*simulated, "--nemesis", str(path))
    first = latest(tmp_path / "runs", "kraft-register")
    path.unlink()
    words = line_in(json.loads(first.results.read_bytes())["reproduce"])
    told(*words)
    second = latest(tmp_path / "runs", "kraft-register")
    assert second.root != first.root
    assert second.schedule.read_bytes() == first.schedule.read_bytes()
    plans = [decode_plan(run.plan.read_bytes()) for run in (first, second)]
    assert [Path(plan.experiment.nemesis).name for plan in plans] == ["cut.toml", "cut.toml"]
    assert plans[0].plan_file == plans[1].plan_file
    assert line_in(json.loads(second.results.read_bytes())["reproduce"]) == words


def test_seeds_of_a_test_are_run_one_after_the_other(told: Told, tmp_path: Path) -> None:
    simulated = ["--runtime", "simulated", "--time-limit", "2s", "--nemesis", "none"]
    code, said, _ = told("test", *simulated, "--seeds", "4:6")
    assert code == 0
    assert "seed 4, 1 of 2\n" in said
    assert said.splitlines()[-1] == "2 seeds: 2 valid."
    runs = (tmp_path / "runs" / "kraft-register").iterdir()
    assert sorted(run.name.rpartition("-")[2] for run in runs) == ["4", "5"]


def test_seeds_that_fail_are_named_and_their_code_wins(told: Told) -> None:
    simulated = ["--runtime", "simulated", "--time-limit", "2s", "--nemesis", "none"]
    code, said, _ = told("test", *simulated, "--seeds", "4:6", "--bug", QUICK_BUG)
    assert code == 1
    assert re.fullmatch(r"2 seeds: 2 invalid \(.*\): 4, 5\.", said.splitlines()[-1])


def test_a_dry_run_shows_the_schedule_and_starts_nothing(told: Told, tmp_path: Path) -> None:
    code, said, _ = told("test", "--dry-run", "--seeds", "3:5", "--time-limit", "1m")
    assert code == 0
    lines = said.splitlines()
    assert lines[0].startswith("splitbrain kraft-register, seed 3: 3 nodes, 60 s of load by 10 ")
    assert lines[1].split() == ["from", "for", "fault", "target"]
    assert lines[2].split() == ["3.982", "s", "2.687", "s", "kill", "leader"]
    assert sum(line.startswith("splitbrain kraft-register, seed ") for line in lines) == 2
    assert lines[-1].startswith("dry run: nothing was started.")
    assert not (tmp_path / "runs").exists()


def test_a_dry_run_refuses_what_its_runtime_cannot_do(
    told: Told, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    line = ("test", "--dry-run", "--time-limit", "10s", "--nemesis")
    assert cli.run([*line, "disk-stall", "--runtime", "local"]) == 3
    assert "could not plan the fault disk-stall (runtime local)" in capsys.readouterr().err
    monkeypatch.setenv("DOCKER_HOST", "tcp://127.0.0.1:1")
    code, said, _ = told(*line, "disk-stall")
    assert code == 0
    assert "Whether docker can do it was not asked: nobody answers at" in said.splitlines()[-1]


def test_a_dry_run_shows_the_settings_that_each_seed_draws(told: Told) -> None:
    name = "controller.quorum.fetch.timeout.ms"
    code, said, _ = told(
        "test", "--dry-run", "--seeds", "0:9", "--setting", f"{name}=drawn:1500,3000"
    )
    assert code == 0
    titles = [line for line in said.splitlines() if line.startswith("splitbrain kraft-register")]
    assert {title.rpartition("; ")[2] for title in titles} == {f"{name}=1500", f"{name}=3000"}


@pytest.mark.parametrize("made_by", [["--made-by", "0.0.1+feedbee"], ["--made-by=0.0.1+feedbee"]])
def test_a_line_that_bash_has_read_tells_another_version(
    made_by: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    line = ("test", "--dry-run", "--seed", "1")
    assert cli.run([*line, *made_by]) == 0
    assert capsys.readouterr().err == f"{DIFFERS}\n"
    # Before or behind whatever else the command takes.
    assert cli.run(["test", *made_by, *line[1:]]) == 0
    assert capsys.readouterr().err == f"{DIFFERS}\n"
    read = subprocess.run(
        ["bash", "-c", f"printf '%s\\n' {line_of(['splitbrain', *line], OTHER, ['x.patch'])}"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert cli.run(read.stdout.splitlines()[1:]) == 0
    assert capsys.readouterr().err == f"{DIFFERS}\n"
    assert cli.run([*line, *maker_words(this_tool())]) == 0
    assert capsys.readouterr().err == ""


def test_a_comment_that_the_shell_left_in_tells_another_version(
    told: Told, capsys: pytest.CaptureFixture[str]
) -> None:
    line = ("test", "--dry-run", "--seed", "1")
    commented = [*line, *f"# {OTHER}; takes the file x".split()]
    assert cli.run(commented) == 0
    assert capsys.readouterr().err == f"{DIFFERS}\n"
    assert cli.run([*line, *f"# {this_tool()}".split()]) == 0
    assert capsys.readouterr().err == ""
    assert told(*line)[0] == 0


@pytest.mark.parametrize("command", ["replay", "shrink"])
def test_a_run_of_another_version_is_told_before_it_is_run_again(
    told: Told, tmp_path: Path, command: str
) -> None:
    told("sim", "--seed", "2", "--bug", QUICK_BUG)
    folder = latest(tmp_path / "runs", "sim-kraft-register")
    record = json.loads(folder.simulation.read_bytes())
    record |= {"tool_version": "0.0.1", "tool_commit": "feedbee" + "0" * 33}
    folder.simulation.write_text(json.dumps(record))
    seal(folder)
    _, said, _ = told(command, str(folder.root))
    assert said.count(DIFFERS) == 1


@pytest.mark.parametrize("way", ["file", "line"])
def test_a_world_of_another_version_is_told(told: Told, tmp_path: Path, way: str) -> None:
    told("sim", "--seed", "2", "--bug", QUICK_BUG)
    path = latest(tmp_path / "runs", "sim-kraft-register").scenario
    word = str(path)
    if way == "file":
        path.write_text(path.read_text().replace(this_tool(), OTHER))
    else:
        from splitbrain.harness.folder.scenario_text import scenario_words

        word = scenario_words(read_scenario(path), OTHER, word)[-1]
    for command in ("replay", "sim"):
        _, said, _ = told(command, "--scenario", word)
        assert said.count(DIFFERS) == 1
