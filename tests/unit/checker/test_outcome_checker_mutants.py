"""Each checker of outcomes: a planted violation is red, what is right is green, mutants are not.

The tables hold small histories and what must be told of each; a mutant, made by replacing one piece
of a checker's source, must tell something else of at least one of them.
"""

from types import ModuleType
from typing import Any

import pytest

from splitbrain.checker import (
    bank,
    counter_bounds,
    fencing_tokens,
    queue_totals,
    sessions,
    unique_ids,
)
from splitbrain.checker.verdict import CheckResult, Verdict
from splitbrain.contracts.budget import Unlimited
from tests.unit.checker.mutated import mutated
from tests.unit.checker.outcome_cases import CASES, UNKNOWN, VALID, Expected

#: Of each module: what is replaced in its source, and by what.
MUTANTS: dict[ModuleType, dict[str, tuple[str, str]]] = {
    bank: {
        "no read has a wrong total": ("if found != expected:", "if False:"),
        "the rarest total is right": ("most_common(1)[0][0]", "most_common()[-1][0]"),
        "a total of zero is none": (
            "expected = total if total is not None else",
            "expected = total if total else",
        ),
        "any balance is a number": (
            "if not is_number(n)]",
            "if not isinstance(n, (int, float))]",
        ),
        "nothing is below zero": ("if n < 0]", "if n < -9]"),
        "negative balances are always wrong": (
            "if below and not negative_balances_allowed:",
            "if below:",
        ),
        "zero is below zero": ("if n < 0]", "if n <= 0]"),
        "failed reads count": ('o.f == "read" and o.type == "ok"', 'o.f == "read"'),
        "all banks are one": ("totals.setdefault(read.key, [])", "totals.setdefault(None, [])"),
        "one read is enough": ("len(sums) == 1 for sums", "len(sums) == 0 for sums"),
        "a given total needs two reads": ("if total is None and all(", "if all("),
    },
    unique_ids: {
        "the first is compared with itself": (
            "if earlier is not operation:",
            "if earlier is operation:",
        ),
        "no two are alike": ("if earlier is not operation:", "if False:"),
        "every id by key": (
            "freeze(operation.result), operation)",
            "(operation.key, freeze(operation.result)), operation)",
        ),
        "unanswered ones have an id": (
            'for operation in requests if operation.type == "ok"]',
            "for operation in requests]",
        ),
        "everything generates": ('if operation.f == "generate"]', "]"),
        "the argument is the id": (
            "first.setdefault(freeze(operation.result)",
            "first.setdefault(freeze(operation.argument)",
        ),
        "nothing asked is well": ("nothing = None if answered else", "nothing = None if True else"),
    },
    counter_bounds: {
        "an answer below is fine": (
            "if not lowest <= answer <= highest",
            "if not answer <= highest",
        ),
        "an answer above is fine": (
            "if not lowest <= answer <= highest",
            "if not lowest <= answer",
        ),
        "open adds surely happened": (
            '(end_of(add), n) for add, n in amounts if add.type == "ok"',
            "(add.start, n) for add, n in amounts",
        ),
        "failed adds happened": ('and o.type != "fail"]', "]"),
        "ones own part is forgotten": ("+ max(own, 0)", ""),
        "decrements are forgotten": ("+ sure_down.before(read.start)", ""),
        "all counters are one": ("in by_key(relevant).values()", "in [relevant]"),
    },
    queue_totals: {
        "nothing is lost": ("if lost > 0 and", "if lost > 9 and"),
        "unanswered dequeues took nothing": (
            "lost = len(missing) - unanswered",
            "lost = len(missing)",
        ),
        "emptiness during the enqueue counts": (
            "end_of(enqueue) >= queue.empty.start",
            "enqueue.start >= queue.empty.start",
        ),
        "nothing is taken twice": ("if requested and times > requested:", "if False:"),
        "an enqueue after its dequeue explains it": (
            "elif end_of(taken) < enqueue.start:",
            "elif False:",
        ),
        "an enqueue at that moment does not": (
            "elif end_of(taken) < enqueue.start:",
            "elif end_of(taken) <= enqueue.start:",
        ),
        "failed enqueues happened": ('if operation.type == "fail" or refused:', "if refused:"),
        "refused enqueues happened": (
            'if operation.type == "fail" or refused:',
            'if operation.type == "fail":',
        ),
        "a drain finds something": (
            'found_nothing = operation.f == "drain" or operation',
            "found_nothing = operation",
        ),
        "emptiness in the load counts": ("not (operation.final and is_over)", "not is_over"),
        "emptiness in the load counts for ever": (
            "drained and not (operation.final and is_over)",
            "False",
        ),
        "found empty once is enough": ("in_a_row[node] >= EMPTIES_IN_A_ROW", "in_a_row[node] >= 1"),
        "found empty twice is enough": (
            "in_a_row[node] >= EMPTIES_IN_A_ROW",
            "in_a_row[node] >= EMPTIES_IN_A_ROW - 1",
        ),
        "a take starts no new row": (
            "if found_nothing else 0",
            "if found_nothing else in_a_row[node]",
        ),
        "all members are one": (
            "node, in_a_row = operation.node,",
            'node, in_a_row = "n1",',
        ),
        "a drain must be repeated": (
            'is_over = operation.f == "drain" or in_a_row',
            "is_over = in_a_row",
        ),
        "not drained is well": ('elif figures["not-drained"]:', "elif False:"),
        "dequeues take nothing": ("yield freeze(result)", "yield from ()"),
        "nothing comes from nowhere": (
            '_note(findings, "phantom", value, [taken], f"was dequeued {why}")',
            "pass",
        ),
    },
    fencing_tokens: {
        "any token is accepted": ("token < highest[0]", "False"),
        "an equal token is lower": ("token < highest[0]", "token <= highest[0]"),
        "the last token counts, not the highest": (
            "if highest is None or token > highest[0]:",
            "if True:",
        ),
        "refused writes count": (
            "for write in answered if granted(write.result)]",
            "for write in answered]",
        ),
        "ties are ordered": (
            "end_of(by_end[position]) < write",
            "end_of(by_end[position]) <= write",
        ),
        "all objects are one": (
            "for members in by_key(relevant).values():",
            "for members in [relevant]:",
        ),
    },
    sessions: {
        "failed writes happened": ('if operation.type != "fail"]', "]"),
        "open adds are due": (
            'if operation.type != "ok":\n            continue\n        due =',
            'if operation.type == "fail":\n            continue\n        due =',
        ),
        "what was read is not due": (
            "due.update(dict.fromkeys(shown.difference(due), operation))",
            "pass",
        ),
        "what was added is not due": ("due[freeze(operation.argument)] = operation", "pass"),
        "all processes are one": (
            "due_by_process.setdefault(operation.process, {})",
            "due_by_process.setdefault(0, {})",
        ),
        "positions are not asked": ("if not has_positions(members):", "if True:"),
        "only positions are asked": (
            "if not has_positions(members):\n        return judge_versions(members, findings)",
            "if not has_positions(members):\n        return None",
        ),
    },
}


