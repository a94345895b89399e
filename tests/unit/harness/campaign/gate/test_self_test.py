"""The self-test proves what can fail, and finds what cannot."""

from pathlib import Path

import pytest

from splitbrain.contracts.figure import Measured
from splitbrain.harness.campaign.gate import evaluation, self_test
from splitbrain.harness.campaign.gate.catalogue import FIGURES
from splitbrain.harness.campaign.gate.policy import read_policy
from splitbrain.harness.campaign.gate.self_test import Proof, prove
from tests.unit.checker.mutated import mutated

ROOT = Path(__file__).parents[5]


def proofs(tmp_path: Path, *thresholds: str) -> list[Proof]:
    path = tmp_path / "gate.toml"
    path.write_text(f"schema = 1\nrequire = {list(thresholds)!r}\n")
    read = read_policy(path)
    return prove(read, list(read.tiers.values()))


def test_every_threshold_of_the_default_policy_can_fail() -> None:
    read = read_policy(ROOT / "gate.toml")
    found = prove(read, list(read.tiers.values()))
    assert len(found) > 10
    assert [one for one in found if not one.can_fail] == []


@pytest.mark.parametrize("figure", FIGURES)
def test_a_threshold_on_any_figure_can_fail(tmp_path: Path, figure: str) -> None:
    number = 30 if FIGURES[figure].unit == "count" else 0.5
    bound = {"higher": ">=", "lower": "<=", "neither": ">"}
    thresholds = [f"{figure} {bound[FIGURES[figure].better]} {number}"]
    if FIGURES[figure].better != "neither":
        thresholds.append(f"regression({figure}) < 10%")
    found = proofs(tmp_path, *thresholds)
    assert [one.told for one in found if not one.can_fail] == []


@pytest.mark.parametrize(
    ("thresholds", "dead", "told"),
    [
        (["violations <= 3", "runs >= 0"], "runs >= 0", "no value that runs can have"),
        (["faults_verified >= 0"], "faults_verified >= 0", "no value that faults_verified"),
        (["availability_min > 0.5", "availability_min > 0.9"], "availability_min > 0.5",
         "violates a stricter threshold too"),
        (["elections > 9", "elections < 5"], "elections > 9", "no value of elections meets all"),
        (["availability_min > 1"], "availability_min > 1", "no value of availability_min meets"),
    ],
)  # fmt: skip
def test_a_dead_threshold_is_found(
    tmp_path: Path, thresholds: list[str], dead: str, told: str
) -> None:
    found = {one.threshold.text: one for one in proofs(tmp_path, *thresholds)}
    assert not found[dead].can_fail
    assert told in found[dead].told


def test_an_evaluation_that_is_blind_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blind = mutated(
        evaluation,
        'state: State = "met" if threshold.holds_for(measured.value) else "violated"',
        'state: State = "met"',
    )
    monkeypatch.setattr(self_test, "evaluate", blind.evaluate)
    assert not any(one.can_fail for one in proofs(tmp_path, "runs_valid >= 1"))


def test_an_evaluation_that_passes_what_is_missing_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lenient = mutated(
        evaluation,
        'return Judged(threshold, "unknown", None, measured, baseline, reason)',
        'return Judged(threshold, "met", None, measured, baseline, reason)',
    )
    assert lenient.Measured is Measured
    monkeypatch.setattr(self_test, "evaluate", lenient.evaluate)
    found = proofs(tmp_path, "runs_valid >= 1")
    assert not any(one.can_fail for one in found)
    assert "does not notice" in found[-1].told
