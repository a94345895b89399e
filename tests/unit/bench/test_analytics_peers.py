"""The peers' jobs agree with each other, and find what is planted and nothing else."""

from pathlib import Path

import pandas as pd
import pyarrow.parquet as pq
import pytest

from bench.analytics_data import PLANTED, make_load, write_tables
from bench.analytics_engines.jobs import COLUMNS, Engine
from bench.analytics_engines.with_duckdb import Duckdb
from bench.analytics_engines.with_pandas import Pandas
from bench.analytics_engines.with_polars import Polars
from bench.analytics_peers import in_one_order


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bench") / "tables"
    write_tables(folder, 20_000)
    return folder


@pytest.fixture(scope="module")
def results(
    tables: Path, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, list[pd.DataFrame]]:
    """Job to its result in every engine."""
    engines: list[Engine] = [Duckdb(tables, 500, 1), Polars(tables), Pandas(tables)]
    found: dict[str, list[pd.DataFrame]] = {}
    for job, (order, compared) in COLUMNS.items():
        for engine in engines:
            result = engine.run(job, tmp_path_factory.mktemp("output"))
            found.setdefault(job, []).append(in_one_order(result, order, compared))
    engines[0].close()
    return found


@pytest.mark.parametrize("job", COLUMNS)
def test_engines_agree(results: dict[str, list[pd.DataFrame]], job: str) -> None:
    first, *others = results[job]
    assert len(first)
    for other in others:
        pd.testing.assert_frame_equal(first, other, check_dtype=False, rtol=1e-9, atol=0)


def test_what_is_planted_is_found_and_nothing_else(
    results: dict[str, list[pd.DataFrame]],
) -> None:
    assert len(results["lost"][0]) == PLANTED
    assert results["lost"][0]["holders"].tolist() == [0] * PLANTED
    assert results["phantom"][0]["reason"].tolist() == ["never-invoked"] * PLANTED


def test_each_fault_has_its_window_and_its_epoch(
    results: dict[str, list[pd.DataFrame]],
) -> None:
    windows = results["windows"][0]
    assert windows["index"].tolist() == list(range(20))
    assert windows["new_epoch"].tolist() == list(range(2, 22))


def test_paired_events_are_the_operations(
    results: dict[str, list[pd.DataFrame]], tables: Path
) -> None:
    operations = (
        pq.read_table(tables / "operations").group_by("type").aggregate([("index", "count")])
    )
    counted = dict(
        zip(operations["type"].to_pylist(), operations["index_count"].to_pylist(), strict=True)
    )
    paired = results["pair"][0]
    assert dict(zip(paired["type"], paired["operations"], strict=True)) == counted


def test_a_read_saw_the_last_write_of_its_key() -> None:
    load = make_load(3, 2_000)
    last: dict[int, int] = {}
    for place in load.point.argsort(kind="stable").tolist():
        if load.is_read[place]:
            assert load.seen[place] == last.get(int(load.key[place]), -1)
        elif load.effective[place]:
            last[int(load.key[place])] = place
