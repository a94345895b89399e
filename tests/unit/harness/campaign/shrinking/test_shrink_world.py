"""``splitbrain shrink`` on a real simulated run of a planted bug that any election shows."""

import json
import signal
import threading
from pathlib import Path
from typing import Any

import msgspec
import pytest

from splitbrain.contracts.fault import Fault
from splitbrain.contracts.scenario import LoadOptions, Scenario
from splitbrain.harness.campaign.shrinking import exact_search
from splitbrain.harness.campaign.shrinking.exact_oracle import ExactOracle
from splitbrain.harness.campaign.sweep.trial import run
from splitbrain.harness.cli import main as cli
from splitbrain.harness.console.stop import Stop
from splitbrain.harness.folder.manifest import write_manifest
from splitbrain.harness.folder.scenario_file import read_scenario, read_simulation
from splitbrain.harness.folder.simulation_record import SimulationRecord
from splitbrain.harness.judge.simulated_outcomes import judged
from splitbrain.harness.run.world.folder import keep_sweep_run
from splitbrain.history.run_folder import RunFolder
from tests.unit.harness.small_results import results_with

SCENARIO = Scenario(
    system="kraft",
    seed=5,
    bugs=("vote-not-persisted",),
    load=LoadOptions(clients=3, rate=20.0),
    faults=(
        Fault(0, "reset", "all", 20_000, 0, draw=1),
        Fault(1, "pause", "n3", 2_000_000, 50_000, draw=2),
    ),
    load_us=1_000_000,
)


@pytest.fixture
def failed(tmp_path: Path) -> RunFolder:
    outcome = judged(run(SCENARIO))
    assert outcome.failed_by
    return RunFolder(keep_sweep_run(outcome, tmp_path / "runs"))


@pytest.fixture
def unjudged(monkeypatch: pytest.MonkeyPatch) -> None:
    """Judging takes processes of its own; one test has them."""
    monkeypatch.setattr(
        exact_search.publishing, "judge_and_publish", lambda *_, **__: results_with()
    )


def small_run(folder: RunFolder) -> Path:
    (root,) = (folder.root.parent.parent / "shrunk-kraft-register").iterdir()
    return root


def content(folder: RunFolder) -> dict[str, bytes]:
    paths = sorted(path for path in folder.root.rglob("*") if path.is_file())
    return {str(path): path.read_bytes() for path in paths}


def make_healthy(folder: RunFolder) -> None:
    """As if the run had been made without its bug."""
    healthy = msgspec.structs.replace(read_scenario(folder.scenario), bugs=())
    folder.scenario.write_bytes(msgspec.json.encode(healthy))
    write_manifest(folder)


def rewrite(folder: RunFolder, **fields: object) -> None:
    record = msgspec.structs.replace(read_simulation(folder), **fields)
    folder.simulation.write_bytes(msgspec.json.encode(record))
    write_manifest(folder)


def test_a_failing_run_is_shrunk_to_a_run_of_its_own(
    failed: RunFolder,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "step.md"))
    before = content(failed)
    assert cli.run(["shrink", str(failed.root)]) == 0
    assert content(failed) == before
    root = small_run(failed)
    step = (tmp_path / "step.md").read_text()
    assert step.startswith(f"# Shrunk: sim-kraft-register/{failed.root.name}\n")
    assert "- reproduce: " in step
    small = RunFolder(root)
    scenario, record = read_scenario(small.scenario), read_simulation(small)
    assert (scenario.faults, scenario.load.kept, scenario.load.clients) == ((), (), 1)
    assert record.shrunk_from == f"sim-kraft-register/{failed.root.name}"
    assert record.failed_by is not None
    assert record.failed_by == read_simulation(failed).failed_by
    assert json.loads(small.results.read_bytes())["verdict"] == "invalid"
    assert small.report.exists()
    assert small.timeline.stat().st_size > 0
    printed = capsys.readouterr().out
    for told in (
        "faults 2 -> 0, operations",
        "it takes none of them",
        "planted: vote-not-persisted",
        f"\n{record.failed_by[0]}: ",
        f"splitbrain replay {root}",
    ):
        assert told in printed
    assert cli.run(["replay", str(root)]) == 1


