"""``splitbrain init``: three files that their own readers take, from what a system declares."""

import re
from pathlib import Path

import pytest

from splitbrain.harness.campaign.gate.policy import read_policy
from splitbrain.harness.campaign.nightly.definition import read_nightly
from splitbrain.harness.campaign.suite.definition import PlannedRun
from splitbrain.harness.campaign.suite.reading import plan
from splitbrain.harness.cli.main import run
from splitbrain.systems.registry import VARIABLE, system

FILES = ["night.toml", "policy.toml", "suite.toml"]


@pytest.fixture
def own_system(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> str:
    """A system that ``new-system`` wrote; known by its name to this test alone."""
    monkeypatch.setenv(VARIABLE, "")
    assert run(["new-system", "my-store", "--folder", str(tmp_path)]) == 0
    capsys.readouterr()
    return f"{tmp_path / 'my-store' / 'my_store.py'}:MyStore"


def written(name: str, folder: Path, *words: str) -> tuple[list[PlannedRun], list[PlannedRun]]:
    """Have the files written; return the canaries and the other runs of the night."""
    assert run(["init", "--system", name, "--output", str(folder), *words]) == 0
    assert sorted(path.name for path in folder.glob("*.toml") if path.name in FILES) == FILES
    night = read_nightly(folder / "night.toml")
    runs = plan(night.suite, 0)
    return (
        [each for each in runs if each.expect == "invalid"],
        [each for each in runs if each.expect == "valid"],
    )


def values_of(option: str, runs: list[PlannedRun]) -> set[str]:
    return {str(each.options[option]) for each in runs}


@pytest.mark.parametrize("name", ["kraft", "redis", "zookeeper"])
def test_every_workload_is_tried_under_every_fault_that_is_no_canary(
    name: str, tmp_path: Path
) -> None:
    (canary,), runs = written(name, tmp_path)
    found = system(name)
    assert found.canary is not None
    assert canary.options["nemesis"] == found.canary.nemesis
    assert canary.options.get("setting") == (found.canary.settings or None)
    machines = found.state_machines or (None,)
    workloads = {each for machine in machines for each in found.workloads(machine)}
    assert values_of("workload", runs) == workloads
    # A loss of the canary without a planted bug is known, and would be found every night.
    faults = {"pause", "kill"} if name == "redis" else {"pause", "kill", "partition"}
    assert values_of("nemesis", runs) == faults
    assert values_of("runtime", runs) <= {"simulated", "docker", "local"}
    policy = read_policy(tmp_path / "policy.toml")
    demanded = {threshold.text for threshold in policy.tier(None).thresholds}
    quick = {threshold.text for threshold in policy.tier("pull-request").thresholds}
    assert ("seeds_run >= 300" in quick) == (found.simulation() is not None)
    assert ("lost_commits == 0" in demanded) == found.declares_committed_logs
    assert run(["gate", "--policy", str(tmp_path / "policy.toml"), "--self-test"]) == 0


def test_the_system_of_a_file_is_named_from_the_suite_s_folder(
    own_system: str, tmp_path: Path
) -> None:
    for folder, path in (("my-store", "my_store.py"), ("nights/of", "../../my-store/my_store.py")):
        (canary,), runs = written(own_system, tmp_path / folder)
        text = (tmp_path / folder / "suite.toml").read_text()
        assert text.count(f'system = "{path}:MyStore"') == 2
        assert (canary.options["nemesis"], canary.options["nodes"]) == ("kill:n1", 1)
        # One node has nobody to be cut off from, and a kill is the canary.
        assert values_of("nemesis", runs) == {"pause"}


def test_another_system_s_planted_bug_stands_in_where_an_adapter_has_no_canary(
    own_system: str, tmp_path: Path
) -> None:
    file = Path(own_system.partition(":")[0])
    file.write_text(re.sub(r" +canary = .*\n", "", file.read_text()))
    (canary,), runs = written(own_system, tmp_path / "nights")
    assert canary.options["bug"]
    assert canary.options["runtime"] == "simulated"
    assert values_of("nemesis", runs) == {"pause", "kill"}
    assert "my-store declares none" in (tmp_path / "nights" / "suite.toml").read_text()


def test_one_budget_settles_how_many_seeds_a_night_has(tmp_path: Path) -> None:
    few, many = (
        len(written("kraft", tmp_path / budget, "--time-budget", budget)[1])
        for budget in ("4m", "8h")
    )
    assert few == 9
    assert many > 20 * few
    assert read_nightly(tmp_path / "8h" / "night.toml").budget_s == 8 * 3600


@pytest.mark.parametrize("there", FILES)
def test_nothing_is_overwritten_and_nothing_written_beside(
    there: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / there).write_text("mine")
    assert run(["init", "--system", "kraft", "--output", str(tmp_path)]) == 64
    assert f"{there} already. Choose another folder with --output" in " ".join(
        capsys.readouterr().err.split()
    )
    assert [path.name for path in tmp_path.iterdir()] == [there]
    assert (tmp_path / there).read_text() == "mine"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--system", "kraf"), "there is no system called 'kraf'. Did you mean 'kraft'?"),
        (("--system", "compose"), "compose says nothing of its nodes without settings"),
        (("--system", "none.py:Store"), "none.py"),
        (("--system", "redis", "--runtime", "simulated"), "redis cannot be simulated"),
        (("--system", "kraft", "--runtime", "cloud"), "there is no runtime 'cloud'"),
        (("--system", "kraft", "--time-budget", "soon"), "--time-budget: 'soon' is no time"),
        (("--system", "kraft", "--output", "a-file"), "cannot be written"),
    ],
)
def test_what_cannot_be_written_is_refused_and_leaves_nothing(
    words: tuple[str, ...],
    says: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a-file").touch()
    assert run(["init", *words]) == 64
    assert says in " ".join(capsys.readouterr().err.split())
    assert [path.name for path in tmp_path.rglob("*")] == ["a-file"]
