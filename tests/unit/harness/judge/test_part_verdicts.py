"""``splitbrain analyze RUN --parts`` from its words to its exit code; Spark's side is elsewhere."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from splitbrain.contracts.analysis.parts import PartsRequest
from splitbrain.harness.cli.main import run
from splitbrain.harness.judge import part_verdicts
from splitbrain.harness.pool.spark_service import Answered
from splitbrain.history.run_folder import RunFolder
from tests.lake_runs import make_run
from tests.synthetic_runs import seal


def answered(*verdicts: str, damage: tuple[str, ...] = ()) -> Answered:
    counts = [
        {"model": "cas-register", "verdict": verdict, "parts": 2, "operations": 1200}
        for verdict in verdicts
    ]
    examples = [
        {"model": "cas-register", "key": "r1", "verdict": one, "reason": "Why.", "operations": 600}
        for one in verdicts
        if one != "valid"
    ]
    answer = {"counts": counts, "examples": examples, "damage": damage}
    return Answered(0, msgspec.json.encode(answer), "")


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Spark's answers, and the questions."""
    known: dict[str, Any] = {"answer": answered("valid"), "requests": []}

    def ask(_module: str, request: Any, **_: Any) -> Answered:
        known["requests"].append(request)
        return known["answer"]

    monkeypatch.setattr(part_verdicts, "ask_spark", ask)
    return known


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return sealed_run(tmp_path / "run")


def sealed_run(root: Path, seed: int = 7) -> Path:
    seal(RunFolder(make_run(root, seed=seed)))
    return root


@pytest.mark.parametrize(
    ("answer", "code", "last"),
    [
        (answered("valid"), 0, "VALID"),
        (answered("unknown", "valid"), 2, "UNKNOWN"),
        (answered("unknown", "invalid", "valid"), 1, "INVALID"),
        (answered("valid", damage=("The last line is torn.",)), 2, "UNKNOWN"),
        (answered("invalid", damage=("The last line is torn.",)), 1, "INVALID"),
        (answered(), 2, "UNKNOWN"),
    ],
)
def test_the_worst_part_decides(
    asked: dict[str, Any],
    folder: Path,
    capsys: pytest.CaptureFixture[str],
    answer: Answered,
    code: int,
    last: str,
) -> None:
    asked["answer"] = answer
    before = (folder / "results.json").read_bytes()
    assert run(["analyze", str(folder), "--parts"]) == code
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1] == f"{last}, of linearizability alone"
    assert asked["requests"] == [PartsRequest(str(folder), ("cas-register",))]
    # Nothing else was judged.
    assert (folder / "results.json").read_bytes() == before


def test_each_part_that_is_not_valid_is_named(
    asked: dict[str, Any], folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked["answer"] = answered("invalid", "valid")
    run(["analyze", str(folder), "--parts"])
    out = capsys.readouterr().out
    assert "linearizability:cas-register: 2 parts (1,200 operations) invalid\n" in out
    assert "  invalid: Why.\n" in out


def test_transactions_are_asked_for_by_kind_and_level_and_decide_too(
    asked: dict[str, Any], folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, manifest = folder / "plan.json", folder / "manifest.json"
    names = ["linearizability:cas-register", "transactions:list-append:snapshot-isolation"]
    path.write_text(json.dumps({**json.loads(path.read_bytes()), "checkers": names}))
    manifest.unlink()
    seal(RunFolder(folder))
    told = {
        "kind": "list-append",
        "level": "snapshot-isolation",
        "verdict": "invalid",
        "reason": "None of these 2 can be first.",
        "transactions": 2_000,
        "keys": 3,
        "anomalies": {"G-single": 4},
    }
    answer = msgspec.json.decode(answered("valid").answer) | {"transactions": [told]}
    asked["answer"] = Answered(0, msgspec.json.encode(answer), "")
    assert run(["analyze", str(folder), "--parts"]) == 1
    level = ("list-append", "snapshot-isolation")
    assert asked["requests"] == [PartsRequest(str(folder), ("cas-register",), (level,))]
    assert capsys.readouterr().out.splitlines()[-4:] == [
        "transactions:list-append:snapshot-isolation: 2,000 transactions on 3 keys invalid",
        "  None of these 2 can be first.",
        "  G-single: 4",
        "INVALID, of linearizability and transactions alone",
    ]


def test_the_worst_run_decides(
    asked: dict[str, Any], folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = sealed_run(tmp_path / "other", seed=8)
    answers = iter([answered("invalid"), answered("valid")])
    monkeypatch.setattr(part_verdicts, "ask_spark", lambda *_, **__: next(answers))
    assert run(["analyze", str(folder), str(other), "--parts"]) == 1


def test_a_spark_that_cannot_work_is_one_sentence(
    asked: dict[str, Any], folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked["answer"] = Answered(3, b"", "could not start Java.")
    assert run(["analyze", str(folder), "--parts"]) == 3
    assert "could not start Java" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("plan", "said"),
    [
        ({"checkers": ["set-full"]}, "is judged in parts: its checkers are set-full"),
        ({"checkers": ["linearizability:my.py:Own"]}, "do not have the model 'my.py:Own'"),
        (None, "its checkers are unknown"),
        ({"checkers": ["transactions:rows"]}, "transactions of rows are not judged key by key"),
        (
            {"checkers": ["transactions:list-append:causal"]},
            "transactions of list-append are not judged key by key at the level causal",
        ),
    ],
)
def test_what_cannot_be_judged_in_parts_is_refused(
    asked: dict[str, Any],
    folder: Path,
    capsys: pytest.CaptureFixture[str],
    plan: dict[str, Any] | None,
    said: str,
) -> None:
    path = folder / "plan.json"
    text = "no plan" if plan is None else json.dumps({**json.loads(path.read_bytes()), **plan})
    path.write_text(text)
    assert run(["analyze", str(folder), "--parts"]) == 64
    assert said in capsys.readouterr().err.replace("\n", " ")
    assert asked["requests"] == []


def test_a_record_that_was_changed_since_the_run_is_not_judged_in_parts(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    history = RunFolder(folder).history
    history.write_bytes(history.read_bytes() + b"\n")
    assert run(["analyze", str(folder), "--parts"]) == 64
    assert "is not as the run left it: history.jsonl has grown" in capsys.readouterr().err
