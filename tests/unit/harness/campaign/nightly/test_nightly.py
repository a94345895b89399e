"""Nights from the suite to the gate, and nightly files that are refused with the line."""

import re
import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from splitbrain.contracts.errors import UsageError
from splitbrain.harness.campaign.gate.gating import FIRST
from splitbrain.harness.campaign.gate.record import decode_record
from splitbrain.harness.campaign.nightly import definition
from splitbrain.harness.campaign.nightly.definition import read_nightly
from splitbrain.harness.campaign.nightly.record import STEPS, NightlyRecord, Nights, StepEnded
from splitbrain.harness.campaign.nightly.steps import Steps
from splitbrain.harness.cli.main import run as splitbrain
from splitbrain.spark_analysis.lake.store import LocalStore
from tests.lake_runs import rows_of
from tests.unit.harness.campaign.nightly.fake_nightly import Nightly, gate_in_process
from tests.unit.harness.campaign.suite.fake_nights import does, matrix

CANARY = matrix("canary", seeds=[1], setting=does("invalid"), expect="invalid")
MISSED = matrix("canary", seeds=[1], setting=does("valid"), expect="invalid")


class CrashedError(Exception):
    """The process died here."""


@pytest.fixture
def nightly(tmp_path: Path) -> Nightly:
    made = Nightly(tmp_path)
    made.suites.write(CANARY, matrix("good", seeds=[2, 3], setting=made.sets("valid")))
    made.write()
    return made


