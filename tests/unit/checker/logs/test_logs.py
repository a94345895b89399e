"""Kinds of violations of a log's promises, each by its smallest history and its neighbour."""

from typing import Any

import pytest

from splitbrain.checker.evidence import Evidence
from splitbrain.checker.logs.check import KINDS, check
from splitbrain.checker.logs.parts import Sense
from splitbrain.checker.names import KINDS as NAMED_KINDS
from splitbrain.checker.names import checker_names
from splitbrain.checker.registry import checker_named
from splitbrain.checker.verdict import ALLOWED as ALLOWED_FIGURE
from splitbrain.checker.verdict import Verdict
from splitbrain.contracts.budget import Unlimited
from tests.unit.checker.logs.cases import (
    CASES,
    assigned,
    history,
    open_send,
    polled,
    sent,
    txn,
    whole,
)
from tests.unit.checker.logs.small_logs import operation


def kinds_in(operations: Any) -> set[str]:
    result = check(operations, Unlimited())
    return {violation["kind"] for violation in result.violations}


@pytest.mark.parametrize("name", CASES)
def test_an_anomaly_is_found_and_its_neighbour_is_none(name: str) -> None:
    shown, nearly = CASES[name]
    kind = name.partition(",")[0]
    assert kinds_in(shown) == {kind}
    assert kind not in kinds_in(nearly)
    assert check(nearly, Unlimited()).verdict is not Verdict.INVALID


def test_every_kind_has_a_case() -> None:
    assert {name.partition(",")[0] for name in CASES} == set(KINDS)
    assert NAMED_KINDS["log"] == KINDS


@pytest.mark.parametrize(
    ("option", "kinds"),
    [
        ("duplicates-allowed", {"duplicated"}),
        ("read-uncommitted", {"aborted-read", "precommitted-read", "torn-transaction", "G1c"}),
    ],
)
def test_a_name_allows_its_kinds_alone(option: str, kinds: set[str]) -> None:
    judge = checker_named(f"log:{option}")
    assert f"log:{option}" in checker_names()
    for name, (shown, _) in CASES.items():
        result = judge(Evidence(operations=tuple(shown)), Unlimited())
        is_allowed = name.partition(",")[0] in kinds
        assert (result.verdict is Verdict.INVALID) == (not is_allowed), name
        assert bool(result.figures.get(ALLOWED_FIGURE)) == is_allowed


def test_a_right_log_is_valid_and_told_in_figures() -> None:
    result = check(
        history(
            *(sent(1, 0, 0), sent(2, 1, 2), open_send(3, 2)),
            *whole(4, k=[[0, 1], [1, 2], [2, 3]]),
        ),
        Unlimited(),
    )
    assert result.verdict is Verdict.VALID
    assert result.reason == "2 acknowledged records: none is lost, and reads agree."
    assert (result.figures["sent"], result.figures["acknowledged"]) == (3, 2)


def test_a_record_that_no_read_came_to_is_unknown() -> None:
    result = check(
        history(sent(1, 0, 0), assigned(2), polled([[0, 1]], 2), sent(2, 1, 4)), Unlimited()
    )
    assert result.verdict is Verdict.UNKNOWN
    assert result.reason.startswith("1 acknowledged record lies where no read came to")
    nothing = check(history(sent(1, 0, 0)), Unlimited())
    assert nothing.reason == "Nothing was ever read, so there is nothing to judge."


def test_a_poll_that_failed_leaves_its_consumer_anywhere() -> None:
    failed = ("poll", [["poll"]], 3, 4, {"process": 9, "outcome": "fail"})
    rows = (sent(1, 0, 0), sent(2, 1, 2), assigned(3), failed, polled([[1, 2]], 5))
    assert kinds_in(history(*rows)) == set()


def test_what_is_told_names_record_offset_and_who_passed_over_it() -> None:
    shown, _ = CASES["lost"]
    (violation,) = check(shown, Unlimited()).violations
    assert violation["sentence"] == (
        "1 was acknowledged at offset 0 of log k (index 0), process 9 passed over offset 0 (index "
        "3), and nobody ever read it."
    )
    assert [member["index"] for member in violation["operations"]] == [0, 3]


