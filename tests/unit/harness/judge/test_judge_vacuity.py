"""Each way in which a run can prove nothing is told, and none of them where it proves something."""

import msgspec
import pytest

from splitbrain.contracts.state_event import StateEvent
from splitbrain.harness.folder.results import FaultResult
from splitbrain.harness.judge.vacuity import (
    few_answers,
    kinds_without_results,
    no_operation_met_a_fault,
    nothing_committed_after_last_heal,
    state_events_missing,
    too_few_faults_bit,
)
from splitbrain.history.fault_windows import FaultWindow
from splitbrain.history.functions import USUAL
from splitbrain.history.records import PairedOperation

S = 1_000_000_000


def operation(**changes: object) -> PairedOperation:
    base = PairedOperation(
        index=0, process=0, f="write", key="r", argument=1, result=1, type="ok", start=0, end=S
    )
    return msgspec.structs.replace(base, **changes)


def fault(index: int, *, applied: bool = True, verified: bool = True) -> FaultResult:
    return FaultResult(index, "kill", "leader", at_ms=index, applied=applied, verified=verified)


def window(start: int, end: int, *, bit: bool = True, healed: bool = True) -> FaultWindow:
    return FaultWindow(0, "kill", ("n1",), start * S, end * S, start * S if bit else None, healed)


def test_a_plan_without_faults_is_not_vacuous_for_want_of_them() -> None:
    assert too_few_faults_bit([]) is None


def test_no_fault_that_bit_is_vacuous() -> None:
    assert too_few_faults_bit([fault(0, verified=False)]) == "The only planned fault had no effect."


def test_faults_of_which_none_could_apply_are_vacuous() -> None:
    assert too_few_faults_bit([fault(0, applied=False, verified=False)]) is not None


def test_fewer_than_half_of_the_faults_is_vacuous_and_half_is_not() -> None:
    two_of_four = [fault(n, verified=n < 2) for n in range(4)]
    one_of_three = [fault(n, verified=n < 1) for n in range(3)]
    assert too_few_faults_bit(two_of_four) is None
    assert (
        too_few_faults_bit(one_of_three) == "Only 1 of the 3 faults that could apply took effect."
    )


def test_a_fault_that_could_not_apply_does_not_count_against_the_others() -> None:
    faults = [fault(0), fault(1, applied=False, verified=False), fault(2, verified=False)]
    assert too_few_faults_bit(faults) is None


def test_a_fault_that_was_never_reached_counts_against_the_run() -> None:
    never = FaultResult(1, "kill", "leader")
    assert too_few_faults_bit([fault(0), never, never]) is not None


@pytest.mark.parametrize(("start", "end"), [(0, 4), (11, 12)])
def test_operations_before_and_after_a_fault_do_not_meet_it(start: int, end: int) -> None:
    apart = operation(start=start * S, end=end * S)
    assert no_operation_met_a_fault([window(5, 10)], [apart]) is not None


@pytest.mark.parametrize(("start", "end"), [(4, 6), (6, 7), (9, 20), (1, None)])
def test_an_operation_in_flight_meets_the_fault(start: int, end: int | None) -> None:
    meeting = operation(start=start * S, end=None if end is None else end * S)
    assert no_operation_met_a_fault([window(5, 10)], [meeting]) is None


def test_an_operation_that_meets_only_a_fault_that_did_not_bite_does_not_count() -> None:
    meeting = operation(start=2 * S, end=3 * S)
    windows = [window(1, 4, bit=False), window(20, 21)]
    assert no_operation_met_a_fault(windows, [meeting]) is not None


def test_a_write_invoked_before_the_last_heal_does_not_show_recovery() -> None:
    windows = [window(1, 2), window(5, 10)]
    before = operation(start=9 * S, end=11 * S)
    assert nothing_committed_after_last_heal(windows, [before], USUAL) is not None
    assert nothing_committed_after_last_heal(windows, [operation(start=11 * S)], USUAL) is None


@pytest.mark.parametrize(
    "not_committed",
    [
        {"f": "read"},
        {"type": "info", "end": None},
        {"f": "cas", "argument": [1, 2], "result": [1, 2, False]},
    ],
)
def test_what_commits_nothing_does_not_show_recovery(not_committed: dict[str, object]) -> None:
    after = operation(start=11 * S, **not_committed)
    assert nothing_committed_after_last_heal([window(5, 10)], [after], USUAL) is not None


def test_a_fault_that_was_never_healed_shows_no_recovery() -> None:
    reason = nothing_committed_after_last_heal(
        [window(5, 10, healed=False)], [operation(start=20 * S)], USUAL
    )
    assert reason is not None
    assert "never seen to be healed" in reason


def test_nineteen_results_of_a_kind_are_too_few_and_twenty_are_enough() -> None:
    assert kinds_without_results([operation()] * 20) == []
    assert kinds_without_results([operation()] * 19) == [
        "Only 19 operations of kind write succeeded, 20 are needed."
    ]


def test_final_reads_do_not_count_as_results() -> None:
    reads = [operation(f="read", final=True)] * 30
    assert kinds_without_results([*reads, *[operation()] * 20]) == []
    assert kinds_without_results(reads) == ["The clients invoked no operation."]


def test_a_kind_that_only_failed_is_told() -> None:
    reasons = kinds_without_results([*[operation()] * 20, operation(f="cas", type="fail")])
    assert reasons == ["Only 0 operations of kind cas succeeded, 20 are needed."]


def test_a_load_that_hardly_anything_answered_hints_at_the_rate() -> None:
    unsent = [operation(type="fail", error="not-sent")] * 9
    unanswered = [operation(type="info", error="timed-out")] * 4
    other = [operation(type="fail", error="busy")] * 3
    reads = [operation(f="read")] * 5
    reason = few_answers([*unanswered, *other, *unsent, *reads])
    assert reason is not None
    assert "(not-sent 9, timed-out 4)" in reason
    assert "--rate" in reason
    assert "--operation-timeout" in reason
    # Most was answered, or each kind at least once, or nothing was asked.
    assert few_answers([*unsent, *reads, *reads]) is None
    assert few_answers([*unsent, operation()]) is None
    assert few_answers([]) is None
    assert few_answers([operation(type="info"), operation(f="read", final=True)]) is not None


def leads(epoch: int) -> StateEvent:
    return StateEvent("n1", 0, 0, "role", epoch, role="leader")


def test_an_epoch_with_acknowledged_writes_and_no_leader_told_is_vacuous() -> None:
    writes = [operation(position=(1, 5)), operation(position=(3, 6))]
    assert state_events_missing({"n1": [leads(1), leads(3)]}, writes, USUAL) is None
    reason = state_events_missing({"n1": [leads(1)]}, writes, USUAL)
    assert reason is not None
    assert "epoch 3" in reason


def test_a_candidate_is_no_leader() -> None:
    candidate = StateEvent("n1", 0, 0, "role", 1, role="candidate")
    assert (
        state_events_missing({"n1": [candidate]}, [operation(position=(1, 5))], USUAL) is not None
    )


def test_reads_need_no_leader_told() -> None:
    assert (
        state_events_missing({"n1": [leads(1)]}, [operation(f="read", position=(9, 1))], USUAL)
        is None
    )


def test_promised_state_events_that_are_all_missing_are_told() -> None:
    assert state_events_missing({}, [operation()], USUAL) is not None
