"""The order of elements decides what brute force decides; each mutant of it does not."""

import itertools
import os
from random import Random
from typing import Any

import msgspec
import pytest

from splitbrain.checker.linearizability.check import check
from splitbrain.checker.linearizability.methods import element_order, search
from splitbrain.checker.linearizability.part.outcome import ELEMENTS, PRECONDITIONS
from splitbrain.checker.linearizability.part.parts import Part
from splitbrain.checker.linearizability.part_source import ObjectSource
from splitbrain.checker.models.registry import MODELS
from splitbrain.checker.verdict import Verdict
from splitbrain.contracts.budget import Unlimited
from splitbrain.history.records import PairedOperation
from tests.unit.checker.brute_force import linearizable
from tests.unit.checker.mutated import mutated
from tests.unit.checker.operations import Ending
from tests.unit.checker.operations import operation as op
from tests.unit.checker.small_histories import PUT_AND_TAKE, unique_elements

HISTORIES = int(os.environ.get("SPLITBRAIN_BRUTE_FORCE_HISTORIES", "1500"))
HOLDERS = tuple(PUT_AND_TAKE)


def verdict_on(
    operations: list[PairedOperation],
    judge: Any = element_order.judge_elements,
    model: str = "fifo-queue",
) -> element_order.ElementVerdict | None:
    kinds = MODELS[model].element_kinds
    assert kinds is not None
    return judge(ObjectSource(Part(None, tuple(operations)), MODELS[model]).elements, kinds.order)


def judged(
    operations: list[PairedOperation],
    judge: Any = element_order.judge_elements,
    model: str = "fifo-queue",
) -> bool | None:
    verdict = verdict_on(operations, judge, model)
    return None if verdict is None else verdict.valid


@pytest.mark.parametrize("model", HOLDERS)
def test_the_order_of_elements_agrees_with_brute_force(model: str) -> None:
    random = Random(f"order of elements {model}")
    valid = applied = 0
    for number in range(2 * HISTORIES):
        operations = unique_elements(random, 12, model=model)
        found = judged(operations, model=model)
        if found is None:
            continue
        applied += 1
        valid += found
        assert found == linearizable(operations, model), f"history {number}: {operations}"
    assert applied > HISTORIES
    assert 0.3 <= valid / applied <= 0.7, "the histories no longer test both verdicts"


@pytest.mark.parametrize("model", HOLDERS)
def test_the_operations_named_contradict_each_other_by_themselves(model: str) -> None:
    random = Random(f"contradiction {model}")
    sizes: set[int] = set()
    for _ in range(1500):
        operations = unique_elements(random, 12, model=model)
        verdict = verdict_on(operations, model=model)
        if verdict is None or verdict.valid:
            continue
        assert len(set(verdict.places)) == len(verdict.places)
        members = [operations[place] for place in sorted(verdict.places)]
        sizes.add(len(members))
        assert not linearizable(members, model), (verdict, operations)
    assert sizes >= {1, 2, 3, 4}


@pytest.mark.parametrize(
    ("why", "history"),
    [
        (
            "an element is put in twice",
            [op("enqueue", 1, start=0, end=1), op("enqueue", 1, start=2, end=3)],
        ),
        (
            "a process goes on at once",
            [
                op("enqueue", 1, start=0, end=2, process=0),
                op("enqueue", 2, start=2, end=3, process=0),
            ],
        ),
        (
            "whoever has no answer may have taken what never came out",
            [
                op("enqueue", 1, start=0, end=1),
                op("dequeue", None, start=2, end=None),
                op("dequeue", None, None, start=3, end=4),
            ],
        ),
    ],
)
def test_it_does_not_tell_where(why: str, history: list[PairedOperation]) -> None:
    assert judged(history) is None, why


def test_what_came_out_in_the_wrong_order_is_wrong_beside_open_dequeues() -> None:
    wrong = [
        op("enqueue", 1, start=0, end=1),
        op("enqueue", 2, start=2, end=3),
        op("dequeue", None, start=3, end=None),
        op("dequeue", None, 2, start=4, end=5),
        op("dequeue", None, 1, start=6, end=7),
    ]
    assert judged(wrong) is False
    # The first may have been taken by it.
    assert judged(wrong[:-1]) is None
    assert judged([*wrong[:2], wrong[2]]) is True


def test_a_queue_is_never_empty_from_one_element_to_the_next() -> None:
    history = [
        op("enqueue", 1, start=0, end=1),
        op("dequeue", None, None, start=2, end=9),
        op("enqueue", 2, start=3, end=4),
        op("dequeue", None, 1, start=5, end=6),
        op("enqueue", 3, start=6, end=7),
        op("dequeue", None, 2, start=8, end=10),
    ]
    verdict = verdict_on(history)
    assert verdict is not None
    assert not verdict.valid
    assert {history[place].argument for place in verdict.places} >= {1, 2, 3}
    # A gap as long as nothing: the second comes as the first may go.
    history[2] = msgspec.structs.replace(history[2], end=5)
    assert judged(history) is True


