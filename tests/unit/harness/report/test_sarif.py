"""SARIF of runs, gates and sweeps: the rules of the schema, and what GitHub demands besides."""

import json
from pathlib import Path
from typing import Any

import pytest

from splitbrain.checker.verdict import CheckResult, Verdict
from splitbrain.harness.folder.results import Results
from splitbrain.harness.report.alarms import alarms_of, file_in_repository
from splitbrain.harness.report.sarif import to_sarif
from tests.synthetic_runs import HOSTILE
from tests.unit.harness.small_results import results_with

ADAPTER = "systems/my_store.py"


def violated(*results: CheckResult) -> Results:
    return results_with(
        verdict=Verdict.INVALID, exit_code=1, checkers=results, reproduce="splitbrain test --seed 7"
    )


def invalid(checker: str, *violations: dict[str, Any]) -> CheckResult:
    return CheckResult(checker, Verdict.INVALID, f"{checker} is violated.", violations=violations)


def found(kind: str, sentence: str, **more: Any) -> dict[str, Any]:
    return {"kind": kind, "sentence": sentence, **more}


STALE = invalid(
    "linearizability:register",
    found("not-linearizable", "A", anomaly="stale read", account="Stale read. n2 answered."),
    found("not-linearizable", "B", anomaly="stale read", account="Stale read. n3 answered."),
    found("not-linearizable", "C", anomaly="lost write", account="Lost write. n1 lost 4."),
)
BROKEN = invalid("invariants", found("INV-09", "INV-09 was violated at n2.", node="n2"))


def sarif_of(results: Results, file: str | None = ADAPTER) -> dict[str, Any]:
    log = json.loads(to_sarif(alarms_of(results), results.test, file, results.exit_code))
    return assert_sarif(log)


def assert_sarif(log: Any) -> dict[str, Any]:
    """Return the only run of a log that keeps SARIF 2.1.0, and what GitHub reads of it."""
    assert log.keys() == {"$schema", "version", "runs"}
    assert log["version"] == "2.1.0"
    assert log["$schema"].endswith("sarif-2.1.0.json")
    (run,) = log["runs"]
    # Nothing else: the schema allows no further properties anywhere.
    assert run.keys() == {"tool", "automationDetails", "columnKind", "invocations", "results"}
    assert run["columnKind"] in ("utf16CodeUnits", "unicodeCodePoints")
    assert run["automationDetails"]["id"].endswith("/")
    (invocation,) = run["invocations"]
    assert isinstance(invocation["executionSuccessful"], bool)
    driver = run["tool"]["driver"]
    assert driver.keys() == {"name", "version", "rules"}
    ids = [rule["id"] for rule in driver["rules"]]
    assert len(set(ids)) == len(ids)
    for rule in driver["rules"]:
        assert rule.keys() == {
            *("id", "name", "shortDescription", "fullDescription", "help"),
            *("defaultConfiguration", "properties"),
        }
        for words in ("shortDescription", "fullDescription"):
            assert rule[words].keys() == {"text"}
            assert rule[words]["text"]
        assert rule["help"].keys() == {"text", "markdown"}
        assert rule["help"]["text"]
        assert rule["defaultConfiguration"]["level"] in ("none", "note", "warning", "error")
    for result in run["results"]:
        assert ids[result["ruleIndex"]] == result["ruleId"]
        assert result["message"]["text"]
        assert result["level"] in ("none", "note", "warning", "error")
        assert result["occurrenceCount"] >= 1
        for location in result.get("locations", []):
            physical = location["physicalLocation"]
            uri = physical["artifactLocation"]["uri"]
            assert "://" not in uri
            assert not uri.startswith(("/", "."))
            assert "\\" not in uri
            assert physical["region"]["startLine"] >= 1
        prints = result.get("partialFingerprints", {})
        assert all(isinstance(value, str) for value in prints.values())
    return run


def test_each_name_of_a_violation_is_a_result_with_its_rule() -> None:
    run = sarif_of(violated(STALE, BROKEN))
    shown = [(result["ruleId"], result["occurrenceCount"]) for result in run["results"]]
    assert sorted(shown) == [("INV-09", 1), ("lost-write", 1), ("stale-read", 2)]
    stale = next(result for result in run["results"] if result["ruleId"] == "stale-read")
    assert stale["message"]["text"].startswith("Stale read. n2 answered.")
    assert stale["message"]["text"].endswith("splitbrain test --seed 7")
    assert stale["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == ADAPTER
    rules = {rule["id"]: rule for rule in run["tool"]["driver"]["rules"]}
    # In the words of `splitbrain explain`.
    assert "acknowledged" in rules["stale-read"]["fullDescription"]["text"]
    assert "**Why it matters**" in rules["INV-09"]["help"]["markdown"]
    assert "```text" in rules["INV-09"]["help"]["markdown"]


def test_one_failure_is_one_alert_whatever_its_seed() -> None:
    again = [{**each, "account": "Met again, at another node."} for each in STALE.violations]
    first, other = violated(STALE), violated(invalid(STALE.checker, *again))
    of_first, of_other = sarif_of(first), sarif_of(other)
    prints = [result["partialFingerprints"] for result in of_first["results"]]
    assert prints == [result["partialFingerprints"] for result in of_other["results"]]
    assert len({each["primaryLocationLineHash"] for each in prints}) == 2
    assert all(each["splitbrainFingerprint/v2"].startswith("f") for each in prints)


@pytest.mark.parametrize(
    "results",
    [
        results_with(),
        results_with(exit_code=2, vacuous=("No fault took effect.",)),
        results_with(exit_code=3, harness_failed=True, problems=("No disk.",)),
    ],
)
def test_what_is_no_violation_has_no_result(results: Results) -> None:
    run = sarif_of(results)
    assert run["results"] == run["tool"]["driver"]["rules"] == []
    assert run["invocations"][0]["executionSuccessful"] is (results.exit_code != 3)


def test_hostile_text_and_violations_that_nobody_described_are_shown() -> None:
    run = sarif_of(violated(invalid(HOSTILE, found(HOSTILE, HOSTILE)), invalid("own")), None)
    assert [result["message"]["text"] for result in run["results"]]
    assert all("locations" not in result for result in run["results"])


def test_a_location_is_a_file_of_the_repository(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("GITHUB_WORKSPACE", "GITHUB_WORKFLOW_REF", "CI_CONFIG_PATH"):
        monkeypatch.delenv(name, raising=False)
    root = tmp_path / "work"
    workflow, adapter = root / ".github" / "workflows" / "sb.yml", root / ADAPTER
    for path in (workflow, adapter, root / ".git" / "HEAD", tmp_path / "outside.py"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    monkeypatch.chdir(root / "systems")
    assert file_in_repository("kraft", None) is None
    for usual in ("README.md", "gate.toml", "policy.toml"):
        (root / usual).touch()
        assert file_in_repository("kraft", None) == usual
    monkeypatch.setenv("GITHUB_WORKFLOW_REF", "me/it/.github/workflows/sb.yml@refs/heads/x@y")
    assert file_in_repository("kraft", str(tmp_path / "outside.py")) == ".github/workflows/sb.yml"
    assert file_in_repository("my_store.py:Store") == ADAPTER
    assert file_in_repository(f"{adapter}:Store", "gone.toml") == ADAPTER
    monkeypatch.setenv("GITHUB_WORKSPACE", str(root))
    monkeypatch.chdir(tmp_path)
    assert file_in_repository(adapter) == ADAPTER
