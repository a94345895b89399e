"""An account names the anomaly and tells who answered what; a bare history has processes alone."""

from typing import Any

import pytest

from splitbrain.checker.anomalies.account import (
    account_of,
    gap_text,
    headline_of,
    request_of,
    step_of,
    steps_in,
    tell,
)
from splitbrain.checker.linearizability.check import check
from splitbrain.checker.verdict import CheckResult, Verdict
from splitbrain.contracts.budget import Unlimited
from splitbrain.history.records import PairedOperation
from tests.unit.checker.operations import operation

MS = 1_000_000


def stale(key: str = "r0-5", index: int = 0) -> list[PairedOperation]:
    return [
        operation("write", 3, start=1 * MS, end=2 * MS, key=key, index=index, process=index + 1),
        operation("write", 4, start=3 * MS, end=12_240 * MS, key=key, index=index + 1,
                  process=index + 2),
        operation("read", None, 3, start=12_260 * MS, end=12_269 * MS, key=key, index=index + 2,
                  process=index + 3),
    ]  # fmt: skip


def test_a_bare_history_tells_processes_and_times() -> None:
    result = check(stale(), "cas-register", Unlimited())
    assert account_of(result) == (
        "Stale read. Write 4 to r0-5 by process 2 was acknowledged at 12.240 s. 29 ms later a read "
        "of r0-5 by process 3 was answered with 3, an older state."
    )
    assert headline_of(result) == account_of(result)


def test_the_keys_that_are_affected_are_counted() -> None:
    result = check([*stale(), *stale("r0-6", 10)], "cas-register", Unlimited())
    assert str(account_of(result)).endswith("an older state. 2 keys are affected.")


def test_times_that_are_only_an_order_are_not_told() -> None:
    operations = [
        operation("write", 1, start=0, end=1, key=None),
        operation("read", None, 2, start=4, end=5, key=None),
    ]
    account = account_of(check(operations, "register", Unlimited()))
    assert account == (
        "Phantom value. A read by process 4 was answered with 2, which nobody had asked for."
    )


def test_without_times_the_order_is_told() -> None:
    failed = operation("write", 1, start=0, end=1, outcome="fail", error="not-leader")
    read = operation("read", None, 1, start=4, end=5)
    assert account_of(check([failed, read], "register", Unlimited())) == (
        "Dirty read. Write 1 to key a by process 0 certainly failed (not-leader). Later a read of "
        "key a by process 4 was answered with 1, the value of an operation that did not happen."
    )


def test_what_happened_first_is_told_first() -> None:
    operations = [
        operation("write", 1, start=1 * MS, end=50 * MS, outcome="fail", index=0, process=0),
        operation("read", None, 1, start=2 * MS, end=20 * MS, index=1, process=1),
    ]
    account = account_of(check(operations, "register", Unlimited()))
    assert account == (
        "Dirty read. A read of key a by process 1 was answered at 0.020 s with 1, the value of an "
        "operation that did not happen. 30 ms later write 1 to key a by process 0 certainly "
        "failed."
    )


def test_a_node_answers_under_its_own_name() -> None:
    steps = [step_of(one) for one in stale()[1:]]
    told = tell("stale read", steps, lambda step: f"n{step.index}", timed=True)
    assert told == (
        "Stale read. n1 acknowledged write 4 to r0-5 at 12.240 s. 29 ms later n2 answered a read "
        "of r0-5."
    )


@pytest.mark.parametrize(
    ("f", "argument", "key", "text"),
    [
        ("write", 4, "r0-5", "write 4 to r0-5"),
        ("write", 4, "5", "write 4 to key 5"),
        ("write", None, "r0", "write nothing to r0"),
        ("cas", [1, 3], "r0", "compare-and-set 1 to 3 of r0"),
        ("read", None, None, "a read"),
        ("add", 5, "s", "add 5 to key s"),
        ("remove", 5, "set", "remove 5 from set"),
        ("enqueue", "x", "q1", "enqueue x to q1"),
        ("dequeue", None, "q1", "a dequeue of q1"),
        ("acquire", "c1", "lock", "an acquire by c1 of lock"),
        ("acquire", None, "lock", "an acquire of lock"),
        ("txn", [["r", "x", None]], "g1", "a transaction of g1"),
        ("contains", 5, "s1", "contains 5 of s1"),
    ],
)
def test_a_request_is_a_noun(f: str, argument: Any, key: str | None, text: str) -> None:
    assert request_of(operation(f, argument, start=0, end=1, key=key)) == text


@pytest.mark.parametrize(
    ("f", "argument", "result", "verb"),
    [
        ("write", 1, 1, "acknowledged"),
        ("write", False, False, "acknowledged"),
        ("write", [1, 2, False], [1, 2, False], "acknowledged"),
        ("write", [1, 7], [1, 7, False], "refused"),
        ("cas", [1, 2], [1, 2, True], "acknowledged"),
        ("cas", [1, 2], [1, 2, False], "refused"),
        ("create", 3, [3, False], "refused"),
        ("delete", None, False, "refused"),
        ("acquire", "a", False, "refused"),
        ("read", None, False, "answered"),
        ("dequeue", None, None, "answered"),
    ],
)
def test_an_answer_has_its_verb(f: str, argument: Any, result: Any, verb: str) -> None:
    assert step_of(operation(f, argument, result, start=0, end=1)).verb == verb


@pytest.mark.parametrize(
    ("ns", "text"),
    [(0, "0 ms"), (400_000, "0.4 ms"), (29 * MS, "29 ms"), (1_300 * MS, "1.3 s")],
)
def test_a_distance_has_its_unit(ns: int, text: str) -> None:
    assert gap_text(ns) == text


def test_results_of_earlier_versions_keep_their_reason_behind_the_name_of_their_kind() -> None:
    found = {"kind": "lost", "sentence": "Element 5 is gone."}
    result = CheckResult("set-full", Verdict.INVALID, "1 lost: it is gone.", violations=(found,))
    assert account_of(result) is None
    assert headline_of(result) == "Lost write. 1 lost: it is gone."
    assert steps_in(found) == []
    assert steps_in({"steps": [{"odd": 1}]}) == []
    own = CheckResult("mine", Verdict.INVALID, "Bad.", violations=({"kind": "odd"},))
    assert headline_of(own) == "Bad."
    assert headline_of(CheckResult("mine", Verdict.UNKNOWN, "Why.")) == "Why."