def test_of_nothing_there_is_an_order() -> None:
    assert judged([]) is True
    assert judged([op("dequeue", None, None, start=0, end=1)]) is True
    assert judged([op("dequeue", None, start=0, end=None)]) is True
    assert judged([op("enqueue", 1, start=0, end=None)]) is True


def test_a_bounded_queue_and_an_unordered_one_are_left_to_the_search() -> None:
    assert MODELS["unordered-queue"].element_kinds is None
    from splitbrain.checker.models.queues import BoundedFifoQueue

    assert BoundedFifoQueue.element_kinds is None


#: An operation that ends as another begins may stand before it or after it.
TOUCHING = (
    [
        op("enqueue", 1, start=0, end=2),
        op("dequeue", None, None, start=2, end=3),
        op("dequeue", None, 1, start=4, end=5),
    ],
    [
        op("enqueue", 1, start=0, end=1),
        op("dequeue", None, None, start=2, end=4),
        op("dequeue", None, 1, start=4, end=5),
    ],
    [
        op("enqueue", 1, start=0, end=1),
        op("dequeue", None, None, start=2, end=9),
        op("enqueue", 2, start=3, end=5),
        op("dequeue", None, 1, start=5, end=6),
        op("dequeue", None, 2, start=10, end=11),
    ],
)


#: The same of what is least first: the greatest comes out as one lesser goes and another comes.
LEAST_TOUCHING = [
    op("insert", 0, start=0, end=1),
    op("insert", 5, start=0, end=1),
    op("delete-min", None, 5, start=2, end=5),
    op("insert", 1, start=2, end=3),
    op("delete-min", None, 0, start=3, end=4),
    op("delete-min", None, 1, start=6, end=7),
]
ALL_TOUCHING = [
    *(("fifo-queue", history) for history in TOUCHING),
    ("priority-queue", LEAST_TOUCHING),
]


def of_many(history: list[PairedOperation]) -> list[PairedOperation]:
    """The same with a process for each operation."""
    return [msgspec.structs.replace(o, process=n) for n, o in enumerate(history)]


@pytest.mark.parametrize(("model", "history"), ALL_TOUCHING)
def test_what_touches_may_be_in_either_order(model: str, history: list[PairedOperation]) -> None:
    assert judged(of_many(history), model=model) is True
    assert linearizable(of_many(history), model)


#: Texts of the source and their replacements.
MUTANTS = {
    "elements may be put in twice": ("minlength=count) > 1).any()", "minlength=count) > 2).any()"),
    "process order in ties forgotten": ("if goes_on_at_once(columns):", "if False:"),
    "elements come out twice": ("    if len(twice):", "    if len(twice) > 99:"),
    "elements come out before they were put in": ("    if len(early):", "    if len(early) > 99:"),
    "who touches comes out early": (
        "elements.take_end < elements.put_start",
        "elements.take_end <= elements.put_start",
    ),
    "open dequeues never happened": (
        "        return None\n    return ElementVerdict(True)",
        "        return ElementVerdict(False)\n    return ElementVerdict(True)",
    ),
    "open dequeues happened as needed": (
        "    if not (kinds == TELLS_NOTHING).any():",
        "    if True:",
    ),
    "no order": (" or _nothing_found(columns, there, nothing)", ""),
    "nothing found whatever is there": (
        "return _ORDERS[order](there) or",
        "return",
    ),
    "elements that touch are in order": (
        'elements.put_start, side="left")',
        'elements.put_start, side="right")',
    ),
    "elements that come out at one moment do so in order": (
        "(limits > elements.take_end)",
        "(limits >= elements.take_end)",
    ),
    "the last one in alone is ahead": (
        "latest = np.maximum.accumulate(elements.take_start)\n    # Elements",
        "latest = elements.take_start\n    # Elements",
    ),
    "elements that touch leave no gap": (">= latest[:-1], True", "> latest[:-1], True"),
    "elements that overlap leave a gap": (
        "np.append(there.put_end[1:] >= latest[:-1], True)",
        "np.append(there.put_end[1:] >= there.put_end[:-1], True)",
    ),
    "who touches a stretch is within, at its begin": (
        'columns.starts[nothing], side="left")',
        'columns.starts[nothing], side="right")',
    ),
    "who touches a stretch is within, at its end": (
        "limits > columns.ends[nothing]",
        "limits >= columns.ends[nothing]",
    ),
}


