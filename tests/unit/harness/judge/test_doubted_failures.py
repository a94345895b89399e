"""Changes that clients called failed are doubted where they took longer than answers do."""

import msgspec
import pytest

from splitbrain.checker.evidence import Evidence
from splitbrain.checker.verdict import CheckResult, Verdict
from splitbrain.harness.judge.doubted_failures import with_doubts
from splitbrain.harness.pool.limits import Limits
from splitbrain.history.records import PairedOperation

LIMITS = Limits(10.0, 512, jobs=1)
WRITTEN = PairedOperation(
    index=0, process=0, f="write", key="r0", argument=1, result=1, type="ok", start=0, end=50
)
#: Shows what only the change that failed can have written.
READ = msgspec.structs.replace(
    WRITTEN, index=2, f="read", argument=None, result=7, start=300, end=310
)


def reason(*operations: PairedOperation) -> str:
    """Reason of a violation, with what is doubted."""
    invalid = CheckResult("linearizability:cas-register", Verdict.INVALID, "It is stale.")
    evidence = Evidence((*operations, READ))
    (found,) = with_doubts([invalid], evidence, LIMITS, lambda: None)
    assert found.verdict is Verdict.INVALID
    return found.reason


@pytest.mark.parametrize(
    ("lasted", "is_doubted"), [(1, False), (49, False), (50, True), (99, True)]
)
def test_a_refusal_that_came_as_fast_as_answers_do_is_believed(
    lasted: int, is_doubted: bool
) -> None:
    failed = msgspec.structs.replace(
        WRITTEN, index=1, process=1, argument=7, result=None, type="fail", start=60, end=60 + lasted
    )
    assert ("Taken for unknown" in reason(WRITTEN, failed)) is is_doubted


def test_a_failure_that_does_not_explain_it_is_not_named() -> None:
    failed = msgspec.structs.replace(
        WRITTEN, index=1, process=1, argument=6, result=None, type="fail", start=60, end=200
    )
    assert reason(WRITTEN, failed) == "It is stale."


def test_reads_that_failed_are_left_alone() -> None:
    failed = msgspec.structs.replace(
        READ, index=1, process=1, result=None, type="fail", start=60, end=200
    )
    assert reason(WRITTEN, failed) == "It is stale."
