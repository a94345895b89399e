"""A folder for suites of fake runs."""

from pathlib import Path

import pytest

from splitbrain.harness.campaign.suite import conductor
from tests.unit.harness.campaign.suite.fake_nights import Suites


@pytest.fixture(autouse=True)
def commit(monkeypatch: pytest.MonkeyPatch) -> str:
    """The commit that nights in this process are done with; asking git takes longer than a run."""
    name = "c0ffee" * 6 + "beef"
    monkeypatch.setattr(conductor, "tool_commit", lambda: f"{name}-dirty")
    return name


@pytest.fixture
def suites(tmp_path: Path) -> Suites:
    return Suites(tmp_path)