#: Of the rules on stacks and on what is least first.
MUTANTS_OF_OTHERS = {
    "stack": {
        "what is pushed later can be below": ("pushed[n] <= begin and", ""),
        "what is popped earlier can be below": (" and popped[n] >= end", ""),
        "pushed as the others begin is too late": ("pushed[n] <= begin", "pushed[n] < begin"),
        "popped as the others end is too early": ("popped[n] >= end", "popped[n] > end"),
        "elements that touch overlap": (
            "[(begins[n], 1, n) for n in sure] + [(ends[n], 0, ~n)",
            "[(begins[n], 0, n) for n in sure] + [(ends[n], 1, ~n)",
        ),
        "elements that cross are left out": (
            "kept and kept[-1] == ~bound:",
            "kept and bound < 0:",
        ),
        "elements with a moment between them are one stretch": (
            "if depth == 0:",
            "if place == len(bounds):",
        ),
    },
    "priority-queue": {
        "the greatest first": ("np.argsort(elements.rank)", "np.argsort(-elements.rank)"),
        "it comes out before it was put in": (
            "max(int(elements.put_start[number]), end)",
            "end",
        ),
        "who touches is within": ("ends[last] > until:", "ends[last] >= until:"),
        "whoever begins then is there": (
            "bisect_left(begins, earliest) - 1",
            "bisect_right(begins, earliest) - 1",
        ),
        "stretches that touch are one": (
            "bisect_right(ends, begin), bisect_left(begins, end)",
            "bisect_left(ends, begin), bisect_right(begins, end)",
        ),
        "stretches end with the last of them": (
            "min(begin, begins[low]), max(end, ends[high - 1])",
            "min(begin, begins[low]), end",
        ),
        "what stays does not hinder": ("if begin < end:", "if begin < end < NEVER:"),
    },
}
MUTANTS_OF_ALL = [
    *(("fifo-queue", name, mutant) for name, mutant in MUTANTS.items()),
    *(
        (model, name, mutant)
        for model, mutants in MUTANTS_OF_OTHERS.items()
        for name, mutant in mutants.items()
    ),
]


@pytest.mark.parametrize(
    ("model", "mutant"),
    [pytest.param(model, mutant, id=f"{model}: {name}") for model, name, mutant in MUTANTS_OF_ALL],
)
def test_a_mutant_is_told_apart(model: str, mutant: tuple[str, str]) -> None:
    module = mutated(element_order, *mutant)
    random = Random("mutants of the order of elements")
    touching = [of_many(history) for touched, history in ALL_TOUCHING if touched == model]
    drawn = (unique_elements(random, 10, twice=0.1, model=model) for _ in range(9000))
    for operations in itertools.chain(touching, drawn):
        try:
            found = judged(operations, module.judge_elements, model)
        # The mutant knows no element where it has seen some.
        except ValueError:
            return
        if found not in (None, linearizable(operations, model)):
            return
    raise AssertionError(f"no history tells it apart: {mutant}")


# --- what is told of a violation, and of long histories ------------------------------------------


def long_queue(count: int) -> list[PairedOperation]:
    """Ten clients put in and take out; nearly all operations overlap with many others."""
    history: list[PairedOperation] = []
    for n in range(count):
        start = 10 * n
        history.append(op("enqueue", n, start=start, end=start + 95, process=n % 10))
        history.append(op("dequeue", None, n, start=start + 3, end=start + 98, process=10 + n % 10))
    return history


@pytest.mark.parametrize("count", [30, 3000])
def test_wide_histories_are_decided_and_their_violations_are_small(count: int) -> None:
    history = long_queue(count)
    result = check(history, "fifo-queue", Unlimited())
    assert result.verdict is Verdict.VALID
    assert result.figures["algorithms"] == [ELEMENTS]
    assert result.figures["preconditions"] == [f"{ELEMENTS}: {PRECONDITIONS[ELEMENTS]}"]
    # Two that nothing else overlaps swap places.
    wrong = [
        msgspec.structs.replace(o, result={3: 25, 25: 3}.get(o.result, o.result)) for o in history
    ]
    found = check(wrong, "fifo-queue", Unlimited())
    assert found.verdict is Verdict.INVALID
    (violation,) = found.violations
    assert violation["core_size"] <= 4
    assert violation["core_minimal"]
    assert found.figures["operations"] == 2 * count


def test_a_violation_stands_when_the_budget_ends_before_it_is_explained(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(search, "POLL_INTERVAL", 1)
    wrong = [
        msgspec.structs.replace(o, result={3: 25, 25: 3}.get(o.result, o.result))
        for o in long_queue(30)
    ]
    result = check(wrong, "fifo-queue", Ending(1))
    assert result.verdict is Verdict.INVALID
