"""``splitbrain sim`` and ``splitbrain replay`` as a user calls them, with the real nodes."""

import re
from pathlib import Path

import pytest

from splitbrain.harness.cli import main as cli
from splitbrain.history.run_folder import RunFolder
from tests.unit.harness.small_worlds import QUICK_BUG


def test_a_failing_sweep_leaves_folders_that_replay_to_the_same_failure(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runs = ["--runs-folder", str(tmp_path)]
    code = cli.run(["sim", "--seeds", "2:4", "--bug", QUICK_BUG, "--trace-hash", *runs])
    said = capsys.readouterr().out
    assert code == 1
    hashes = dict(line.split() for line in said.splitlines()[-2:])
    assert list(hashes) == ["2", "3"]
    folders = sorted(set(re.findall(r"splitbrain replay (\S+-[23])$", said, re.MULTILINE)))
    assert len(folders) == 2
    # Violations of one invariant are explained once.
    (explaining,) = re.findall(r"`splitbrain (explain INV-\d+)`", said)
    assert cli.run(explaining.split()) == 0
    capsys.readouterr()
    for folder in folders:
        assert RunFolder(Path(folder)).timeline.is_file()
        assert cli.run(["replay", folder]) == 1
        again = capsys.readouterr().out
        assert again.startswith("failed again in step ")
        assert f"same trace ({hashes[folder[-1]]})" in again


def test_seeds_stand_for_other_worlds_with_another_state_machine(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["sim", "--seeds", "2:3", "--trace-hash", "--runs-folder", str(tmp_path)]
    hashes: list[str] = []
    for more in ([], ["--state-machine", "registers"], ["--state-machine", "metadata"]):
        assert cli.run([*words, *more]) == 0
        said = capsys.readouterr().out
        hashes.append(said.splitlines()[-1].split()[1])
        assert ("seed 2, metadata, 1 process" in said) == ("metadata" in more)
    assert hashes[0] == hashes[1] != hashes[2]


def test_a_time_limit_needs_no_seeds_and_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.run(["sim", "--time-limit", "1ms", "--runs-folder", str(tmp_path)]) == 2
    said = capsys.readouterr().out
    assert said.startswith("splitbrain sim kraft, seeds 0 to 999999, ")
    assert "Not one seed was tried. The time limit of 0.001 s ended the sweep: 1,000,000" in said


def test_a_state_machine_that_is_not_there_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["sim", "--seeds", "2:3", "--state-machine", "abacus"]) == 64
    assert "no state machine 'abacus'" in capsys.readouterr().err
