"""Anomalies that a system documents are counted and alarm nobody; the rest stays red."""

from types import ModuleType

import pytest

from splitbrain.checker.allowing import with_allowed
from splitbrain.checker.evidence import Evidence
from splitbrain.checker.linearizability.part.parts import PartResult, combine
from splitbrain.checker.names import KINDS, checker_names, violation_kinds
from splitbrain.checker.own_checker import OwnChecker
from splitbrain.checker.registry import checker_named
from splitbrain.checker.verdict import CheckResult, Verdict
from splitbrain.contracts.budget import Budget, Unlimited
from splitbrain.contracts.system import AllowedAnomaly
from splitbrain.history.functions import USUAL, Function
from splitbrain.history.records import PairedOperation
from tests.unit.checker.mutated import mutated
from tests.unit.checker.operations import operation as op
from tests.unit.checker.outcome_cases import CASES, UNKNOWN, VALID, Case, finals, once, put, take

DUPLICATED = AllowedAnomaly("queue-totals", "duplicated", "delivers at least once")
LOST = AllowedAnomaly("queue-totals", "lost", "replicates later")
#: Element 1 is lost, 2 and 3 come twice.
BOTH = (
    *(put(n, 0, 1, index=n) for n in (1, 2, 3)),
    *(take(n, time, time + 1, index=10 + time) for n, time in ((2, 2), (2, 4), (3, 6), (3, 8))),
    *finals(None, None, None),
)
FUNCTIONS = {**USUAL, "dequeue": Function("changes")}


def judged(*allowed: AllowedAnomaly, operations: tuple[PairedOperation, ...] = BOTH) -> CheckResult:
    evidence = Evidence(operations=operations, allowed=allowed, functions=FUNCTIONS)
    return checker_named("queue-totals")(evidence, Unlimited())


def kinds_of(result: CheckResult) -> set[str]:
    return {str(violation["kind"]) for violation in result.violations}


def test_nothing_is_allowed_that_nobody_declared() -> None:
    found = judged()
    assert kinds_of(found) == {"lost", "duplicated"}
    assert (found.word, found.allowed) == ("invalid", {})
    others = (
        AllowedAnomaly("unique-ids", "duplicated", "x"),
        AllowedAnomaly("set-full", "lost", "x"),
    )
    assert judged(*others) == found


def test_only_the_declared_kind_is_allowed_and_the_other_one_leads_the_reason() -> None:
    found = judged(DUPLICATED)
    assert (found.verdict, kinds_of(found)) == (Verdict.INVALID, {"lost"})
    assert found.allowed == {"duplicated": 2}
    assert found.reason.startswith("1 lost: Element 1 of key a was acknowledged")
    assert found.reason.endswith("Allowed: 2 duplicated (delivers at least once).")
    assert [one["kind"] for one in found.observations] == ["duplicated", "duplicated"]


def test_a_result_of_allowed_ones_alone_is_valid_and_says_so() -> None:
    found = judged(DUPLICATED, LOST)
    assert (found.verdict, found.word, found.violations) == (Verdict.VALID, "allowed", ())
    assert found.allowed == {"lost": 1, "duplicated": 2}
    assert "1 lost (replicates later); 2 duplicated (delivers at least once)." in found.reason
    # Its own figures stay.
    assert (found.figures["lost"], found.figures["duplicated"]) == (1, 2)


def test_an_undecided_rest_is_never_valid_for_what_is_allowed() -> None:
    """A drain that ended early stands beside a duplicate that is allowed."""
    found = judged(DUPLICATED, operations=BOTH[:-1])
    assert (found.verdict, found.word) == (Verdict.UNKNOWN, "unknown")
    assert "nobody found the queue empty at the end" in found.reason
    assert found.allowed == {"duplicated": 2}


def test_a_valid_or_unknown_result_is_left_as_it_is() -> None:
    valid = judged(DUPLICATED, LOST, operations=(put(1, 0, 1), *finals(1, None, None, None)))
    assert (valid.verdict, valid.word, valid.allowed) == (Verdict.VALID, "valid", {})
    unknown = judged(DUPLICATED, LOST, operations=(put(1, 0, 1), *finals(None)))
    assert (unknown.verdict, unknown.allowed) == (Verdict.UNKNOWN, {})


def test_a_violation_that_is_not_described_stays_red() -> None:
    bare = CheckResult("queue-totals", Verdict.INVALID, "Something.", figures={"duplicated": 3})
    assert with_allowed(bare, [DUPLICATED]) == bare


def test_a_name_of_a_checker_may_allow_it_too() -> None:
    checker = checker_named("queue-totals:duplicates-allowed")
    evidence = Evidence(operations=BOTH, functions=FUNCTIONS)
    assert kinds_of(checker(evidence, Unlimited())) == {"lost"}
    both = checker(Evidence(operations=BOTH, functions=FUNCTIONS, allowed=(LOST,)), Unlimited())
    assert (both.word, both.allowed) == ("allowed", {"lost": 1, "duplicated": 2})


