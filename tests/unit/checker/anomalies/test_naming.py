"""A violation has the name that its operations prove, and none that they do not."""

from random import Random
from typing import Any

import msgspec
import pytest

from splitbrain.checker.anomalies import naming
from splitbrain.checker.anomalies.cells import Cell
from splitbrain.checker.anomalies.names import NAMES, name_of_kind
from splitbrain.checker.anomalies.naming import name_of_core
from splitbrain.checker.linearizability.check import check
from splitbrain.checker.linearizability.methods.search import Search
from splitbrain.checker.linearizability.part.problem import Problem
from splitbrain.checker.models.register import CasRegister
from splitbrain.checker.models.registry import MODELS
from splitbrain.checker.names import KINDS
from splitbrain.checker.verdict import Verdict
from splitbrain.contracts.budget import Unlimited
from splitbrain.history.records import PairedOperation
from tests.unit.checker.operations import operation
from tests.unit.checker.small_histories import history_of_unique_values, random_history


def write(value: Any, start: int, end: int | None = None, **fields: Any) -> PairedOperation:
    return operation("write", value, start=start, end=end, **fields)


def read(value: Any, start: int, end: int, **fields: Any) -> PairedOperation:
    return operation("read", None, value, start=start, end=end, **fields)


def cas(old: Any, new: Any, start: int, end: int | None, *, done: bool = True) -> PairedOperation:
    result = None if end is None else [old, new, done]
    return operation("cas", [old, new], result, start=start, end=end)


def failed(f: str, argument: Any, start: int, end: int) -> PairedOperation:
    return operation(f, argument, start=start, end=end, outcome="fail", error="not-leader")


def named(model: str, *operations: PairedOperation) -> str:
    """Name of the violation; "valid" where there is none."""
    result = check(list(operations), model, Unlimited())
    return result.violations[0]["anomaly"] if result.violations else result.verdict.value


REGISTERS: dict[str, tuple[str, list[PairedOperation]]] = {
    "the value before an acknowledged write": (
        "stale read",
        [write(1, 0, 1), write(2, 2, 3), read(1, 4, 5)],
    ),
    "nothing, after a write that others saw": (
        "stale read",
        [write(1, 0, 1), read(1, 2, 3), read(None, 4, 5)],
    ),
    "one node lacks a write that nobody saw": (
        "stale read",
        [write(1, 0, 1), write(2, 2, 3), read(1, 4, 5, node="n1"), read(1, 6, 7, node="n1")],
    ),
    "two nodes lack a write, and nobody ever saw it": (
        "lost write",
        [write(1, 0, 1), write(2, 2, 3), read(1, 4, 5, node="n1"), read(1, 6, 7, node="n2")],
    ),
    "a final read lacks a write, and nobody ever saw it": (
        "lost write",
        [write(1, 0, 1), write(2, 2, 3), read(1, 4, 5, final=True)],
    ),
    "two nodes lack a write that another one had seen": (
        "stale read",
        [
            write(1, 0, 1),
            write(2, 2, 4),
            read(2, 3, 5, node="n3"),
            read(1, 6, 7, node="n1"),
            read(1, 8, 9, node="n2"),
        ],
    ),
    "the node that showed a write, and another one, lack it": (
        "lost write",
        [
            write(1, 0, 1, node="n1"),
            write(2, 2, 3, node="n1"),
            read(2, 4, 5, node="n1"),
            read(1, 6, 7, node="n1"),
            read(1, 8, 9, node="n2"),
        ],
    ),
    "two nodes lack a write, but not the one that acknowledged it": (
        "stale read",
        [
            write(1, 0, 1),
            write(2, 2, 3, node="n3"),
            read(1, 4, 5, node="n1"),
            read(1, 6, 7, node="n2"),
        ],
    ),
    "the only node lacks what it acknowledged, again and again": (
        "lost write",
        [
            write(1, 0, 1, node="n1"),
            write(2, 2, 3, node="n1"),
            read(1, 4, 5, node="n1"),
            read(1, 6, 7, node="n1"),
        ],
    ),
    "something else may have hidden the write": (
        "stale read",
        [
            write(1, 0, 1),
            write(2, 2, 3),
            write(3, 2, None, index=20, process=20),
            read(1, 4, 5, node="n1"),
            read(1, 6, 7, node="n2"),
        ],
    ),
    "a compare-and-set of a value that a write had replaced": (
        "lost write",
        [write(1, 0, 1), write(2, 2, 3), cas(1, 3, 4, 5)],
    ),
    "a compare-and-set lost to one of the value before it": (
        "double success of a compare-and-set",
        [write(1, 0, 1), cas(1, 2, 2, 3), cas(1, 3, 4, 5)],
    ),
    "two compare-and-sets at once": (
        "double success of a compare-and-set",
        [write(1, 0, 1), cas(1, 2, 2, 5), cas(1, 3, 3, 6)],
    ),
    "an acknowledged compare-and-set that no node shows": (
        "lost update",
        [write(1, 0, 1), cas(1, 2, 2, 3), read(1, 4, 5, node="n1"), read(1, 6, 7, node="n2")],
    ),
    "both lines go on": (
        "fork",
        [write(1, 0, 1), write(2, 2, 3), cas(1, 3, 4, 5), read(2, 6, 9), read(3, 7, 8)],
    ),
    "the value of a write that failed": (
        "dirty read",
        [write(1, 0, 1), failed("write", 2, 2, 3), read(2, 4, 5)],
    ),
    "the value of a write that is about to fail": (
        "dirty read",
        [write(1, 0, 1), failed("write", 2, 2, 9), read(2, 4, 5)],
    ),
    "the value of a compare-and-set that was refused": (
        "dirty read",
        [write(1, 0, 1), cas(7, 2, 2, 3, done=False), read(2, 4, 5)],
    ),
    "a value of nobody": ("phantom value", [write(1, 0, 1), read(9, 4, 5)]),
    "a value of later": ("phantom value", [read(1, 0, 1), write(1, 2, 3)]),
    "a failed write that began later": ("phantom value", [read(1, 0, 1), failed("write", 1, 2, 3)]),
    "refused though the value was there": (
        "wrong refusal",
        [write(1, 0, 1), cas(1, 2, 2, 3, done=False)],
    ),
    "refused though nothing had ever been written": (
        "wrong refusal",
        [cas(None, 2, 2, 3, done=False)],
    ),
}

