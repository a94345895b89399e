"""A history written in a format is read back, and bad bytes end in one sentence."""

import gzip
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from splitbrain.history.errors import HistoryError
from splitbrain.history.formats import FORMATS
from splitbrain.history.importers import load
from splitbrain.history.operations_table import write_operations
from splitbrain.history.pairing import events_of, pair, pair_leniently
from splitbrain.history.records import Event, PairedOperation
from tests.properties.history.foreign_files import edn_line, etcd_lines, log_line
from tests.properties.history.histories import histories

TEXTS = st.text(st.sampled_from('ab"\\ é'), min_size=1, max_size=5)


@contextmanager
def written(content: str | bytes, name: str = "history") -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        yield path


def told(operations: list[PairedOperation], *names: str) -> list[tuple[Any, ...]]:
    """Return what formats without all fields can still tell; failures are removed before."""
    names = names or ("process", "f", "key", "argument", "result", "type", "start", "end", "error")
    return [
        tuple(getattr(operation, name) for name in names)
        for operation in operations
        if operation.type != "fail"
    ]


@given(histories(), st.booleans())
def test_json_lines_are_read_back_packed_or_not(events: list[Event], packed: bool) -> None:
    content = b"".join(msgspec.json.encode(event) + b"\n" for event in events)
    with written(gzip.compress(content) if packed else content) as path:
        history = load(path)
    assert (history.format, history.events) == ("jsonl", events)
    assert history.operations == pair(events)


@given(histories())
def test_edn_is_read_back(events: list[Event]) -> None:
    with written("".join(edn_line(event) + "\n" for event in events)) as path:
        history = load(path)
    assert history.format == "edn"
    assert told(history.operations) == told(pair(events))


@given(histories())
def test_independent_keys_are_read_back(events: list[Event]) -> None:
    lines = (edn_line(event, independent=True) + "\n" for event in events)
    with written("".join(lines)) as path:
        history = load(path)
    if any(event.f != "write" for event in events):
        assert told(history.operations) == told(pair(events))
        assert history.notes


@given(histories(keyed=False))
def test_log_lines_are_read_back(events: list[Event]) -> None:
    # ``[1 [2 3]]`` may be a key with its compare-and-set as well; only a read tells which.
    kinds = {event.f for event in events}
    assume("read" in kinds or "cas" not in kinds)
    lines = [log_line(event) for event in events]
    noise = "INFO  jepsen.core - noise\nINFO  jepsen.util - :nemesis\t:info\t:start\tnil\n"
    with written(noise + "".join(f"{line}\n" for line in lines)) as path:
        history = load(path)
    assert history.format == "jepsen-log"
    names = ("process", "f", "argument", "result", "type", "error")
    assert told(history.operations, *names) == told(pair(events), *names)


@given(histories(TEXTS, cas=False))
def test_kv_files_are_read_back(events: list[Event]) -> None:
    kinds = {"read": "get", "write": "append"}
    events = [msgspec.structs.replace(event, f=kinds[event.f]) for event in events]
    with written("".join(edn_line(event, timed=False) + "\n" for event in events)) as path:
        history = load(path)
    assert history.format == "kv"
    names = ("process", "f", "key", "argument", "result", "type")
    assert told(history.operations, *names) == told(pair(events), *names)


@given(histories())
def test_tables_are_read_back(events: list[Event]) -> None:
    operations = pair(events)
    with written(b"", "operations.parquet") as path:
        write_operations(path, operations)
        assert load(path).operations == operations


@given(histories(st.sampled_from(["x", "y", "a longer value than nineteen"]), cas=False))
def test_records_of_etcd_are_read_back(events: list[Event]) -> None:
    # Its clients have no two events at one moment, and a read without an answer shows nothing.
    events = [msgspec.structs.replace(event, time=event.index) for event in events]
    operations = [one for one in pair(events) if one.type != "fail"]
    with written(etcd_lines(operations)) as path:
        if not operations:
            with pytest.raises(HistoryError, match="empty"):
                load(path)
            return
        history = load(path)
    assert history.format == "etcd-robustness"
    shown = [one for one in operations if one.type == "ok" or one.f == "write"]
    names = ("process", "f", "key", "type", "start", "end")
    assert told(history.operations, *names) == told(shown, *names)
    for read, expected in zip(history.operations, shown, strict=True):
        if read.f == "read" and expected.result != "a longer value than nineteen":
            assert read.result == expected.result


