"""Zones decide what brute force decides, where they apply; each mutant of them does not."""

import os
from random import Random
from typing import Any

import msgspec
import pytest

from splitbrain.checker.linearizability.check import check
from splitbrain.checker.linearizability.methods import search, zones
from splitbrain.checker.linearizability.part.outcome import PRECONDITIONS, ZONES
from splitbrain.checker.linearizability.part_source import register_columns
from splitbrain.checker.models.registry import MODELS
from splitbrain.checker.verdict import Verdict
from splitbrain.contracts.budget import Unlimited
from splitbrain.history.records import PairedOperation
from tests.unit.checker.brute_force import linearizable
from tests.unit.checker.mutated import mutated
from tests.unit.checker.operations import Ending
from tests.unit.checker.operations import operation as op
from tests.unit.checker.small_histories import history_of_unique_values

HISTORIES = int(os.environ.get("SPLITBRAIN_BRUTE_FORCE_HISTORIES", "1500"))


def judged(
    operations: list[PairedOperation], judge: Any = zones.judge_zones_plainly
) -> bool | None:
    columns = register_columns(operations, MODELS["register"])
    assert columns is not None
    verdict = judge(columns)
    return None if verdict is None else verdict.valid


def test_zones_agree_with_brute_force() -> None:
    random = Random("zones")
    valid = applied = 0
    for number in range(HISTORIES):
        operations = history_of_unique_values(random, 12)
        found = judged(operations)
        if found is None:
            continue
        applied += 1
        valid += found
        assert found == linearizable(operations, "register"), f"history {number}: {operations}"
    assert applied > HISTORIES / 3
    assert 0.4 <= valid / applied <= 0.6, "the histories no longer test both verdicts"


def test_the_values_named_contradict_each_other_by_themselves() -> None:
    random = Random("contradiction")
    named = 0
    for _ in range(1000):
        operations = history_of_unique_values(random)
        columns = register_columns(operations, MODELS["register"])
        assert columns is not None
        verdict = zones.judge_zones_plainly(columns)
        if verdict is None or verdict.valid:
            continue
        members = [
            operation
            for operation, value in zip(operations, columns.values.tolist(), strict=True)
            if value in verdict.values and (operation.f == "write" or operation.type == "ok")
        ]
        named += 1
        assert not linearizable(members, "register"), (verdict, operations)
    assert named > 100


@pytest.mark.parametrize(
    ("why", "history"),
    [
        (
            "a value is written twice",
            [op("write", 1, start=0, end=1), op("write", 1, start=2, end=3)],
        ),
        ("the initial value is written", [op("write", None, start=0, end=1)]),
        (
            "a process goes on at once",
            [
                op("write", 1, start=0, end=2, process=0),
                op("write", 2, start=2, end=3, process=0),
            ],
        ),
    ],
)
def test_zones_do_not_apply_where(why: str, history: list[PairedOperation]) -> None:
    assert judged(history) is None, why


def test_a_compare_and_set_is_no_register_operation() -> None:
    history = [op("cas", [0, 1], [0, 1, True], start=0, end=1)]
    assert register_columns(history, MODELS["cas-register"]) is None
    assert register_columns([], MODELS["set"]) is None


def test_of_nothing_there_is_an_order() -> None:
    assert judged([]) is True
    assert judged([op("read", None, None, start=0, end=None)]) is True


#: Texts of the source and their replacements.
MUTANTS = {
    "overlapping zones allowed": ("begins[1:] < ends[:-1]", "begins[1:] < begins[:-1]"),
    "touching zones refused": ("begins[1:] < ends[:-1]", "begins[1:] <= ends[:-1]"),
    "nothing within a zone is seen": ("(around >= 0) &", "(around < -1) &"),
    "whoever ends in a zone is within": ('side="left") - 1', 'side="right") - 1'),
    "a value at the edge is within": ("others] < ends[around]", "others] <= ends[around]"),
    "reads before their write allowed": (
        "was_read & (first_return < write_start)",
        "was_read & (first_return < 0)",
    ),
    "a read that touches its write refused": (
        "was_read & (first_return < write_start)",
        "was_read & (first_return <= write_start)",
    ),
    "the initial value lasts": (
        "happened = last_start != BEFORE_ALL",
        ("happened = last_start != BEFORE_ALL; happened[count] = False"),
    ),
    "open writes happened by their start": ("= ends[is_write]", "= columns.starts[is_write]"),
    "values may be written twice": ("(times_written > 1).any()", "(times_written > 2).any()"),
    "open reads answer": ("reads = ~is_write & (ends != NEVER)", "reads = ~is_write"),
    "process order in ties forgotten": ("or goes_on_at_once(columns)", ""),
}


@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_mutant_is_told_apart(mutant: str) -> None:
    module = mutated(zones, *MUTANTS[mutant])
    random = Random("mutants of zones")
    for _ in range(4000):
        operations = history_of_unique_values(random, twice=0.1)
        if judged(operations, module.judge_zones_plainly) not in (
            None,
            linearizable(operations, "register"),
        ):
            return
    raise AssertionError(f"no history tells it apart: {mutant}")


# --- what is told of a violation ---------------------------------------------------------------


def late_reads(count: int) -> list[PairedOperation]:
    """Writes one after the other, each read at once; the last read answers the first value."""
    history: list[PairedOperation] = []
    for n in range(count):
        history.append(op("write", n, start=10 * n, end=10 * n + 2, process=0))
        history.append(op("read", None, n, start=10 * n + 4, end=10 * n + 6, process=1))
    history.append(op("read", None, 0, start=10 * count, end=10 * count + 2, process=1))
    return history


@pytest.mark.parametrize("count", [3, 3000])
def test_a_stale_read_is_named_with_what_overwrote_its_value(count: int) -> None:
    result = check(late_reads(count), "register", Unlimited())
    assert result.verdict is Verdict.INVALID
    assert result.figures["algorithms"] == [ZONES]
    (violation,) = result.violations
    assert violation["operation"]["index"] == 10 * count
    assert violation["core_minimal"]
    assert violation["core_size"] <= 3
    assert result.figures["operations"] == 2 * count + 1


def test_the_precondition_is_named() -> None:
    result = check(late_reads(3)[:-1], "register", Unlimited())
    assert result.verdict is Verdict.VALID
    assert result.figures["preconditions"] == [f"{ZONES}: {PRECONDITIONS[ZONES]}"]


def test_a_violation_stands_when_the_budget_ends_before_it_is_explained(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(search, "POLL_INTERVAL", 1)
    # Polled once by the check itself, then by the search that is to explain.
    result = check(late_reads(3000), "register", Ending(1))
    assert result.verdict is Verdict.INVALID
    assert "have no order" in result.reason
    assert result.violations[0]["core_size"] > 2


@pytest.mark.parametrize("model", ["register", "cas-register", "kv"])
def test_histories_of_unique_values_are_judged_right(model: str) -> None:
    random = Random(f"check {model}")
    deciders: set[str] = set()
    read, write = MODELS[model].register_functions or ("", "")
    for _ in range(300):
        history = history_of_unique_values(random)
        renamed = [
            msgspec.structs.replace(
                o,
                f=read if o.f == "read" else write,
                argument=text(o.argument, model),
                result=text(o.result, model),
            )
            for o in history
        ]
        result = check(renamed, model, Unlimited())
        assert (result.verdict is Verdict.VALID) == linearizable(history, "register")
        deciders.update(result.figures["algorithms"])
    assert ZONES in deciders


def text(value: int | None, model: str) -> Any:
    return value if model != "kv" or value is None else f"v{value}"
