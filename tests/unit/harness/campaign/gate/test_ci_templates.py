"""The CI templates keep their servers' schemas, and call commands that exist."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from splitbrain.harness.campaign.gate.policy import read_policy
from splitbrain.harness.cli.main import app

ROOT = Path(__file__).parents[5]
CI = ROOT / "docs" / "ci"
TEMPLATES = ("github-actions.yml", "gitlab-ci.yml", "Jenkinsfile")
#: Schemas that the linter brings along, so that no network is asked.
SCHEMAS = {
    "github-actions.yml": ("vendor.github-workflows",),
    "gitlab-ci.yml": ("vendor.gitlab-ci", "--data-transform", "gitlab-ci"),
}
COMMAND = re.compile(r"\.venv/bin/splitbrain (?P<words>[^|;\n']+)")


def commands(name: str) -> list[list[str]]:
    text = (CI / name).read_text()
    return [match["words"].split() for match in COMMAND.finditer(text)]


def lint(path: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", *words, str(path)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_every_template_is_checked() -> None:
    assert sorted(path.name for path in CI.iterdir()) == sorted(TEMPLATES)


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
def test_a_template_calls_commands_and_options_that_exist(name: str) -> None:
    found = commands(name)
    assert {words[0] for words in found} == {"gate", "test", "suite"}
    policy = read_policy(ROOT / "gate.toml")
    for words in found:
        known = {flag for argument in app[words[0]].assemble_argument_collection()
                 for flag in argument.names}  # fmt: skip
        for word in words:
            assert not word.startswith("--") or word in known, word
        if "--tier" in words:
            assert policy.tier(words[words.index("--tier") + 1])
        for word in words:
            if word.endswith(".toml"):
                assert (ROOT / word).is_file()


@pytest.mark.parametrize("name", TEMPLATES)
def test_a_template_publishes_junit_and_proves_the_policy_first(name: str) -> None:
    text = (CI / name).read_text()
    assert text.index("--self-test") < text.index("--tier")
    assert ("gate/gate.xml" in text) or ("gate/gate.md" in text)
