"""A history file is read in order, whole or in ranges; what is refused is told in our words."""

import gzip
import pickle
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pytest

from splitbrain.history import reader as reader_module
from splitbrain.history.errors import BrokenLines, HistoryError
from splitbrain.history.event_columns import EventColumns, paired_columns
from splitbrain.history.json_problems import TOO_DEEP, in_words
from splitbrain.history.line_columns import joined, line_ranges, read_lines, read_range
from splitbrain.history.pairing import events_of
from splitbrain.history.reader import HistoryReader
from splitbrain.history.records import Event, PairedOperation

EVENTS = [
    Event(index=0, time=5, process=0, type="invoke", f="write", key="a", value=1, node="n1"),
    Event(index=1, time=7, process=0, type="ok", f="write", key="a", value=1, position=(2, 3)),
    Event(index=2, time=7, process=1, type="invoke", f="read", key="a", final=True),
]


def lines_of(events: list[Event]) -> list[bytes]:
    return [msgspec.json.encode(event) for event in events]


def written(folder: Path, content: bytes) -> Path:
    path = folder / "history.jsonl"
    path.write_bytes(content)
    return path


def test_our_own_lines_come_back_as_they_were(tmp_path: Path) -> None:
    path = written(tmp_path, b"".join(line + b"\n" for line in lines_of(EVENTS)))
    assert list(HistoryReader(path)) == EVENTS


@pytest.mark.parametrize("block_bytes", [1, 7, 64, 200])
def test_lines_across_blocks_are_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block_bytes: int
) -> None:
    monkeypatch.setattr(reader_module, "_BLOCK_BYTES", block_bytes)
    path = written(tmp_path, b"".join(line + b"\n" for line in lines_of(EVENTS)))
    assert list(HistoryReader(path)) == EVENTS


def test_any_torn_last_line_is_dropped_and_reported(tmp_path: Path) -> None:
    lines = lines_of(EVENTS)
    for kept in range(1, len(lines[2])):
        path = written(tmp_path, lines[0] + b"\n" + lines[1] + b"\n" + lines[2][:kept])
        reader = HistoryReader(path)
        assert list(reader) == EVENTS[:2]
        assert reader.torn_bytes == kept


def test_a_whole_last_line_without_line_feed_counts(tmp_path: Path) -> None:
    reader = HistoryReader(written(tmp_path, b"\n".join(lines_of(EVENTS))))
    assert list(reader) == EVENTS
    assert reader.torn_bytes is None


def test_an_empty_file_is_an_empty_history(tmp_path: Path) -> None:
    assert list(HistoryReader(written(tmp_path, b""))) == []


def test_a_broken_line_in_the_middle_is_named_by_number_and_byte_offset(tmp_path: Path) -> None:
    lines = lines_of(EVENTS)
    content = lines[0] + b"\n" + lines[1][:20] + b"\n" + lines[2] + b"\n"
    path = written(tmp_path, content)
    with pytest.raises(HistoryError, match=f"line 2 at byte {len(lines[0]) + 1}") as raised:
        list(HistoryReader(path))
    assert raised.value.line == 2
    assert raised.value.byte_offset == len(lines[0]) + 1


def test_two_objects_on_one_line_are_broken(tmp_path: Path) -> None:
    lines = lines_of(EVENTS)
    path = written(tmp_path, lines[0] + b"," + lines[1] + b"\n" + lines[2] + b"\n")
    with pytest.raises(HistoryError, match="line 1"):
        list(HistoryReader(path))


def test_broken_lines_are_skipped_and_collected_when_asked(tmp_path: Path) -> None:
    lines = lines_of(EVENTS)
    path = written(tmp_path, lines[0] + b"\n???\n" + lines[1] + b"\n" + lines[2] + b"\n")
    broken = BrokenLines(path, skip=True)
    assert list(HistoryReader(path, lines=broken)) == EVENTS
    assert [line.line for line in broken.first] == [2]


def test_missing_index_time_and_node_are_filled_in(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        b'{"process": 3, "type": "invoke", "f": "read", "key": 5}\n'
        b'{"process": "nemesis", "type": "info", "f": "start"}\n'
        b'{"process": "3", "type": "ok", "f": "read", "value": [1], "position": 12}\n',
    )
    first, second = HistoryReader(path)
    assert (first.index, first.time, first.key, first.node) == (0, 0, "5", None)
    assert (second.index, second.time, second.process) == (1, 1, 3)
    assert second.position == (0, 12)


def test_times_on_some_lines_only_are_refused(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        b'{"process": 3, "type": "invoke", "f": "read", "time": 4}\n'
        b'{"process": 3, "type": "ok", "f": "read"}\n',
    )
    with pytest.raises(HistoryError, match="only some of the lines have a field 'time'"):
        list(HistoryReader(path))


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(HistoryError, match=r"absent\.jsonl"):
        list(HistoryReader(tmp_path / "absent.jsonl"))


class Inner(msgspec.Struct, forbid_unknown_fields=True):
    at: int


