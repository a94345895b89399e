"""The place of the gate's tests."""

from pathlib import Path

import pytest

from tests.unit.harness.campaign.gate.gate_place import Place


@pytest.fixture
def place(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Place:
    return Place(tmp_path, capsys)
