"""Compiled zones agree exactly where those in numpy find an order; each mutant of them does not."""

import os
from random import Random

import numpy as np
import pytest

from splitbrain.checker.linearizability.kernel import kernel_zones
from splitbrain.checker.linearizability.kernel.columns import RegisterColumns
from splitbrain.checker.linearizability.methods import zones
from splitbrain.checker.linearizability.methods.zones import agree_at_once, judge_zones_plainly
from splitbrain.checker.linearizability.part_source import register_columns
from splitbrain.checker.models.registry import MODELS
from splitbrain.history.records import PairedOperation
from tests.unit.checker.brute_force import linearizable
from tests.unit.checker.mutated import mutated
from tests.unit.checker.small_histories import history_of_unique_values

HISTORIES = int(os.environ.get("SPLITBRAIN_BRUTE_FORCE_HISTORIES", "1500"))


def columns_of(operations: list[PairedOperation], random: Random) -> RegisterColumns:
    """Columns in which the numbers of values say nothing of time."""
    columns = register_columns(operations, MODELS["register"])
    assert columns is not None
    numbers = list(range(int(columns.values.max(initial=-1)) + 1))
    random.shuffle(numbers)
    # The initial value is -1, and so is the last.
    return columns._replace(values=np.array([*numbers, -1])[columns.values])


def test_they_agree_where_brute_force_finds_an_order_and_zones_apply() -> None:
    random = Random("compiled zones")
    agreed = 0
    for number in range(HISTORIES):
        operations = history_of_unique_values(random, 12, twice=0.05)
        columns = columns_of(operations, random)
        plain = judge_zones_plainly(columns)
        agree = agree_at_once(columns)
        assert agree == (plain is not None and plain.valid), f"history {number}: {operations}"
        assert not agree or linearizable(operations, "register")
        agreed += agree
    assert agreed > HISTORIES / 8


def test_values_in_an_order_that_would_take_long_are_left_to_numpy() -> None:
    count = 4000
    # Later values are first in time: each zone would have to pass all that are there already.
    starts = np.arange(0, 40 * count, 20, dtype=np.int64)
    values = np.repeat(np.arange(count)[::-1], 2)
    is_write = np.tile([True, False], count)
    processes = np.zeros(2 * count, dtype=np.int64)
    columns = RegisterColumns(starts, starts + 5, processes, is_write, values)
    assert not agree_at_once(columns)
    assert zones.judge_zones(columns) == zones.ZoneVerdict(True, ())


#: Texts of the source and their replacements.
MUTANTS = {
    "process order in ties forgotten": ("or last_end[process] == start:", "or False:"),
    "values may be written twice": ("if written[value] or", "if"),
    "reads before their write allowed": ("or first_return[value] < start:", "or False:"),
    "open reads answer": ("elif end == NEVER:", "elif False:"),
    "values from nowhere": ("if not written[value]:", "if False:"),
    "zones in the order of their values": ("while place > 0", "while place > 10**6"),
    "overlapping zones allowed": ("memory.begins[place] < memory.ends[place - 1]", "False"),
    "nothing within a zone is seen": ("begin < ends[around - 1])", "False)"),
    "a value at the edge is within": ("begin < ends[around - 1])", "begin <= ends[around - 1])"),
    "the nearest zone is never the one before": ("begins[around - 1] >= end:", "False:"),
}


@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_mutant_is_told_apart(mutant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module = mutated(kernel_zones, *MUTANTS[mutant], ("@compiled\n", "@part_of_compiled\n"))
    monkeypatch.setattr(kernel_zones, "zones_agree", module.zones_agree)
    random = Random("mutants of compiled zones")
    for number in range(6000):
        operations = history_of_unique_values(random, (9, 16)[number % 2], twice=0.1)
        columns = columns_of(operations, random)
        plain = judge_zones_plainly(columns)
        if agree_at_once(columns) != (plain is not None and plain.valid):
            return
    raise AssertionError(f"no history tells it apart: {mutant}")