def test_an_aborted_transaction_that_nobody_read_is_no_loss() -> None:
    aborted = txn(0, 1, ["k", 1, None], outcome="fail")
    assert check(history(aborted, sent(2, 1, 2), *whole(4, k=[[1, 2]])), Unlimited()).verdict is (
        Verdict.VALID
    )


def test_keys_of_answers_are_those_that_were_asked_whatever_json_makes_of_them() -> None:
    rows = history(
        ("send", [["send", 0, 1]], 0, 1, {"result": [["send", 0, [0, 1]]]}),
        ("poll", [["poll"]], 2, 3, {"result": [["poll", {"0": [[0, 1]]}]]}),
    )
    assert check(rows, Unlimited()).verdict is Verdict.VALID


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        (
            ("read", None, 0, 1, {}),
            "operations on a log are send, poll, txn, abort, assign and subscribe",
        ),
        (("send", 5, 0, 1, {}), "is a list of parts, and not 5"),
        (("send", [["sent", "k", 1]], 0, 1, {}), "a part is"),
        (("send", [["send", "k"]], 0, 1, {}), "a part is"),
        (("send", [["send", "k", None]], 0, 1, {}), "sends nothing"),
        (("send", [7], 0, 1, {}), "a part is"),
        (("assign", 3, 0, 1, {}), "is a list of keys, and not 3"),
        (("subscribe", {"k": 0}, 0, 1, {}), "is a list of keys"),
        (("assign", {"k": -1}, 0, 1, {}), "-1 is no offset"),
        (("assign", {"k": "0"}, 0, 1, {}), "is no offset"),
        (sent(1, 0, 0, result=[]), "it is asked 1 part and answers []"),
        (sent(1, 0, 0, result=[["send", "l", [0, 1]]]), "and answers"),
        (sent(1, 0, 0, result=[["send", "k", [0, 2]]]), "and answers"),
        (sent(1, 0, 0, result=[["send", "k", [-2, 1]]]), "and answers"),
        (sent(1, 0, 0, result=[["send", "k", [0.5, 1]]]), "and answers"),
        (("poll", [["poll"]], 0, 1, {"result": [["poll"]]}), "and answers"),
        (("poll", [["poll"]], 0, 1, {"result": [["poll", [1]]]}), "and answers"),
        (("poll", [["poll"]], 0, 1, {"result": [["poll", {"k": 3}]]}), "a poll answers lists of"),
        (("poll", [["poll"]], 0, 1, {"result": [["poll", {"k": [3]}]]}), "a record is"),
        (("poll", [["poll"]], 0, 1, {"result": [["poll", {}, 5]]}), "offsets by key, and not 5"),
        (("poll", [["poll"]], 0, 1, {"result": [["poll", {}, {"k": None}]]}), "is no offset"),
    ],
)
def test_what_makes_no_sense_is_told(row: Any, problem: str) -> None:
    (wrong,) = history(row)
    assert problem in (Sense()(wrong) or "")


def test_a_value_that_is_sent_twice_makes_no_sense() -> None:
    sense = Sense()
    first = operation(0, "send", [["send", "k", 1]], 0, 1, outcome="fail")
    again = operation(2, "send", [["send", "k", 1]], 2, 3, outcome="info")
    elsewhere = operation(4, "send", [["send", "l", 1]], 4, 5, outcome="info")
    assert sense(first) is None
    assert "a second time (first by event 0)" in (sense(again) or "")
    assert sense(elsewhere) is None
    twice = operation(6, "send", [["send", "m", 1], ["send", "m", 1]], 6, 7, outcome="info")
    assert "a second time" in (sense(twice) or "")


@pytest.mark.parametrize("f", ["crash", "debug-topic-partitions"])
def test_operations_of_jepsen_that_tell_nothing_are_passed_over(f: str) -> None:
    assert Sense()(operation(0, f, None, 0, 1)) is None
    assert check([operation(0, f, None, 0, 1)], Unlimited()).verdict is Verdict.UNKNOWN
