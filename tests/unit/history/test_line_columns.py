"""A file read in ranges, by whoever, is the file read at once."""

import gzip
import pickle
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pytest

from splitbrain.history.event_columns import EventColumns, paired_columns
from splitbrain.history.line_columns import joined, line_ranges, read_lines, read_range
from splitbrain.history.pairing import events_of
from splitbrain.history.records import Event, PairedOperation

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
