"""``splitbrain gate`` from the command line to the exit code, on run folders and ledgers."""

import datetime as dt
import json
import subprocess
from pathlib import Path

import pytest

from splitbrain.harness.campaign.gate import gating
from splitbrain.harness.campaign.suite.ledger import (
    Ledger,
    Line,
    NightBegan,
    NightEnded,
    PlannedCell,
)
from splitbrain.harness.cli.main import run as splitbrain
from splitbrain.history import spark_extra
from tests.unit.harness.campaign.gate.gate_place import STALE_READ, Place
from tests.unit.harness.campaign.gate.gate_runs import VALID, write_run
from tests.unit.harness.campaign.suite.ended_runs import ended_run

TODAY = dt.datetime.now(dt.UTC).date()


@pytest.fixture
def place(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Place:
    return Place(tmp_path, capsys)


def test_correct_runs_are_green_without_spark(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(*_: object, **__: object) -> None:
        raise AssertionError("no JVM is needed for verdicts")

    monkeypatch.setattr(gating, "ask_spark", never)
    code, text = place.gate(place.runs("good", "fine"))
    assert code == 0
    assert "GREEN" in text.splitlines()[-1]


def test_a_violation_is_red_with_its_fingerprint_and_how_to_see_it_again(place: Place) -> None:
    code, text = place.gate(place.runs("good", "bad"))
    assert code == 1
    assert STALE_READ in text
    assert "splitbrain test --seed 2" in text
    assert "RED  violations == 0 is violated" in text


def test_a_quarantine_spares_expires_and_is_told_when_it_met_nothing(place: Place) -> None:
    runs = place.runs("good", "bad")
    place.demand("violations == 0", more=place.quarantine(TODAY))
    code, text = place.gate(runs)
    assert code == 0
    assert f"quarantined until {TODAY}" in text
    yesterday = TODAY - dt.timedelta(days=1)
    place.demand("violations == 0", more=place.quarantine(yesterday))
    code, text = place.gate(runs)
    assert code == 1
    assert f"quarantine expired on {yesterday}" in text
    place.demand("violations == 0", more=place.quarantine(TODAY, "f1-000000000000"))
    code, text = place.gate(runs)
    assert code == 1
    assert "The quarantine of f1-000000000000 met nothing" in text


def test_a_figure_without_data_is_unknown_and_never_green(place: Place) -> None:
    place.demand("violations == 0", "violations{system=redis} == 0")
    code, text = place.gate(place.runs("good"))
    assert code == 2
    assert "Nothing can be said of violations{system=redis} == 0: there is no such run" in text


def test_no_runs_and_no_valid_runs_are_not_green(place: Place) -> None:
    place.demand("violations == 0")
    empty = place.root / "empty"
    empty.mkdir()
    assert place.gate(str(empty))[0] == 2
    write_run(place.root / "hollow" / "kraft" / "a", VALID, vacuous=("Nothing bit.",))
    code, text = place.gate(str(place.root / "hollow"))
    assert code == 2
    assert "none is valid" in text


def test_what_nobody_has_judged_is_told_and_not_green(place: Place) -> None:
    place.demand("violations == 0")
    write_run(place.root / "runs" / "kraft" / "a", VALID)
    write_run(place.root / "runs" / "kraft" / "b", judged=False)
    code, text = place.gate(str(place.root / "runs"))
    assert code == 2
    assert "splitbrain check" in text


def test_new_and_known_and_resolved_are_told_from_a_folder_of_runs(place: Place) -> None:
    place.demand("violations <= 9", "failures_new == 0")
    bad, good = place.runs("good", "bad"), place.runs("well")
    code, text = place.gate(bad, "--baseline", good)
    assert code == 1
    assert "new" in text
    code, text = place.gate(bad, "--baseline", bad)
    assert code == 0
    assert "known" in text
    code, text = place.gate(good, "--baseline", bad)
    assert code == 0
    assert f"{STALE_READ} was not met again" in text


def test_a_regression_is_red_against_the_json_of_an_earlier_gate(place: Place) -> None:
    place.demand("regression(unavailability_max_ms) < 10%", "violations == 0")
    before, after = place.root / "before", place.root / "after"
    write_run(before / "kraft" / "a", VALID, longest_unavailability_ms=300)
    write_run(after / "kraft" / "a", VALID, longest_unavailability_ms=400)
    out = place.root / "out"
    assert place.gate(str(before), "--baseline", "none", "--output", str(out))[0] == 0
    code, text = place.gate(str(after), "--baseline", str(out / "gate.json"))
    assert code == 1
    assert "400 ms after 300 ms, +33.3 % for the worse" in text
    assert place.gate(str(before), "--baseline", str(out / "gate.json"))[0] == 0
    code, text = place.gate(str(after))
    assert code == 2
    assert "name one with --baseline" in text


def test_what_was_not_compared_is_not_called_met(place: Place) -> None:
    place.demand("violations == 0", "runs_valid >= 1", "failures_new == 0")
    good = place.runs("good")
    _, text = place.gate(good, "--baseline", "none")
    assert "2 thresholds are met by 1 run, and 1 is not compared." in text
    place.demand("violations == 0", "runs_valid >= 1")
    _, text = place.gate(good)
    assert "All 2 thresholds are met by 1 run." in text


def test_a_baseline_may_stand_in_git(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    runs = place.runs("good")
    out = place.root / "kept"
    place.gate(runs, "--output", str(out))
    monkeypatch.chdir(place.root)
    for words in (
        ["init", "-q", "-b", "main"],
        ["add", "kept/gate.json"],
        ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "kept"],
    ):
        subprocess.run(["git", *words], check=True)
    (out / "gate.json").unlink()
    place.demand("failures_new == 0")
    assert place.gate(runs, "--baseline", "main:kept/gate.json")[0] == 0
    code, text = place.gate(runs, "--baseline", "main:kept/other.json")
    assert code == 64
    assert "there is no baseline main:kept/other.json" in text


def test_all_files_are_written_and_say_the_same(place: Place) -> None:
    out = place.root / "out" / "deep"
    code, _ = place.gate(place.runs("good", "bad"), "--output", str(out))
    assert code == 1
    record = json.loads((out / "gate.json").read_text())
    assert (record["verdict"], record["exit_code"]) == ("red", 1)
    assert record["failures"][0]["fingerprint"] == STALE_READ
    assert "RED" in (out / "gate.md").read_text()
    assert "<testsuites" in (out / "gate.xml").read_text()


def test_json_on_the_terminal_is_one_object(place: Place) -> None:
    code, text = place.gate(place.runs("good"), "--json")
    assert code == 0
    assert json.loads(text)["verdict"] == "green"


def test_spark_that_fails_is_exit_code_3_unless_something_is_violated(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    failed = gating.Measures({}, ("There is no Java.",))
    monkeypatch.setattr(gating, "measure_with_spark", lambda *_: failed)
    place.demand("violations == 0", "latency_p99_ms < 1000")
    code, text = place.gate(place.runs("good"))
    assert code == 3
    assert "HARNESS FAILED  There is no Java." in text
    assert place.gate(place.runs("bad"))[0] == 1


def test_a_figure_of_spark_that_is_not_installed_is_unknown(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spark_extra, "_PACKAGES", ("no_package_of_this_name",))
    place.demand("violations == 0", "latency_p99_ms < 1000")
    code, text = place.gate(place.runs("good"))
    assert code == 2
    assert spark_extra.COMMAND in text
    # A violation convicts without it.
    assert place.gate(place.runs("bad"))[0] == 1


def ledger_of(place: Place, *lines: Line) -> Ledger:
    ledger = Ledger(place.root / "ledger.jsonl")
    for line in lines:
        ledger.append(line)
    return ledger


def began(night: str = "n2", *cells: PlannedCell) -> NightBegan:
    return NightBegan(suite="s", night=night, night_seed=1, digest="d", at="now", cells=cells)


def test_a_ledger_stands_for_its_last_night_and_canaries_count_apart(place: Place) -> None:
    lost = {"verdict": "invalid", "violated": ("set-full",)}
    ledger = ledger_of(
        place,
        began("n1"),
        ended_run(1, night="n1", sentence="Lost.", **lost),
        ended_run(2, night="n1", expect="invalid", **lost),
        NightEnded(suite="s", night="n1", at="now", reason="done"),
        began(),
        ended_run(1),
        ended_run(2, expect="invalid", **lost),
        NightEnded(suite="s", night="n2", at="now", reason="done"),
    )
    place.demand("violations == 0", "canaries_missed == 0", "runs_valid == 1")
    assert place.gate(str(ledger.path))[0] == 0
    code, text = place.gate(f"{ledger.path}@n1")
    assert code == 1
    assert "set-full, undescribed" in text
    code, text = place.gate(f"{ledger.path}@n3")
    assert code == 64
    assert "has no night 'n3'" in text
    ledger.append(ended_run(3, expect="invalid", as_expected=False))
    assert "canaries_missed == 0 is violated" in place.gate(str(ledger.path))[1]
    place.demand("violations == 0")
    code, text = place.gate(str(ledger.path))
    assert code == 1, "a night that misses a planted bug is void whatever the policy says"
    assert "(implied)" in text


def test_a_canary_is_missed_only_where_too_few_of_its_cell_were_found(place: Place) -> None:
    place.demand("violations == 0")
    for night, at_least, expected in (("n1", 1, 0), ("n2", 2, 1)):
        planted = {"night": night, "expect": "invalid"}
        ledger = ledger_of(
            place,
            began(night, PlannedCell("m", "c", 2, "invalid", at_least)),
            ended_run(1, night=night, cell="correct"),
            ended_run(2, **planted, verdict="invalid", violated=("set-full",)),
            ended_run(3, **planted, as_expected=False),
        )
        out = place.root / night
        code, text = place.gate(str(ledger.path), "--output", str(out))
        assert code == expected, text
        said = (out / "gate.md").read_text()
        assert ("expected violation missed" in said) == bool(expected)
        assert ("expected violation not shown" in said) == (not expected)
        assert "expected violation found" in said
    assert "RED  canaries_missed == 0 is violated" in text


def test_what_a_void_night_lacks_is_told_before_other_thresholds(place: Place) -> None:
    missed = ended_run(2, expect="invalid", as_expected=False)
    ledger = ledger_of(place, began(), ended_run(1), missed)
    place.demand("runs_valid >= 2")
    sentence = "RED  canaries_missed == 0 is violated: 1 (runs: 1); 1 threshold more."
    assert sentence in place.gate(str(ledger.path))[1]


def test_a_ledger_run_whose_folder_is_there_is_read_from_it_and_counts_once(place: Place) -> None:
    runs = place.runs("bad")
    folder = str(Path(runs) / "kraft" / "bad")
    line = ended_run(1, verdict="invalid", violated=("x",), run_folder=folder)
    ledger = ledger_of(place, began(), line)
    code, text = place.gate(str(ledger.path), runs)
    assert code == 1
    assert STALE_READ in text
    assert "violations == 0  Violated: 1 (runs: 1)" in text


def test_a_lake_says_what_its_runs_folders_say(place: Place) -> None:
    runs = place.runs("good", "fine", "bad")
    lake = str(place.root / "lake")
    assert splitbrain(["ingest", runs, "--lake", lake]) == 0
    place.capsys.readouterr()
    place.demand("violations == 0", "runs_valid >= 2", "lost_commits == 0")
    told = [json.loads(place.gate(source, "--json")[1]) for source in (runs, lake)]
    by_folder, by_lake = told
    assert by_lake["exit_code"] == by_folder["exit_code"] == 1
    assert by_lake["thresholds"] == by_folder["thresholds"]
    for failure in (by_folder["failures"][0], by_lake["failures"][0]):
        assert failure["fingerprint"] == STALE_READ
        assert "--seed 3" in failure["cases"][0]["reproduce"]
    place.demand("unavailability_max_ms < 1000", "elections < 1000")
    by_folder, by_lake = (json.loads(place.gate(one, "--json")[1]) for one in (runs, lake))
    assert by_lake["thresholds"] == by_folder["thresholds"]
    assert by_lake["exit_code"] == 1, "the implied threshold on violations"
    assert "no run tells" not in json.dumps(by_lake)


def test_a_lake_below_the_runs_is_no_run_and_a_baseline_may_be_one(place: Place) -> None:
    runs = place.runs("good", "bad")
    lake = f"{runs}/lake"
    assert splitbrain(["ingest", runs, "--lake", lake]) == 0
    place.demand("runs == 2", "violations <= 1", "failures_new == 0")
    assert place.gate(runs, "--baseline", lake)[0] == 0


def test_the_self_test_looks_at_the_policy_alone(place: Place) -> None:
    code, text = place.gate("--self-test")
    assert code == 0
    assert "2 thresholds in 1 tier: each can fail alone." in text
    place.demand("runs >= 0")
    code, text = place.gate("--self-test", "--json")
    assert code == 1
    assert [one["can_fail"] for one in json.loads(text)] == [True, False]