@given(histories())
def test_operations_become_events_that_pair_to_the_same(events: list[Event]) -> None:
    operations = pair(events)
    names = ("process", "f", "key", "argument", "result", "type", "start", "end")
    again = pair(events_of(operations))
    assert sorted(map(repr, told(again, *names))) == sorted(map(repr, told(operations, *names)))


@given(histories(), st.data())
def test_without_some_lines_the_rest_is_paired_as_it_was(
    events: list[Event], data: st.DataObject
) -> None:
    left = data.draw(st.lists(st.sampled_from(events), unique_by=lambda event: event.index))
    left.sort(key=lambda event: event.index)
    kept = {event.index for event in left}
    operations, refused = pair_leniently(left)
    whole = {operation.index: operation for operation in pair(events)}
    for operation in operations:
        same = whole[operation.index]
        assert (operation.f, operation.argument) == (same.f, same.argument)
        assert operation in (same, msgspec.structs.replace(operation, type="info", end=None))
    assert len(operations) == sum(event.type == "invoke" for event in left) - sum(
        error.index in kept
        and next(e for e in left if e.index == error.index).type == "invoke"
        and "retired" in error.problem
        for error in refused
    )


PIECES = st.sampled_from(
    [
        b'{"process": 0, "type": "invoke", "f": "cas", "value": [1, 2]}\n',
        b'{"process": 0, "type": "ok", "f": "cas", "value": 7}\n',
        b"{:process 0, :type :invoke, :f :cas, :value [[1 2] 3]}\n",
        b"{:process 0, :type :ok, :f :read, :value [1 {2 3}]}\n",
        b"INFO jepsen.util - 1\t:invoke\t:cas\t[1 2]\n",
        b"INFO jepsen.util - 1\t:fail\t:cas\t:timed-out\n",
        b'{"ClientId": 1, "Input": {"Type": "txn"}, "Call": 1, "Output": {}, "Return": 2}\n',
        (
            b'{"ClientId": 1, "Input": {"Type": "range", "Range": {"Start": "a"}}, "Call": 1, '
            b'"Output": {"Range": {"KVs": [{"Key": "a"}]}}, "Return": 2}\n'
        ),
        b"PAR1",
        b"\x1f\x8b\x08\x00",
        b"\xff",
        b"[[[[",
        b"#_",
        b"\\u",
        b"\x00",
        b'"',
        b"}",
        b"\n",
    ]
)


@settings(max_examples=400)
@given(
    st.one_of(st.binary(max_size=80), st.lists(PIECES, max_size=8).map(b"".join)),
    st.sampled_from([None, *FORMATS]),
    st.booleans(),
)
@example(b"\xed\xa0\x80", "edn", False)
@example(b'{:process 1 :type :invoke :f :read :value "\\ud800"}', None, True)
@example(b"{:process 1 :type :invoke :f [] :value #{#{1}}}", None, False)
@example(b'{"process": 0, "type": "invoke", "f": "cas", "value": {"a": 1}}', None, True)
def test_no_bytes_end_in_anything_but_one_sentence(
    content: bytes, history_format: str | None, skip_broken: bool
) -> None:
    with written(content) as path:
        one_sentence(path, history_format, skip_broken=skip_broken)


@given(histories(), st.data())
def test_no_damaged_table_ends_in_anything_but_one_sentence(
    events: list[Event], data: st.DataObject
) -> None:
    with written(b"", "operations.parquet") as path:
        write_operations(path, pair(events))
        content = bytearray(path.read_bytes())
        if data.draw(st.booleans()):
            del content[data.draw(st.integers(4, len(content) - 1)) :]
        else:
            content[data.draw(st.integers(4, len(content) - 1))] ^= data.draw(st.integers(1, 255))
        path.write_bytes(content)
        one_sentence(path, "parquet", skip_broken=data.draw(st.booleans()))


@given(histories(), st.integers(1, 200))
def test_no_cut_archive_ends_in_anything_but_one_sentence(events: list[Event], cut: int) -> None:
    content = gzip.compress(b"".join(msgspec.json.encode(event) + b"\n" for event in events))
    with written(content[:-cut]) as path:
        one_sentence(path, None, skip_broken=False)


def one_sentence(path: Path, history_format: str | None, *, skip_broken: bool) -> None:
    history, problem = None, None
    try:
        history = load(path, history_format, skip_broken=skip_broken)
    except HistoryError as error:
        problem = error
    if history is None:
        assert problem is not None
        assert "\n" not in str(problem)
        assert problem.next_step
        return
    for operation in history.operations:
        assert operation.type in ("ok", "fail", "info")
        assert operation.end is None or operation.end >= operation.start
    assert skip_broken or history.broken_count == 0
