"""``splitbrain gate`` on nights: ledgers, canaries, lakes, and the last night as the baseline."""

import json
from pathlib import Path

from splitbrain.harness.campaign.suite.ledger import (
    Ledger,
    Line,
    NightBegan,
    NightEnded,
    PlannedCell,
)
from splitbrain.harness.cli.main import run as splitbrain
from tests.unit.harness.campaign.gate.gate_place import STALE_READ, Place
from tests.unit.harness.campaign.gate.gate_runs import VALID, stale_read, write_run
from tests.unit.harness.campaign.suite.ended_runs import ended_run


def test_the_last_night_is_found_beside_a_ledger_or_a_folder_of_runs(place: Place) -> None:
    place.demand("violations == 0", "runs_valid == 1")
    runs = place.root / "runs"
    ledger = Ledger(runs / "ledger.jsonl")
    for night in ("20260101T000000Z", "20260102T000000Z", "20260103T000000Z"):
        cell = PlannedCell("a", "a", 1, "valid", 0)
        ledger.append(
            NightBegan(suite="s", night=night, night_seed=1, digest="d", at=night, cells=(cell,))
        )
        ledger.append(ended_run(1, suite="s", night=night, matrix="a", cell="a"))
        ledger.append(NightEnded(suite="s", night=night, at=night, reason="done"))

    def baseline_of(source: str) -> str | None:
        out = place.root / "elsewhere"
        place.gate(source, "--baseline", "last", "--output", str(out))
        found = json.loads((out / "gate.json").read_text())["baseline"]
        (out / "gate.json").unlink()
        return found

    # Nobody has gated them: their runs are measured.
    assert baseline_of(str(ledger.path)) == f"{ledger.path}@20260102T000000Z"
    assert baseline_of(f"{ledger.path}@20260101T000000Z") is None
    answers = runs / "nightly" / "s"
    for night in ("20260101T000000Z", "20260102T000000Z"):
        place.gate(f"{ledger.path}@{night}", "--output", str(answers / night))
    assert baseline_of(str(ledger.path)) == str(answers / "20260102T000000Z" / "gate.json")
    of_second = baseline_of(f"{ledger.path}@20260102T000000Z")
    assert of_second == str(answers / "20260101T000000Z" / "gate.json")
    write_run(runs / "kraft" / "good", VALID)
    assert baseline_of(str(runs / "kraft")) == str(answers / "20260102T000000Z" / "gate.json")
    # Neither what is damaged nor another suite's night is in the way.
    (answers / "20260102T000000Z" / "gate.json").write_text("{")
    other = runs / "nightly" / "other" / "20260102T000000Z"
    place.gate(f"{ledger.path}@20260102T000000Z", "--output", str(other))
    assert baseline_of(str(ledger.path)) == str(answers / "20260101T000000Z" / "gate.json")


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


def test_folder_and_lake_say_alike_which_violation_was_expected(place: Place) -> None:
    """A suite says it in the attempt's record; no planted bug says it by itself."""
    runs = place.root / "runs"
    write_run(runs / "0002-good-2" / "attempt-1" / "kraft-register" / "good", VALID, seed=2)
    canary = runs / "0001-canary-1" / "attempt-1"
    write_run(canary / "kraft-register" / "bad", stale_read(), seed=1)

    def gated(name: str) -> list[tuple[int, int, bool]]:
        lake = str(place.root / name)
        assert splitbrain(["ingest", str(runs), "--lake", lake]) == 0
        answers: list[tuple[int, int, bool]] = []
        for source in (str(runs), lake):
            place.gate(source, "--output", str(place.root / "out"))
            record = json.loads((place.root / "out" / "gate.json").read_text())
            canaries = sum(run["canary"] for run in record["runs"])
            answers.append((record["exit_code"], canaries, bool(record["failures"])))
        return answers

    assert gated("before") == [(1, 0, True)] * 2
    (canary / "attempt.json").write_text(
        '{"command": [], "pid": 1, "started": "", "expect": "invalid"}'
    )
    assert gated("after") == [(0, 1, False)] * 2


def test_folder_and_lake_leave_out_what_a_suite_did_again(place: Place) -> None:
    runs = place.root / "runs"
    for number in (1, 2):
        attempt = runs / "0001-good-2" / f"attempt-{number}"
        write_run(attempt / "kraft-register" / f"good-{number}", VALID, seed=2)
        (attempt / "attempt.json").write_text('{"command": [], "pid": 1, "started": ""}')
    place.demand("runs == 1", "runs_valid == 1")
    assert place.gate(str(runs))[0] == 0
    lake = str(place.root / "lake")
    assert splitbrain(["ingest", str(runs), "--lake", lake]) == 0
    assert place.gate(lake)[0] == 0
    # Named itself, it is meant.
    assert place.gate(str(runs / "0001-good-2" / "attempt-1" / "kraft-register" / "good-1"))[0] == 0


def test_a_lake_below_the_runs_is_no_run_and_a_baseline_may_be_one(place: Place) -> None:
    runs = place.runs("good", "bad")
    lake = f"{runs}/lake"
    assert splitbrain(["ingest", runs, "--lake", lake]) == 0
    place.demand("runs == 2", "violations <= 1", "failures_new == 0")
    assert place.gate(runs, "--baseline", lake)[0] == 0
