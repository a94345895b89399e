from collections import Counter
from typing import Any

import pytest

from splitbrain.checker import queue_totals
from splitbrain.checker.queue_totals import check
from splitbrain.checker.verdict import CheckResult, Verdict
from splitbrain.contracts.budget import Unlimited
from splitbrain.history.records import PairedOperation
from tests.unit.checker.operations import operation


def put(element: Any, start: int, end: int | None = None, **fields: Any) -> PairedOperation:
    result = None if end is None else element
    return operation(
        "enqueue", element, fields.pop("result", result), start=start, end=end, **fields
    )


def take(element: Any, start: int, end: int | None = None, **fields: Any) -> PairedOperation:
    return operation("dequeue", None, element, start=start, end=end, **fields)


def drain(elements: Any, start: int, end: int | None = None) -> PairedOperation:
    return operation("drain", None, elements, start=start, end=end)


def judged(*operations: PairedOperation, **options: Any) -> CheckResult:
    return check(operations, Unlimited(), **options)


def kinds(*operations: PairedOperation) -> list[str]:
    return [found["kind"] for found in judged(*operations).violations]


EMPTY = take(None, 90, 91)


def test_what_was_put_in_and_taken_out_is_valid() -> None:
    result = judged(put(1, 0, 1), put(2, 2, 3), take(2, 4, 5), take(1, 6, 7), EMPTY)
    assert result.verdict is Verdict.VALID
    assert result.figures["dequeued"] == 2


def test_an_acknowledged_element_is_lost_where_the_queue_was_found_empty_after_it() -> None:
    result = judged(put(1, 0, 1), EMPTY)
    assert result.verdict is Verdict.INVALID
    assert result.violations[0]["sentence"] == (
        "Element 1 of key a was acknowledged, never dequeued, and the queue was found empty after "
        "that (index 90): 1 lost."
    )


def test_nobody_looked_for_an_element_while_the_queue_was_not_found_empty_after_it() -> None:
    for operations in ((put(1, 0, 1),), (put(1, 0, 95), EMPTY), (put(1, 0, 90), EMPTY)):
        result = judged(*operations)
        assert result.verdict is Verdict.UNKNOWN
        assert result.figures["never-looked-for"] == 1


def test_as_many_as_dequeues_without_answer_may_have_been_taken_by_them() -> None:
    result = judged(put(1, 0, 1), take(None, 4), EMPTY)
    assert result.verdict is Verdict.VALID
    assert result.figures["taken-unanswered"] == 1
    result = judged(put(1, 0, 1), put(2, 0, 1), put(3, 0, 1), take(None, 4), EMPTY)
    assert result.figures["lost"] == 2
    assert "3 elements of key a were acknowledged (1 and others)" in result.reason
    assert judged(put(1, 0, 1), put(2, 0, 1), drain(None, 4), EMPTY).verdict is Verdict.VALID


def test_a_dequeue_that_failed_took_nothing() -> None:
    assert kinds(put(1, 0, 1), take(None, 4, 5, outcome="fail"), EMPTY) == ["lost"]


def test_an_unacknowledged_element_is_neither_lost_nor_a_phantom() -> None:
    assert kinds(put(1, 0), EMPTY) == []
    assert kinds(put(1, 0), take(1, 5, 6), EMPTY) == []


def test_an_element_that_comes_twice_is_duplicated() -> None:
    twice = put(1, 0, 1), take(1, 2, 3), take(1, 4, 5), EMPTY
    assert kinds(*twice) == ["duplicated"]
    result = judged(*twice, duplicates_allowed=True)
    assert result.verdict is Verdict.VALID
    assert [found["kind"] for found in result.observations] == ["duplicated"]
    assert kinds(put(1, 0, 1), put(1, 2), take(1, 3, 4), take(1, 4, 5), EMPTY) == []


def test_an_element_that_nobody_put_in_by_then_is_a_phantom() -> None:
    assert kinds(take(1, 0, 1)) == ["phantom"]
    assert kinds(take(1, 0, 1), put(1, 2, 3), EMPTY) == ["phantom"]
    assert kinds(put(1, 0, 1, outcome="fail"), take(1, 2, 3)) == ["phantom"]
    assert kinds(put(1, 0, 1, result=False), take(1, 2, 3)) == ["phantom"]
    assert kinds(take(1, 0, 2), put(1, 2, 3), EMPTY) == []


def test_an_enqueue_that_was_refused_cannot_be_lost() -> None:
    assert kinds(put(1, 0, 1, result=False), EMPTY) == []


def test_a_drain_takes_all_and_finds_nothing_then() -> None:
    assert kinds(put(1, 0, 1), put(2, 2, 3), drain([2, 1], 4, 9)) == []
    assert kinds(put(1, 0, 1), put(2, 2, 3), drain([2], 4, 9)) == ["lost"]


def test_queues_are_judged_apart() -> None:
    assert kinds(put(1, 0, 1, key="a"), take(1, 2, 3, key="b")) == ["phantom"]


def test_of_equal_elements_no_more_are_lost_than_surely_are() -> None:
    late = put(1, 92, 93), take(1, 94, 95)
    assert judged(put(1, 0, 1), EMPTY, *late).verdict is Verdict.UNKNOWN


def test_what_is_no_queue_is_unknown() -> None:
    assert judged().verdict is Verdict.UNKNOWN
    assert "answered no list" in judged(drain(3, 0, 1)).reason


PLANTED = {
    "lost": (put(1, 0, 1), EMPTY),
    "duplicated": (put(1, 0, 1), take(1, 2, 3), take(1, 4, 5), EMPTY),
    "phantom": (take(7, 0, 1),),
}


def nothing_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queue_totals, "_judge_lost", lambda *_: None)


def taken_not_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queue_totals, "_judge_taken", lambda *_: None)


def taken_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every element looks as if nobody had dequeued it."""
    monkeypatch.setattr(queue_totals, "_elements", lambda _: iter(()))


@pytest.mark.parametrize("mutate", [nothing_lost, taken_not_judged, taken_forgotten])
def test_a_mutant_misses_what_is_planted_or_accuses_the_innocent(
    mutate: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def told() -> Counter[str]:
        innocent = kinds(put(1, 0, 1), take(1, 2, 3), EMPTY)
        return Counter([*innocent, *(kind for one in PLANTED.values() for kind in kinds(*one))])

    assert told() == Counter([*PLANTED])
    mutate(monkeypatch)
    assert told() != Counter([*PLANTED])
