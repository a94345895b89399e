"""A run folder from somebody else decides neither what is written nor what is read outside of it.

The names are those that a run, its judgement and its tables left: a new file is here by itself.
"""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from splitbrain.checker.verdict import Verdict
from splitbrain.contracts.names import NodeName
from splitbrain.harness.campaign import cleaning
from splitbrain.harness.cli import main as cli
from splitbrain.harness.folder import store
from splitbrain.harness.folder.ballast import Ballast
from splitbrain.harness.judge.analysis_process import AnalysisProcess
from splitbrain.harness.report.publishing import judge_and_publish
from splitbrain.harness.run.log_collection import dump_log
from splitbrain.history import border
from splitbrain.history.border import foreign_entry
from splitbrain.history.run_folder import RunFolder
from splitbrain.spark_analysis.ingest import ingest
from splitbrain.systems.registry import system
from tests.unit.harness.in_process import judge_in_process

COMMANDS = ("check RUN", "check RUN --no-analyze", "analyze RUN", "replay RUN", "shrink RUN")
#: Shown in the middle of what a stranger wants to have overwritten or read.
SECRET = "precious"


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run as it is when everything was done with it; nodes' data as a dead run leaves them."""
    runs = tmp_path_factory.mktemp("runs")
    command = "test --runtime simulated --nemesis none --time-limit 1 --seed 7 --runs-folder"
    assert cli.run([*command.split(), str(runs)]) in (0, 2)
    root = (runs / "latest").resolve()
    ingest(root)
    with AnalysisProcess(root) as analysis:
        analysis.kill()
    return root


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A file beside the run that is nobody else's business."""
    folder = tmp_path / "outside"
    folder.mkdir()
    (folder / "secret").write_text(SECRET)
    return folder


@pytest.fixture
def run(whole: Path, tmp_path: Path) -> Path:
    shutil.copytree(whole, tmp_path / "runs" / "test" / "one")
    return tmp_path / "runs" / "test" / "one"


def names(whole: Path) -> list[str]:
    return sorted(str(path.relative_to(whole)) for path in whole.rglob("*"))


def tree(top: Path) -> dict[str, tuple[int, bytes]]:
    """Everything below a folder, by its path: kind, and content or target."""
    found: dict[str, tuple[int, bytes]] = {}
    for path in top.rglob("*"):
        kind = path.lstat().st_mode
        content = b""
        if path.is_symlink():
            content = os.fsencode(path.readlink())
        elif path.is_file():
            content = path.read_bytes()
        found[str(path.relative_to(top))] = (kind, content)
    return found


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink()


def leads_out(path: Path, outside: Path) -> None:
    """A folder for a folder, with the same in it, so that only the border can tell."""
    target = outside / "secret"
    if path.is_dir():
        target = outside / "folder"
        shutil.copytree(path, target)
    _remove(path)
    path.symlink_to(target)


def dangles(path: Path, outside: Path) -> None:
    _remove(path)
    path.symlink_to(outside / "new")


def leads_to_another_file_of_the_run(path: Path, _: Path) -> None:
    _remove(path)
    path.symlink_to("history.jsonl" if path.name != "history.jsonl" else "plan.json")


def is_a_pipe(path: Path, _: Path) -> None:
    _remove(path)
    os.mkfifo(path)


PLANTS = (leads_out, dangles, leads_to_another_file_of_the_run, is_a_pipe)


