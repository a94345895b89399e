"""The checker of consumer groups, rule by rule."""

from typing import Any

import msgspec
import pytest

from splitbrain.checker.groups.check import KINDS, check
from splitbrain.checker.groups.readings import problem_with
from splitbrain.checker.names import KINDS as NAMED_KINDS
from splitbrain.checker.verdict import Verdict
from splitbrain.contracts.budget import Unlimited
from tests.unit.checker.groups.cases import (
    AGAIN,
    CASES,
    READ,
    committed,
    consumed,
    history,
    told,
    visible,
)
from tests.unit.checker.groups.small_groups import operation


@pytest.mark.parametrize("name", CASES)
def test_each_kind_is_told_apart_from_what_looks_like_it(name: str) -> None:
    shown, nearly = CASES[name]
    kind = name.partition(",")[0]
    result = check(shown, Unlimited())
    assert {found["kind"] for found in result.violations} == {kind}, result.reason
    assert result.figures[kind] == 1
    assert check(nearly, Unlimited()).violations == ()


def test_every_kind_has_its_case() -> None:
    assert {name.partition(",")[0] for name in CASES} == {*KINDS}
    assert NAMED_KINDS["groups"] == KINDS


def test_what_is_delivered_again_is_counted() -> None:
    result = check(history(READ, AGAIN, committed(2, 12, "m2", 2), visible(0, 1)), Unlimited())
    assert result.verdict is Verdict.VALID
    figures = {name: result.figures[name] for name in ("delivered", "redelivered", "commits")}
    assert figures == {"delivered": 4, "redelivered": 2, "commits": 1}


def test_a_group_that_was_delivered_nothing_proves_nothing() -> None:
    result = check(history(consumed(0), told(None, 4), visible(0)), Unlimited())
    assert result.verdict is Verdict.UNKNOWN
    assert "Nothing was ever delivered" in result.reason


@pytest.mark.parametrize(("offsets", "verdict"), [([2], Verdict.VALID), ([], Verdict.UNKNOWN)])
def test_a_group_that_does_not_come_to_the_end_may_have_stopped(
    offsets: list[int], verdict: Verdict
) -> None:
    last = consumed(80, "m2", 2, began={"a": None}, reads={"a": offsets}, final=True)
    result = check(history(READ, last, visible(0, 1, 2)), Unlimited())
    assert result.verdict is verdict
    assert ("did not come to the end of log a" in result.reason) == (verdict is Verdict.UNKNOWN)


def test_two_owners_are_told_once_for_each_log_and_member() -> None:
    rows = (consumed(at, f"m{number}", logs="ab") for at, number in enumerate((1, 2, 1, 2, 3)))
    assert check(history(*rows), Unlimited()).figures["two-owners"] == 4


def test_groups_are_judged_apart() -> None:
    rows = history(READ, committed(2, 2), told(None, 8, final=True))
    others = [msgspec.structs.replace(one, key="b") for one in rows[2:]]
    assert check([*rows[:2], *others], Unlimited()).violations == ()


@pytest.mark.parametrize(
    ("f", "answer", "problem"),
    [
        ("fetch-offsets", {"a": "b"}, "it answers offsets by log"),
        ("fetch-offsets", None, "it answers offsets by log"),
        ("commit", {"member": "m", "generation": 1}, "tells member, generation or epoch"),
        ("commit", {"member": "m", "generation": 1, "offsets": {"a": None}}, "no offsets by log"),
        ("commit", {"member": "m", "generation": 1, "epoch": 1, "offsets": {}}, "does not"),
        ("consume", {**READ[3], "member": 7}, "does not"),
        ("consume", {**READ[3], "logs": "a"}, "the logs of a member are a list"),
        ("consume", {**READ[3], "records": {"a": [[0]]}}, "records are lists"),
        ("consume", {**READ[3], "positions": {"a": -1}}, "for where it began and is"),
        ("consume", READ[3], None),
        ("commit", {"member": "m", "epoch": 1, "offsets": {"a": 0}}, None),
        ("fetch-offsets", {"a": None}, None),
        ("leave", None, None),
        ("send", None, None),
    ],
)
def test_an_answer_that_makes_no_sense_is_told(f: str, answer: Any, problem: str | None) -> None:
    found = problem_with(operation(0, f, 0, 1, answer))
    assert (problem is None) == (found is None)
    assert (problem or "") in (found or "")