NEAR_MISSES: dict[str, list[PairedOperation]] = {
    "the read began before the write was acknowledged": [
        write(1, 0, 1),
        write(2, 2, 5),
        read(1, 4, 6),
    ],
    "an open write is read much later": [write(1, 0, 1), write(2, 2, None), read(2, 40, 50)],
    "an open write that nobody ever sees": [write(1, 0, 1), write(2, 2, None), read(1, 40, 50)],
    "a failed write of a value that was written too": [
        failed("write", 1, 0, 1),
        write(1, 2, 3),
        read(1, 4, 5),
    ],
    "the value was set again between": [
        write(1, 0, 1),
        cas(1, 2, 2, 3),
        write(1, 4, 5),
        cas(1, 3, 6, 7),
    ],
    "an open write may have come between a write and a refusal": [
        write(1, 0, 1),
        write(3, 2, None),
        cas(1, 2, 4, 5, done=False),
    ],
}


@pytest.mark.parametrize("case", REGISTERS)
def test_a_register_shows_the_anomaly(case: str) -> None:
    name, operations = REGISTERS[case]
    assert named("cas-register", *operations) == name


@pytest.mark.parametrize("case", NEAR_MISSES)
def test_what_only_looks_like_it_is_none(case: str) -> None:
    operations = NEAR_MISSES[case]
    assert named("cas-register", *operations) == "valid"
    judged = [o for o in operations if o.type != "fail"]
    missed = [o for o in operations if o.type == "fail"]
    core = [o.index for o in judged]
    assert name_of_core(core, judged, missed, CasRegister()) is None


def names_given(model: str, histories: int) -> tuple[set[str | None], list[int]]:
    """Names found in small histories, and the seeds of those that have an order nevertheless.

    Everything is taken for the core: each rule has to prove by itself that there is no order.
    """
    names: set[str | None] = set()
    wrong: list[int] = []
    for seed in range(histories):
        random = Random(seed)
        unique = model == "register" and seed % 2
        operations = history_of_unique_values(random) if unique else random_history(random, model)
        found = name_of_core([o.index for o in operations], operations, [], MODELS[model])
        names.add(found and found.name)
        if found is not None:
            outcome = Search(Problem(operations, MODELS[model]), Unlimited()).run()
            wrong += [] if outcome.verdict is Verdict.INVALID else [seed]
    return names, wrong


@pytest.mark.parametrize("model", MODELS)
def test_a_history_with_an_order_never_has_a_name(model: str) -> None:
    names, wrong = names_given(model, 400)
    assert not wrong
    assert len(names) >= 3, "the rules of every model find something among so many"


