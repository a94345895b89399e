"""Notes of a checker stand, however the rest of its judgement ends."""

from typing import Any

import pytest

from splitbrain.checker import queue_totals
from splitbrain.checker.findings import Findings, Undecided
from splitbrain.checker.verdict import Verdict
from splitbrain.contracts.budget import Unlimited
from tests.unit.checker.operations import operation

READ = operation("read", start=0, end=1)


def concluded(*, noted: bool, error: Exception) -> Any:
    findings = Findings("some", Unlimited(), ("wrong",), ("odd",))

    def judge() -> tuple[dict[str, Any], str, str | None]:
        if noted:
            findings.note("wrong", [READ], lambda: "It is wrong.")
        findings.note("odd", [READ], lambda: "It is odd.")
        raise error

    return findings.conclude(judge)


@pytest.mark.parametrize("error", [Undecided("time is up"), TypeError("a defect")])
def test_a_violation_outlives_what_ended_the_judgement(error: Exception) -> None:
    result = concluded(noted=True, error=error)
    assert result.verdict is Verdict.INVALID
    assert result.reason.startswith("1 wrong: It is wrong. Not finished: ")
    assert str(error) in result.reason
    assert len(result.violations) == 1


def test_an_observation_decides_nothing() -> None:
    result = concluded(noted=False, error=Undecided("time is up"))
    assert (result.verdict, result.reason) == (Verdict.UNKNOWN, "Not finished: time is up.")
    with pytest.raises(TypeError, match="a defect"):
        concluded(noted=False, error=TypeError("a defect"))


def test_a_queue_that_lost_something_is_invalid_beside_one_that_makes_no_sense() -> None:
    operations = (
        operation("enqueue", 1, start=0, end=1, key="a"),
        operation("drain", None, [], start=2, end=3, key="a"),
        operation("drain", None, 5, start=4, end=5, key="b"),
    )
    result = queue_totals.check(operations, Unlimited())
    assert result.verdict is Verdict.INVALID
    assert "the drain of index 4 answered no list" in result.reason
