"""Several workers read one file as one reader does; a worker that fails is no fault of the file."""

from pathlib import Path
from typing import Any

import pytest

from bench.histories import HistoryOptions, generate
from splitbrain.contracts.errors import HarnessError
from splitbrain.harness.judge import bare_columns
from splitbrain.harness.judge.bare_columns import read_shared
from splitbrain.harness.pool.limits import Limits
from splitbrain.harness.pool.workers import PartOutcome
from splitbrain.history.column_reader import read_columns
from splitbrain.history.columns import OperationColumns
from tests.unit.harness.judge.test_column_checking import write

TWO = Limits(60, 2048, 2)


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(bare_columns, "SHARED_FROM_BYTES", 1)
    return write(
        tmp_path / "history.jsonl", generate(HistoryOptions(seed=5, operations=300, clients=4))
    )


def read(path: Path, limits: Limits = TWO) -> OperationColumns:
    columns = read_shared(path, None, limits, lambda: None, [])
    assert columns is not None
    return columns


def alone(path: Path) -> OperationColumns:
    columns = read_columns(path)
    assert columns is not None
    return columns


def test_workers_read_what_one_reader_reads(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bare_columns, "read_columns", None)
    assert read(path).operations() == alone(path).operations()


def test_with_one_job_nobody_is_asked(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("splitbrain.harness.pool.workers.run_parts", None)
    assert read(path, Limits(60, 2048, 1)).operations() == alone(path).operations()


def test_where_a_worker_fails_the_file_is_read_here(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(parts: Any, *_: Any, **_named: Any) -> list[PartOutcome]:
        return [PartOutcome(None, "memory budget of 1 MiB used up, stopped", 0, 0) for _ in parts]

    monkeypatch.setattr("splitbrain.harness.pool.workers.run_parts", failing)
    assert read(path).operations() == alone(path).operations()


def test_a_broken_line_in_any_range_leaves_the_file_to_who_can_tell(path: Path) -> None:
    content = path.read_bytes().splitlines(keepends=True)
    for place in (0, len(content) // 2, len(content) - 1):
        path.write_bytes(b"".join([*content[:place], b"{broken}\n", *content[place:]]))
        assert read_shared(path, "jsonl", TWO, lambda: None, []) is None


def test_a_file_that_is_not_there_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(HarnessError, match=r"gone\.jsonl"):
        read_shared(tmp_path / "gone.jsonl", None, TWO, lambda: None, [])
