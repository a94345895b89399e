"""Tables of operations, ours and those of others."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from splitbrain.history.errors import HistoryError
from splitbrain.history.importers import load

ROWS: dict[str, list[Any]] = {
    "process": [1, 0],
    "f": ["read", "write"],
    "type": ["ok", "ok"],
    "start_ns": [6, 1],
    "end_ns": [9, 5],
    "argument": [None, "7"],
    "result": ["7", "7"],
}


def table(path: Path, **columns: Any) -> Path:
    pq.write_table(pa.table({**ROWS, **columns}), path)
    return path


def test_rows_come_in_the_order_of_their_index_or_else_their_start(tmp_path: Path) -> None:
    by_start = load(table(tmp_path / "a.parquet")).operations
    assert [one.f for one in by_start] == ["write", "read"]
    by_index = load(table(tmp_path / "b.parquet", index=[4, 8])).operations
    assert [(one.index, one.f) for one in by_index] == [(4, "read"), (8, "write")]


def test_a_folder_as_spark_writes_it_is_one_history(tmp_path: Path) -> None:
    folder = tmp_path / "operations.parquet"
    folder.mkdir()
    table(folder / "part-0.parquet", run_id=["one", "one"], index=[2, 0])
    table(
        folder / "part-1.parquet",
        run_id=["one", "one"],
        index=[6, 4],
        start_ns=[16, 11],
        end_ns=[19, 15],
    )
    (folder / "_SUCCESS").touch()
    history = load(folder)
    assert history.format == "parquet"
    assert [one.index for one in history.operations] == [0, 2, 4, 6]


def test_whole_numbers_and_dictionaries_are_values_and_names(tmp_path: Path) -> None:
    kinds = pa.array(["read", "write"]).dictionary_encode()
    path = table(tmp_path / "a.parquet", f=kinds, argument=[None, 7], result=[7, 7])
    write, read = load(path).operations
    assert (write.argument, read.result, read.f) == (7, 7, "read")


def test_rows_that_make_no_sense_are_left_out_where_asked(tmp_path: Path) -> None:
    path = table(tmp_path / "a.parquet", end_ns=[9, 0])
    with pytest.raises(HistoryError, match="row 2: it ends before it starts"):
        load(path)
    history = load(path, skip_broken=True)
    assert [one.f for one in history.operations] == ["read"]
    assert (history.broken_count, history.broken[0].problem) == (
        1,
        "row 2: it ends before it starts",
    )


def test_a_text_that_a_flipped_bit_made_none_is_told(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({**ROWS, "key": ["kkkk", "kkkk"]}), path, compression="none")
    path.write_bytes(path.read_bytes().replace(b"kkkk", b"k\xffkk"))
    with pytest.raises(HistoryError, match="cannot be read as Parquet"):
        load(path)
