"""Each mutant of the compiled search, run by the interpreter, must be told apart."""

from random import Random
from types import ModuleType

import pytest

from checker.linearizability import compiled_search, kernel_search
from checker.linearizability.columns import columns_of
from checker.linearizability.compiled_search import CompiledModel, CompiledSearch
from checker.linearizability.problem import Problem
from checker.linearizability.search import Search
from checker.models.registry import MODELS
from checker.verdict import Verdict
from contracts.budget import Unlimited
from history.records import PairedOperation
from tests.unit.checker.mutated import mutated
from tests.unit.checker.operations import operation as op
from tests.unit.checker.small_histories import random_history

HISTORIES = 6000
MODEL = MODELS["cas-register"]
#: The second write was invoked after the first and cannot have stood before the cas.
SEEN_BEFORE = [
    op("write", 0, start=0, end=1),
    op("write", 2, start=2, end=5),
    op("cas", [0, 1], [0, 1, True], start=3, end=4),
    op("read", None, 1, start=6, end=7),
]
#: What to replace in the source, and by what.
MUTANTS = {
    "a pure call need not fit": ("if following != state or (", "if following == -9 or ("),
    "ties wait for nobody": ("return before >= rank and (done", "return before > 10**6 and (done"),
    "everything is done unseen": (
        "after = _overwritten(layout, rank, done) if overwrite else done\n        still",
        "after = _overwritten(layout, rank, done)\n        still",
    ),
    "no last chance": (
        "or (available & bit) != 0:\n            break",
        "or False:\n            break",
    ),
    "what is done is gone": (
        "available |= layout.bit[one]\n        done",
        "available |= 0\n        done",
    ),
    "used stays available": ("after | bit, available & ~bit,", "after | bit, available,"),
    "the memo forgets what is available": (
        "(done & ~other_done) == 0 and (available & ~other_available) == 0",
        "(done & ~other_done) == 0",
    ),
    "the memo forgets what is done": (
        "(done & ~other_done) == 0 and (available & ~other_available) == 0",
        "(available & ~other_available) == 0",
    ),
    "the memo forgets the state": ("| (stack[top, STATE] << 1) |", "|"),
    "the memo forgets the rank": ("key = (stack[top, RANK] << 32) |", "key ="),
    "the memo forgets what was used": (
        "if (least - one[row, column + word]) & guard != guard:",
        "if False:",
    ),
    "info before its invocation": ("layout.group_starts[next_one] > layout.ends[rank]", "False"),
    "no info": (
        "for group in range(len(layout.group_call)):\n        word",
        ("for group in range(0):\n        word"),
    ),
    "info used once": (
        "memory.stack[at, USED + word] += layout.group_increment[group]",
        ("memory.stack[at, USED + word] += 10**6 * layout.group_increment[group]"),
    ),
    "only the first to return": (
        "memory.tried[call, kind] = stamp\n",
        ("memory.tried[:, :] = stamp\n"),
    ),
    "an answer that is illegal": (
        "if following < 0 or (following == state and not alone):",
        ("if following == state and not alone:"),
    ),
}


def verdict_of(operations: list[PairedOperation]) -> Verdict:
    problem = Problem(operations, MODEL)
    columns = columns_of(operations, problem.call_by_place)
    compiled = CompiledModel(MODEL, problem.calls, problem.transitions)
    return CompiledSearch(columns, compiled, Unlimited(), configurations_max=5000).run().verdict


def interpreted(found: str, put: str) -> ModuleType:
    """The module with one piece of its source replaced, not compiled."""
    return mutated(kernel_search, found, put, ("@compiled\n", "@part_of_compiled\n"))


def told_apart(monkeypatch: pytest.MonkeyPatch, module: ModuleType, histories: int) -> bool:
    monkeypatch.setattr(compiled_search, "search", module.search)
    random = Random("mutants of the compiled search")
    for number in range(histories):
        size_max = (9, 16, 24)[number % 3]
        operations = random_history(random, MODEL.name, size_max) if number else SEEN_BEFORE
        expected = Search(Problem(operations, MODEL), Unlimited()).run().verdict
        try:
            if verdict_of(operations) is not expected:
                return True
        except (IndexError, AssertionError):
            return True
    return False


@pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")
def test_the_interpreter_decides_what_the_compiled_search_does(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert not told_apart(monkeypatch, interpreted("_GOLDEN: Final = ", "_GOLDEN: Final = "), 100)


@pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")
@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_mutant_is_told_apart(mutant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert told_apart(monkeypatch, interpreted(*MUTANTS[mutant]), HISTORIES)
