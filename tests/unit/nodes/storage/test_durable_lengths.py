"""The table tells of each file what completed syncs have covered, and never more."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from splitbrain.nodes.storage.disk import DiskFile
from splitbrain.nodes.storage.durable_lengths import LINE_BYTES, CountingFileSystem, DurableLengths
from splitbrain.nodes.storage.filesystem import replace_file


@pytest.fixture
def table(tmp_path: Path) -> Path:
    return tmp_path / "state" / "durable_lengths.jsonl"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    folder.mkdir()
    return folder


@pytest.fixture
def counting(table: Path, data: Path) -> Iterator[CountingFileSystem]:
    lengths = DurableLengths(table, data)
    yield CountingFileSystem(lengths)
    lengths.close()


def lengths_in(table: Path) -> dict[str, tuple[int, bool]]:
    """Path to length and whether the name is durable, as somebody else reads them."""
    content = table.read_bytes()
    assert len(content) % LINE_BYTES == 0
    entries = [json.loads(line) for line in content.splitlines() if line.strip()]
    assert len({entry["path"] for entry in entries}) == len(entries)
    return {entry["path"]: (entry["length"], entry["named"]) for entry in entries}


def test_only_synced_bytes_and_names_count(
    counting: CountingFileSystem, table: Path, data: Path
) -> None:
    file = counting.open(data / "a", create=True)
    file.write_at(0, b"x" * 10)
    assert lengths_in(table) == {"a": (0, False)}
    file.sync()
    assert lengths_in(table) == {"a": (10, False)}
    file.write_at(10, b"x" * 10)
    counting.sync_folder(data)
    assert lengths_in(table) == {"a": (10, True)}
    file.close()


def test_bytes_that_came_during_a_sync_do_not_count(
    counting: CountingFileSystem, table: Path, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = counting.open(data / "a", create=True)
    file.write_at(0, b"x" * 10)

    def sync_while_more_comes(inner: DiskFile) -> None:
        inner.write_at(10, b"y" * 5)

    monkeypatch.setattr(DiskFile, "sync", sync_while_more_comes)
    file.sync()
    assert lengths_in(table) == {"a": (10, False)}
    file.close()


def test_a_failed_sync_counts_for_nothing(
    counting: CountingFileSystem, table: Path, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: DiskFile) -> None:
        raise OSError(5, "Input/output error")

    file = counting.open(data / "a", create=True)
    file.write_at(0, b"x" * 10)
    monkeypatch.setattr(DiskFile, "sync", fail)
    with pytest.raises(OSError, match="Input/output"):
        file.sync()
    assert lengths_in(table) == {"a": (0, False)}
    file.close()


def test_a_truncation_takes_the_length_along(
    counting: CountingFileSystem, table: Path, data: Path
) -> None:
    file = counting.open(data / "a", create=True)
    file.write_at(0, b"x" * 10)
    file.sync()
    file.truncate(4)
    file.write_at(4, b"y" * 6)
    assert lengths_in(table) == {"a": (4, False)}
    file.truncate(100)
    assert lengths_in(table) == {"a": (4, False)}
    file.close()


def test_a_replaced_file_has_the_new_content_s_length_and_the_old_name_s_safety(
    counting: CountingFileSystem, table: Path, data: Path
) -> None:
    replace_file(counting, data / "state", b"first")
    assert lengths_in(table) == {"state": (5, True)}
    # A writer that forgets the sync before the rename is found out.
    file = counting.open(data / "state.tmp", create=True)
    file.write_at(0, b"second")
    file.close()
    counting.rename(data / "state.tmp", data / "state")
    assert lengths_in(table) == {"state": (0, True)}


def test_a_removed_file_leaves_its_line_to_another(
    counting: CountingFileSystem, table: Path, data: Path
) -> None:
    for name in ("a", "b"):
        counting.open(data / name, create=True).close()
    size = table.stat().st_size
    counting.remove(data / "a")
    counting.open(data / "c", create=True).close()
    assert set(lengths_in(table)) == {"b", "c"}
    assert table.stat().st_size == size == 2 * LINE_BYTES


def test_the_table_outlives_the_process_that_kept_it(table: Path, data: Path) -> None:
    first = DurableLengths(table, data)
    file = CountingFileSystem(first).open(data / "a", create=True)
    file.write_at(0, b"x" * 10)
    file.sync()
    file.write_at(10, b"x" * 10)
    file.close()
    gone = CountingFileSystem(first).open(data / "gone", create=True)
    gone.close()
    (data / "gone").unlink()
    first.close()
    second = DurableLengths(table, data)
    counting = CountingFileSystem(second)
    counting.open(data / "a").close()
    # A kill has lost nothing, and made nothing durable.
    assert lengths_in(table) == {"a": (10, False)}
    second.close()


def test_a_file_that_was_there_before_anybody_counted_is_taken_as_durable(
    table: Path, data: Path
) -> None:
    (data / "old").write_bytes(b"x" * 7)
    lengths = DurableLengths(table, data)
    CountingFileSystem(lengths).open(data / "old").close()
    assert lengths_in(table) == {"old": (7, True)}
    lengths.close()