def test_a_night_runs_ingests_gates_and_makes_room(
    nightly: Nightly, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Looking at all runs needs Spark: tests/spark has it.
    monkeypatch.setattr(Steps, "_analyze", lambda *_: (0, None))
    assert nightly.run(fake=False) == 0, nightly.output
    assert "the gate is green" in nightly.output
    # Steps take minutes: whoever looks on is told which one it is.
    told = [line for line in nightly.output.splitlines() if line.startswith("Step ")]
    for n, (step, line) in enumerate(zip(STEPS, told, strict=True), start=1):
        assert re.fullmatch(rf"Step {n} of 4: {step}, at most .+", line)
    runs = {run.seed: run for run in nightly.suites.runs()}
    rows = rows_of(LocalStore(nightly.folder / "lake"), "runs")
    assert sorted(row["seed"] for row in rows) == [1, 2, 3]
    # Ingested before anything was thrown away.
    assert {row["state"] for row in rows if row["seed"] != 1}.isdisjoint({"pruned"})
    assert not (Path(str(runs[2].run_folder)) / "history.jsonl").exists()
    assert (Path(str(runs[1].run_folder)) / "history.jsonl").exists()
    (folder,) = nightly.folders()
    assert {path.name for path in folder.iterdir()} >= {"gate.json", "gate.xml", "gate.md"}


def test_a_canary_that_was_not_seen_makes_the_night_void(nightly: Nightly) -> None:
    nightly.suites.write(MISSED, matrix("good", seeds=[2], setting=does("valid")))
    assert nightly.run() == 3
    assert "VOID: a canary was not found" in nightly.output


def test_the_last_night_that_was_not_void_is_the_baseline_of_the_next(
    nightly: Nightly, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Steps, "_command", gate_in_process)
    good = matrix("good", seeds=[2, 3], setting=nightly.sets("valid"))
    for canary, code in ((CANARY, 0), (MISSED, 3), (CANARY, 0)):
        nightly.suites.write(canary, good)
        assert nightly.run() == code, nightly.output
    first, void, third = (decode_record(path.read_bytes()) for path in nightly.gates())
    assert [first.baseline, void.baseline] == [None, str(nightly.gates()[0])]
    assert third.baseline == void.baseline
    assert FIRST in first.notes
    assert FIRST not in third.notes


def test_a_machine_that_has_what_the_templates_keep_compares_with_the_night_before(
    nightly: Nightly, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Steps, "_command", gate_in_process)
    with monkeypatch.context() as earlier:
        day = datetime(2026, 1, 1, tzinfo=UTC)
        earlier.setattr("splitbrain.harness.campaign.suite.night.now", lambda: day)
        assert nightly.run() == 0
    # The next job of a CI server begins without the runs of the last one, and on another day.
    shutil.rmtree(nightly.folder / "suites")
    assert nightly.run(fresh=True) == 0, nightly.output
    first, second = nightly.gates()
    assert decode_record(second.read_bytes()).baseline == str(first)


def test_a_void_night_is_void_with_the_real_gate_too(
    nightly: Nightly, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every gate is red where a canary was missed; that is no violation."""
    monkeypatch.setattr(Steps, "_analyze", lambda *_: (0, None))
    nightly.suites.write(MISSED, matrix("good", seeds=[2, 3], setting=nightly.sets("valid")))
    assert nightly.run(fake=False) == 3, nightly.output
    (folder,) = nightly.folders()
    assert "canaries\\_missed == 0 is violated" in (folder / "gate.md").read_text()
    assert "VOID: a canary was not found" in nightly.output.splitlines()[-1]
    # The runs to be looked into are there.
    runs = {run.seed: Path(str(run.run_folder)) for run in nightly.suites.runs()}
    assert (runs[1] / "history.jsonl").exists()
    assert not (runs[2] / "history.jsonl").exists()


def test_a_violation_that_the_gate_saw_wins_over_a_void_night(nightly: Nightly) -> None:
    nightly.suites.write(MISSED, matrix("bad", seeds=[2], setting=does("invalid")))
    nightly.ends_with("gate", 1)
    assert nightly.run() == 1
    assert "the gate is red. VOID: a canary was not found" in nightly.output


def test_what_the_policy_spares_is_spared(nightly: Nightly) -> None:
    nightly.suites.write(CANARY, matrix("bad", seeds=[2], setting=does("invalid")))
    assert nightly.run() == 0
    assert "spared by the policy" in nightly.output


@pytest.mark.parametrize(
    ("command", "code", "expected"),
    [("gate", 2, 2), ("gate", 3, 3), ("gate", 64, 3), ("ingest", 3, 3)],
)
def test_steps_that_fail_are_the_night_s_answer(
    nightly: Nightly, command: str, code: int, expected: int
) -> None:
    nightly.ends_with(command, code)
    assert nightly.run() == expected
    if command == "ingest":
        # A run that the lake does not have is kept.
        assert all(
            (Path(str(run.run_folder)) / "history.jsonl").exists() for run in nightly.suites.runs()
        )


def test_a_violation_counts_where_the_gate_did_not_answer(nightly: Nightly) -> None:
    nightly.suites.write(CANARY, matrix("bad", seeds=[2], setting=does("invalid")))
    nightly.ends_with("gate", 3)
    assert nightly.run() == 1


def test_a_step_ends_when_its_time_is_up(nightly: Nightly, monkeypatch: pytest.MonkeyPatch) -> None:
    # The suite itself is not hurried.
    monkeypatch.setattr(definition.Nightly, "suite_s", property(lambda _: 3600.0))
    nightly.write(time_budget="9s", analysis_budget="8s")
    nightly.takes("gate", 60)
    assert nightly.run() == 2
    assert "gate: it was stopped after" in nightly.output


def test_what_follows_the_suite_has_the_time_that_it_left(nightly: Nightly) -> None:
    nightly.write(time_budget="10m", analysis_budget="0.5s")
    nightly.takes("gate", 3)
    assert nightly.run() == 0, nightly.output


def test_a_night_that_dies_anywhere_goes_on(
    nightly: Nightly, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = Nights.write
    for fatal in range(1, 10):
        for dies_before in (True, False):
            write = _dying(real, fatal, dies_before=dies_before)
            monkeypatch.setattr(Nights, "write", write)
            nights_before = len(nightly.suites.nights())
            runs_before = len(nightly.suites.runs())
            steps_before = len(nightly.steps())
            try:
                code = nightly.run()
            except CrashedError:
                monkeypatch.setattr(Nights, "write", real)
                code = nightly.run()
            else:
                # There are not so many writes: every death was tried.
                assert fatal == len(STEPS) + 4
                return
            assert code == 0, nightly.output
            done = nightly.steps()[steps_before:]
            assert set(done) == {"ingest", "analyze", "gate"}
            # Nothing of the suite is done twice. Dead after the last write, it was over.
            nights = 2 if (fatal == len(STEPS) + 3 and not dies_before) else 1
            assert len(done) <= 3 * nights + 1, "one step is done again at most"
            assert len(nightly.suites.nights()) - nights_before == nights
            assert len(nightly.suites.runs()) - runs_before == 3 * nights
            if nights == 2:
                return


def _dying(real: Any, fatal: int, *, dies_before: bool) -> Any:
    count = 0

    def write(nights: Nights, record: NightlyRecord) -> None:
        nonlocal count
        count += 1
        if count == fatal and dies_before:
            raise CrashedError
        real(nights, record)
        if count == fatal:
            raise CrashedError

    return write


def test_a_night_whose_suite_was_cut_off_is_not_gated(
    nightly: Nightly, monkeypatch: pytest.MonkeyPatch
) -> None:
    nightly.suites.write(CANARY, matrix("good", seeds=[2], setting=nightly.sets("set-up-fails")))
    carried: list[str] = []

    def carry_out(_self: Steps, step: str, _record: NightlyRecord) -> StepEnded:
        carried.append(step)
        return StepEnded(0, 0.0)

    monkeypatch.setattr(Steps, "carry_out", carry_out)
    assert nightly.run() == 0
    assert carried == list(STEPS)
    assert nightly.suites.verdicts() == ["invalid", "failed"]


SUITE = """
name = "unit"
[[matrix]]
name = "planted"
bug = "stale-leader-reads"
expect = "invalid"
"""
GOOD = """schema = 1
suite = "suite.toml"
policy = "gate.toml"
time_budget = "1h"
"""
SMALL = GOOD + 'tier = "small"\n'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "suite.toml").write_text(SUITE)
    (tmp_path / "gate.toml").write_text(
        'schema = 1\n[tier.small]\nrequire = ["runs >= 1"]\n[tier.big]\nrequire = ["runs >= 9"]\n'
    )
    return tmp_path


def test_paths_are_those_beside_the_file(folder: Path) -> None:
    path = folder / "night.toml"
    path.write_text(SMALL + 'lake = "here"\nbaseline = "gate.toml"\n')
    nightly = read_nightly(path)
    assert nightly.lake == str(folder / "here")
    assert nightly.baseline == str(folder / "gate.toml")


@pytest.mark.parametrize(
    ("budget", "suite_s", "analysis_s"),
    [("8h", 25_920, 2_880), ("1h", 3_000, 600), ("30m", 1_200, 600), ("4m", 120, 120)],
)
def test_one_budget_divides_itself(
    folder: Path, budget: str, suite_s: float, analysis_s: float
) -> None:
    """Spark needs minutes of a small night too, which a tenth is not."""
    path = folder / "night.toml"
    path.write_text(SMALL)
    nightly = read_nightly(path, budget)
    assert (nightly.suite_s, nightly.analysis_s) == (suite_s, analysis_s)


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("", "it says no schema"),
        ("schema = 2\n", "line 1: it has schema 2"),
        (GOOD, "has several tiers"),
        (GOOD + 'tier = "smal"\n', "has no tier 'smal'. Did you mean 'small'?"),
        (SMALL + "time_buget = 5\n", "line 6: there is no key 'time_buget'. Did you mean 'time_"),
        (SMALL + "[canary]\nx = 1\n", "line 6: there is no key 'canary'"),
        (GOOD + "tier = 5\n", "line 5: tier 5 is no text"),
        (SMALL + 'webhook_env = "https://x/s3cret"\n', "line 6: webhook_env is not the name of an"),
        (SMALL + "keep_valid = 1\n", "line 6: keep_valid 1 is neither"),
        (SMALL + 'analysis_budget = "2h"\n', "line 6: analysis_budget '2h' leaves the suite no"),
        (SMALL.replace("1h", "soon"), "line 4: 'soon' is no time"),
        (SMALL.replace('"1h"', "true"), "line 4: time_budget True is no time"),
        (GOOD.replace('time_budget = "1h"', 'tier = "small"'), "it names no time_budget"),
        (GOOD.replace("suite.toml", "none.toml"), "none.toml"),
        ('schema = 1\npolicy = "gate.toml"\n', "it names no suite"),
        ("schema = ", "is no TOML"),
    ],
)
def test_wrong_files_are_refused(folder: Path, content: str, told: str) -> None:
    path = folder / "night.toml"
    path.write_text(content)
    with pytest.raises(UsageError) as refused:
        read_nightly(path)
    assert told in str(refused.value)
    assert "s3cret" not in str(refused.value)


def test_a_suite_without_a_canary_is_refused(folder: Path) -> None:
    (folder / "suite.toml").write_text('name = "unit"\n[[matrix]]\nname = "correct"\n')
    path = folder / "night.toml"
    path.write_text(SMALL)
    with pytest.raises(UsageError, match=r"line 2: the suite 'unit' has no canary"):
        read_nightly(path)


def test_the_command_line_says_it_in_one_sentence(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert splitbrain(["nightly", str(folder / "missing.toml")]) == 64
    assert "cannot be read" in capsys.readouterr().err


def test_a_night_whose_cells_cannot_be_run_leaves_nothing(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wrong = SUITE.replace("[[matrix]]", '[[matrix]]\nnemesis = "kil"', 1)
    (folder / "suite.toml").write_text(wrong)
    (folder / "night.toml").write_text(SMALL)
    runs = folder / "runs"
    assert splitbrain(["nightly", str(folder / "night.toml"), "--runs-folder", str(runs)]) == 64
    assert "Did you mean 'kill'?" in capsys.readouterr().err
    assert not runs.exists()


def test_a_budget_in_which_no_canary_fits_is_refused_but_for_a_night_that_goes_on(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "night.toml").write_text(SMALL)
    runs = folder / "runs"
    command = ["nightly", str(folder / "night.toml"), "--runs-folder", str(runs)]
    assert splitbrain([*command, "--time-budget", "1m"]) == 64
    told = " ".join(capsys.readouterr().err.split())
    assert "time budget of 60 s the suite has 30 s, and its shortest canary takes 60 s" in told
    assert not runs.exists()
    # One that has begun may have its canaries behind it.
    nights = Nights(runs / "nightly" / "unit")
    nights.write(NightlyRecord(digest="", before=None))
    with nights.locked():
        assert splitbrain([*command, "--time-budget", "1m"]) == 3
    assert "another process does" in capsys.readouterr().err


def test_the_shipped_nights_can_be_run_by_this_version() -> None:
    nights = sorted((Path(__file__).parents[5] / "bench" / "nights").glob("*.toml"))
    assert nights
    for path in nights:
        assert read_nightly(path).suite.suite.name == path.stem