INVALID_CASES = [
    pytest.param(module, case, id=f"{module.__name__.rpartition('.')[2]}: {name}")
    for module, cases in CASES.items()
    for name, case in cases.items()
    if case.expected not in (VALID, UNKNOWN)
]


@pytest.mark.parametrize(("module", "case"), INVALID_CASES)
def test_each_kind_is_described_declared_and_allowed_apart(module: ModuleType, case: Case) -> None:
    found: CheckResult = module.check(case.operations, Unlimited(), **case.options)
    kinds = kinds_of(found)
    assert kinds == {kind for kind in KINDS[found.checker] if found.figures[kind]}
    anomalies = [AllowedAnomaly(found.checker, kind, "documented") for kind in kinds]
    for anomaly in anomalies:
        assert kinds_of(with_allowed(found, [anomaly])) == kinds - {anomaly.kind}
    nothing_left = with_allowed(found, anomalies)
    wanted = Verdict.VALID if found.undecided is None else Verdict.UNKNOWN
    assert nothing_left.verdict is wanted
    assert nothing_left.allowed == {kind: found.figures[kind] for kind in nothing_left.allowed}
    assert set(nothing_left.allowed) == kinds


def part(verdict: Verdict, key: str) -> PartResult:
    violation = {"kind": "not-linearizable", "sentence": "No."} if verdict == "invalid" else None
    return PartResult(key, verdict, "exact", f"{key}.", 3, {}, violation)


def test_locks_that_are_unsafe_as_documented_are_allowed() -> None:
    unsafe = AllowedAnomaly("linearizability:mutex", "not-linearizable", "no fencing tokens")
    operations = (
        once("acquire", 0, None, True, process=1),
        once("acquire", 2, None, True, process=2, index=2),
    )
    check = checker_named("linearizability:mutex")
    assert check(Evidence(operations=operations), Unlimited()).verdict is Verdict.INVALID
    found = check(Evidence(operations=operations, allowed=(unsafe,)), Unlimited())
    assert (found.word, found.allowed) == ("allowed", {"not-linearizable": 1})
    # Parts that nobody could judge stay open beside those that are allowed.
    parts = [part(Verdict.INVALID, f"k{n}") for n in range(30)]
    beside = with_allowed(combine([*parts, part(Verdict.UNKNOWN, "u")], "mutex"), [unsafe])
    assert beside.verdict is Verdict.UNKNOWN
    assert beside.reason.startswith("1 of 31 parts undecided: u.")
    assert beside.allowed == {"not-linearizable": 30}


def test_a_checker_of_a_package_respects_it_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody else knows whether it describes each kind, and what it left undecided."""

    class Strict(OwnChecker):
        name = "strict"

        def check(self, evidence: Evidence, budget: Budget) -> CheckResult:
            found = ({"kind": "odd", "sentence": "Odd."},)
            return CheckResult("strict", Verdict.INVALID, "Odd.", violations=found)

    class Lenient(Strict):
        def check(self, evidence: Evidence, budget: Budget) -> CheckResult:
            return with_allowed(super().check(evidence, budget), evidence.allowed)

    evidence = Evidence(operations=(), allowed=(AllowedAnomaly("strict", "odd", "documented"),))
    for kind, word in ((Strict, "invalid"), (Lenient, "allowed")):
        monkeypatch.setattr("splitbrain.checker.registry.OFFERS.offered", lambda _, k=kind: k())
        assert checker_named("strict")(evidence, Unlimited()).word == word


def test_kinds_are_named_for_each_checker_and_no_other() -> None:
    plain = {name.partition(":")[0] for name in checker_names()}
    assert set(KINDS) == plain
    assert violation_kinds("linearizability:fifo-queue") == ("not-linearizable",)
    for wrong in (
        "linearizability",
        "linearizability:heap",
        "queue-totals:duplicates-allowed",
        "",
    ):
        assert violation_kinds(wrong) is None


MUTANTS = {
    "any checker's are allowed": ("if anomaly.checker == result.checker", ""),
    "all kinds are allowed": ('if violation.get("kind") not in reasons\n', "if False\n"),
    "what is undecided is valid": ("elif result.undecided is not None:", "elif False:"),
    "they are not counted": ("ALLOWED: counts", "ALLOWED: {}"),
    "those described are all": ("if isinstance(figure, int):", "if False:"),
}


@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_mutant_is_told_apart(mutant: str) -> None:
    from splitbrain.checker import allowing

    changed = mutated(allowing, *MUTANTS[mutant]).with_allowed
    many = judged(operations=(*BOTH, *(op("dequeue", None, 2, start=9, end=10),) * 40))
    open_ended = judged(operations=BOTH[:-1])
    other = AllowedAnomaly("unique-ids", "lost", "x")
    questions = [
        *((result, [anomaly]) for result in (many, open_ended) for anomaly in (DUPLICATED, other)),
        (open_ended, [DUPLICATED, LOST]),
        (combine([part(Verdict.INVALID, f"k{n}") for n in range(30)], "mutex"), [
            AllowedAnomaly("linearizability:mutex", "not-linearizable", "x")
        ]),
    ]  # fmt: skip
    assert any(changed(*question) != with_allowed(*question) for question in questions)
