"""Transforms: each rule convicts, its neighbour does not; mutants and random pipelines, too.

It is longer than 400 lines because the cases and the mutants that they tell apart stand together.
"""

from typing import Any

import pytest

from splitbrain.checker import exactly_once
from splitbrain.checker.exactly_once import KINDS, problem_with
from splitbrain.checker.logs import whole
from splitbrain.checker.names import KINDS as KINDS_BY_CHECKER
from splitbrain.checker.registry import checker_named
from splitbrain.checker.verdict import Verdict
from splitbrain.contracts.budget import Unlimited
from tests.unit.checker.mutated import mutated
from tests.unit.checker.transform_histories import Check, Written, kinds_and_verdict


def out(offset: int, value: Any, log: str = "0") -> list[Any]:
    return [log, offset, value]


AB = {0: "a", 1: "b"}

#: History, kinds of violations, verdict.
CASES: dict[str, tuple[Written, set[str], Verdict]] = {
    "all is done once": (
        Written().send("0", 0, 7).transform("0", {0: 7}).ended({0: 7}, {0: out(0, 7)}, 1),
        set(),
        Verdict.VALID,
    ),
    "outputs in two logs": (
        Written().ended(AB, {0: out(0, "a")}, 2, {4: out(1, "b")}),
        set(),
        Verdict.VALID,
    ),
    "an input that nobody came to": (
        Written().transform("0", {0: "a"}).ended(AB, {0: out(0, "a")}, 1),
        set(),
        Verdict.VALID,
    ),
    "an aborted transaction leaves holes": (
        Written().transform("0", AB, "abandon").ended(AB, {5: out(0, "a")}, 1),
        set(),
        Verdict.VALID,
    ),
    "an input twice": (
        Written().ended(AB, {0: out(0, "a"), 1: out(0, "a"), 2: out(1, "b")}, 2),
        {"duplicated-output"},
        Verdict.INVALID,
    ),
    "an input twice, in two logs": (
        Written().ended({0: "a"}, {0: out(0, "a")}, 1, {0: out(0, "a")}),
        {"duplicated-output"},
        Verdict.INVALID,
    ),
    "an input passed over": (
        Written().ended(AB, {0: out(1, "b")}, 2),
        {"lost-output"},
        Verdict.INVALID,
    ),
    "an output behind the offset": (
        Written().ended(AB, {0: out(0, "a"), 1: out(1, "b")}, 1),
        {"output-without-offset"},
        Verdict.INVALID,
    ),
    "an output, and no offset at all": (
        Written().ended({0: "a"}, {0: out(0, "a")}, None),
        {"output-without-offset"},
        Verdict.INVALID,
    ),
    "an output of another value": (
        Written().ended(AB, {0: out(0, "x"), 1: out(1, "b")}, 2),
        {"phantom-output"},
        Verdict.INVALID,
    ),
    "an output of nothing": (
        Written().ended({0: "a"}, {0: out(0, "a"), 1: "a"}, 1),
        {"phantom-output"},
        Verdict.INVALID,
    ),
    "an output of an offset where nothing is": (
        Written().ended({0: "a", 2: "c"}, {0: out(0, "a"), 1: out(1, "b"), 2: out(2, "c")}, 3),
        {"phantom-output"},
        Verdict.INVALID,
    ),
    "acknowledged, and its output is nowhere": (
        Written().transform("0", {1: "b"}).ended({0: "a", 1: "b"}, {0: out(0, "a")}, 2),
        {"lost-output"},
        Verdict.INVALID,
    ),
    "acknowledged, and its offset is back": (
        Written().transform("0", AB).ended(AB, {0: out(0, "a"), 1: out(1, "b")}, 1),
        {"offset-went-back", "output-without-offset"},
        Verdict.INVALID,
    ),
    "acknowledged, and all of it is gone": (
        Written().transform("0", {1: "b"}).ended(AB, {0: out(0, "a")}, 1),
        {"offset-went-back", "lost-output"},
        Verdict.INVALID,
    ),
    "a question meanwhile is answered with less than at the end": (
        Written()
        .committed(final=False, of_0=0)
        .ended({0: "a"}, {0: out(0, "a")}, 1)
        .committed(of_0=0, of_1=0),
        set(),
        Verdict.VALID,
    ),
    "an acknowledged input is gone": (
        Written().send("0", 1, 8).ended({0: "a"}, {0: out(0, "a")}, 1),
        {"lost-input"},
        Verdict.INVALID,
    ),
    "an acknowledged input is another": (
        Written().send("0", 0, 8).ended({0: 7}, {0: out(0, 7)}, 1),
        {"lost-input"},
        Verdict.INVALID,
    ),
    "an input that is sent behind the final read": (
        Written().ended({0: "a"}, {0: out(0, "a")}, 1).send("0", 1, 8),
        set(),
        Verdict.VALID,
    ),
    "an output is not read to its end": (
        Written()
        .shown("0", AB)
        .shown("1", {})
        .shown("2", {0: out(0, "a")}, end=1, beyond=({"2": 5},))
        .shown("3", {})
        .committed(of_0=2, of_1=None),
        set(),
        Verdict.UNKNOWN,
    ),
    "an output that is not read may have them": (
        Written()
        .transform("0", AB)
        .shown("0", AB)
        .shown("1", {})
        .shown("2", {0: out(0, "a")})
        .committed(of_0=2, of_1=None),
        set(),
        Verdict.UNKNOWN,
    ),
    "an input is not read": (
        Written().shown("1", {}).shown("2", {0: out(0, "a")}).shown("3", {}).committed(of_0=1),
        set(),
        Verdict.UNKNOWN,
    ),
    "nobody tells the offsets": (
        Written()
        .shown("0", AB)
        .shown("1", {})
        .shown("2", {0: out(0, "a")})
        .shown("3", {})
        .committed(final=False, of_0=0),
        set(),
        Verdict.UNKNOWN,
    ),
    "the read that came furthest counts": (
        Written()
        .shown("2", {})
        .ended(AB, {0: out(0, "a"), 1: out(1, "b")}, 2)
        .shown("2", {0: out(0, "a")}),
        set(),
        Verdict.VALID,
    ),
    "whoever lost an input goes on": (
        Written()
        .transform("0", {0: "a"}, taken_as=(7, 3))
        .transform("0", {1: "b"}, taken_as=(7, 2))
        .ended(AB, {0: out(0, "a"), 1: out(1, "b")}, 2),
        {"zombie-not-fenced"},
        Verdict.INVALID,
    ),
    "whoever lost an input aborts": (
        Written()
        .transform("0", {0: "a"}, taken_as=(7, 3))
        .transform("0", {1: "b"}, "abandon", taken_as=(7, 2))
        .ended(AB, {0: out(0, "a"), 1: out(1, "b")}, 2),
        {"zombie-not-fenced"},
        Verdict.INVALID,
    ),
    "whoever lost an input to the one before the last goes on": (
        Written()
        .transform("0", {0: "a"}, taken_as=(7, 3))
        .until(15)
        .transform("0", {1: "b"}, taken_as=(7, 1))
        .until(16)
        .transform("0", {1: "b"}, taken_as=(7, 2))
        .ended(AB, {0: out(0, "a"), 1: out(1, "b")}, 2),
        {"zombie-not-fenced"},
        Verdict.INVALID,
    ),
    "an input changes hands in order": (
        Written()
        .transform("0", {0: "a"}, taken_as=(7, 2))
        .transform("0", {1: "b"}, taken_as=(7, 2))
        .transform("0", {1: "b"}, "abandon", taken_as=(7, 3))
        .ended(AB, {0: out(0, "a"), 1: out(1, "b")}, 2),
        set(),
        Verdict.VALID,
    ),
    "another id says nothing": (
        Written()
        .transform("0", {0: "a"}, taken_as=(8, 3))
        .transform("0", {1: "b"}, taken_as=(7, 2))
        .ended(AB, {0: out(0, "a"), 1: out(1, "b")}, 2),
        set(),
        Verdict.VALID,
    ),
    "another input says nothing": (
        Written()
        .transform("1", {}, taken_as=(7, 3))
        .transform("0", AB, taken_as=(7, 2))
        .ended(AB, {0: out(0, "a"), 1: out(1, "b")}, 2),
        set(),
        Verdict.VALID,
    ),
    "there was nothing to do": (
        Written()
        .transform("0", AB, taken_as=(7, 3))
        .transform("0", {}, taken_as=(7, 2))
        .ended(AB, {0: out(0, "a"), 1: out(1, "b")}, 2),
        set(),
        Verdict.VALID,
    ),
    "an input changes hands meanwhile": (
        Written()
        .transform("0", {0: "a"}, taken_as=(7, 3))
        .until(15)
        .transform("0", {1: "b"}, taken_as=(7, 2))
        .until(18)
        .ended(AB, {0: out(0, "a"), 1: out(1, "b")}, 2),
        set(),
        Verdict.VALID,
    ),
    "nothing was done": (Written().ended({0: "a"}, {}), set(), Verdict.UNKNOWN),
}

