"""A process that dies at any operation on the lake leaves what was there, or what was to come.

Every table is written alike, and each costs operations in which to die: here runs have three, at
night all of them.
"""

import shutil
from collections import deque
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from splitbrain.spark_analysis.lake import store as store_module
from splitbrain.spark_analysis.lake.compaction import compact
from splitbrain.spark_analysis.lake.ingest import ingest_runs
from splitbrain.spark_analysis.lake.snapshot import clean
from splitbrain.spark_analysis.lake.sources import find_runs
from splitbrain.spark_analysis.lake.store import LocalStore, Store
from splitbrain.spark_analysis.lake.writing import PartitionWriter
from splitbrain.spark_analysis.run_rows import Row
from splitbrain.spark_analysis.schemas import LOGS, OPERATIONS, RUNS, Table
from tests.failing_store import MOMENTS, FailingStore, Killed, Moment
from tests.lake_runs import Content, all_tables, content_of, make_run, names_of, write_results

Work = Callable[[Store], object]


def ingest_all(runs: Path) -> Work:
    return lambda store: ingest_runs(store, find_runs(runs), commit_bytes=1)


@pytest.fixture(
    params=[
        {OPERATIONS.name, LOGS.name, RUNS.name},
        pytest.param(all_tables(), marks=pytest.mark.nightly),
    ],
    ids=["three-tables", "all-tables"],
)
def tables(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Names of the tables that runs have rows in."""
    names: set[str] = request.param
    fill = PartitionWriter.fill

    def filled(
        writer: PartitionWriter, table: Table, run_id: str, rows: Iterable[Row]
    ) -> tuple[int, int]:
        if table.name in names:
            return fill(writer, table, run_id, rows)
        # Those of one table are used up before the next.
        deque(rows, maxlen=0)
        return 0, 0

    monkeypatch.setattr(PartitionWriter, "fill", filled)
    return names


@pytest.fixture
def runs(tmp_path: Path, tables: set[str], monkeypatch: pytest.MonkeyPatch) -> Path:
    # A process dies here, not the machine; thousands of syncs would take minutes.
    monkeypatch.setattr(store_module, "sync", lambda _path: None)
    folder = tmp_path / "runs"
    for seed, system in ((1, "kraft"), (2, "redis")):
        make_run(folder / f"run-{seed}", seed=seed, system=system, operations_per_second=1)
    return folder


def every_crash(
    lake: Path, work: Work, moment: Moment, check: Callable[[dict[str, Content], Path], None]
) -> int:
    """Kill the work at each of its operations in turn, each time on a lake as it is now."""
    number = 0
    while True:
        copy = lake.with_name(f"{lake.name}-{moment}-{number}")
        if lake.exists():
            shutil.copytree(lake, copy)
        store = FailingStore(copy, fail_at=number, moment=moment)
        try:
            work(store)
        except Killed:
            check(content_of(LocalStore(copy)), copy)
        else:
            assert store.count == number
            return number
        shutil.rmtree(copy, ignore_errors=True)
        number += 1


@pytest.mark.parametrize("moment", MOMENTS)
def test_killed_ingest_leaves_whole_runs_or_none_and_is_made_good(
    tmp_path: Path, runs: Path, tables: set[str], moment: Moment
) -> None:
    lake = tmp_path / "lake"
    whole = LocalStore(tmp_path / "whole")
    ingest_all(runs)(whole)
    expected = content_of(whole)
    seen: set[int] = set()

    def check(found: dict[str, Content], copy: Path) -> None:
        seen.add(len(found))
        assert found.items() <= expected.items()
        store = LocalStore(copy)
        ingest_all(runs)(store)
        assert content_of(store) == expected

    operations = every_crash(lake, ingest_all(runs), moment, check)
    # The commits are listed once; two are made: a file per table in two operations, and itself.
    assert operations == 1 + 2 * (len(tables) * 2 + 1)
    assert seen == ({0, 1, 2} if moment == "after" else {0, 1})


@pytest.mark.parametrize("moment", MOMENTS)
def test_killed_ingest_of_a_changed_run_leaves_the_old_or_the_new(
    tmp_path: Path, runs: Path, moment: Moment
) -> None:
    lake = tmp_path / "lake"
    ingest_all(runs)(LocalStore(lake))
    before = content_of(LocalStore(lake))
    write_results(runs / "run-2", "invalid")
    whole = LocalStore(tmp_path / "whole")
    ingest_all(runs)(whole)
    after = content_of(whole)
    assert after != before
    seen: list[bool] = []

    def check(found: dict[str, Content], copy: Path) -> None:
        assert found in (before, after)
        seen.append(found == after)

    every_crash(lake, ingest_all(runs), moment, check)
    # Only the commit itself turns one into the other, and it is the last operation.
    assert seen == [False] * (len(seen) - 1) + [moment == "after"]


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("work", [compact, lambda store: clean(store, grace_s=-1)])
def test_killed_compaction_or_cleaning_changes_nothing(
    tmp_path: Path, runs: Path, moment: Moment, work: Work
) -> None:
    lake = tmp_path / "lake"
    store = LocalStore(lake)
    make_run(runs / "run-3", seed=3, operations_per_second=1)
    ingest_all(runs)(store)
    write_results(runs / "run-1", "invalid")
    ingest_all(runs)(store)
    expected = content_of(store)

    def check(found: dict[str, Content], copy: Path) -> None:
        assert found == expected
        work(LocalStore(copy))
        assert content_of(LocalStore(copy)) == expected

    assert every_crash(lake, work, moment, check) >= 3
    work(store)
    assert content_of(store) == expected


def test_what_a_killed_ingest_left_is_removed_once_it_is_old(
    tmp_path: Path, runs: Path, tables: set[str]
) -> None:
    lake = tmp_path / "lake"
    store = LocalStore(lake)
    ingest_all(runs / "run-1")(store)
    whole = names_of(store)
    with pytest.raises(Killed):
        # As the first file is closed.
        ingest_all(runs)(FailingStore(lake, fail_at=len(tables) + 1, moment="torn"))
    assert names_of(store) > whole
    young = clean(store)
    assert (young.commits, young.files) == (0, 0)
    assert young.spared > 0
    old = clean(store, grace_s=-1)
    assert old.files == young.spared
    assert names_of(store) == whole
