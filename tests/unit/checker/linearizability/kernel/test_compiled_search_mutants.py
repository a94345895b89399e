"""Each mutant of the compiled search, run by the interpreter, must be told apart."""

import inspect
import re
from random import Random
from types import ModuleType

import pytest

from splitbrain.checker.linearizability.kernel import (
    compiled_search,
    kernel_frontier,
    kernel_rules,
    kernel_search,
)
from splitbrain.checker.linearizability.kernel.columns import columns_of
from splitbrain.checker.linearizability.kernel.compiled_search import CompiledModel, CompiledSearch
from splitbrain.checker.linearizability.methods.search import Search
from splitbrain.checker.linearizability.part.problem import Problem
from splitbrain.checker.models.model import Model
from splitbrain.checker.models.registry import MODELS
from splitbrain.checker.verdict import Verdict
from splitbrain.contracts.budget import Unlimited
from splitbrain.history.records import PairedOperation
from tests.unit.checker.operations import operation as op
from tests.unit.checker.small_histories import random_history

HISTORIES = 6000
#: Modules compiled as one, those first that others import from.
KERNEL = (kernel_rules, kernel_search, kernel_frontier)
#: Every fourth history is of the second, in which a call may lead to several states.
MODEL_NAMES = ("cas-register", "cas-register", "cas-register", "multi-register")
#: The second write was invoked after the first and cannot have stood before the cas.
SEEN_BEFORE = [
    op("write", 0, start=0, end=1),
    op("write", 2, start=2, end=5),
    op("cas", [0, 1], [0, 1, True], start=3, end=4),
    op("read", None, 1, start=6, end=7),
]
#: Numbers of histories that tell apart what few others do; they come first.
RARE = (376, 892, 2015)
#: Texts of the source and their replacements.
MUTANTS = {
    "a pure call need not fit": ("if following != state or (", "if following == -9 or ("),
    "ties wait for nobody": ("return before >= rank and (done", "return before > 10**6 and (done"),
    "everything is done unseen": (
        "after = overwritten(layout, rank, done) if overwrite else done\n        after |= bit",
        "after = overwritten(layout, rank, done) | bit",
    ),
    "no last chance": (
        "or (available & bit) != 0:\n            break",
        "or False:\n            break",
    ),
    "no last chance in a sweep": (
        "if (done & bit) != 0 and (stack[place, AVAILABLE] & bit) == 0:",
        "if done & bit:",
    ),
    "a sweep forgets what waits": ("control[STACKED] = best\n", "control[STACKED] = best - 1\n"),
    "what is done is gone in a sweep": (
        "available |= layout.bit[candidate]\n    first",
        "available |= 0\n    first",
    ),
    "what is done stays done in a sweep": ("row[DONE] & ~layout.bit[rank], row", "row[DONE], row"),
    "a state is never left": (
        "demand = _next_demand(layout, rank, state, done)\n    if demand < 0:",
        "demand = _next_demand(layout, rank, state, done)\n    if False:",
    ),
    "what is done is still demanded": (
        "> layout.ends[rank] or (done & layout.bit[candidate]) == 0:\n            return candidate",
        "> layout.ends[rank] or True:\n            return candidate",
    ),
    "no producer to come": ("return position < end and layout", "return False and layout"),
    "no producer that is open": (
        "if product in (state, MANY_PRODUCTS):",
        "if product == -9:",
    ),
    "no producer without answer": (
        "if next_open(layout, memory, layout.leading[position], until):",
        "if False:",
    ),
    "producers of one state alone": ("if _invoked_between(layout, many, now, deadline):", "if 0:"),
    "what is done is gone": (
        "available |= layout.bit[candidate]\n        done",
        "available |= 0\n        done",
    ),
    "used stays available": ("left = available & ~bit", "left = available"),
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
        "if (least - first[row, column + word]) & guard != guard:",
        "if False:",
    ),
    "info before its invocation": ("and layout.group_starts[place] <= until", ""),
    "no info": ("    at = open_ways(", "    open_ways("),
    "no info where the model does not tell": (
        "for group in range(len(layout.group_call)):\n            if can_stand",
        "for group in range(0):\n            if can_stand",
    ),
    "refusals want nothing": (
        "for other in range(len(layout.leading_at) - 2):",
        "for other in ():",
    ),
    "nothing without answer is wanted": ("end = want(memory, acts_in, end)", "pass"),
    "owed to answers that needed it": (
        "return 0 if done & ~before",
        "return owed if done & ~before",
    ),
    "no cas needs what is owed": ("if owed and layout.needs[call] != state:", "if owed:"),
    "nothing without answer needs what is owed": (
        "elif acts_in == state or not owed:",
        "elif not owed:",
    ),
    "none beside equal answers, tried or not": (
        "if memory.tried[call, 0] == stamp or memory.tried[call, 1] == stamp:",
        "if memory.tried[call].any():",
    ),
    "a search is a dive": ("range(0 if layout.dive else len(layout.guard))", "range(0)"),
    "info used once": (
        "+= layout.group_increment[group]",
        "+= 10**6 * layout.group_increment[group]",
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


def verdicts_of(operations: list[PairedOperation], model: Model) -> set[Verdict]:
    """Return the verdicts of the depth-first search and the sweep, with and without rule 7."""
    problem = Problem(operations, model)
    columns = columns_of(operations, problem.call_by_place)
    compiled = CompiledModel(model, problem.calls, problem.transitions)
    return {
        CompiledSearch(columns, compiled, Unlimited(), 5000, guided=guided, by_rank=by_rank)
        .run()
        .verdict
        for guided in (False, True)
        for by_rank in (False, True)
    }


def interpreted(found: str, put: str) -> ModuleType:
    """All that is compiled as one module, a piece of its source replaced, not compiled."""
    sources = [
        re.sub(
            r"^from [\w.]+\.kernel_(rules|search) import .*?$",
            "",
            re.sub(r"import \([^)]*\)", lambda names: " ".join(names[0].split()), source),
            flags=re.MULTILINE,
        )
        for source in map(inspect.getsource, KERNEL)
    ]
    assert sum(source.count(found) for source in sources) == 1
    mutant = ModuleType("mutant")
    for source in sources:
        plain = re.sub(
            r"^@(part_of_)?compiled\n", "", source.replace(found, put), flags=re.MULTILINE
        )
        exec(compile(plain, "mutant", "exec"), mutant.__dict__)
    return mutant


def history_of(number: int) -> tuple[Model, list[PairedOperation]]:
    if not number:
        return MODELS[MODEL_NAMES[0]], SEEN_BEFORE
    model = MODELS[MODEL_NAMES[number % len(MODEL_NAMES)]]
    random = Random(f"mutants of the compiled search {number}")
    return model, random_history(random, model.name, (9, 16, 24)[number % 3])


def told_apart(monkeypatch: pytest.MonkeyPatch, module: ModuleType, histories: int) -> bool:
    monkeypatch.setattr(compiled_search, "search", module.search)
    monkeypatch.setattr(compiled_search, "frontier", module.frontier)
    for number in (*RARE, *range(histories)):
        model, operations = history_of(number)
        expected = Search(Problem(operations, model), Unlimited()).run().verdict
        try:
            if verdicts_of(operations, model) != {expected}:
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