def told(result: CheckResult) -> Expected:
    if result.verdict is not Verdict.INVALID:
        return (result.verdict.value,)
    return tuple(violation["kind"] for violation in result.violations)


@pytest.mark.parametrize(
    ("module", "name"),
    [(module, name) for module in CASES for name in CASES[module]],
    ids=lambda part: part if isinstance(part, str) else part.__name__.rpartition(".")[2],
)
def test_what_is_planted_is_told_and_nothing_else(module: Any, name: str) -> None:
    case = CASES[module][name]
    result = module.check(case.operations, Unlimited(), **case.options)
    assert told(result) == case.expected
    assert case.figures.items() <= result.figures.items()
    assert case.reason in result.reason
    if case.sentence or case.indexes:
        found = (*result.violations, *result.observations)[0]
        assert case.sentence in ("", found["sentence"])
        assert case.indexes in ((), tuple(one["index"] for one in found["operations"]))
    assert tuple(seen["kind"] for seen in result.observations) == case.observed


@pytest.mark.parametrize("module", CASES, ids=lambda module: module.__name__)
def test_each_checker_is_seen_red_and_green(module: Any) -> None:
    verdicts = {case.expected for case in CASES[module].values()}
    assert VALID in verdicts
    assert verdicts - {VALID, UNKNOWN}


@pytest.mark.parametrize(
    ("module", "mutant"),
    [
        pytest.param(module, mutant, id=f"{module.__name__.removeprefix('checker.')}: {mutant}")
        for module in MUTANTS
        for mutant in MUTANTS[module]
    ],
)
def test_a_mutant_is_told_apart(module: ModuleType, mutant: str) -> None:
    check = mutated(module, *MUTANTS[module][mutant]).check
    assert any(
        told(check(case.operations, Unlimited(), **case.options)) != case.expected
        for case in CASES[module].values()
    )
