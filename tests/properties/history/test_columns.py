"""What is read straight into columns is what the readers of objects give, or is left to them."""

import gzip
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from splitbrain.history.column_reader import read_columns
from splitbrain.history.columns import OperationColumns, columns_of
from splitbrain.history.errors import HistoryError
from splitbrain.history.importers import load
from splitbrain.history.operations_table import write_operations
from splitbrain.history.pairing import pair
from splitbrain.history.records import Event, PairedOperation
from tests.properties.history.histories import histories
from tests.properties.history.test_formats import written


def shown(columns: OperationColumns) -> list[PairedOperation]:
    return columns.operations()


def lines(events: list[Event]) -> bytes:
    return b"".join(msgspec.json.encode(event) + b"\n" for event in events)


@given(histories(), st.booleans())
def test_lines_become_the_columns_of_their_operations(events: list[Event], packed: bool) -> None:
    content = lines(events)
    with written(gzip.compress(content) if packed else content) as path:
        columns = read_columns(path)
    assert columns is not None
    assert shown(columns) == pair(events)


@given(histories())
def test_tables_become_the_columns_of_their_operations(events: list[Event]) -> None:
    with written(b"", "operations.parquet") as path:
        write_operations(path, pair(events))
        columns = read_columns(path)
    assert columns is not None
    assert shown(columns) == pair(events)


@given(histories())
def test_objects_become_the_same_columns(events: list[Event]) -> None:
    with written(lines(events)) as path:
        read = read_columns(path)
    made = columns_of(pair(events))
    assert read is not None
    for name in ("starts", "ends", "processes", "indexes", "outcomes"):
        assert np.array_equal(getattr(read, name), getattr(made, name))
    assert shown(made) == shown(read)


@given(histories(), st.data())
def test_what_is_not_whole_is_left_to_the_readers_that_tell_faults(
    events: list[Event], data: st.DataObject
) -> None:
    dropped = data.draw(st.sampled_from(events))
    events = [event for event in events if event is not dropped]
    with written(lines(events)) as path:
        columns = read_columns(path) if events else None
        try:
            operations = load(path).operations
        except HistoryError:
            assert columns is None
            return
    if columns is not None:
        assert shown(columns) == operations


@pytest.mark.parametrize(
    "content",
    [
        b'{"process": 0, "type": "invoke", "f": "read"}\n',
        b'{"index": 0, "time": 1, "process": 0, "type": "invoke", "f": "read"}\n{"ind',
        b'{"index": 0, "time": 1, "process": 0, "type": "invoke", "f": "read"}\n\n',
        b'{"index": 0, "time": 1, "process": 0, "type": "invoke", "f": "read"},{}\n',
        b'{"index": 18446744073709551615, "time": 1, "process": 0, "type": "ok", "f": "read"}\n',
        b"{:process 0 :type :invoke :f :read}\n",
    ],
)
def test_what_is_not_plain_is_left_to_the_other_readers(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "history"
    path.write_bytes(content)
    assert read_columns(path) is None


def test_values_that_nobody_can_tell_apart_have_one_code() -> None:
    values: list[Any] = [[1, 2], [1, 2], "a", None, {"a": [1]}, {"a": [1]}, [1, 2, True]]
    values += [1, True, 1.0, [1, 2, 1], 0, False, "[1, 2]"]
    operations = [
        PairedOperation(n, n, "write", None, value, value, "ok", n, n + 1)
        for n, value in enumerate(values)
    ]
    columns = columns_of(operations)
    assert columns.arguments.tolist() == [1, 1, 2, 0, 3, 3, 4, *range(5, 12)]
    assert columns.results.tolist() == columns.arguments.tolist()
    assert repr(columns.operations()) == repr(operations)
    assert not columns.flat


@given(histories(), st.data())
def test_what_is_taken_is_the_same_operations(events: list[Event], data: st.DataObject) -> None:
    columns = columns_of(pair(events))
    places = data.draw(st.lists(st.integers(0, len(columns) - 1))) if len(columns) else []
    taken = columns.taken(np.array(places, dtype=np.int64))
    whole = shown(columns)
    assert shown(taken) == [whole[place] for place in places]
    assert len(taken.values) <= 1 + 2 * len(places)
