from pathlib import Path

import pytest

from splitbrain.spark_analysis.lake.store import LocalStore


@pytest.fixture
def store(tmp_path: Path) -> LocalStore:
    return LocalStore(tmp_path / "lake")
