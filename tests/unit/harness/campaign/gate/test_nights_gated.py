"""Runs beside each other: the last night as the baseline, and violations that were expected."""

import json
from pathlib import Path

import pytest

from splitbrain.harness.campaign.gate.gating import FIRST
from splitbrain.harness.campaign.suite.ledger import Ledger, NightBegan, NightEnded, PlannedCell
from splitbrain.harness.cli.main import run as splitbrain
from tests.unit.harness.campaign.gate.gate_place import Place
from tests.unit.harness.campaign.gate.gate_runs import VALID, stale_read, write_run
from tests.unit.harness.campaign.suite.ended_runs import ended_run


@pytest.fixture
def place(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Place:
    return Place(tmp_path, capsys)


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
