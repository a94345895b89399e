from random import Random
from typing import Any

import pytest

from splitbrain.checker import fencing_tokens
from splitbrain.checker.fencing_tokens import check
from splitbrain.checker.verdict import CheckResult, Verdict
from splitbrain.contracts.budget import Unlimited
from splitbrain.history.records import PairedOperation
from tests.unit.checker.operations import operation
from tests.unit.checker.small_histories import random_history


def write(
    token: int, start: int, end: int | None, *, accepted: bool = True, **fields: Any
) -> PairedOperation:
    result = None if end is None else [token, 0, accepted]
    return operation("write", [token, 0], result, start=start, end=end, **fields)


def lock(
    f: str, start: int, end: int, process: int, result: Any = True, **fields: Any
) -> PairedOperation:
    return operation(f, None, result, start=start, end=end, process=process, **fields)


def judged(*operations: PairedOperation) -> CheckResult:
    return check(operations, Unlimited())


def observed(*operations: PairedOperation) -> list[str]:
    result = judged(write(1, 900, 901), *operations)
    assert result.verdict is Verdict.VALID
    return [found["kind"] for found in result.observations]


def test_rising_tokens_are_valid() -> None:
    result = judged(write(1, 0, 1), write(1, 2, 3), write(4, 4, 5))
    assert result.verdict is Verdict.VALID
    assert result.figures["accepted"] == 3


def test_a_write_accepted_with_a_lower_token_than_an_earlier_one_is_a_violation() -> None:
    result = judged(write(4, 0, 1), write(3, 2, 3))
    assert result.verdict is Verdict.INVALID
    assert [found["sentence"] for found in result.violations] == [
        "The write of index 2 of key a was accepted with token 3, after token 4 had been (index 0)."
    ]


def test_a_lower_token_that_is_refused_unanswered_or_concurrent_is_none() -> None:
    for late in (
        write(3, 2, 3, accepted=False),
        write(3, 2, None),
        write(3, 1, 3),
        write(3, 2, 3, key="b"),
    ):
        assert judged(write(4, 0, 1), late).verdict is Verdict.VALID


def test_an_unanswered_write_accuses_nobody() -> None:
    assert judged(write(4, 0, None), write(3, 2, 3)).verdict is Verdict.VALID


def test_two_believed_holders_are_an_observation() -> None:
    held = lock("acquire", 0, 1, 1), lock("acquire", 2, 3, 2), lock("release", 4, 5, 1)
    assert observed(*held) == ["two-believed-holders"]
    result = judged(write(1, 900, 901), *held)
    assert result.observations[0]["sentence"] == (
        "Process 2 acquired the lock of key a (index 2) while process 1 believed to hold it "
        "(index 0)."
    )


def test_holders_one_after_the_other_are_not_even_that() -> None:
    assert (
        observed(
            lock("acquire", 0, 1, 1),
            lock("release", 2, 3, 1),
            lock("acquire", 2, 3, 2),
            lock("acquire", 3, 4, 3, False),
            lock("release", 4, 5, 2),
            lock("acquire", 6, 7, 1),
        )
        == []
    )


def test_a_token_that_was_given_out_twice_is_an_observation() -> None:
    assert observed(
        lock("acquire", 0, 1, 1, 33), lock("release", 2, 3, 1), lock("acquire", 4, 5, 2, 33)
    ) == ["token-repeated"]


def test_without_an_accepted_write_nothing_is_proven() -> None:
    assert judged(write(1, 0, 1, accepted=False)).verdict is Verdict.UNKNOWN
    assert judged().verdict is Verdict.UNKNOWN


def test_a_token_that_is_no_number_is_unknown() -> None:
    result = judged(operation("write", "x", [1, 2, True], start=0, end=1))
    assert result.verdict is Verdict.UNKNOWN
    assert "has no argument [token, value]" in result.reason


# --- against the definition taken literally ---------------------------------------------------


def literal(operations: list[PairedOperation]) -> int:
    accepted = [o for o in operations if o.f == "write" and o.type == "ok" and o.result[2]]
    return sum(
        any((e.end or 0) < late.start and e.argument[0] > late.argument[0] for e in accepted)
        for late in accepted
    )


def differ() -> bool:
    random = Random("fencing")
    for _ in range(3000):
        history = random_history(random, "fenced-register")
        if judged(*history).figures["lower-token-accepted"] != literal(history):
            return True
    return False


def test_the_sweep_agrees_with_the_definition_taken_literally() -> None:
    assert not differ()


def test_a_mutant_that_orders_ties_disagrees(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fencing_tokens, "end_of", lambda o: o.end - 1)
    assert differ()


def test_a_mutant_that_takes_refusals_for_acceptance_disagrees(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(fencing_tokens, "granted", lambda _: True)
    assert differ()
