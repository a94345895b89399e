"""The order of elements decides what brute force decides; each mutant of it does not."""

import itertools
import os
from random import Random
from typing import Any

import msgspec
import pytest

from splitbrain.checker.linearizability.check import check
from splitbrain.checker.linearizability.methods import fifo_order, search
from splitbrain.checker.linearizability.part.outcome import FIFO, PRECONDITIONS
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
from tests.unit.checker.small_histories import queue_of_unique_elements

HISTORIES = int(os.environ.get("SPLITBRAIN_BRUTE_FORCE_HISTORIES", "1500"))
QUEUE = MODELS["fifo-queue"]


def verdict_on(
    operations: list[PairedOperation], judge: Any = fifo_order.judge_fifo
) -> fifo_order.FifoVerdict | None:
    source = ObjectSource(Part(None, tuple(operations)), QUEUE)
    assert QUEUE.fifo_functions is not None
    return judge(source.columns, source.calls, QUEUE.fifo_functions)


def judged(operations: list[PairedOperation], judge: Any = fifo_order.judge_fifo) -> bool | None:
    verdict = verdict_on(operations, judge)
    return None if verdict is None else verdict.valid


def test_the_order_of_elements_agrees_with_brute_force() -> None:
    random = Random("fifo")
    valid = applied = 0
    for number in range(2 * HISTORIES):
        operations = queue_of_unique_elements(random, 11)
        found = judged(operations)
        if found is None:
            continue
        applied += 1
        valid += found
        assert found == linearizable(operations, "fifo-queue"), f"history {number}: {operations}"
    assert applied > HISTORIES
    assert 0.3 <= valid / applied <= 0.7, "the histories no longer test both verdicts"


def test_the_operations_named_contradict_each_other_by_themselves() -> None:
    random = Random("contradiction")
    sizes: set[int] = set()
    for _ in range(1500):
        operations = queue_of_unique_elements(random)
        verdict = verdict_on(operations)
        if verdict is None or verdict.valid:
            continue
        assert len(set(verdict.places)) == len(verdict.places)
        members = [operations[place] for place in sorted(verdict.places)]
        sizes.add(len(members))
        assert not linearizable(members, "fifo-queue"), (verdict, operations)
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
    assert MODELS["unordered-queue"].fifo_functions is None
    from splitbrain.checker.models.queues import BoundedFifoQueue

    assert BoundedFifoQueue.fifo_functions is None


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


@pytest.mark.parametrize("history", TOUCHING)
def test_what_touches_may_be_in_either_order(history: list[PairedOperation]) -> None:
    apart = [msgspec.structs.replace(o, process=n) for n, o in enumerate(history)]
    assert judged(apart) is True
    assert linearizable(apart, "fifo-queue")


#: Texts of the source and their replacements.
MUTANTS = {
    "elements may be put in twice": ("minlength=count) > 1).any()", "minlength=count) > 2).any()"),
    "process order in ties forgotten": ("or goes_on_at_once(columns)", ""),
    "elements come out twice": ("    if len(twice):", "    if len(twice) > 99:"),
    "elements come out before they were put in": ("    if len(early):", "    if len(early) > 99:"),
    "who touches comes out early": (
        "elements.take_end < elements.put_start",
        "elements.take_end <= elements.put_start",
    ),
    "open dequeues never happened": (
        "return None if _contradiction(columns, elements, nothing) else FifoVerdict(True)",
        "return FifoVerdict(not _contradiction(columns, elements, nothing))",
    ),
    "open dequeues happened as needed": (
        "    if not (kinds == _TELLS_NOTHING).any():",
        "    if True:",
    ),
    "no order": (" or _nothing_found(columns, there, nothing)", ""),
    "nothing found whatever is there": (
        "return _overtaking(there, elements) or",
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
        "latest = np.maximum.accumulate(there.take_start)\n    # Elements",
        "latest = there.take_start\n    # Elements",
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


@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_mutant_is_told_apart(mutant: str) -> None:
    module = mutated(fifo_order, *MUTANTS[mutant])
    random = Random("mutants of the order of elements")
    touching = [
        [msgspec.structs.replace(o, process=n) for n, o in enumerate(history)]
        for history in TOUCHING
    ]
    drawn = (queue_of_unique_elements(random, twice=0.1) for _ in range(6000))
    for operations in itertools.chain(touching, drawn):
        try:
            found = judged(operations, module.judge_fifo)
        except ValueError:  # the mutant knows no element where it has seen some
            return
        if found not in (None, linearizable(operations, "fifo-queue")):
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
    assert result.figures["algorithms"] == [FIFO]
    assert result.figures["preconditions"] == [f"{FIFO}: {PRECONDITIONS[FIFO]}"]
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
