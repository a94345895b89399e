"""Files of a sweep: a clean one leaves them too, and a failed one what its CI server shows."""

import json
import shlex
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest

from splitbrain.harness.campaign.gate.gated_sweep import sweep_in
from splitbrain.harness.campaign.sweep import sweep_output
from splitbrain.harness.cli.main import run
from splitbrain.harness.folder.results import Results
from splitbrain.harness.folder.tool_version import this_tool
from splitbrain.history.reproduce_line import maker_words
from tests.unit.harness.campaign.sweep.test_limited_sweeps import timed
from tests.unit.harness.campaign.sweep.test_sweep import order, swept
from tests.unit.harness.report.test_sarif import assert_sarif
from tests.unit.harness.small_results import results_with


@pytest.fixture
def judged_folders(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Folders that were judged; none of them is there."""
    folders: list[Path] = []

    def judge(root: Path, *, analyze: bool) -> Results:
        assert not analyze
        folders.append(root)
        return results_with()

    monkeypatch.setattr(sweep_output, "judge_and_publish", judge)
    return folders


def files_of(folder: Path) -> tuple[dict[str, Any], ET.Element, str]:
    answer = json.loads((folder / "sweep.json").read_bytes())
    return answer, ET.parse(folder / "junit.xml").getroot(), (folder / "summary.md").read_text()


def cases(suite: ET.Element) -> dict[str, str]:
    """Names of the cases, each with the tag of its trouble; empty where it passes."""
    return {
        str(case.get("name")): next((trouble.tag for trouble in case), "")
        for case in suite.iter("testcase")
    }


def test_a_clean_sweep_leaves_its_files(tmp_path: Path, judged_folders: list[Path]) -> None:
    code, said = swept(order(50, output=tmp_path))
    assert code == 0
    answer, suite, summary = files_of(tmp_path)
    assert (answer["exit_code"], answer["done"], answer["failures"]) == (0, 50, [])
    assert cases(suite) == {"seeds without a failure": "", "harness": ""}
    assert summary.startswith("# CLEAN: no alarm in 50 seeds")
    # The same words as on the terminal.
    assert "50 of 50" in said
    assert "50 of 50" in summary
    assert judged_folders == []
    sarif = assert_sarif(json.loads((tmp_path / "results.sarif").read_bytes()))
    # An upload of it closes the alerts of sweeps before.
    assert (sarif["results"], sarif["automationDetails"]["id"]) == ([], "splitbrain/sweep/kraft/")


def test_each_kind_of_failure_is_a_case_with_the_lines_that_make_it_again(
    tmp_path: Path, judged_folders: list[Path]
) -> None:
    ways = {2: "fails", 4: "strays", 7: "fails", 8: "puzzles"}
    code, said = swept(order(9, ways, keep=2, bugs=("some-bug",), output=tmp_path))
    assert code == 1
    answer, suite, summary = files_of(tmp_path)
    assert [failed["seed"] for failed in answer["failures"]] == [2, 4, 7]
    found = cases(suite)
    assert found.pop("seeds without a failure") == found.pop("harness") == ""
    assert found == {"INV-01, seed 2": "failure", "INV-01, seed 4": "failure"}
    (failure, _) = suite.iter("failure")
    assert failure.get("message") == "Two leaders."
    assert failure.text is not None
    assert failure.text.startswith("Seeds 2, 7\n")
    assert (
        f"splitbrain sim --seed 7 --bug some-bug {shlex.join(maker_words(this_tool()))}"
        in failure.text
    )
    assert "FAILED" in summary.splitlines()[0]
    # A failure that was kept has its report.
    assert judged_folders == [Path("/runs/2"), Path("/runs/4")]
    assert said.index("judging the failures") < said.index("Summary")
    sarif = assert_sarif(json.loads((tmp_path / "results.sarif").read_bytes()))
    # Two kinds of one invariant: one rule, a result for each.
    assert [rule["id"] for rule in sarif["tool"]["driver"]["rules"]] == ["INV-01"]
    assert [result["occurrenceCount"] for result in sarif["results"]] == [2, 1]
    assert "splitbrain sim --seed 2 --bug some-bug" in sarif["results"][0]["message"]["text"]


@pytest.mark.parametrize(
    ("ways", "case", "code"),
    [
        ({3: "puzzles"}, "seeds without a failure", 2),
        ({3: "crashes"}, "harness", 3),
        (dict.fromkeys(range(9), "changes"), "harness", 3),
    ],
)
@pytest.mark.usefixtures("judged_folders")
def test_a_sweep_that_proves_nothing_is_no_passed_one(
    ways: dict[int, str], case: str, code: int, tmp_path: Path
) -> None:
    assert swept(order(9, ways, check_share=1.0, output=tmp_path))[0] == code
    answer, suite, _ = files_of(tmp_path)
    assert answer["exit_code"] == code
    assert [name for name, trouble in cases(suite).items() if trouble] == [case]


@pytest.mark.parametrize(("limit_s", "tried", "code"), [(5.0, 4, 0), (0.5, 0, 2)])
def test_the_files_of_a_sweep_that_its_time_limit_ends_add_up(
    limit_s: float, tried: int, code: int, tmp_path: Path
) -> None:
    assert timed(order(9, output=tmp_path, time_limit_s=limit_s))[0] == code
    answer, suite, summary = files_of(tmp_path)
    assert (answer["exit_code"], answer["done"], answer["not_run"]) == (code, tried, 9 - tried)
    assert answer["out_of_time"]
    told = f"{9 - tried} not run (--seeds {tried}:9)."
    assert summary.splitlines()[0].endswith(f"ended the sweep: {told}")
    (not_run,) = (each for each in suite.iter("property") if each.get("name") == "not_run")
    assert not_run.get("value") == str(9 - tried)
    assert cases(suite) == {"seeds without a failure": "error" if code else "", "harness": ""}
    sweep = sweep_in(tmp_path)
    assert (sweep.problem, sweep.not_run) == (None, 9 - tried)


def test_seeds_of_other_worlds_have_no_line_and_are_counted(tmp_path: Path) -> None:
    swept(order(9, dict.fromkeys([0, 3], "skips"), world="codec", output=tmp_path))
    answer, _, _ = files_of(tmp_path)
    assert (answer["world"], answer["skipped"], answer["done"]) == ("codec", 2, 7)
    assert answer["not_run"] == 0
    lines = [json.loads(line) for line in (tmp_path / "seeds.jsonl").read_text().splitlines()]
    assert (lines[0]["world"], lines[0]["planned"]) == ("codec", 9)
    assert [line["seed"] for line in lines[1:]] == [1, 2, 4, 5, 6, 7, 8]


def test_a_folder_that_cannot_be_is_told_before_anything_is_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    words = ["sim", "--seeds", "0:1000000", "--output", str(tmp_path / "file" / "x")]
    assert run(words) == 3
    said = capsys.readouterr()
    assert "could not make the folder of --output" in said.err
    assert "choose another folder with --output" in said.err
    assert said.out == ""


def test_a_folder_of_earlier_files_gets_the_new_ones(
    tmp_path: Path, judged_folders: list[Path]
) -> None:
    swept(order(9, {4: "fails"}, output=tmp_path))
    swept(order(9, output=tmp_path))
    answer, suite, summary = files_of(tmp_path)
    assert answer["failures"] == []
    assert list(suite.iter("failure")) == []
    assert summary.startswith("# CLEAN")
    assert judged_folders == [Path("/runs/4")]
