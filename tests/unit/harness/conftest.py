"""A good run's folder, and judgements in the test's own process."""

from pathlib import Path

import pytest

from splitbrain.history.run_folder import RunFolder
from tests.synthetic_runs import write_run
from tests.unit.harness.in_process import judge_in_process


@pytest.fixture
def in_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is judged by workers."""
    judge_in_process(monkeypatch)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run that is valid."""
    return write_run(tmp_path / "run", operations_per_second=30)


@pytest.fixture
def folder(run: Path) -> RunFolder:
    return RunFolder(run)
