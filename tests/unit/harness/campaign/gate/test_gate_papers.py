"""Papers of the gate: its self-test, the page of figures, the CI templates."""

import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from cyclopts.exceptions import UnknownOptionError

from splitbrain.contracts.figure import Measured
from splitbrain.harness.campaign.gate import evaluation, self_test
from splitbrain.harness.campaign.gate.catalogue import FIGURES
from splitbrain.harness.campaign.gate.policy import read_policy
from splitbrain.harness.campaign.gate.self_test import Proof, prove
from splitbrain.harness.cli.main import app, run
from tests.unit.checker.mutated import mutated
from tests.unit.harness.campaign.gate.figures_page import PAGE, page
from tests.unit.harness.campaign.gate.gate_runs import policy

ROOT = Path(__file__).parents[5]


def proofs(tmp_path: Path, *thresholds: str) -> list[Proof]:
    read = policy(tmp_path, *thresholds)
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
    assert [proof.clause for proof in found if not proof.can_fail] == []


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
    assert told in found[dead].clause


def test_an_evaluation_that_is_blind_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blind = mutated(evaluation, '"met" if threshold.holds_for(now.value) else "violated"', '"met"')
    monkeypatch.setattr(self_test, "evaluate", blind.evaluate)
    assert not any(one.can_fail for one in proofs(tmp_path, "runs_valid >= 1"))


def test_an_evaluation_that_passes_what_is_missing_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lenient = mutated(
        evaluation,
        'return _judged(threshold, "unknown", now, reason=now.lack or "it has no value")',
        'return _judged(threshold, "met", now)',
    )
    assert lenient.Measured is Measured
    monkeypatch.setattr(self_test, "evaluate", lenient.evaluate)
    found = proofs(tmp_path, "runs_valid >= 1")
    assert not any(one.can_fail for one in found)
    assert "does not notice" in found[-1].clause


def test_the_page_lists_the_figures_that_there_are() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert text == page(text), "run python -m tests.unit.harness.campaign.gate.figures_page"


def test_the_example_of_the_page_is_a_policy_that_can_fail(tmp_path: Path) -> None:
    (example,) = re.findall(r"```toml\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    path = tmp_path / "gate.toml"
    path.write_text(example)
    read = read_policy(path)
    assert all(proof.can_fail for proof in prove(read, list(read.tiers.values())))


CI = ROOT / "docs" / "ci"
TEMPLATES = ("github-actions.yml", "gitlab-ci.yml", "Jenkinsfile")
#: Other files of the folder, each with the test that reads it.
OTHERS = {"grafana-dashboard.json": "tests/unit/harness/campaign/nightly/test_metrics.py"}
#: Schemas that the linter brings along, so that no network is asked.
SCHEMAS = {
    "github-actions.yml": ("vendor.github-workflows",),
    "gitlab-ci.yml": ("vendor.gitlab-ci", "--data-transform", "gitlab-ci"),
}
COMMAND = re.compile(r"(?<![\w./-])splitbrain (?P<words>[a-z]+ [^|;\n']*-[^|;\n']+)")
INSTALL = re.compile(r'pip install "splitbrain(?:\[([a-z,]+)\])?\$SPLITBRAIN_VERSION"')
VERSION = re.compile(r"""SPLITBRAIN_VERSION(?::| =) ["']==([\d.]+)["']""")


def commands(name: str) -> list[list[str]]:
    lines = (CI / name).read_text().splitlines()
    text = "\n".join(line for line in lines if not line.lstrip().startswith(("#", "//")))
    return [shlex.split(match["words"]) for match in COMMAND.finditer(text)]


def lint(path: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", *words, str(path)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_every_template_is_checked() -> None:
    assert sorted(path.name for path in CI.iterdir()) == sorted([*TEMPLATES, *OTHERS])
    assert all((ROOT / test).is_file() for test in OTHERS.values())


@pytest.mark.parametrize("name", SCHEMAS)
def test_a_template_keeps_its_schema(name: str) -> None:
    done = lint(CI / name, *SCHEMAS[name])
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_linter_sees_a_wrong_key(tmp_path: Path) -> None:
    text = (CI / "github-actions.yml").read_text()
    wrong = tmp_path / "wrong.yml"
    wrong.write_text(text.replace("runs-on:", "run-on:"))
    assert lint(wrong, *SCHEMAS["github-actions.yml"]).returncode == 1


@pytest.mark.parametrize("name", TEMPLATES)
def test_a_template_calls_commands_and_options_that_exist(name: str, tmp_path: Path) -> None:
    found = commands(name)
    assert {words[0] for words in found} == {"gate", "test", "sim", "nightly"}
    assert run(["init", "--system", "kraft", "--output", str(tmp_path)]) == 0
    read = read_policy(tmp_path / "policy.toml")
    for words in found:
        # Options and their values are read, and nothing is run.
        given = ["3" if word == "$seed" else word for word in words]
        app.parse_args(given, exit_on_error=False, print_error=False)
        if "--tier" in words:
            assert read.tier(words[words.index("--tier") + 1])
        for word in words:
            if word.endswith(".toml"):
                assert (tmp_path / word).is_file()


@pytest.mark.parametrize("name", TEMPLATES)
def test_a_template_installs_this_version_with_what_its_commands_need(name: str) -> None:
    text = (CI / name).read_text()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert VERSION.findall(text) == [project["version"]]
    extras = [set(filter(None, match.split(","))) for match in INSTALL.findall(text)]
    assert extras
    assert all(extra <= project["optional-dependencies"].keys() for extra in extras)
    # A night's lake needs it.
    assert "spark" in extras[-1]
    assert ".venv" not in text
    assert "make " not in text


@pytest.mark.parametrize("name", TEMPLATES)
def test_a_template_keeps_what_the_next_night_compares_with(name: str) -> None:
    text = (CI / name).read_text()
    assert all(text.count(f"runs/{kept}") >= 2 for kept in ("nightly", "lake", "ledger.jsonl")) or (
        "cache:" in text
    )
    assert "webhook_env" in text or "night.toml names" in text


def test_a_wrong_option_in_a_template_is_seen() -> None:
    with pytest.raises(UnknownOptionError):
        app.parse_args(["nightly", "n.toml", "--budget", "5h"], exit_on_error=False,
                       print_error=False)  # fmt: skip


@pytest.mark.parametrize("name", TEMPLATES)
def test_a_template_publishes_junit_and_proves_the_policy_first(name: str) -> None:
    text = (CI / name).read_text()
    assert text.index("--self-test") < text.index("--tier")
    assert ("gate/gate.xml" in text) or ("gate/gate.sarif" in text)