MUTANTS = {
    "two outputs are one": ("if len(outputs) > 1:", "if len(outputs) > 2:"),
    "an input needs no output": (
        "            self._findings.poll()\n            if (log, offset) not in self._outputs:",
        "            if False:",
    ),
    "all inputs need one": (
        "done = [offset for offset in whole.records if offset < committed]",
        "done = [*whole.records]",
    ),
    "the last input needs none": (
        "whole.records if offset < committed]",
        "whole.records if offset < committed - 1]",
    ),
    "outputs need no offset": (
        "if committed is not None and offset >= committed:",
        "if False:",
    ),
    "the offset is the last one done": (
        "if committed is not None and offset >= committed:",
        "if committed is not None and offset > committed:",
    ),
    "no offset is unknown": ("self._committed.get(log, 0)", "self._committed.get(log) or None"),
    "values of outputs are no matter": (
        "if whole is not None and value_at(whole, offset) != value:",
        "if whole is not None and offset not in whole.records:",
    ),
    "places of outputs are no matter": (
        "if whole is not None and value_at(whole, offset) != value:",
        "if whole is not None and value_at(whole, offset) != value and offset in whole.records:",
    ),
    "strange outputs are no matter": (
        "for output, value in self._strangers:",
        "for output, value in ():",
    ),
    "what was acknowledged may be gone": (
        "for offset, value in answer[READ_INPUTS]:",
        "for offset, value in ():",
    ),
    "offsets may go back": (
        "if committed is not None and end > committed:",
        "if False:",
    ),
    "what was abandoned counts": (
        "if each.f == TRANSFORM and each.type",
        "if each.f in (TRANSFORM, ABANDON) and each.type",
    ),
    "inputs may go": ("if was_there and value_at", "if False and value_at"),
    "later inputs count": ("if was_there and value_at", "if value_at"),
    "outputs need not be read": (
        "return all(log in self._whole for log in OUTPUTS)",
        "return True",
    ),
    "the last answer counts": (
        "max(known.get(log, 0), told.get(log) or 0)",
        "(told.get(log) or 0)",
    ),
    "answers on the way count": (
        "if operation.f == FETCH_OFFSETS and operation.final and",
        "if operation.f == FETCH_OFFSETS and",
    ),
    "zombies are no matter": ("and one.epoch < latest.epoch:", "and False:"),
    "every epoch must rise": ("and one.epoch < latest.epoch:", "and one.epoch <= latest.epoch:"),
    "the last epoch counts": (
        "if latest is None or following.epoch > latest.epoch:",
        "if True:",
    ),
    "the order of ends counts": ("following.end < one.operation.start", "following.end < one.end"),
    "those that had nothing to do count": ("if answer[READ_INPUTS] and TAKEN_AS", "if TAKEN_AS"),
    "zombies may abort": (
        "if operation.f not in (TRANSFORM, ABANDON) or operation.type",
        "if operation.f != TRANSFORM or operation.type",
    ),
    "all ids are one": (
        "by_owner.setdefault((str(answer[LOG_OF]), producer), [])",
        "by_owner.setdefault((str(answer[LOG_OF]), 0), [])",
    ),
    "what nobody did is valid": (
        'return None if inputs else "Nothing was transformed."',
        "return None",
    ),
}

