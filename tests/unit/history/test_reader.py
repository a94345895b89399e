from pathlib import Path

import msgspec
import pytest

from splitbrain.history import reader as reader_module
from splitbrain.history.broken_lines import BrokenLines
from splitbrain.history.errors import HistoryError
from splitbrain.history.reader import HistoryReader, read_events
from splitbrain.history.records import Event

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
    assert list(read_events(path)) == EVENTS


@pytest.mark.parametrize("block_bytes", [1, 7, 64, 200])
def test_lines_across_blocks_are_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block_bytes: int
) -> None:
    monkeypatch.setattr(reader_module, "_BLOCK_BYTES", block_bytes)
    path = written(tmp_path, b"".join(line + b"\n" for line in lines_of(EVENTS)))
    assert list(read_events(path)) == EVENTS


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
    assert list(read_events(written(tmp_path, b""))) == []


def test_a_broken_line_in_the_middle_is_named_by_number_and_byte_offset(tmp_path: Path) -> None:
    lines = lines_of(EVENTS)
    content = lines[0] + b"\n" + lines[1][:20] + b"\n" + lines[2] + b"\n"
    path = written(tmp_path, content)
    with pytest.raises(HistoryError, match=f"line 2 at byte {len(lines[0]) + 1}") as raised:
        list(read_events(path))
    assert raised.value.line == 2
    assert raised.value.byte_offset == len(lines[0]) + 1


def test_two_objects_on_one_line_are_broken(tmp_path: Path) -> None:
    lines = lines_of(EVENTS)
    path = written(tmp_path, lines[0] + b"," + lines[1] + b"\n" + lines[2] + b"\n")
    with pytest.raises(HistoryError, match="line 1"):
        list(read_events(path))


def test_broken_lines_are_skipped_and_collected_when_asked(tmp_path: Path) -> None:
    lines = lines_of(EVENTS)
    path = written(tmp_path, lines[0] + b"\n???\n" + lines[1] + b"\n" + lines[2] + b"\n")
    broken = BrokenLines(path, skip=True)
    assert list(HistoryReader(path, lines=broken)) == EVENTS
    assert [line.line for line in broken.told] == [2]


def test_missing_index_time_and_node_are_filled_in(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        b'{"process": 3, "type": "invoke", "f": "read", "key": 5}\n'
        b'{"process": "nemesis", "type": "info", "f": "start"}\n'
        b'{"process": "3", "type": "ok", "f": "read", "value": [1], "position": 12}\n',
    )
    first, second = read_events(path)
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
        list(read_events(path))


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(HistoryError, match=r"absent\.jsonl"):
        list(read_events(tmp_path / "absent.jsonl"))
