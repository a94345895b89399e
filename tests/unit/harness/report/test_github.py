"""Annotations and the summary of a job, as GitHub's runner reads them."""

import json
import re
from pathlib import Path

import pytest

from splitbrain.checker.verdict import Verdict
from splitbrain.harness.cli.main import run as splitbrain
from splitbrain.harness.report.alarms import Alarm, alarms_of
from splitbrain.harness.report.github import (
    ANNOTATIONS_MAX,
    SUMMARY_BYTES_MAX,
    annotations,
    tell_github,
    unannounced,
)
from tests.synthetic_runs import SyntheticRun
from tests.unit.harness.fake_spark import fake_spark
from tests.unit.harness.report.test_sarif import STALE, violated
from tests.unit.harness.small_results import results_with

#: As the runner reads a line: a command, its properties, and the data behind them.
COMMAND = re.compile(r"^::(?P<command>\w+) (?P<properties>[^\n]*?)::(?P<data>[^\r\n]*)$")


def read(line: str) -> tuple[str, dict[str, str], str]:
    match = COMMAND.match(line)
    assert match, line
    properties = dict(pair.split("=", 1) for pair in match["properties"].split(","))
    unescaped = {name: _unescaped(value, ":,") for name, value in properties.items()}
    return match["command"], unescaped, _unescaped(match["data"], "")


def _unescaped(text: str, more: str) -> str:
    for character in f"\r\n{more}":
        text = text.replace(f"%{ord(character):02X}", character)
    return text.replace("%25", "%")


@pytest.fixture
def on_github(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A step of a job; returns the file of its summary."""
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    summary = tmp_path / "step-summary.md"
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    return summary


def test_an_annotation_names_the_violation_and_the_line_that_makes_it_again() -> None:
    (first, *_) = annotations(alarms_of(violated(STALE)), "gate.toml")
    command, properties, data = read(first)
    assert command == "error"
    assert properties == {
        "title": "stale read: kraft-register, seed 7",
        "file": "gate.toml",
        "line": "1",
    }
    assert (
        data
        == "Stale read. n2 answered. There are 2 of this kind.\nReproduce: splitbrain test --seed 7"
    )


def test_what_a_system_says_ends_no_annotation_and_begins_none() -> None:
    text = "100 % of a,b: lost\r\n::error::injected%0A\x1b[31m"
    (line,) = annotations([Alarm(title=text.replace("\r\n", " "), sentence=text)], None)
    assert len(line.splitlines()) == 1
    _, properties, data = read(line)
    assert properties["title"].startswith("100 % of a,b: lost ::error::injected%0A")
    assert data.split("\n")[0] == "100 % of a,b: lost"
    assert "\x1b" not in line


def test_there_are_at_most_ten_and_the_last_tells_how_many_more() -> None:
    alarms = [Alarm(title=f"a{n}", sentence="s") for n in range(25)]
    lines = list(annotations(alarms, None))
    assert len(lines) == ANNOTATIONS_MAX == 10
    assert "and 16 more" in lines[-1]
    assert len(list(annotations(alarms[:10], None))) == 10
    assert "more" not in list(annotations(alarms[:10], None))[-1]


def test_a_run_that_proves_nothing_is_a_warning_and_a_valid_one_is_nothing() -> None:
    vacuous = results_with(exit_code=2, vacuous=("No fault took effect.",))
    (line,) = annotations(alarms_of(vacuous), None)
    assert read(line)[0] == "warning"
    assert alarms_of(results_with()) == []
    failed = results_with(exit_code=3, harness_failed=True, problems=("No disk.",))
    assert [alarm.level for alarm in alarms_of(failed)] == ["error"]
    unknown = results_with(exit_code=2, verdict=Verdict.UNKNOWN)
    assert [alarm.level for alarm in alarms_of(unknown)] == ["warning"]


def test_nothing_is_said_elsewhere(
    on_github: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("GITHUB_ACTIONS")
    tell_github([Alarm(title="t", sentence="s")], lambda: "summary")
    assert not on_github.exists()
    assert capsys.readouterr() == ("", "")


def test_summaries_of_one_step_follow_each_other_up_to_the_limit(on_github: Path) -> None:
    tell_github([], lambda: "# one")
    tell_github([], lambda: "# two")
    assert on_github.read_text() == "# one\n\n# two\n\n"
    long = "# three\n\n```\n" + "ä line of an output\n" * 80_000 + "```\n"
    tell_github([], lambda: long)
    content = on_github.read_bytes()
    assert SUMMARY_BYTES_MAX - 100 < len(content) <= SUMMARY_BYTES_MAX
    text = content.decode()
    assert text.count("```") == 2
    assert text.endswith("the files have all of it.\n")
    tell_github([], lambda: "# four")
    assert len(on_github.read_bytes()) <= SUMMARY_BYTES_MAX


def test_a_summary_that_cannot_be_written_costs_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path))
    tell_github([], lambda: "summary")


def test_runs_of_a_night_do_not_speak_for_it() -> None:
    kept = unannounced({"GITHUB_ACTIONS": "true", "GITHUB_STEP_SUMMARY": "f", "PATH": "p"})
    assert kept == {"PATH": "p"}


def test_commands_tell_of_a_run_and_of_a_gate_and_json_stays_json(
    tmp_path: Path,
    on_github: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    root = tmp_path / "runs" / "test" / "stale"
    root.mkdir(parents=True)
    SyntheticRun(root, flaw="stale-read", operations_per_second=40).write()
    policy = tmp_path / "gate.toml"
    policy.write_text('schema = 1\nrequire = ["violations == 0", "runs_valid >= 1"]\n')
    assert splitbrain(["check", str(root), "--json", "--no-analyze"]) == 1
    out, err = capsys.readouterr()
    assert json.loads(out)["verdict"] == "invalid"
    assert [read(line)[1]["title"] for line in err.splitlines() if line.startswith("::")] == [
        "stale read: kraft-register, seed 7"
    ]
    assert on_github.read_text().startswith("# INVALID")
    on_github.unlink()
    monkeypatch.syspath_prepend(fake_spark(tmp_path, ""))
    assert splitbrain(["analyze", str(root)]) == 1
    assert "::error title=stale read" in capsys.readouterr().err
    assert on_github.read_text().startswith("# INVALID")
    words = ["gate", str(tmp_path / "runs"), "--policy", str(policy), "--baseline", "none"]
    assert splitbrain([*words, "--output", str(tmp_path / "gate"), "--json"]) == 1
    out, err = capsys.readouterr()
    assert json.loads(out)["verdict"] == "red"
    titles = [read(line)[1]["title"] for line in err.splitlines() if line.startswith("::")]
    assert titles[0] == "stale read: test/stale"
    assert titles[1:] == ["gate: violations == 0", "gate: runs_valid >= 1"]
    assert "RED" in on_github.read_text()


def test_a_sweep_tells_of_each_kind_of_failure(
    tmp_path: Path, on_github: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["sim", "--seed", "1", "--bug", "prior-epoch-commit", "--keep", "0"]
    assert splitbrain([*words, "--runs-folder", str(tmp_path)]) == 1
    (line,) = [line for line in capsys.readouterr().err.splitlines() if line.startswith("::")]
    _, properties, data = read(line)
    assert properties["title"] == "INV-09: 1 seed, the first is 1"
    assert "\nReproduce: splitbrain sim --seed 1 --bug prior-epoch-commit --made-by" in data
    assert on_github.read_text().startswith("# FAILED: 1 of 1 seed failed.")
