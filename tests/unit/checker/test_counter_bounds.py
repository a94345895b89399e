from random import Random
from typing import Any

import pytest

from splitbrain.checker import counter_bounds
from splitbrain.checker.counter_bounds import check
from splitbrain.checker.verdict import CheckResult, Verdict
from splitbrain.contracts.budget import Unlimited
from splitbrain.history.records import PairedOperation
from tests.unit.checker.operations import operation
from tests.unit.checker.small_histories import random_history


def add(amount: int, start: int, end: int | None = None, **fields: Any) -> PairedOperation:
    return operation("add", amount, start=start, end=end, **fields)


def read(value: Any, start: int, end: int, **fields: Any) -> PairedOperation:
    return operation("read", None, value, start=start, end=end, **fields)


def judged(*operations: PairedOperation) -> CheckResult:
    return check(operations, Unlimited())


def kinds(*operations: PairedOperation) -> list[str]:
    return [violation["kind"] for violation in judged(*operations).violations]


def test_a_read_of_what_was_acknowledged_is_valid() -> None:
    result = judged(add(2, 0, 1), add(3, 2, 3), read(5, 4, 5))
    assert result.verdict is Verdict.VALID
    assert result.figures["reads"] == 1


def test_a_read_without_an_acknowledged_add_is_too_low() -> None:
    assert kinds(add(2, 0, 1), read(0, 2, 3)) == ["too-low"]
    sentence = judged(add(2, 0, 1), read(0, 2, 3)).violations[0]["sentence"]
    assert sentence == "read of index 2 of key a answered 0, and the adds allow 2 to 2."


def test_a_read_of_more_than_was_ever_asked_is_too_high() -> None:
    assert kinds(add(2, 0, 1), read(4, 2, 3)) == ["too-high"]
    assert kinds(read(2, 0, 1), add(2, 2, 3)) == ["too-high"]


def test_an_open_add_may_count_or_not() -> None:
    for value in (0, 2):
        assert kinds(add(2, 0), read(value, 5, 6)) == []


def test_a_failed_add_does_not_count() -> None:
    assert kinds(add(2, 0, 1, outcome="fail"), read(2, 5, 6)) == ["too-high"]


def test_decrements_widen_the_bounds_downwards() -> None:
    assert kinds(add(2, 0, 1), add(-3, 2), read(-1, 3, 4)) == []
    assert kinds(add(2, 0, 1), add(-3, 2, 3), read(2, 4, 5)) == ["too-high"]


def test_equal_times_are_concurrent() -> None:
    for value in (0, 2):
        assert kinds(add(2, 0, 4), read(value, 4, 5)) == []
        assert kinds(read(value, 0, 4), add(2, 4, 5)) == []


def test_an_answer_of_an_add_has_its_own_part_in_it() -> None:
    def added(answer: int) -> PairedOperation:
        return operation("add-and-get", 2, answer, start=0, end=1)

    assert kinds(added(2)) == []
    assert kinds(added(0)) == ["too-low"]
    assert kinds(operation("add-and-get", -2, 0, start=0, end=1)) == ["too-high"]


def test_counters_are_judged_apart() -> None:
    assert kinds(add(2, 0, 1, key="a"), read(2, 2, 3, key="b")) == ["too-high"]


def test_what_is_no_counter_is_unknown() -> None:
    assert judged().verdict is Verdict.UNKNOWN
    assert judged(add(1, 0, 1)).verdict is Verdict.UNKNOWN
    result = judged(add(1, 0, 1), read([1], 2, 3))
    assert result.verdict is Verdict.UNKNOWN
    assert "needs a number, and not [1]" in result.reason


# --- against the definition taken literally ---------------------------------------------------


def literal(operations: list[PairedOperation]) -> int:
    """How many answers lie outside."""
    outside = 0
    adds = [o for o in operations if o.f != "read"]
    for answer in operations:
        if answer.f == "add" or answer.type != "ok":
            continue
        low = high = 0
        for one in adds:
            sure = one is answer or (one.end is not None and one.end < answer.start)
            if sure:
                low, high = low + one.argument, high + one.argument
            elif one.start <= (answer.end or 0):
                low, high = low + min(0, one.argument), high + max(0, one.argument)
        outside += not low <= answer.result <= high
    return outside


def differ(rounds: int) -> bool:
    random = Random("counter-bounds")
    for _ in range(rounds):
        history = random_history(random, "counter")
        figures = judged(*history).figures
        if figures["too-low"] + figures["too-high"] != literal(history):
            return True
    return False


def test_the_sweep_agrees_with_the_definition_taken_literally() -> None:
    assert not differ(3000)


@pytest.mark.parametrize(("name", "other"), [("before", "until"), ("until", "before")])
def test_a_mutant_of_the_sums_disagrees(
    name: str, other: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(counter_bounds._Sums, name, getattr(counter_bounds._Sums, other))
    assert differ(3000)
