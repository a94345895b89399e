"""Each mutant of a rule is told apart, by a case of a kind of violation."""

import pytest

from splitbrain.checker import groups
from splitbrain.checker.groups.check import check as right
from splitbrain.contracts.budget import Unlimited
from tests.unit.checker.groups.cases import CASES
from tests.unit.checker.mutated_package import Check, mutated

#: Module, text of its source, and replacement.
MUTANTS = {
    "a log may have two owners": ("check", "if first is not each:", "if 0:"),
    "any two owners are two at once": (
        "check",
        "(standing.is_generation, standing.number, log), {}",
        "(standing.is_generation, 0, log), {}",
    ),
    "epochs are generations": (
        "check",
        "(standing.is_generation, standing.number, log), {}",
        "(True, standing.number, log), {}",
    ),
    "outdated commits are welcome": (
        "check",
        "for log in commit.offsets if commit.is_sure else ():",
        "for log in ():",
    ),
    "equal times are an order": (
        "check",
        "end_of(fence.operation) < commit.operation.start",
        "end_of(fence.operation) <= commit.operation.start",
    ),
    "a member fences itself": ("fences", "return second if is_own else first", "return first"),
    "nobody else fences": ("fences", "return second if is_own else first", "return second"),
    "an equal number fences": ("fences", "bisect_right(numbers", "bisect_left(numbers"),
    "the first told is forgotten": (
        "fences",
        "for each in reversed(rows)), _earlier)",
        "for each in reversed(rows)), lambda one, other: other)",
    ),
    "the other member is forgotten": (
        "fences",
        "next(rest, None)",
        "None",
    ),
    "a generation is over for its own logs alone": (
        "fences",
        "(_ALL,) if each.standing.is_generation else each.logs",
        "each.logs",
    ),
    "answers tell what they like": ("offsets", "if end is None:", "if False:"),
    "an open commit is none": ("offsets", "place = bisect_right(self._starts, until)", "place = 0"),
    "what is asked for later may be told": (
        "offsets",
        "place = bisect_right(self._starts, until)",
        "place = len(self._starts)",
    ),
    "what begins as an answer ends is later": (
        "offsets",
        "bisect_right(self._starts, until)",
        "bisect_left(self._starts, until)",
    ),
    "nothing is lost": ("offsets", "if lacks is None or end >= lacks", "if True or end >= lacks"),
    "open commits are done at once": (
        "offsets",
        'float("inf") if span.end is None',
        "span.commit.operation.start if span.end is None",
    ),
    "what overlaps is in order": (
        "offsets",
        "bisect_left(self._ends, read.operation.start)",
        "bisect_right(self._ends, read.operation.start)",
    ),
    "a fence ends no commit": (
        "offsets",
        "end = None if fence is None else fence",
        "end = None if True else fence",
    ),
    "all that is stale is lost": ("offsets", "if read.operation.final:", "if True:"),
    "a final answer may be stale": ("offsets", "if read.operation.final:", "if False:"),
    "a later generation knows nothing": ("offsets", "own.number < asked.number and", "False and"),
    "the same generation knows all": (
        "offsets",
        "own.number < asked.number",
        "own.number <= asked.number",
    ),
    "a member's own epochs are in order at any coordinator": (
        "offsets",
        "(own.is_generation or own.member != asked.member)",
        "True",
    ),
    "epochs know nothing": (
        "offsets",
        "(own.is_generation or own.member != asked.member)",
        "own.is_generation",
    ),
    "records may be passed over": (
        "check",
        "in delivered.to_nobody(records, passings):",
        "in ():",
    ),
    "records may be delivered too late": (
        "check",
        "in delivered.too_late(records, passings):",
        "in ():",
    ),
    "a commit passes what is at its offset": (
        "deliveries",
        "bisect_left(offsets, passing.offset)",
        "bisect_right(offsets, passing.offset)",
    ),
    "a commit passes what lies at its offset, to nobody": (
        "deliveries",
        "bisect_right(reached, record.offset)",
        "bisect_left(reached, record.offset)",
    ),
    "the last delivery counts": (
        "deliveries",
        "if end_of(operation) < end_of(known):",
        "if end_of(operation) > end_of(known):",
    ),
    "delivered at the same time is too late": (
        "deliveries",
        "if end_of(first) > passing.by:",
        "if end_of(first) >= passing.by:",
    ),
    "open commits pass records": (
        "check",
        "in commit.offsets.items() if commit.is_sure else ():",
        "in commit.offsets.items():",
    ),
    "answers pass no records": (
        "check",
        "if read.offset is not None:",
        "if False:",
    ),
    "an answer passes as it is asked for": (
        "check",
        "Passing(read.offset, read.operation, end_of(read.operation))",
        "Passing(read.offset, read.operation, read.operation.start)",
    ),
    "refused commits may have happened": (
        "readings",
        'operation.type == "info":',
        'operation.type != "ok":',
    ),
    "an open commit is of nothing": ("readings", "if before is not None:", "if False:"),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_a_mutant_is_told_apart(name: str) -> None:
    assert not agrees(mutated(groups, *MUTANTS[name]))


def test_without_a_mutant_everything_agrees() -> None:
    assert agrees(mutated(groups, "check", "def check(", "def check("))


def agrees(check: Check) -> bool:
    """Whether a checker finds in each case its kind alone, and in its neighbour nothing."""
    try:
        return all(
            {found["kind"] for found in check(shown, Unlimited()).violations}
            == {name.partition(",")[0]}
            and check(nearly, Unlimited()).verdict is right(nearly, Unlimited()).verdict
            for name, (shown, nearly) in CASES.items()
        )
    except (ArithmeticError, AssertionError, LookupError, NameError, TypeError, ValueError):
        return False
