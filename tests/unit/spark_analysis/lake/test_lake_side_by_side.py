"""Ingests, compactions and cleanings at one time: whoever reads meets each run once, and whole."""

import os
import threading
from pathlib import Path

import pytest

from splitbrain.contracts.errors import HarnessError
from splitbrain.spark_analysis.lake import writing
from splitbrain.spark_analysis.lake.commits import COMMITS
from splitbrain.spark_analysis.lake.compaction import compact
from splitbrain.spark_analysis.lake.ingest import ingest_runs
from splitbrain.spark_analysis.lake.snapshot import clean, read_snapshot
from splitbrain.spark_analysis.lake.store import LocalStore
from tests.failing_store import FailingStore
from tests.lake_runs import all_tables, content_of, make_run, names_of, rows_of, write_results


@pytest.fixture
def runs(tmp_path: Path) -> list[Path]:
    return [make_run(tmp_path / "runs" / f"run-{seed}", seed=seed) for seed in (1, 2)]


def test_two_ingests_of_the_same_runs_at_one_time_give_each_run_once(
    tmp_path: Path, store: LocalStore, runs: list[Path]
) -> None:
    alone = LocalStore(tmp_path / "alone")
    ingest_runs(alone, runs)
    # Both have listed the commits before either makes one.
    barrier = threading.Barrier(2, timeout=60)

    def ingest() -> None:
        ingest_runs(
            FailingStore(tmp_path / "lake", before_write=lambda _name: barrier.wait()), runs
        )

    other = threading.Thread(target=ingest)
    other.start()
    ingest()
    other.join(60)
    assert len(names_of(store, [COMMITS])) == 2
    assert content_of(store) == content_of(alone)
    assert len(rows_of(store, "runs")) == 2

    # The loser is garbage once it is old, and the winner stays.
    removed = clean(store, grace_s=-1)
    assert (removed.commits, removed.files) == (1, len(all_tables()))
    assert content_of(store) == content_of(alone)
    assert ingest_runs(store, runs).commits == []


def test_ingests_of_different_runs_at_one_time_both_count(
    tmp_path: Path, store: LocalStore, runs: list[Path]
) -> None:
    inner = FailingStore(tmp_path / "lake", before_write=lambda _name: ingest_runs(store, runs[1:]))
    ingest_runs(inner, runs[:1])
    assert len(rows_of(store, "runs")) == 2


def test_slow_ingest_of_an_older_state_ends_in_the_newer_one(
    tmp_path: Path, store: LocalStore, runs: list[Path]
) -> None:
    def meanwhile(_name: str) -> None:
        write_results(runs[0], "invalid")
        ingest_runs(store, runs[:1])

    ingest_runs(FailingStore(tmp_path / "lake", before_write=meanwhile), runs[:1])
    # The winner of the two is drawn; the next ingest sees whether it is today's run.
    ingest_runs(store, runs[:1])
    (row,) = rows_of(store, "runs")
    assert row["outcome"] == "invalid"


def test_run_that_is_read_again_during_a_compaction_wins(
    tmp_path: Path, store: LocalStore, runs: list[Path]
) -> None:
    ingest_runs(store, runs, commit_bytes=1)

    def meanwhile(_name: str) -> None:
        write_results(runs[0], "invalid")
        ingest_runs(store, runs)

    compact(FailingStore(tmp_path / "lake", before_write=meanwhile))
    outcomes = {row["name"]: row["outcome"] for row in rows_of(store, "runs")}
    assert outcomes == {"run-1": "invalid", "run-2": "valid"}
    assert len(rows_of(store, "runs")) == 2


def test_two_compactions_at_one_time_change_nothing(
    tmp_path: Path, store: LocalStore, runs: list[Path]
) -> None:
    ingest_runs(store, runs, commit_bytes=1)
    before = content_of(store)
    compact(FailingStore(tmp_path / "lake", before_write=lambda _name: compact(store)))
    assert content_of(store) == before
    assert clean(store, grace_s=-1).commits == 3
    assert content_of(store) == before


def test_ingest_or_compaction_that_took_too_long_commits_nothing(
    store: LocalStore, runs: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    # A cleaning might have taken its files for garbage.
    ingest_runs(store, runs, commit_bytes=1)
    before = content_of(store)
    write_results(runs[0], "invalid")
    monkeypatch.setattr(writing, "_COMMIT_TIME_MAX_S", -1.0)
    for work in (lambda: ingest_runs(store, runs), lambda: compact(store)):
        with pytest.raises(HarnessError, match="writing the files took longer than"):
            work()
    assert content_of(store) == before


def test_cleaning_spares_what_is_about_to_be_committed(
    tmp_path: Path, store: LocalStore, runs: list[Path]
) -> None:
    found: list[int] = []

    def meanwhile(_name: str) -> None:
        found.append(clean(store).files)

    ingest_runs(FailingStore(tmp_path / "lake", before_write=meanwhile), runs)
    assert found == [0]
    assert len(rows_of(store, "operations")) > 0


def test_cleaning_spares_for_a_reader_what_was_superseded_lately(
    tmp_path: Path, store: LocalStore, runs: list[Path]
) -> None:
    ingest_runs(store, runs)
    snapshot = read_snapshot(store)
    old_s = 1_000_000.0
    for file in [*store.files("commits"), *store.files("tables")]:
        path = tmp_path / "lake" / file.name
        os.utime(path, (old_s, old_s))
    for run in runs:
        write_results(run, "invalid")
    ingest_runs(store, runs)
    # The commit is old, but until a moment ago it was the one that counted.
    assert (clean(store).commits, clean(store).files) == (0, 0)
    for live in snapshot.files():
        with store.reading(live.file.name) as path:
            assert path.exists()
