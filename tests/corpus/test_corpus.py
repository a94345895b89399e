"""Histories with known verdicts: our own, and recorded ones where they are at hand."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from splitbrain.checker.linearizability.check import check
from splitbrain.checker.models.register import CasRegister
from splitbrain.checker.models.registry import MODELS as MODELS_BY_NAME
from splitbrain.checker.verdict import Verdict
from splitbrain.contracts.budget import Unlimited
from splitbrain.history.column_reader import read_columns
from splitbrain.history.formats import FORMATS
from splitbrain.history.importers import load
from tests.corpus.recorded_histories import (
    BESIDE,
    COUNT_MIN,
    folder,
    lacking,
    recorded_verdicts,
)

OWN = Path(__file__).parent / "histories"
RECORDED = folder(os.environ)
OWN_VERDICTS: dict[str, dict[str, str]] = json.loads((OWN / "verdicts.json").read_text())


RECORDED_VERDICTS = recorded_verdicts(RECORDED)
#: The recorded corpus calls its models by other names.
MODELS = {"etcd-register": "cas-register", "kv-append (partition by key)": "kv"}


#: Formats by the names of files; kv files are EDN too.
FORMATS_BY_ENDING = {
    ".jsonl": {"jsonl"},
    ".gz": {"jsonl"},
    ".edn": {"edn", "kv"},
    ".log": {"jepsen-log"},
    ".txt": {"kv"},
    ".parquet": {"parquet"},
    ".json": {"etcd-robustness"},
}


def judged(path: Path, model: str) -> Verdict:
    return check(load(path).operations, model, Unlimited()).verdict


def test_every_history_of_ours_has_a_verdict() -> None:
    assert {path.name for path in OWN.iterdir()} - {"verdicts.json"} == set(OWN_VERDICTS)


def test_every_format_has_a_history_of_ours() -> None:
    assert {load(OWN / name).format for name in OWN_VERDICTS} == set(FORMATS)


def cases() -> list[Any]:
    """Every history at hand: file, model, whether it is valid, number of operations if told."""
    found = [
        pytest.param(OWN / name, verdict["model"], verdict["verdict"] == "valid", None, id=name)
        for name, verdict in sorted(OWN_VERDICTS.items())
    ]
    for name, verdict in sorted(RECORDED_VERDICTS.items()):
        model, valid = MODELS[verdict["model"]], verdict["linearizable"]
        found.append(pytest.param(RECORDED / name, model, valid, verdict["ops"], id=name))
    return found


@pytest.mark.parametrize(("path", "model", "valid", "count"), cases())
def test_a_history_gets_its_verdict(path: Path, model: str, valid: bool, count: int | None) -> None:
    history = load(path)
    operations = history.operations
    assert history.format in FORMATS_BY_ENDING[path.suffix]
    assert count is None or len(operations) == count
    result = check(operations, model, Unlimited())
    assert result.verdict is (Verdict.VALID if valid else Verdict.INVALID), result.reason
    for violation in result.violations:
        assert violation["core_size"] <= len(operations)
        json.dumps(violation)


def test_the_recorded_histories_are_at_hand_in_ci() -> None:
    assert lacking(os.environ) is None


def test_their_absence_is_a_failure_in_ci_alone(tmp_path: Path) -> None:
    named = {"SPLITBRAIN_CORPUS": str(tmp_path / "none")}
    assert lacking(named) is None
    problem = lacking({**named, "CI": "true"})
    assert problem is not None
    assert str(tmp_path / "none") in problem
    assert recorded_verdicts(tmp_path / "none") == {}


def test_a_folder_with_few_of_them_is_a_failure_in_ci_too(tmp_path: Path) -> None:
    (tmp_path / "some").mkdir()
    verdicts = {f"{n}.log": {"linearizable": True} for n in range(COUNT_MIN - 1)}
    (tmp_path / "some" / "verdicts.json").write_text(json.dumps(verdicts))
    environment = {"SPLITBRAIN_CORPUS": str(tmp_path), "CI": "true"}
    assert len(recorded_verdicts(tmp_path)) == COUNT_MIN - 1
    assert lacking(environment) is not None


def test_the_folder_is_the_one_named_else_the_one_beside_the_checkout(tmp_path: Path) -> None:
    assert folder({"SPLITBRAIN_CORPUS": str(tmp_path)}) == tmp_path
    for unnamed in ({}, {"SPLITBRAIN_CORPUS": ""}):
        assert folder(unnamed) == BESIDE
    assert BESIDE.parts[-2:] == ("shared", "data")
    assert BESIDE.parents[1] == Path(__file__).parents[3]


# --- mutants: a checker with a wrong model gets some of our verdicts wrong --------------------


class CasAlwaysFits(CasRegister):
    def step(self, state: Any, call: Any) -> tuple[bool, Any]:
        legal, following = super().step(state, call)
        return legal or call.f == "cas", following


class ReadAlwaysFits(CasRegister):
    register_functions = None

    def step(self, state: Any, call: Any) -> tuple[bool, Any]:
        legal, following = super().step(state, call)
        return legal or call.f == "read", following


class StartsAtOne(CasRegister):
    initial = 1


@pytest.mark.parametrize("mutant", [CasAlwaysFits, ReadAlwaysFits, StartsAtOne])
def test_a_wrong_model_is_told_apart(
    mutant: type[CasRegister], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(MODELS_BY_NAME, "cas-register", mutant())
    assert any(
        judged(OWN / name, expected["model"]) != expected["verdict"]
        for name, expected in OWN_VERDICTS.items()
        if expected["model"] == "cas-register"
    )


def test_columns_of_the_histories_are_their_operations() -> None:
    read = 0
    for case in cases():
        path: Any = case.values[0]
        columns = read_columns(path)
        if columns is not None:
            read += 1
            assert columns.operations() == load(path).operations, path
    assert read > len([path for path in RECORDED_VERDICTS if path.endswith(".txt")])
