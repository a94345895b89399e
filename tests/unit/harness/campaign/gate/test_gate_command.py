"""``splitbrain gate`` from the command line to the exit code, on run folders and ledgers."""

import datetime as dt
import json
import subprocess

import pytest

from splitbrain.harness.campaign.gate import gating
from splitbrain.harness.campaign.gate.gating import FIRST
from splitbrain.history import spark_extra
from tests.unit.harness.campaign.gate.gate_place import STALE_READ, TODAY, Place
from tests.unit.harness.campaign.gate.gate_runs import VALID, write_run
from tests.unit.harness.report.test_sarif import assert_sarif


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
    assert "400 ms after 300 ms, 33.3 % worse" in text
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


def test_the_last_gate_is_the_baseline_and_a_first_one_says_that_it_has_none(place: Place) -> None:
    place.demand("violations == 0", "failures_new == 0", "runs_valid >= 1")
    out = place.root / "out"

    def gated(runs: str) -> tuple[int, str]:
        return place.gate(runs, "--baseline", "last", "--output", str(out))

    good = place.runs("good")
    # The second time the answer in the folder is about these very runs.
    for _ in range(2):
        code, text = gated(good)
        assert code == 0
        assert FIRST in text
    code, text = gated(place.runs("good", "bad"))
    assert code == 1
    assert "failures_new == 0  Violated" in text
    assert FIRST not in text
    # Found red before: known, and still red by itself.
    _, text = gated(place.runs("bad", "fine"))
    assert "failures_new == 0  Met" in text


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
    sarif = assert_sarif(json.loads((out / "gate.sarif").read_bytes()))
    (result,) = sarif["results"]
    assert result["partialFingerprints"]["splitbrainFingerprint/v2"] == STALE_READ
    assert sarif["automationDetails"]["id"] == f"splitbrain/gate/{record['tier']}/"


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


def test_the_self_test_looks_at_the_policy_alone(place: Place) -> None:
    code, text = place.gate("--self-test")
    assert code == 0
    assert "2 thresholds in 1 tier: each can fail alone." in text
    place.demand("runs >= 0")
    code, text = place.gate("--self-test", "--json")
    assert code == 1
    assert [one["can_fail"] for one in json.loads(text)] == [True, False]
