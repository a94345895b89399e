"""Share groups: each rule convicts, its neighbour does not; mutants of the rules, too."""

from typing import Any

import pytest

from splitbrain.checker.evidence import Evidence
from splitbrain.checker.names import KINDS as KINDS_BY_CHECKER
from splitbrain.checker.registry import checker_named
from splitbrain.checker.share_groups import check as checker
from splitbrain.checker.share_groups import holds
from splitbrain.checker.share_groups.check import KINDS, check
from splitbrain.checker.share_groups.readings import problem_with
from splitbrain.contracts.budget import Unlimited
from splitbrain.contracts.share_groups import SHARE_GROUPS
from splitbrain.harness.judge.bare_judging import sense_of
from tests.unit.checker.mutated import mutated
from tests.unit.checker.share_cases import CASES
from tests.unit.checker.share_histories import Written
from tests.unit.checker.share_mutants import MUTANTS
from tests.unit.checker.transform_histories import kinds_and_verdict


@pytest.mark.parametrize("name", CASES)
def test_share_groups_are_judged(name: str) -> None:
    written, kinds, verdict = CASES[name]
    assert kinds_and_verdict(check, written.operations) == (kinds, verdict)


@pytest.mark.parametrize("name", MUTANTS)
def test_a_mutant_is_told_apart(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module, found, put = MUTANTS[name]
    wrong = vars(mutated(module, found, put))
    # Whatever the others take from a module they take from its mutant.
    for user in (checker, holds):
        for own in wrong.keys() & vars(user).keys():
            if not own.startswith("__"):
                monkeypatch.setattr(user, own, wrong[own])
    judge = wrong["check"] if module is checker else check
    assert any(
        kinds_and_verdict(judge, written.operations) != (kinds, verdict)
        for written, kinds, verdict in CASES.values()
    )


REASONS = {
    "the log is not read": "No final read came to the end of log 0.",
    "nobody saw the end": "No final acquire found that there is no more.",
    "nothing is there": "Nothing was acquired.",
    "all are delivered": "1 record was delivered, 1 of them settled for good, and none of these "
    "again.",
    "delivered to nobody": "1 lost-record: 'b' was acknowledged at offset 1 of log 0, and was "
    "delivered to no member, though the end of the log was seen.",
    "again by an earlier leader": "1 stale-delivery: 'a' at offset 0 of log 0 was accepted by "
    "member m1 in epoch 2 of the log's leader, and after that member m2 was delivered it again in "
    "epoch 1.",
    "two hold it, and the first is refused": "1 two-holders: The record at offset 0 of log 0 was "
    "delivered to member m2, and member m1 held it, which had asked for it less than 1,000 ms "
    "before.",
    "another value": "1 phantom-record: 'x' was delivered to a member as the record at offset 0 of "
    "log 0, and a final read shows 'a' there.",
}


@pytest.mark.parametrize(("name", "reason"), REASONS.items())
def test_the_reason_is_said(name: str, reason: str) -> None:
    assert check(CASES[name][0].operations, Unlimited()).reason == reason


def test_a_violation_names_its_operations() -> None:
    written, *_ = CASES["accepted, and again"]
    (violation,) = check(written.operations, Unlimited()).violations
    assert [each["index"] for each in violation["operations"]] == [1, 2]


def test_figures_tell_how_much_was_judged() -> None:
    written = Written().send("0", 0, "a").send("0", 1, "b").acquire(1, {"0": {0: "a"}})
    written.settle(1, {"0": [0]}, "release").acquire(2, {"0": {0: "a"}}).settle(2, {"0": [0]})
    for process in range(10, 20):
        written.acquire(process, {}, unanswered=["0"])
    figures = check(written.ended({0: "a", 1: "b"}).operations, Unlimited()).figures
    assert figures == {
        "acquired": 1,
        "deliveries": 2,
        "settled": 1,
        "maybe-exhausted": 1,
        **dict.fromkeys(KINDS, 0),
    }


def test_every_kind_has_a_case() -> None:
    found = {kind for _, kinds, _ in CASES.values() for kind in kinds}
    assert found == set(KINDS) == set(KINDS_BY_CHECKER[SHARE_GROUPS])


ACQUIRED: dict[str, Any] = {
    "member": "m",
    "records": {"0": [[0, "a", 1]]},
    "epochs": {"0": [1, None], "1": None},
    "unanswered": [],
    "lock-ms": 100,
}
SETTLED: dict[str, Any] = {"member": "m", "settled": {"0": [1]}, "unclear": {}, "epochs": None}


@pytest.mark.parametrize(
    ("f", "argument", "result", "problem"),
    [
        ("read", None, 1, "operations are send, acquire, settle, leave and poll, and not read"),
        ("acquire", None, None, "tells member, records, epochs, unanswered, lock-ms: "),
        ("acquire", None, {**ACQUIRED, "member": None}, "does not"),
        ("acquire", None, {**ACQUIRED, "records": [[0, "a", 1]]}, "does not"),
        ("acquire", None, {**ACQUIRED, "records": {"0": [[0, "a"]]}}, "does not"),
        ("acquire", None, {**ACQUIRED, "records": {"0": [[-1, "a", 1]]}}, "does not"),
        ("acquire", None, {**ACQUIRED, "records": {"0": [["0", "a", 1]]}}, "does not"),
        ("acquire", None, {**ACQUIRED, "records": {"0": [[0, "a", None]]}}, "does not"),
        ("acquire", None, {**ACQUIRED, "epochs": {"0": 1}}, "does not"),
        ("acquire", None, {**ACQUIRED, "epochs": {"0": [1]}}, "does not"),
        ("acquire", None, {**ACQUIRED, "epochs": {"0": [1, "2"]}}, "does not"),
        ("acquire", None, {**ACQUIRED, "unanswered": None}, "does not"),
        ("acquire", None, {**ACQUIRED, "unanswered": [0]}, "does not"),
        ("acquire", None, {**ACQUIRED, "lock-ms": None}, "does not"),
        ("settle", "keep", SETTLED, "to accept, release or reject, and not to 'keep'"),
        ("settle", "accept", [], "tells member, settled, unclear, epochs: "),
        ("settle", "accept", {**SETTLED, "member": 1}, "does not"),
        ("settle", "accept", {**SETTLED, "settled": [1]}, "does not"),
        ("settle", "accept", {**SETTLED, "settled": {"0": [[1]]}}, "does not"),
        ("settle", "accept", {**SETTLED, "unclear": None}, "does not"),
        ("settle", "accept", {**SETTLED, "epochs": [1]}, "does not"),
        ("leave", None, 7, "it answers the member that left, and not 7"),
        *(
            ("acquire", None, {k: v for k, v in ACQUIRED.items() if k != word}, "does not")
            for word in ACQUIRED
        ),
        *(
            ("settle", "accept", {k: v for k, v in SETTLED.items() if k != word}, "does not")
            for word in SETTLED
        ),
    ],
)
def test_nonsense_is_said(f: str, argument: Any, result: Any, problem: str) -> None:
    (operation,) = Written().add(f, argument, result).operations
    found = problem_with(operation)
    assert found is not None
    assert problem in found


def test_sense_is_no_problem() -> None:
    written = Written().add("acquire", None, ACQUIRED).add("settle", "reject", SETTLED)
    written.add("acquire", None, ACQUIRED, final=True).add("acquire", None, None, final=True)
    written.add("acquire", None, type_="info").add("settle", "accept", type_="fail")
    written.add("leave", None, "m").add("leave", None, None)
    assert [problem_with(each) for each in written.operations] == [None] * 8


@pytest.mark.parametrize("name", CASES)
def test_cases_make_sense(name: str) -> None:
    ours = [each for each in CASES[name][0].operations if each.f not in ("send", "poll")]
    assert [problem_with(each) for each in ours] == [None] * len(ours)


def test_bare_histories_are_held_to_it() -> None:
    problem = sense_of(SHARE_GROUPS)
    written = Written().send("0", 0, "a").acquire(1, {"0": {0: "a"}}).settle(1, {"0": [0]})
    assert [problem(each) for each in written.ended({0: "a"}).operations] == [None] * 6
    (strange,) = Written().add("consume", None, {}).operations
    assert "and not consume" in (problem(strange) or "")


def test_the_registry_knows_it() -> None:
    written, _, verdict = CASES["accepted, and again"]
    found = checker_named(SHARE_GROUPS)(Evidence(operations=written.operations), Unlimited())
    assert found.verdict is verdict
