"""Seeds of a sweep in a lake: a row each, once, also after changes and compaction."""

import json
from pathlib import Path

import pytest

from splitbrain.harness.cli.main import run as splitbrain
from splitbrain.spark_analysis.lake.compaction import compact
from splitbrain.spark_analysis.lake.snapshot import clean
from splitbrain.spark_analysis.lake.store import LocalStore
from splitbrain.spark_analysis.lake.sweeps import ingest_sweeps
from tests.lake_runs import content_of, rows_of
from tests.unit.harness.campaign.sweep.test_sweep import order, swept
from tests.unit.harness.campaign.sweep.tried_seeds import FOUND

WAYS = {2: "fails", 4: "puzzles", 5: "crashes"}


def sweep_in(folder: Path, count: int = 9) -> Path:
    folder.mkdir(parents=True)
    swept(order(count, WAYS, keep=0, bugs=("some-bug",), output=folder))
    return folder


def test_each_seed_is_a_row_with_what_came_of_it(tmp_path: Path, store: LocalStore) -> None:
    sweep = sweep_in(tmp_path / "sweep")
    report = ingest_sweeps(store, [sweep])
    assert [(read.folder, read.state) for read in report.new] == [(sweep, "whole")]
    rows = {row["seed"]: row for row in rows_of(store, "seeds")}
    assert sorted(rows) == list(range(9))
    outcomes = {seed: row["outcome"] for seed, row in rows.items() if row["outcome"] != "clean"}
    assert outcomes == {2: "failed", 4: "undecided", 5: "crashed"}
    failed = rows[2]
    assert failed["failed_by"] == ["INV-01"]
    assert failed["fingerprints"] == [FOUND.fingerprint]
    assert json.loads(failed["found"])[0]["checker"] == "invariants"
    assert failed["reproduce"].startswith("splitbrain sim --seed 2 --bug some-bug --made-by ")
    assert json.loads(rows[4]["undecided"]) == {"lost-commits": "No logs."}
    assert rows[5]["sentence"] == "ZeroDivisionError: here"
    clean_one = rows[3]
    assert (clean_one["simulated_ms"], clean_one["steps"], clean_one["operations"]) == (2000, 10, 5)
    assert (clean_one["faults"], clean_one["bitten"]) == (2, 1)
    assert dict(clean_one["figures"]) == {"commits": 2, "highest_epoch": 3}
    assert clean_one["reproduce"] is None
    (told,) = rows_of(store, "sweeps")
    assert (told["seeds"], told["planned"], told["bugs"]) == ("0:9", 9, ["some-bug"])
    assert [told[name] for name in ("clean", "failed", "undecided", "crashed")] == [6, 1, 1, 1]
    assert told["exit_code"] == 1


def test_a_second_ingest_changes_nothing_and_a_new_sweep_is_read_again(
    tmp_path: Path, store: LocalStore
) -> None:
    sweep = sweep_in(tmp_path / "sweep")
    ingest_sweeps(store, [sweep])
    before = content_of(store)
    copy = tmp_path / "copy"
    copy.mkdir()
    for file in ("seeds.jsonl", "sweep.json"):
        (copy / file).write_bytes((sweep / file).read_bytes())
    report = ingest_sweeps(store, [sweep, copy])
    assert (report.new, report.changed, report.copies) == ([], [], [(sweep, copy)])
    assert content_of(store) == before
    # A sweep that did not come to its end yet.
    (sweep / "sweep.json").unlink()
    report = ingest_sweeps(store, [sweep])
    assert [(read.state, read.damage) for read in report.changed] == [
        ("partial", ("sweep.json is missing: the sweep did not come to its end.",))
    ]
    assert len(rows_of(store, "seeds")) == 9


def test_compaction_keeps_the_seeds(tmp_path: Path, store: LocalStore) -> None:
    for name in ("a", "b"):
        ingest_sweeps(store, [sweep_in(tmp_path / name)])
    before = content_of(store)
    assert compact(store).runs == 2
    clean(store, grace_s=-1)
    assert content_of(store) == before


def test_seeds_of_one_that_came_out_differently_are_marked(
    tmp_path: Path, store: LocalStore
) -> None:
    folder = tmp_path / "sweep"
    folder.mkdir()
    swept(order(9, {3: "changes"}, check_share=1.0, output=folder))
    ingest_sweeps(store, [folder])
    assert [row["seed"] for row in rows_of(store, "seeds") if row["differed"]] == [3]


def test_the_command_takes_runs_and_sweeps_below_a_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sweep_in(tmp_path / "all" / "sweep")
    (tmp_path / "all" / "old").mkdir()
    (tmp_path / "all" / "old" / "sweep.json").write_text("{}")
    assert splitbrain(["ingest", str(tmp_path / "all"), "--lake", str(tmp_path / "lake")]) == 3
    said = capsys.readouterr().out
    assert "1 sweep in" in said
    assert "old was left out: it has no seeds.jsonl" in said
