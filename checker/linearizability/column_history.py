"""Judges a history given as columns, part by part, without making an object per operation.

For verdicts alone; a part that has no order is explained from its operations by
``checker.linearizability.check``. Needs no numba, and is slow without it.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from checker.linearizability.columns import NEVER, PartColumns
from checker.linearizability.kernel_layout import Integers
from checker.linearizability.reachability import unreachable
from checker.linearizability.transitions import Transitions
from checker.linearizability.zones import RegisterColumns, judge_zones
from checker.models.compiled import CallColumns, number_calls
from checker.models.model import Model
from checker.verdict import Verdict
from contracts.budget import Budget

#: Configurations of the first try, and for each operation.
_FIRST_TRY = 50_000
_FIRST_TRY_PER_OPERATION = 4


class ColumnHistory(NamedTuple):
    """``ok`` and ``info`` operations by invocation; equal columns have equal lengths."""

    calls: CallColumns
    #: Number of each operation's part, from 0.
    parts: Integers
    #: Numbers of processes, from 0.
    processes: Integers
    starts: Integers
    #: ``NEVER`` for an operation without answer.
    ends: Integers


class PartVerdict(NamedTuple):
    """Verdict on one part."""

    part: int
    verdict: Verdict
    #: Configurations looked at; 0 for zones.
    configurations: int


def judge_columns(history: ColumnHistory, model: Model, budget: Budget) -> Iterator[PartVerdict]:
    """The verdict on each part, in the order of their numbers.

    Raises:
        DoesNotFit: a part is too wide for the compiled search, or has too many states or values.
    """
    searches: _Searches | None = None
    for part, places in _parts(history.parts):
        columns = _register(history, model, places)
        zones = None if columns is None else judge_zones(columns)
        if zones is not None:
            yield PartVerdict(part, Verdict.VALID if zones.valid else Verdict.INVALID, 0)
            continue
        if searches is None:
            searches = _Searches(history, model, budget)
        yield searches.judge(part, places)


class _Searches:
    """Searches parts whose calls are numbered together."""

    def __init__(self, history: ColumnHistory, model: Model, budget: Budget) -> None:
        from checker.linearizability.compiled_search import CompiledModel, DoesNotFit

        numbered = number_calls(history.calls, model)
        if numbered is None:
            raise DoesNotFit
        self._numbers, calls = numbered
        self._history = history
        self._budget = budget
        self._model = CompiledModel(model, calls, Transitions(model, calls))

    def judge(self, part: int, places: Integers | slice) -> PartVerdict:
        """In the order of ``checker.linearizability.portfolio``."""
        from checker.linearizability.compiled_search import CompiledSearch

        history, model = self._history, self._model
        columns = PartColumns(
            history.starts[places],
            history.ends[places],
            history.processes[places],
            self._numbers[places],
        )
        limit = _FIRST_TRY + _FIRST_TRY_PER_OPERATION * len(columns.starts)
        outcome = CompiledSearch(columns, model, self._budget, limit).run()
        configurations = outcome.configurations
        if outcome.verdict is Verdict.UNKNOWN and self._budget.exhausted() is None:
            if self._refuted(columns):
                return PartVerdict(part, Verdict.INVALID, configurations)
            outcome = CompiledSearch(columns, model, self._budget).run()
            configurations += outcome.configurations
        return PartVerdict(part, outcome.verdict, configurations)

    def _refuted(self, columns: PartColumns) -> bool:
        from checker.linearizability.compiled_search import CompiledSearch

        model = self._model
        if not model.model.bounded_states:
            return False
        if unreachable(columns, model.transitions, len(model.calls), self._budget) is not None:
            return True
        if not (columns.ends == NEVER).any():
            return False
        every_place = range(len(columns.starts))
        repeated = CompiledSearch(columns, model, self._budget, unlimited=every_place).run()
        return repeated.verdict is Verdict.INVALID


def _parts(parts: Integers) -> Iterator[tuple[int, Integers | slice]]:
    """Number and places of each part, places ascending."""
    if not len(parts) or not parts.any():
        yield 0, slice(None)
        return
    order = np.argsort(parts, kind="stable")
    bounds = np.searchsorted(parts[order], np.arange(int(parts.max()) + 2))
    for part in range(len(bounds) - 1):
        yield part, order[bounds[part] : bounds[part + 1]]


def _register(
    history: ColumnHistory, model: Model, places: Integers | slice
) -> RegisterColumns | None:
    """A part that only reads and writes a register, None for any other."""
    calls = history.calls
    if model.register_functions is None:
        return None
    read, write = (calls.functions.index(f) for f in model.register_functions)
    kinds = calls.kinds[places]
    is_write = kinds == write
    if not (is_write | (kinds == read)).all():
        return None
    values = np.where(is_write, calls.arguments[places], calls.results[places])
    return RegisterColumns(
        history.starts[places], history.ends[places], history.processes[places], is_write, values
    )
