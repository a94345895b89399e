from typing import Any

from splitbrain.checker.unique_ids import check
from splitbrain.checker.verdict import CheckResult, Verdict
from splitbrain.contracts.budget import Unlimited
from splitbrain.history.records import PairedOperation
from tests.unit.checker.operations import operation


def generated(start: int, value: Any, **fields: Any) -> PairedOperation:
    return operation("generate", None, value, start=start, end=start + 1, **fields)


def judged(*operations: PairedOperation) -> CheckResult:
    return check(operations, Unlimited())


def test_distinct_ids_are_valid() -> None:
    result = judged(*(generated(n, f"id-{n}") for n in range(9)))
    assert result.verdict is Verdict.VALID
    assert result.figures == {"asked": 9, "acknowledged": 9, "distinct": 9, "duplicated": 0}


def test_an_id_that_is_given_out_twice_is_a_violation_with_both_its_givings() -> None:
    result = judged(generated(0, 7), generated(2, 8), generated(4, 7, key="b"))
    assert result.verdict is Verdict.INVALID
    (found,) = result.violations
    assert found["sentence"] == "The id 7 was given out twice: at index 0 and at index 4."
    assert [one["index"] for one in found["operations"]] == [0, 4]


def test_an_id_may_be_anything() -> None:
    pair: list[Any] = [[1, {"node": "n1"}], [1, {"node": "n2"}]]
    assert judged(*map(generated, (0, 2), pair)).verdict is Verdict.VALID
    assert judged(generated(0, pair[0]), generated(2, pair[0])).verdict is Verdict.INVALID


def test_an_unanswered_or_failed_one_tells_no_id() -> None:
    silent = operation("generate", start=3), operation("generate", start=5, outcome="fail")
    assert judged(generated(0, 1), *silent).verdict is Verdict.VALID
    assert judged(*silent).verdict is Verdict.UNKNOWN
