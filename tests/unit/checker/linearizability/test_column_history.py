"""Histories as columns get the verdicts of the same histories as operations."""

from random import Random
from typing import Any

import numpy as np
import pytest

from bench.histories import HistoryOptions, generate
from bench.history_columns import columns_of
from splitbrain.checker.linearizability.check import check_part
from splitbrain.checker.linearizability.column_calls import NumberedCalls
from splitbrain.checker.linearizability.column_history import judge_columns
from splitbrain.checker.linearizability.methods.element_order import judge_elements
from splitbrain.checker.linearizability.part.parts import Part, split
from splitbrain.checker.linearizability.part_source import ColumnSource, ObjectSource
from splitbrain.checker.models.model import call_of
from splitbrain.checker.models.registry import MODELS
from splitbrain.checker.verdict import Verdict
from splitbrain.contracts.budget import Unlimited
from splitbrain.history.columns import columns_of as operation_columns
from splitbrain.history.records import PairedOperation
from tests.unit.checker.brute_force import linearizable
from tests.unit.checker.small_histories import (
    PUT_AND_TAKE,
    history_of_unique_values,
    random_history,
    unique_elements,
)


@pytest.mark.parametrize("model", ["cas-register", "kv"])
def test_columns_agree_with_brute_force(model: str) -> None:
    random = Random(f"columns {model}")
    for _ in range(500):
        operations = random_history(random, model)
        history = columns_of("name", operations, model).to_kernel()
        (verdict,) = judge_columns(history, MODELS[model], Unlimited())
        assert (verdict.verdict is Verdict.VALID) == linearizable(operations, model), operations


def test_unique_values_are_judged_by_zones_and_others_by_the_search() -> None:
    random = Random("columns of unique values")
    configurations: set[bool] = set()
    for _ in range(300):
        operations = history_of_unique_values(random, twice=0.3)
        history = columns_of("name", operations, "cas-register").to_kernel()
        (verdict,) = judge_columns(history, MODELS["register"], Unlimited())
        assert (verdict.verdict is Verdict.VALID) == linearizable(operations, "register")
        configurations.add(verdict.configurations > 0)
    assert configurations == {False, True}


@pytest.mark.parametrize("info", [0.0, 0.2])
def test_every_part_is_judged_by_itself(info: float) -> None:
    operations = generate(HistoryOptions(600, 6, keys=7, info=info, violation=True))
    prepared = columns_of("name", operations, "cas-register").to_kernel()
    verdicts = judge_columns(prepared, MODELS["cas-register"], Unlimited())
    by_key = {prepared.keys[verdict.part]: verdict.verdict for verdict in verdicts}
    parts = split(operations, MODELS["cas-register"])
    expected = {p.key: check_part(p, "cas-register", Unlimited()).verdict for p in parts}
    assert by_key == expected
    assert sorted(by_key.values()).count(Verdict.INVALID) == 1


@pytest.mark.parametrize("model", [*MODELS])
def test_numbered_calls_are_those_of_the_operations(model: str) -> None:
    random = Random(f"calls {model}")
    for _ in range(200):
        operations = [o for o in random_history(random, model, 16) if o.type != "fail"]
        numbered = NumberedCalls(operation_columns(operations), MODELS[model])
        alike = MODELS[model].alike
        assert [alike(numbered.calls[n]) for n in numbered.numbers.tolist()] == [
            alike(call_of(operation, MODELS[model])) for operation in operations
        ]
        assert len(set(map(alike, numbered.calls))) == len(numbered.calls)


def test_values_that_a_model_cannot_tell_apart_are_one_call() -> None:
    values: list[Any] = [1, True, 1.0, [1, 2], [True, 2]]
    operations = [
        PairedOperation(n, n, "write", None, value, value, "ok", n, n + 1)
        for n, value in enumerate(values)
    ]
    numbered = NumberedCalls(operation_columns(operations), MODELS["register"])
    assert numbered.numbers.tolist() == [0, 0, 0, 1, 1]


def test_calls_of_very_many_values_are_told_apart_by_sorting() -> None:
    operations = generate(HistoryOptions(3000, 4, values=0, mix="register"))
    numbered = NumberedCalls(operation_columns(operations), MODELS["cas-register"])
    made = [call_of(operation, MODELS["cas-register"]) for operation in operations]
    assert [numbered.calls[number] for number in numbered.numbers.tolist()] == made
    assert np.array_equal(np.unique(numbered.numbers), np.arange(len(numbered.calls)))


@pytest.mark.parametrize("model", PUT_AND_TAKE)
def test_elements_are_told_from_columns_as_from_operations(model: str) -> None:
    random = Random(f"elements {model}")
    verdicts: set[bool] = set()
    for _ in range(400):
        operations = [o for o in unique_elements(random, 12, model=model) if o.type != "fail"]
        source = ObjectSource(Part(None, tuple(operations)), MODELS[model])
        columns = operation_columns(operations)
        places = slice(0, len(operations))
        numbered = NumberedCalls(columns, MODELS[model])
        of_columns = ColumnSource(columns, places, numbered, MODELS[model])
        kinds = MODELS[model].element_kinds
        assert kinds is not None
        assert source.elements is not None
        assert of_columns.elements is not None
        found = judge_elements(of_columns.elements, kinds.order)
        expected = judge_elements(source.elements, kinds.order)
        # The contradiction that is found first depends on the numbers of the elements.
        assert (found and found.valid) == (expected and expected.valid), operations
        verdicts |= set() if found is None else {found.valid}
    assert verdicts == {False, True}
