"""``splitbrain ingest`` from its words to what it prints; the lake itself has its own tests."""

import fcntl
import json
import os
from pathlib import Path

import pytest

from splitbrain.checker.verdict import Verdict
from splitbrain.harness.cli.main import run
from splitbrain.harness.folder.results import Results
from splitbrain.history.run_folder import RunFolder
from splitbrain.spark_analysis.lake.store import LocalStore
from tests.lake_runs import all_tables, make_run, rows_of, the_run, write_results
from tests.unit.harness.small_results import results_with


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for seed in (1, 2):
        make_run(tmp_path / "runs" / "test" / f"run-{seed}", seed=seed)
    return tmp_path


def told(capsys: pytest.CaptureFixture[str]) -> str:
    captured = capsys.readouterr()
    assert captured.err == ""
    return captured.out


def test_runs_go_into_the_lake_beside_them_once(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["ingest", "runs"]) == 0
    assert told(capsys) == "2 runs in runs/lake: 2 new, 0 read again, 0 as they were.\n"
    assert len(rows_of(LocalStore(folder / "runs" / "lake"), "runs")) == 2
    write_results(folder / "runs" / "test" / "run-1", "invalid")
    assert run(["ingest", "runs"]) == 0
    assert told(capsys) == "2 runs in runs/lake: 0 new, 1 read again, 1 as they were.\n"


def test_damaged_runs_and_copies_are_told(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one = folder / "runs" / "test" / "run-1"
    RunFolder(one).faults.unlink()
    copy = folder / "other" / "run"
    copy.mkdir(parents=True)
    (copy / "plan.json").write_bytes(RunFolder(one).plan.read_bytes())
    assert run(["ingest", "runs", "other", "--lake", "lake"]) == 0
    out = told(capsys)
    assert "2 runs in lake: 2 new" in out
    assert "Taken as far as they go, and marked: 1 partial." in out
    assert f"  {one} (partial): faults.jsonl is missing." in out
    assert f"  {copy} is the run of {one}, and was left out" in out


def test_living_run_is_marked_as_open(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one = folder / "runs" / "test" / "run-1"
    descriptor = os.open(RunFolder(one).lock, os.O_RDWR | os.O_CREAT)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        assert run(["ingest", str(one), "--lake", "lake"]) == 0
    finally:
        os.close(descriptor)
    assert f"  {one} (open): It is still under way." in told(capsys)
    assert the_run(LocalStore(folder / "lake"))["state"] == "open"


def test_lake_is_compacted_and_cleaned(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("run-1", "run-2"):
        assert run(["ingest", f"runs/test/{name}"]) == 0
    told(capsys)
    assert run(["ingest", "--compact", "--clean"]) == 0
    lines = told(capsys).splitlines()
    files = len(all_tables())
    assert lines[0] == f"Compacted 2 runs: {2 * files} files are now {files}."
    assert lines[1].startswith("Removed 0 files (0 bytes) and 0 commits ")
    assert lines[1].endswith("2 more are younger than a day.")
    for path in (folder / "runs" / "lake").rglob("*.*"):
        os.utime(path, (0, 0))
    assert run(["ingest", "--compact", "--clean"]) == 0
    lines = told(capsys).splitlines()
    assert lines[0] == "Nothing to compact."
    assert lines[1].startswith(f"Removed {2 * files} files (")
    assert lines[1].endswith("0 more are younger than a day.")
    assert len(rows_of(LocalStore(folder / "runs" / "lake"), "runs")) == 2


def test_lake_that_cannot_be_written_is_one_sentence(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "lake").mkdir()
    (folder / "lake" / "tables").write_text("in the way")
    assert run(["ingest", "runs", "--lake", "lake"]) == 3
    said = capsys.readouterr().err
    assert said.startswith("splitbrain: could not use the lake (")
    assert said.count("\n") == 1


def test_analysis_of_a_folder_that_is_no_run_does_nothing(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one = folder / "runs" / "test" / "run-1"
    before = json.loads(RunFolder(one).results.read_bytes())
    assert run(["analyze", str(one), "runs"]) == 64
    assert "runs is no run folder" in capsys.readouterr().err
    assert json.loads(RunFolder(one).results.read_bytes()) == before


def test_several_runs_are_analysed_and_then_put_into_the_lake(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    codes = iter([2, 1])

    def judge(root: Path, **_options: object) -> Results:
        verdict = next(codes)
        write_results(root, "invalid" if verdict == 1 else "unknown", exit_code=verdict)
        judged = json.loads(RunFolder(root).results.read_bytes())
        return results_with(run=root.name, verdict=Verdict.UNKNOWN, exit_code=judged["exit_code"])

    monkeypatch.setattr("splitbrain.harness.report.publishing.judge_and_publish", judge)
    runs = [str(folder / "runs" / "test" / name) for name in ("run-1", "run-2")]
    # The worst of the two.
    assert run(["analyze", *runs, "--lake", "lake"]) == 1
    assert "2 runs in lake: 2 new" in capsys.readouterr().out
    outcomes = {row["name"]: row["outcome"] for row in rows_of(LocalStore(folder / "lake"), "runs")}
    assert outcomes == {"run-1": "unknown", "run-2": "invalid"}
