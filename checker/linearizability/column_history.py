"""Judge of a history given as columns, part by part, without making an object per operation.

For verdicts alone; a part without order is explained from its operations by
``checker.linearizability.check``. Both use the same portfolio. Needs no numba.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from splitbrain.checker.linearizability.column_calls import (
    NumberedCalls,
    distinct,
    is_split_by_key,
    reads_columns,
)
from splitbrain.checker.linearizability.kernel.kernel_layout import Integers
from splitbrain.checker.linearizability.part.parts import Part, is_failed_change
from splitbrain.checker.linearizability.part_source import ColumnSource
from splitbrain.checker.linearizability.portfolio import QUICK_STEPS, STEPS, Portfolio
from splitbrain.checker.models.model import Model
from splitbrain.checker.verdict import Verdict
from splitbrain.contracts.budget import Budget
from splitbrain.history.columns import FAIL, NOTHING, OK, OperationColumns
from splitbrain.history.records import PairedOperation

#: Operations of all parts from which the compiled search is asked first: loading it takes as long
#: as the search in Python takes for so many.
COMPILED_FROM: Final = 25_000


class FailedChanges(NamedTuple):
    """Failed changes of a history, as of ``Part``."""

    #: The whole history.
    columns: OperationColumns
    model: Model

    def of(self, key: str | None) -> tuple[PairedOperation, ...]:
        """Return those of one part."""
        chosen = self.columns.outcomes == FAIL
        if is_split_by_key(self.model):
            chosen &= self.columns.keys == self.columns.key_names.index(key)
        failed = map(self.columns.operation, np.flatnonzero(chosen).tolist())
        return tuple(operation for operation in failed if is_failed_change(operation, self.model))


class ColumnParts(NamedTuple):
    """Parts of a history, one after the other in its columns."""

    #: Operations without failed ones, part by part, each by start.
    columns: OperationColumns
    #: Names of the parts, largest part first.
    keys: tuple[str | None, ...]
    #: Start of each part among the operations; one more for the end.
    bounds: Integers
    #: For parts to be explained; None where nothing failed, and where it is only about verdicts.
    failures: FailedChanges | None = None

    def some(self, numbers: Sequence[int]) -> "ColumnParts":
        """Return these parts alone, in this order."""
        sizes = [self.size(number) for number in numbers]
        bounds = np.cumsum([0, *sizes])
        if bounds[-1] == len(self.columns) and list(numbers) == sorted(numbers):
            return self._replace(failures=None)
        places: Integers = np.concatenate(
            [np.arange(*self.bounds[number : number + 2], dtype=np.int64) for number in numbers]
        )
        keys = tuple(self.keys[number] for number in numbers)
        return ColumnParts(self.columns.taken(places), keys, bounds)

    def size(self, number: int) -> int:
        """Number of operations of a part."""
        return int(self.bounds[number + 1] - self.bounds[number])

    def part(self, number: int) -> Part:
        """Return a part as operations."""
        places = range(int(self.bounds[number]), int(self.bounds[number + 1]))
        key = self.keys[number]
        operations = tuple(self.columns.operation(place) for place in places)
        return Part(key, operations, self.failures.of(key) if self.failures else ())


class PartVerdict(NamedTuple):
    """Verdict on one part."""

    part: int
    verdict: Verdict
    algorithm: str
    #: Reason of ``unknown``.
    reason: str | None
    #: 0 without a search.
    configurations: int


def split_columns(
    columns: OperationColumns,
    model: Model,
    problem_with: Callable[[PairedOperation], str | None],
) -> ColumnParts | None:
    """Split a history into parts; None where operations have to be looked at one by one.

    That is where the model may look at more than the columns hold, and where an operation makes no
    sense, by ``problem_with`` too: the reader of operations names it and says why.
    """
    if not reads_columns(model):
        return None
    is_judged = columns.outcomes != FAIL
    for number, kind in enumerate(columns.kind_names):
        if kind in model.unjudged_functions:
            is_judged &= columns.kinds != number
    kept = np.flatnonzero(is_judged)
    kinds: list[int] = np.unique(columns.kinds[kept]).tolist()
    present = {columns.kind_names[kind] for kind in kinds}
    if not present <= model.functions or not len(kept):
        return None
    if not _makes_sense(columns, model, problem_with):
        return None
    keys = columns.keys[kept] if is_split_by_key(model) else np.zeros(len(kept), dtype=np.int32)
    count = len(columns.key_names)
    sizes = np.bincount(keys, minlength=count)
    # Parts of equal size are ordered by the first appearance of their keys.
    first = np.full(count, len(keys))
    np.minimum.at(first, keys, np.arange(len(keys)))
    by_size = np.lexsort((first, -sizes))
    rank = np.empty(count, dtype=np.int32)
    rank[by_size] = np.arange(count)
    order = kept[_by_part(rank[keys], columns.starts[kept], columns.indexes[kept])]
    present = int(np.count_nonzero(sizes))
    named: list[int] = by_size[:present].tolist()
    names = tuple(columns.key_names[key] if is_split_by_key(model) else None for key in named)
    bounds = np.concatenate(([0], np.cumsum(sizes[by_size[:present]])))
    in_order = len(order) == len(columns) and bool((order[1:] > order[:-1]).all())
    if in_order:
        return ColumnParts(columns, names, bounds)
    return ColumnParts(columns.taken(order), names, bounds, FailedChanges(columns, model))


def _by_part(parts: NDArray[np.int32], starts: Integers, indexes: Integers) -> Integers:
    if (starts[1:] >= starts[:-1]).all() and (indexes[1:] > indexes[:-1]).all():
        # Numbers of 16 bits are sorted five times as fast.
        few = int(parts.max(initial=0)) <= np.iinfo(np.uint16).max
        return np.argsort(parts.astype(np.uint16) if few else parts, kind="stable")
    return np.lexsort((indexes, starts, parts))


def _makes_sense(
    columns: OperationColumns,
    model: Model,
    problem_with: Callable[[PairedOperation], str | None],
) -> bool:
    """Return whether all operations that did not fail have values that make sense."""

    def is_odd(operation: PairedOperation) -> bool:
        return bool(problem_with(operation) or model.problem_with(operation))

    # Reads and writes of a register may have any values, and there are very many different ones if
    # each value is written once: a model that takes the strangest takes all.
    if model.register_functions is not None and set(columns.kind_names) <= {
        *model.register_functions
    }:
        strange = object()
        takes_all = not any(
            is_odd(PairedOperation(0, 0, f, None, strange, strange, "ok", 0, 1))
            for f in model.register_functions
        )
        if takes_all:
            return _answers_repeat(columns, model.register_functions[1])
    # A value makes sense in every key or in none.
    alike = distinct(columns, with_keys=False)
    places = range(len(columns)) if alike is None else alike.places.tolist()
    return not any(
        is_odd(columns.operation(place)) for place in places if columns.outcomes[place] != FAIL
    )


def _answers_repeat(columns: OperationColumns, write: str) -> bool:
    """Return whether each write was answered with nothing, or with its own value."""
    if write not in columns.kind_names:
        return True
    writes = (columns.kinds == columns.kind_names.index(write)) & (columns.outcomes == OK)
    answers = columns.results[writes]
    return not np.any((answers != NOTHING) & (answers != columns.arguments[writes]))


def judge_columns(
    parts: ColumnParts,
    model: Model,
    budget: Budget,
    *,
    quick: bool = False,
    compiled_first: bool | None = None,
) -> Iterator[PartVerdict]:
    """Yield the verdict on each part, in their order.

    Args:
        parts: some or all parts of a history.
        model: what they are judged by.
        budget: for all of them; parts that it does not last for are ``unknown``.
        quick: take only the steps that never take long, and leave the rest ``unknown``.
        compiled_first: ask the compiled search first; None: where there are enough operations.
    """
    numbered = NumberedCalls(parts.columns, model)
    if compiled_first is None:
        compiled_first = len(parts.columns) >= COMPILED_FROM
    steps = QUICK_STEPS if quick else STEPS
    for number in range(len(parts.keys)):
        places = slice(int(parts.bounds[number]), int(parts.bounds[number + 1]))
        source = ColumnSource(parts.columns, places, numbered, model)
        portfolio = Portfolio(source, budget, compiled_first=compiled_first, explained=False)
        decision = portfolio.decide(steps)
        outcome = decision.outcome
        yield PartVerdict(
            number, outcome.verdict, decision.algorithm, outcome.reason, outcome.configurations
        )
