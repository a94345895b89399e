"""A whole night in containers: the planted bug is seen, the correct quorum is green."""

from pathlib import Path

import pytest

from splitbrain.harness.campaign.suite.ledger import Ledger, NightEnded, RunEnded
from tests.containers.real_runs import ran

pytestmark = [pytest.mark.containers, pytest.mark.timeout(400)]

SUITE = """
name = "tiny"

[[matrix]]
name = "correct"
system = "kraft"
nemesis = "leader-pause"
time_limit = 12

[[matrix]]
name = "planted"
system = "kraft"
nemesis = "isolate-leader"
bug = "stale-leader-reads"
time_limit = 15
expect = "invalid"
caught_by = ["linearizability"]
"""


def test_a_tiny_night_sees_its_planted_bug_and_finds_the_quorum_correct(tmp_path: Path) -> None:
    (tmp_path / "tiny.toml").write_text(SUITE)
    code, output, errors = ran(
        "suite", str(tmp_path / "tiny.toml"), "--runs-folder", str(tmp_path / "runs")
    )
    assert code == 0, output + errors
    lines = Ledger(tmp_path / "runs" / "ledger.jsonl").lines()
    runs = {line.matrix: line for line in lines if isinstance(line, RunEnded)}
    assert isinstance(lines[-1], NightEnded)
    planted, correct = runs["planted"], runs["correct"]
    assert (planted.number, planted.verdict, planted.exit_code) == (1, "invalid", 1)
    assert (correct.verdict, correct.exit_code, correct.vacuous) == ("valid", 0, ())
    assert correct.commit is not None
    assert correct.system_versions
    # The violation's evidence is whole, the valid run's is down to what names it.
    assert (Path(str(planted.run_folder)) / "history.jsonl").is_file()
    assert {path.name for path in Path(str(correct.run_folder)).iterdir()} == {
        *("plan.json", "schedule.jsonl", "faults.jsonl"),
        *("results.json", "summary.md", "junit.xml"),
    }
