"""A planted bug is one file of the folder: worlds, nodes on machines and the list know its name."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from splitbrain.contracts.experiment import Experiment
from splitbrain.contracts.names import RunId
from splitbrain.harness.campaign.sweep.options import SimOptions
from splitbrain.harness.campaign.sweep.trial import draw, run
from splitbrain.harness.cli import main
from splitbrain.systems.kraft import planted_bugs
from splitbrain.systems.kraft.adapter import KraftSystem
from tests.unit.systems.pod_place import pod_place

NAME = "answers-early"
SENTENCE = "Clients are told of a commit that is still to come."


@pytest.fixture(autouse=True)
def dummy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    text = (planted_bugs.FOLDER / "ack-before-commit.patch").read_text().partition("\n")[2]
    (tmp_path / f"{NAME}.patch").write_text(f"{SENTENCE}\n{text}")
    monkeypatch.setattr(planted_bugs, "FOLDER", tmp_path)
    caches = (planted_bugs._patches, planted_bugs.planted_bugs)
    for cache in caches:
        cache.cache_clear()
    yield
    for cache in caches:
        cache.cache_clear()


def test_a_new_bug_is_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["systems"]) == 0
    assert f"{NAME} {SENTENCE}" in " ".join(capsys.readouterr().out.split())


def test_a_new_bug_is_found_in_a_world() -> None:
    outcome = run(draw(0, SimOptions(bugs=(NAME,))))
    assert outcome.violation is not None
    assert outcome.violation.invariant == "INV-12"
    assert run(draw(0, SimOptions())).violation is None


def test_nodes_on_machines_have_a_new_bug(tmp_path: Path) -> None:
    options = Experiment(system="kraft", nodes=1, bugs=(NAME,))
    (node,) = KraftSystem().deployment(RunId("r"), tmp_path, options, pod_place).nodes
    assert f"/config/patches/{NAME}.patch" in node.command
    assert (tmp_path / f"nodes/n1/config/patches/{NAME}.patch").read_text().startswith(SENTENCE)
