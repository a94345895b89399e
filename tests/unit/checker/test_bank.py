from typing import Any

from splitbrain.checker.bank import check
from splitbrain.checker.evidence import Evidence
from splitbrain.checker.registry import checker_named
from splitbrain.checker.verdict import CheckResult, Verdict
from splitbrain.contracts.budget import Unlimited
from splitbrain.history.records import PairedOperation
from tests.unit.checker.operations import operation


def read(start: int, *balances: Any, **fields: Any) -> PairedOperation:
    accounts = dict(zip("abcdef", balances, strict=False))
    return operation("read", None, accounts, start=start, end=start + 1, **fields)


def transfer(start: int) -> PairedOperation:
    return operation("transfer", {"from": "a", "to": "b", "amount": 3}, start=start, end=start + 1)


def judged(*operations: PairedOperation, **options: Any) -> CheckResult:
    return check(operations, Unlimited(), **options)


def kinds(*operations: PairedOperation, **options: Any) -> list[str]:
    return [found["kind"] for found in judged(*operations, **options).violations]


def test_transfers_that_keep_the_total_are_valid() -> None:
    result = judged(read(0, 5, 5), transfer(2), read(4, 2, 8))
    assert result.verdict is Verdict.VALID
    assert result.figures["reads"] == 2


def test_a_read_amid_a_transfer_shows_another_total_than_most() -> None:
    result = judged(read(0, 5, 5), read(2, 2, 5), read(4, 2, 8))
    assert result.verdict is Verdict.INVALID
    assert [found["sentence"] for found in result.violations] == [
        "The read of index 2 of key a sums up to 7, not 10."
    ]


def test_a_total_that_is_wrong_from_the_beginning_is_found_where_it_is_given() -> None:
    assert kinds(read(0, 5, 4), read(2, 5, 4)) == []
    assert kinds(read(0, 5, 4), read(2, 5, 4), total=10) == ["wrong-total"] * 2
    evidence = Evidence(operations=(read(0, 5, 4),))
    assert checker_named("bank:total=10")(evidence, Unlimited()).verdict is Verdict.INVALID
    assert checker_named("bank:total=9")(evidence, Unlimited()).verdict is Verdict.VALID


def test_a_negative_balance_is_a_violation_unless_it_is_allowed() -> None:
    reads = read(0, 5, 5), read(2, -1, 11)
    assert kinds(*reads) == ["negative-balance"]
    assert kinds(*reads, negative_balances_allowed=True) == []


def test_a_balance_that_is_no_number_is_a_violation() -> None:
    assert kinds(read(0, 5, 5), read(2, None, 10)) == ["no-balance"]


def test_banks_are_judged_apart() -> None:
    reads = [read(n, 5, 5 + n // 4, key="ab"[n // 4]) for n in (0, 2, 4, 6)]
    assert judged(*reads).verdict is Verdict.VALID


def test_one_read_alone_is_unknown_unless_the_total_is_given() -> None:
    assert judged(read(0, 5, 5)).verdict is Verdict.UNKNOWN
    assert judged(read(0, 5, 5), total=10).verdict is Verdict.VALID
    assert judged().verdict is Verdict.UNKNOWN


def test_what_shows_no_balances_is_unknown() -> None:
    result = judged(operation("read", None, 3, start=0, end=1))
    assert result.verdict is Verdict.UNKNOWN
    assert result.reason == "Not finished: the read of index 0 answered no balances by account."