#: Mutants of the reader of whole logs.
MUTANTS_OF_READS = {
    "a read that a transaction stopped is whole": (
        " or part.out_of_reach is not None",
        "",
    ),
    "the first read counts": ("or part.position > known.end:", "or False:"),
    "the last read counts": ("or part.position > known.end:", "or True:"),
}


@pytest.mark.parametrize("name", CASES)
def test_transforms_are_judged(name: str) -> None:
    written, kinds, verdict = CASES[name]
    assert kinds_and_verdict(exactly_once.check, written.operations) == (kinds, verdict)


@pytest.mark.parametrize("name", MUTANTS)
def test_a_mutant_is_told_apart(name: str) -> None:
    wrong: Check = mutated(exactly_once, *MUTANTS[name]).check
    assert any(
        kinds_and_verdict(wrong, written.operations) != (kinds, verdict)
        for written, kinds, verdict in CASES.values()
    )


@pytest.mark.parametrize("name", MUTANTS_OF_READS)
def test_a_mutant_of_reads_is_told_apart(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = mutated(whole, *MUTANTS_OF_READS[name]).whole_logs
    monkeypatch.setattr(exactly_once, "whole_logs", wrong)
    assert any(
        kinds_and_verdict(exactly_once.check, written.operations) != (kinds, verdict)
        for written, kinds, verdict in CASES.values()
    )


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("an output is not read to its end", "No final read came to the end of log 2."),
        ("an input is not read", "No final read came to the end of log 0."),
        ("nobody tells the offsets", "Nobody told the committed offsets at the end."),
        ("nothing was done", "Nothing was transformed."),
    ],
)
def test_what_is_lacking_is_said(name: str, reason: str) -> None:
    assert exactly_once.check(CASES[name][0].operations, Unlimited()).reason == reason