class Outer(msgspec.Struct):
    faults: list[Inner]
    kind: int | str = 0


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{", "it ends in the middle of a value"),
        ("what", "it is not valid JSON: invalid character at byte 0"),
        ("{}", "it has no field 'faults'"),
        ("[]", "it must be an object, not a list"),
        ('{"faults": [{"at": 1}, {}]}', "faults[1] has no field 'at'"),
        ('{"faults": [{"at": 1, "b": 2}]}', "faults[0] has an unknown field 'b'"),
        ('{"faults": [{"at": 1.5}]}', "faults[0].at must be a whole number, not a number"),
        ('{"faults": [], "kind": null}', "kind must be a whole number or text, not null"),
        ('{"faults": [{"at": 1e999}]}', "it holds a number that is too large"),
        ('{"faults": [], "other": ' + "[" * 100_000, TOO_DEEP),
    ],
)
def test_a_refusal_is_a_clause_of_ours(text: str, says: str) -> None:
    with pytest.raises((msgspec.DecodeError, RecursionError)) as caught:
        msgspec.json.decode(text, type=Outer)
    assert in_words(caught.value) == says


def test_bytes_that_are_no_text_are_named() -> None:
    with pytest.raises(UnicodeDecodeError) as caught:
        b"\xff".decode()
    assert in_words(caught.value) == "it is not UTF-8: it holds the byte 0xff"


def test_what_is_not_known_passes_through() -> None:
    assert in_words(ValueError("the plan has schema 99")) == "the plan has schema 99"


#: Values that are equal to each other in Python, and those that do not hash.
VALUES: list[Any] = [None, 0, 1, 1.0, True, "1", "", [1, 2], [1, 2.0], {"a": 1}]


def events(seed: int, count: int) -> list[Event]:
    """Operations of a few processes, one after the other, with everything that a line may hold."""
    random = Random(seed)
    operations = [
        PairedOperation(
            index=2 * number,
            process=number % 3,
            f=random.choice(("read", "write")),
            key=random.choice((None, "a", "b", f"k{number}")),
            argument=random.choice(VALUES),
            result=random.choice(VALUES),
            type="ok",
            start=10 * number,
            end=10 * number + 5,
            node=random.choice((None, "n1", f"n{number}")),
            position=random.choice((None, (1, number))),
            final=random.random() < 0.1,
        )
        for number in range(count)
    ]
    return list(events_of(operations))


def write(path: Path, lines: list[Event]) -> Path:
    path.write_bytes(b"".join(msgspec.json.encode(line) + b"\n" for line in lines))
    return path


def in_ranges(path: Path, count: int) -> list[EventColumns]:
    """The ranges as another process would hand them over."""
    parts = [read_range(lines) for lines in line_ranges(path, count)]
    return [pickle.loads(pickle.dumps(part)) for part in parts if part is not None]


@pytest.mark.parametrize("count", [1, 2, 3, 7, 50])
@pytest.mark.parametrize("seed", range(5))
def test_ranges_joined_are_the_file(tmp_path: Path, seed: int, count: int) -> None:
    path = write(tmp_path / "history.jsonl", events(seed, 40))
    whole = read_lines(path)
    assert whole is not None
    one, other = paired_columns(joined(in_ranges(path, count))), paired_columns(whole)
    assert one is not None
    assert other is not None
    assert one.operations() == other.operations()
    # Equality of Python does not tell 1 from true.
    assert list(map(repr, one.operations())) == list(map(repr, other.operations()))
    assert (one.values, one.key_names, one.flat) == (other.values, other.key_names, other.flat)


def test_ranges_cover_the_file_and_end_at_lines(tmp_path: Path) -> None:
    path = write(tmp_path / "history.jsonl", events(3, 100))
    ranges = line_ranges(path, 4)
    assert len(ranges) == 4
    assert ranges[0].start == 0
    assert ranges[-1].end == path.stat().st_size
    content = path.read_bytes()
    for one, following in pairwise(ranges):
        assert one.end == following.start
        assert content[one.end - 1 : one.end] == b"\n"


def test_more_ranges_than_lines_are_as_many_as_lines(tmp_path: Path) -> None:
    path = write(tmp_path / "history.jsonl", events(3, 2))
    assert len(line_ranges(path, 100)) == 4


def test_a_packed_file_has_no_ranges(tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl.gz"
    path.write_bytes(gzip.compress(write(tmp_path / "plain", events(1, 20)).read_bytes()))
    assert line_ranges(path, 2) == []
    assert read_lines(path) is not None


@pytest.mark.parametrize("damage", [b"{", b"\n", b'{"index": 1}\n', b"nonsense\n"])
def test_a_damaged_range_is_nothing_in_whichever_range_it_is(tmp_path: Path, damage: bytes) -> None:
    content = write(tmp_path / "whole", events(1, 20)).read_bytes().splitlines(keepends=True)
    for place in range(0, len(content) + 1, 5):
        path = tmp_path / "history.jsonl"
        path.write_bytes(b"".join([*content[:place], damage, *content[place:]]))
        assert None in [read_range(lines) for lines in line_ranges(path, 3)], place
        assert read_lines(path) is None