@pytest.mark.usefixtures("unjudged")
def test_it_goes_where_it_is_told_to(failed: RunFolder, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    assert cli.run(["shrink", str(failed.root), "--runs-folder", str(elsewhere)]) == 0
    assert [entry.name for entry in (elsewhere / "shrunk-kraft-register").iterdir()]


@pytest.mark.usefixtures("unjudged")
def test_a_used_up_budget_still_leaves_a_failing_run(
    failed: RunFolder, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "test_saved.py"
    options = ["--replays", "1", "--save-test", str(file)]
    assert cli.run(["shrink", str(failed.root), *options]) == 0
    told = capsys.readouterr().out
    why = "cut short, for 1 replay was made; `splitbrain shrink"
    assert "cut short: 1 replay was made" in told
    root = small_run(failed)
    assert f"\n{why} {root}` goes on from here\n" in told
    assert f"The search was {why} FOLDER` goes on" in file.read_text()
    assert cli.run(["replay", str(root)]) == 1


@pytest.mark.usefixtures("unjudged")
def test_an_interrupted_search_leaves_a_failing_run_and_is_unknown(
    failed: RunFolder, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[Scenario] = []
    is_heard = threading.Event()
    stopping = Stop.interrupt

    def hear(stop: Stop) -> None:
        stopping(stop)
        is_heard.set()

    def interrupt(oracle: ExactOracle, candidate: Scenario, step: str) -> bool:
        if not asked:
            signal.raise_signal(signal.SIGINT)
            # A thread acts on it, in its own time.
            assert is_heard.wait(timeout=60)
        asked.append(candidate)
        return ask(oracle, candidate, step)

    ask = ExactOracle.fails
    monkeypatch.setattr(Stop, "interrupt", hear)
    monkeypatch.setattr(ExactOracle, "fails", interrupt)
    assert cli.run(["shrink", str(failed.root)]) == 2
    assert len(asked) == 1
    root = small_run(failed)
    told = capsys.readouterr().out
    assert f"\ninterrupted; `splitbrain shrink {root}` goes on from here\n" in told
    assert cli.run(["replay", str(root)]) == 1


@pytest.mark.usefixtures("unjudged")
def test_the_saved_test_fails_with_the_bug_alone(failed: RunFolder, tmp_path: Path) -> None:
    file = tmp_path / "test_saved.py"
    assert cli.run(["shrink", str(failed.root), "--save-test", str(file)]) == 0
    names: dict[str, object] = {}
    exec(compile(file.read_text(), str(file), "exec"), names)
    tests: list[Any] = [test for name, test in names.items() if name.startswith("test_")]
    assert len(tests) == 2
    for test in tests:
        test()


def test_a_run_that_fails_otherwise_now_is_refused(
    failed: RunFolder, capsys: pytest.CaptureFixture[str]
) -> None:
    record: SimulationRecord = read_simulation(failed)
    assert record.violation is not None
    found = record.violation.invariant
    rewrite(
        failed,
        violation=msgspec.structs.replace(record.violation, invariant="INV-99"),
        failed_by=("INV-99",),
    )
    assert cli.run(["shrink", str(failed.root)]) == 3
    assert capsys.readouterr().err == (
        f"splitbrain: could not shrink the run (sim-kraft-register/{failed.root.name}): the run did"
        f" not fail again when it was replayed (INV-99 then, {found} now). `splitbrain replay` of "
        "it says whether it was made by another version\n"
    )
    assert not (failed.root.parent.parent / "shrunk-kraft-register").exists()


@pytest.mark.usefixtures("unjudged")
def test_any_failure_may_be_taken_for_the_same(failed: RunFolder) -> None:
    rewrite(failed, violation=None, failed_by=("no-such-checker",))
    assert cli.run(["shrink", str(failed.root)]) == 3
    assert cli.run(["shrink", str(failed.root), "--any-failure", "--replays", "3"]) == 0


@pytest.mark.usefixtures("unjudged")
def test_a_run_that_nobody_had_looked_at_is_looked_at(
    failed: RunFolder, capsys: pytest.CaptureFixture[str]
) -> None:
    rewrite(failed, violation=None, failed_by=None)
    assert cli.run(["shrink", str(failed.root), "--replays", "3"]) == 0
    make_healthy(failed)
    capsys.readouterr()
    assert cli.run(["shrink", str(failed.root)]) == 64
    assert capsys.readouterr().err.startswith("splitbrain: nothing is wrong with ")


def test_a_run_whose_bug_is_gone_does_not_fail_again(
    failed: RunFolder, capsys: pytest.CaptureFixture[str]
) -> None:
    make_healthy(failed)
    assert cli.run(["shrink", str(failed.root)]) == 3
    assert "did not fail again when it was replayed" in capsys.readouterr().err


def test_an_edited_scenario_is_no_longer_that_of_its_run(
    failed: RunFolder, capsys: pytest.CaptureFixture[str]
) -> None:
    edited = failed.scenario.read_bytes().replace(b'"seed": ', b'"seed": 1')
    failed.scenario.write_bytes(edited)
    for command in ("shrink", "replay"):
        assert cli.run([command, str(failed.root)]) == 64
        assert capsys.readouterr().err == (
            f"splitbrain: {failed.scenario} was changed since the run, so it is the scenario of "
            f"another world. `splitbrain sim --scenario {failed.scenario}` runs it as a run of its "
            "own\n"
        )
