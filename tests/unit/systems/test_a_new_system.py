"""A system is its package and a line in the registry."""

from pathlib import Path

import msgspec
import pytest

from splitbrain.harness.cli.main import run
from splitbrain.history.plan import decode_plan
from splitbrain.systems import registry
from tests.unit.harness.fake_quorum import FakeQuorum, FakeSystem
from tests.unit.harness.run_fake import FakeRun


@pytest.fixture(autouse=True)
def dummy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(registry._FACTORIES, "fake", lambda: FakeSystem(FakeQuorum()))


def test_a_new_system_is_listed_with_its_planted_bugs(capsys: pytest.CaptureFixture[str]) -> None:
    assert "fake" in registry.names()
    assert run(["systems"]) == 0
    said = capsys.readouterr().out
    assert "fake" in said
    assert "stale-leader-reads" in said


def test_a_new_system_is_run_under_load(tmp_path: Path) -> None:
    outcome = FakeRun(tmp_path, time_limit_s=0.3).run()
    assert outcome.failure is None
    plan = decode_plan(outcome.folder.plan.read_bytes())
    assert plan.experiment.system == "fake"
    lines = outcome.folder.history.read_text().splitlines()
    types = [msgspec.json.decode(line)["type"] for line in lines]
    assert "ok" in types
