"""The checker of transactions against an oracle that knows the definitions alone."""

import os
from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from splitbrain.checker.transactions import check as checking
from splitbrain.checker.transactions.levels import LEVELS
from splitbrain.checker.transactions.micro_operations import Kind
from splitbrain.checker.verdict import Verdict
from splitbrain.contracts.budget import Unlimited
from splitbrain.history.records import PairedOperation
from tests.unit.checker.transactions.brute_force import IN_SIGHT, is_of_level
from tests.unit.checker.transactions.small_transactions import (
    random_mini_transactions,
    random_open_transactions,
    random_transactions,
)

#: Each mutant that small histories tell apart is told apart by one of these numbers;
#: ``python -m bench.brute_force`` has more.
HISTORIES = int(os.environ.get("SPLITBRAIN_BRUTE_FORCE_HISTORIES", "160"))
KINDS: tuple[Kind, ...] = ("list-append", "rw-register")
JUDGED = sorted(name for name in LEVELS if not name.endswith("read-uncommitted"))
#: Levels whose verdict may hang on an order of writes that nobody saw.
SERIAL = sorted(name for name in JUDGED if name.endswith(("serializable", "repeatable-read")))
SOLVED = [name for name in JUDGED if name.endswith("snapshot-isolation")] + SERIAL
Draw = Callable[[Random, str], list[PairedOperation]]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("level", JUDGED)
def test_a_verdict_is_what_the_definition_says(kind: Kind, level: str) -> None:
    agree_with_brute_force(kind, level, range(HISTORIES * (2 if level in IN_SIGHT else 1)))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("level", SOLVED)
def test_an_open_order_of_writes_is_decided(
    kind: Kind, level: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    open_ones = count_open_ones(monkeypatch)
    # Few of real time stay open.
    numbers = range(HISTORIES * (2 if kind == "rw-register" else 1))
    agree_with_brute_force(kind, level, numbers, random_open_transactions)
    # Without anti-dependencies among unread appends, their orders are never open.
    is_never_open = kind == "list-append" and level in SERIAL
    assert (not open_ones) == is_never_open


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("level", SOLVED)
def test_edges_decide_where_every_write_follows_a_read(
    kind: Kind, level: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So a mini history costs no search (Huang and others 2025, "MTC")."""
    open_ones = count_open_ones(monkeypatch)
    agree_with_brute_force(kind, level, range(HISTORIES // 2), random_mini_transactions)
    assert kind == "list-append" or not open_ones


def count_open_ones(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """A list that gets an entry for each history whose verdict needs a solver."""
    found: list[int] = []
    decide = checking.decide_open

    def counted(*arguments: Any) -> Any:
        found.append(1)
        return decide(*arguments)

    monkeypatch.setattr(checking, "decide_open", counted)
    return found


def agree_with_brute_force(
    kind: Kind, level: str, numbers: range, draw: Draw = random_transactions
) -> None:
    """Judge the histories of these numbers; those of odd ones violate the level."""
    for number in numbers:
        random = Random(f"transactions {kind} {level} {number}")
        expected = number % 2 == 0
        history = drawn(random, kind, level, draw, wanted=expected)
        verdict = checking.check(history, Unlimited(), kind, level).verdict
        assert verdict is (Verdict.VALID if expected else Verdict.INVALID), (number, history)


def drawn(
    random: Random, kind: Kind, level: str, draw: Draw, *, wanted: bool
) -> list[PairedOperation]:
    """Draw histories until one with a read is of a level, or is not, as wanted."""
    while True:
        history = draw(random, kind)
        reads = [f for o in history if o.type == "ok" for f, _, _ in o.result if f == "r"]
        if reads and is_of_level(history, level) == wanted:
            return history