def taken_as_done(cell: Cell, operation: PairedOperation, what: Any, value: Any) -> None:
    if operation.type == "info":
        operation = msgspec.structs.replace(operation, type="ok", end=operation.start)
    TAKE(cell, operation, what, value)


TAKE = Cell.take
MUTANTS: dict[str, tuple[str, Any]] = {
    "whatever set a value is over": ("is_over", lambda *_: True),
    "nothing sets a value again": ("possible_setters", lambda *_: []),
    "an open write took effect at once": ("take", taken_as_done),
}


@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_rule_that_proves_less_names_what_has_an_order(
    mutant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, rule = MUTANTS[mutant]
    monkeypatch.setattr(Cell, name, rule)
    assert names_given("cas-register", 400)[1]


class Twisted(CasRegister):
    """A user's model, which may mean anything by a register's functions."""

    name = "twisted"


def test_a_model_of_a_user_gets_no_name_of_ours() -> None:
    operations = [write(1, 0, 1), write(2, 2, 3), read(1, 4, 5)]
    core = [o.index for o in operations]
    assert name_of_core(core, operations, [], CasRegister()) is not None
    assert name_of_core(core, operations, [], Twisted()) is None


def test_a_defect_in_naming_costs_the_name_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    def crash(*_: Any) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(naming, "name_of_core", crash)
    result = check([write(1, 0, 1), read(9, 4, 5)], "cas-register", Unlimited())
    assert result.verdict is Verdict.INVALID
    assert result.violations[0]["anomaly"] == "not linearizable"
    assert result.violations[0]["core"]


def test_every_kind_of_every_checker_has_a_name() -> None:
    for checker, kinds in KINDS.items():
        for kind in kinds:
            # Adya's names of phenomena are those that people of the field use, and that there is
            # no serial order needs no other words.
            is_name = checker in ("transactions", "log") and kind.startswith(("G", "no-"))
            assert (name_of_kind(checker, kind) == kind) == is_name, f"{checker}: {kind}"
    assert set(NAMES) == set(KINDS) - {"linearizability"}
    assert name_of_kind("set-full:stale-reads-allowed", "lost") == "lost write"
    assert name_of_kind("somebody's", "odd") == "odd"


def test_the_most_telling_name_speaks_for_a_history() -> None:
    def of_key(key: str, *operations: PairedOperation) -> list[PairedOperation]:
        shift = 100 * ord(key)
        return [
            msgspec.structs.replace(o, key=key, index=o.index + shift, process=o.process + shift)
            for o in operations
        ]

    stale = of_key("a", write(1, 0, 1), read(None, 4, 5))
    dirty = of_key("b", write(1, 0, 1), write(3, 2, 3), failed("write", 2, 4, 5), read(2, 6, 7))
    result = check([*stale, *dirty], "cas-register", Unlimited())
    assert [one["anomaly"] for one in result.violations] == ["dirty read", "stale read"]
    assert result.reason.startswith("2 of 2 parts cannot be ordered: read -> 2")


@pytest.mark.parametrize(
    ("history", "told"),
    [
        # The first answer is the stale one: what it shows had been replaced.
        (
            [write(5, 0, 1), write(1, 2, 3), read(5, 4, 5), read(1, 6, 7)],
            ["write 1", "a read", " with 5, an older state"],
        ),
        # Nobody can say which, since the second write lasted all the time.
        (
            [write(1, 0, 1), write(5, 0, 10, index=20, process=20), read(5, 4, 5), read(1, 6, 7)],
            ["a read", " with 5", "a read", " with 1, which nothing had set since"],
        ),
        # The second one: the write of what it shows was over before the other began.
        (
            [write(1, 0, 1), write(5, 2, None, index=20, process=20), read(5, 4, 5), read(1, 6, 7)],
            ["a read", " with 5", "a read", " with 1, an older state"],
        ),
    ],
)
def test_of_two_answers_the_stale_one_is_told_where_that_is_certain(
    history: list[PairedOperation], told: list[str]
) -> None:
    core = [history[3].index, history[2].index]
    found = name_of_core(core, history, [], MODELS["register"])
    assert found is not None
    assert found.name == "stale read"
    words = [
        word.removesuffix(" of key a").removesuffix(" to key a")
        for step in found.steps
        for word in (step.request, step.rest)
        if word
    ]
    assert words == told
