"""The checkers of outcomes, in this process."""

import msgspec
import pytest

from splitbrain.checker.registry import checker_named
from splitbrain.checker.verdict import Verdict
from splitbrain.contracts.scenario import RecoveryOptions
from splitbrain.harness.judge import simulated_outcomes as judging
from splitbrain.harness.judge.simulated_outcomes import CountedBudget, judged
from tests.unit.harness.small_worlds import calm, lying_history, outcome, scenario, violation


def verdicts(given: object) -> dict[str, Verdict]:
    return {check.checker: check.verdict for check in judged(given).checks}  # type: ignore[arg-type]


def test_a_correct_world_is_valid_by_every_checker_of_its_workload() -> None:
    assert verdicts(calm()) == {
        "linearizability:cas-register": Verdict.VALID,
        "split-brain": Verdict.VALID,
        "lost-commits": Verdict.VALID,
    }
    assert judged(calm()).failed_by == ()
    assert judged(calm()).sentence is None


def test_a_lie_in_the_history_is_found_by_linearizability() -> None:
    found = judged(outcome(events=lying_history()))
    assert "linearizability:cas-register" in found.failed_by
    assert found.sentence


def test_the_violation_of_an_invariant_is_told_before_what_checkers_found() -> None:
    found = judged(outcome(events=lying_history(), violation=violation(node="n2")))
    assert found.failed_by[0] == "INV-01"
    told = found.sentence
    assert told == "n1 and n2 lead epoch 3 (n2, 4,000.0 ms into the run, step 77)."


def test_a_checker_that_crashes_is_unknown_and_the_others_speak(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def named(name: str) -> object:
        if name == "split-brain":
            raise ZeroDivisionError
        return checker_named(name)

    monkeypatch.setattr(judging, "checker_named", named)
    found = verdicts(outcome(events=lying_history()))
    assert found["split-brain"] is Verdict.UNKNOWN
    assert found["linearizability:cas-register"] is Verdict.INVALID


def test_a_history_that_cannot_be_paired_is_unknown_and_not_valid() -> None:
    torn = lying_history()[1:]
    assert set(verdicts(outcome(events=torn)).values()) == {Verdict.UNKNOWN}


def test_a_budget_that_ends_is_unknown_and_says_so() -> None:
    found = judged(outcome(events=lying_history()), polls_max=0)
    assert "linearizability:cas-register" in found.undecided
    assert any("budget of 0 steps used up" in check.reason for check in found.checks)


def test_a_budget_counts_questions_and_no_seconds() -> None:
    budget = CountedBudget(2)
    assert [budget.exhausted() is None for _ in range(3)] == [True, True, False]


def test_logs_of_nodes_that_were_left_dead_are_asked_nothing() -> None:
    left_dead = scenario(recovery=RecoveryOptions(scope="majority"))
    found = judged(msgspec.structs.replace(calm(), scenario=left_dead))
    assert [check.checker for check in found.checks] == [
        "linearizability:cas-register",
        "split-brain",
    ]
    assert found.undecided == {}