@pytest.mark.parametrize("plant", PLANTS)
def test_no_name_of_a_run_folder_may_be_a_link_or_a_pipe(
    whole: Path,
    tmp_path: Path,
    outside: Path,
    plant: Callable[[Path, Path], None],
    capsys: pytest.CaptureFixture[str],
) -> None:
    planted = [name for name in names(whole) if name != "plan.json"]
    assert {"judging.lock", "analysis.log", "results.json", "analysis", "nodes"} <= set(planted)
    for number, name in enumerate(planted):
        root = tmp_path / f"run-{number}"
        shutil.copytree(whole, root)
        plant(root / name, outside)
        before = tree(tmp_path)
        code = cli.run(["check", str(root), "--no-analyze"])
        told = capsys.readouterr().err
        assert (code, tree(tmp_path) == before) == (64, True), name
        assert f", {name}, and a run makes nothing but folders and plain files" in told
        shutil.rmtree(root)
        shutil.rmtree(outside)
        outside.mkdir()
        (outside / "secret").write_text(SECRET)


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("name", ["history.jsonl", "analysis", "nodes/n1"])
def test_every_command_on_a_run_refuses_it_and_writes_nothing(
    run: Path, outside: Path, command: str, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    leads_out(run / name, outside)
    top = run.parents[2]
    before = tree(top)
    assert cli.run(command.replace("RUN", str(run)).split()) == 64
    told = capsys.readouterr().err
    assert f"holds a link, {name}, and a run makes nothing but" in told
    assert tree(top) == before


def test_a_run_is_found_through_the_links_that_the_user_typed(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "latest").symlink_to(run)
    assert cli.run(["check", str(tmp_path / "latest"), "--no-analyze"]) in (0, 2)
    assert "judging" in capsys.readouterr().out


def test_the_tables_of_one_run_are_not_made_through_a_link(run: Path, outside: Path) -> None:
    leads_out(run / "operations.parquet", outside)
    before = tree(run.parents[2])
    with pytest.raises(border.UsageError, match=r"holds a link, operations\.parquet"):
        ingest(run)
    assert tree(run.parents[2]) == before


def test_a_lake_leaves_it_out_and_says_so(
    run: Path, outside: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(run, run.parent / "two")
    leads_out(run / "history.jsonl", outside)
    assert cli.run(["ingest", str(run.parent), "--lake", str(tmp_path / "lake")]) == 3
    told = capsys.readouterr().out
    assert f"{run} was left out: it holds a link, history.jsonl, which no run makes" in told
    assert "1 run in" in told


def test_a_gate_counts_it_as_judged_by_nobody(
    run: Path, outside: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    leads_out(run / "results.json", outside)
    policy = run.parent / "policy.toml"
    policy.write_text('schema = 1\ndefault_tier = "t"\n[tier.t]\nrequire = ["runs_valid >= 1"]\n')
    assert cli.run(["gate", "--policy", str(policy), str(run.parent)]) != 0
    assert "It holds a link, results.json, which no run makes" in capsys.readouterr().out


def test_clean_writes_into_no_folder_with_a_link_nor_into_another_users(
    run: Path, outside: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (run / "nodes" / "n1" / "log.jsonl").unlink()
    (run / "nodes" / "n1" / "data").mkdir()
    asked: list[list[str]] = []
    monkeypatch.setattr(cleaning, "dump_logs", lambda _s, _f, nodes: asked.append(list(nodes)))
    cleaning.dump_missing_logs(RunFolder(run))
    assert asked == [["n1"]]
    leads_out(run / "nodes" / "n2", outside)
    cleaning.dump_missing_logs(RunFolder(run))
    assert asked == [["n1"]]
    assert cleaning._is_mine(run)
    monkeypatch.setattr(
        "splitbrain.harness.campaign.cleaning.os.getuid", lambda: run.stat().st_uid + 1
    )
    assert not cleaning._is_mine(run)


@pytest.mark.parametrize("plant", [leads_out, is_a_pipe])
def test_data_of_nodes_are_read_through_no_link(
    run: Path, outside: Path, plant: Callable[[Path, Path], None]
) -> None:
    data = run / "nodes" / "n1" / "data"
    (data / "inner").mkdir(parents=True)
    (data / "inner" / "0.log").touch()
    plant(data / "inner" / "0.log", outside)
    # It hinders no judgement: the system makes there what it likes.
    assert foreign_entry(run) is None
    target = run / "nodes" / "n1" / "log.jsonl"
    target.unlink()
    payload = (system("kraft"), NodeName("n1"), RunFolder(run), None)
    told = dump_log(payload, None)  # type: ignore[arg-type]
    assert told is not None
    assert "inner/0.log, so that nothing of them is read" in told
    assert not target.exists()


# --- the second line: what comes after the look -----------------------------------------------


@pytest.fixture
def blind(monkeypatch: pytest.MonkeyPatch) -> None:
    """The look at the folder sees nothing, as if everything were exchanged right after it."""
    for module in (
        "splitbrain.harness.folder.store",
        "splitbrain.harness.judge.evidence_loader",
        "splitbrain.spark_analysis.ingest",
    ):
        monkeypatch.setattr(f"{module}.refuse_foreign_entries", lambda _: None)
    judge_in_process(monkeypatch)


@pytest.mark.usefixtures("blind")
def test_no_file_of_a_judgement_is_written_through_a_link_that_comes_after_the_look(
    run: Path, outside: Path
) -> None:
    written = [path for path in run.iterdir() if path.is_file() and path.name not in _recorded(run)]
    assert {"judging.lock", "analysis.log", "results.json"} <= {path.name for path in written}
    for path in written:
        path.unlink()
        path.symlink_to(outside / "secret")
    verdict = judge_and_publish(run, analyze=False).verdict
    with AnalysisProcess(run) as analysis:
        analysis.kill()
    Ballast(run).take()
    assert verdict is Verdict.VALID
    assert tree(outside)["secret"][1] == SECRET.encode()
    assert list(tree(outside)) == ["secret"]


def _recorded(run: Path) -> set[str]:
    """Files of the run itself, which no judgement writes."""
    made = {"plan.json", "schedule.jsonl", "history.jsonl", "faults.jsonl", "phases.jsonl"}
    simulated = {"scenario.json", "simulation.json", "timeline.jsonl"}
    return {*made, *simulated, "metrics.jsonl", "leaders.jsonl", "manifest.json", "lock"}


@pytest.mark.parametrize("name", ["lock", "judging.lock"])
@pytest.mark.usefixtures("blind")
def test_a_pipe_that_comes_after_the_look_is_not_waited_for(run: Path, name: str) -> None:
    is_a_pipe(run / name, run)
    assert store.is_alive(RunFolder(run)) == (name == "lock")
    judge_and_publish(run, analyze=False)
