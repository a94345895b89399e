"""Each checker of outcomes: a planted violation is red, what is right is green, mutants are not.

The tables hold small histories and what must be told of each; a mutant, made by replacing one piece
of a checker's source, must tell something else of at least one of them.
"""

from types import ModuleType
from typing import Any

import pytest

from checker import (
    bank,
    counter_bounds,
    fencing_tokens,
    queue_totals,
    sessions,
    unique_ids,
)
from checker.verdict import Verdict
from contracts.budget import Unlimited
from tests.unit.checker.mutated import mutated
from tests.unit.checker.outcome_cases import CASES, UNKNOWN, VALID, Case, Told

#: Module, what is replaced in its source, and by what.
MUTANTS: dict[str, tuple[ModuleType, str, str]] = {
    "bank: no read has a wrong total": (bank, "if found != expected:", "if False:"),
    "bank: the rarest total is right": (bank, "most_common(1)[0][0]", "most_common()[-1][0]"),
    "bank: a total of zero is none": (
        bank,
        "expected = total if total is not None else",
        "expected = total if total else",
    ),
    "bank: any balance is a number": (
        bank,
        "return is_number(balance)",
        "return isinstance(balance, (int, float))",
    ),
    "bank: nothing is below zero": (bank, "if n < 0]", "if n < -9]"),
    "bank: negative balances are always wrong": (
        bank,
        "if below and not negative_balances_allowed:",
        "if below:",
    ),
    "bank: zero is below zero": (bank, "if n < 0]", "if n <= 0]"),
    "bank: failed reads count": (bank, 'o.f == "read" and o.type == "ok"', 'o.f == "read"'),
    "bank: all banks are one": (
        bank,
        "totals.setdefault(read.key, [])",
        "totals.setdefault(None, [])",
    ),
    "bank: one read is enough": (bank, "len(sums) == 1 for sums", "len(sums) == 0 for sums"),
    "bank: a given total needs two reads": (bank, "if total is None and all(", "if all("),
    "unique-ids: the first is compared with itself": (
        unique_ids,
        "if earlier is not operation:",
        "if earlier is operation:",
    ),
    "unique-ids: no two are alike": (unique_ids, "if earlier is not operation:", "if False:"),
    "unique-ids: every id by key": (
        unique_ids,
        "freeze(operation.result), operation)",
        "(operation.key, freeze(operation.result)), operation)",
    ),
    "unique-ids: unanswered ones have an id": (
        unique_ids,
        'for operation in asked if operation.type == "ok"]',
        "for operation in asked]",
    ),
    "unique-ids: everything generates": (unique_ids, 'if operation.f == "generate"]', "]"),
    "unique-ids: the argument is the id": (
        unique_ids,
        "first.setdefault(freeze(operation.result)",
        "first.setdefault(freeze(operation.argument)",
    ),
    "unique-ids: nothing asked is well": (
        unique_ids,
        "nothing = None if answered else",
        "nothing = None if True else",
    ),
    "counter: an answer below is fine": (
        counter_bounds,
        "if not lowest <= answer <= highest",
        "if not answer <= highest",
    ),
    "counter: an answer above is fine": (
        counter_bounds,
        "if not lowest <= answer <= highest",
        "if not lowest <= answer",
    ),
    "counter: open adds surely happened": (
        counter_bounds,
        '(end_of(add), n) for add, n in amounts if add.type == "ok"',
        "(add.start, n) for add, n in amounts",
    ),
    "counter: failed adds happened": (counter_bounds, 'and o.type != "fail"]', "]"),
    "counter: ones own part is forgotten": (counter_bounds, "+ max(own, 0)", ""),
    "counter: decrements are forgotten": (counter_bounds, "+ sure_down.before(read.start)", ""),
    "counter: all counters are one": (
        counter_bounds,
        "in by_key(relevant).values()",
        "in [relevant]",
    ),
    "queue: nothing is lost": (queue_totals, "if lost > 0 and", "if lost > 9 and"),
    "queue: unanswered dequeues took nothing": (
        queue_totals,
        "lost = len(missing) - unanswered",
        "lost = len(missing)",
    ),
    "queue: emptiness during the enqueue counts": (
        queue_totals,
        "end_of(enqueue) >= queue.empty.start",
        "enqueue.start >= queue.empty.start",
    ),
    "queue: nothing is taken twice": (queue_totals, "if asked and times > asked:", "if False:"),
    "queue: duplicates are always wrong": (
        queue_totals,
        "kinds if duplicates_allowed else (*kinds, *harmless)",
        "(*kinds, *harmless)",
    ),
    "queue: an enqueue after its dequeue explains it": (
        queue_totals,
        "elif end_of(taken) < enqueue.start:",
        "elif False:",
    ),
    "queue: an enqueue at that moment does not": (
        queue_totals,
        "elif end_of(taken) < enqueue.start:",
        "elif end_of(taken) <= enqueue.start:",
    ),
    "queue: failed enqueues happened": (
        queue_totals,
        'if operation.type == "fail" or refused:',
        "if refused:",
    ),
    "queue: refused enqueues happened": (
        queue_totals,
        'if operation.type == "fail" or refused:',
        'if operation.type == "fail":',
    ),
    "queue: a drain finds something": (
        queue_totals,
        'found_nothing = operation.f == "drain" or operation',
        "found_nothing = operation",
    ),
    "fencing: any token is accepted": (fencing_tokens, "token < highest[0]", "False"),
    "fencing: an equal token is lower": (
        fencing_tokens,
        "token < highest[0]",
        "token <= highest[0]",
    ),
    "fencing: the last token counts, not the highest": (
        fencing_tokens,
        "if highest is None or token > highest[0]:",
        "if True:",
    ),
    "fencing: refused writes count": (
        fencing_tokens,
        "for write in answered if granted(write.result)]",
        "for write in answered]",
    ),
    "fencing: ties are ordered": (
        fencing_tokens,
        "end_of(by_end[position]) < write",
        "end_of(by_end[position]) <= write",
    ),
    "fencing: all objects are one": (
        fencing_tokens,
        "for members in by_key(relevant).values():",
        "for members in [relevant]:",
    ),
    "sessions: failed writes happened": (sessions, 'if operation.type != "fail"]', "]"),
    "sessions: open adds are due": (
        sessions,
        'if operation.type != "ok":\n            continue',
        'if operation.type == "fail":\n            continue',
    ),
    "sessions: what was read is not due": (
        sessions,
        "due.update(dict.fromkeys(shown.difference(due), operation))",
        "pass",
    ),
    "sessions: what was added is not due": (
        sessions,
        "due[freeze(operation.argument)] = operation",
        "pass",
    ),
    "sessions: all processes are one": (
        sessions,
        "due_by_process.setdefault(operation.process, {})",
        "due_by_process.setdefault(0, {})",
    ),
    "sessions: positions are not asked": (sessions, "if not has_positions(members):", "if True:"),
    "sessions: only positions are asked": (
        sessions,
        "if not has_positions(members):\n        return judge_versions(members, findings)",
        "if not has_positions(members):\n        return None",
    ),
}


def told(check: Any, case: Case) -> Told:
    result = check(case.operations, Unlimited(), **case.options)
    if result.verdict is not Verdict.INVALID:
        return (result.verdict.value,)
    return tuple(violation["kind"] for violation in result.violations)


@pytest.mark.parametrize("module", CASES, ids=lambda module: module.__name__)
def test_what_is_planted_is_told_and_nothing_else(module: Any) -> None:
    for number, case in enumerate(CASES[module]):
        assert told(module.check, case) == case.told, f"case {number}: {case.operations}"
    verdicts = {case.told for case in CASES[module]}
    assert VALID in verdicts
    assert verdicts - {VALID, UNKNOWN}


@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_mutant_is_told_apart(mutant: str) -> None:
    module, found, put = MUTANTS[mutant]
    check = mutated(module, found, put).check
    assert any(told(check, case) != case.told for case in CASES[module])