def test_a_violation_names_the_transactions_that_read_the_input() -> None:
    written = Written().transform("0", AB).transform("0", {1: "b"}).transform("1", {1: "b"})
    written.ended(AB, {0: out(0, "a"), 1: out(1, "b"), 2: out(1, "b")}, 1)
    found = exactly_once.check(written.operations, Unlimited())
    for violation in found.violations:
        if violation["kind"] in ("duplicated-output", "output-without-offset"):
            assert [each["index"] for each in violation["operations"]][:2] == [0, 1]


def test_every_kind_has_a_case() -> None:
    found = {kind for _, kinds, _ in CASES.values() for kind in kinds}
    assert found == set(KINDS) == set(KINDS_BY_CHECKER["exactly-once"])


@pytest.mark.parametrize(
    ("f", "argument", "result", "problem"),
    [
        ("read", None, 1, "operations are send, transform, abandon, fetch-offsets and poll"),
        ("transform", "0", {"log": "0"}, "tells log, from, to, inputs"),
        ("transform", "0", {"log": "0", "from": 0, "to": 1, "inputs": [[0]]}, "does not"),
        ("abandon", "0", 7, "does not"),
        (
            "transform",
            "0",
            {"log": "0", "from": 0, "to": 1, "inputs": [], "taken-as": [1]},
            "does not",
        ),
        ("fetch-offsets", None, {"0": "x"}, "it answers offsets by log"),
        ("fetch-offsets", None, [1], "it answers offsets by log"),
    ],
)
def test_what_makes_no_sense_is_said(f: str, argument: Any, result: Any, problem: str) -> None:
    (operation,) = Written().add(f, argument, result).operations
    found = problem_with(operation)
    assert found is not None
    assert problem in found


def test_what_makes_sense_is_not() -> None:
    written = Written().transform("0", AB).transform("0", AB, "abandon").committed(of_0=None)
    written.add("transform", "0", None, "info").add("fetch-offsets", None, None, "fail")
    assert [problem_with(each) for each in written.operations] == [None] * 5


def test_the_registry_knows_it() -> None:
    written, _, verdict = CASES["an input twice"]
    from splitbrain.checker.evidence import Evidence

    found = checker_named("exactly-once")(Evidence(operations=written.operations), Unlimited())
    assert found.verdict is verdict
