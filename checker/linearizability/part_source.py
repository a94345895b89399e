"""Sources of one part of a history, in the form that each step of the portfolio needs.

A part comes as operations, to be explained too, or as columns of a long history, for a verdict
alone. Either form is made of the other only on demand. Reads and writes of one register without an
order are narrowed to the operations of the values around the contradiction: taking away all
operations of a value cannot make a contradiction of others.
"""

from collections.abc import Hashable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np

from splitbrain.checker.linearizability.column_calls import NumberedCalls
from splitbrain.checker.linearizability.kernel.columns import (
    FINDS_NOTHING,
    INITIAL,
    NEVER,
    PUTS,
    TAKES,
    TELLS_NOTHING,
    ElementColumns,
    PartColumns,
    RegisterColumns,
    columns_of,
    returned_at,
)
from splitbrain.checker.linearizability.kernel.kernel_layout import Integers
from splitbrain.checker.linearizability.part.parts import Part
from splitbrain.checker.linearizability.part.problem import Problem, Transitions
from splitbrain.checker.models.model import Call, Model, freeze
from splitbrain.history.columns import NOTHING, OK, OperationColumns
from splitbrain.history.edn_values import Number
from splitbrain.history.records import PairedOperation

if TYPE_CHECKING:
    from splitbrain.checker.linearizability.kernel.compiled_search import CompiledModel

#: Largest part that is explained as it is; larger ones are narrowed to this size.
EXPLAINED_MAX: Final = 1_000
#: Operations before a contradiction whose values are kept as its context.
_CONTEXT: Final = 100


def narrowed(part: Part, columns: RegisterColumns, values: Sequence[int]) -> Part:
    """Return a part without order, narrowed to values that contradict each other."""
    if len(part.operations) <= EXPLAINED_MAX:
        return part
    members = np.isin(columns.values, values)
    returned = columns.ends[members & (columns.ends != NEVER)]
    last = max(int(columns.starts[members].max()), int(returned.max(initial=0)))
    begin = int(np.searchsorted(columns.starts, int(columns.starts[members].min())))
    end = int(np.searchsorted(columns.starts, last, side="right"))
    near = columns.values[max(0, begin - _CONTEXT) : end]
    wide = members | np.isin(columns.values, np.unique(near))
    kept = wide if int(wide.sum()) <= EXPLAINED_MAX else members
    near_by = tuple(part.operations[place] for place in np.flatnonzero(kept).tolist())
    return Part(part.key, near_by, part.failed)


def initial_value(model: Model) -> Hashable:
    """Return the initial value, distinct from all others."""
    value = freeze(model.initial)
    return Number("number", value) if type(value) is int else value


def register_columns(operations: Sequence[PairedOperation], model: Model) -> RegisterColumns | None:
    """Return the columns of a part that only reads and writes a register; None for any other.

    The operations are ``ok`` and ``info`` ones by start, equal ones by index.
    """
    if model.register_functions is None:
        return None
    read, write = model.register_functions
    kinds = {operation.f for operation in operations}
    if not kinds <= {read, write}:
        return None
    nothing = initial_value(model)
    numbers: dict[Any, int] = {nothing: INITIAL}

    def number(value: Any) -> int:
        frozen = freeze(value)
        # To the models None is the initial value.
        frozen = nothing if frozen is None else frozen
        found = numbers.get(frozen)
        if found is None:
            found = numbers[frozen] = len(numbers) - 1
        return found

    processes: dict[int, int] = {}
    table = [
        (
            o.start,
            returned_at(o),
            processes.setdefault(o.process, len(processes)),
            o.f == write,
            number(o.argument if o.f == write else o.result),
        )
        for o in operations
    ]
    array = np.array(table, dtype=np.int64).reshape(len(table), 5)
    starts, ends, numbered, is_write, values = (np.ascontiguousarray(array[:, n]) for n in range(5))
    return RegisterColumns(starts, ends, numbered, is_write.astype(np.bool_), values)


def element_columns(
    columns: PartColumns, calls: Sequence[Call], model: Model
) -> ElementColumns | None:
    """Return the columns of a part that puts elements in and takes them out; None for any other."""
    if model.element_kinds is None:
        return None
    put, take, _ = model.element_kinds
    used, places = np.unique(columns.calls, return_inverse=True)
    kinds = np.empty(len(used), dtype=np.int64)
    numbers = np.zeros(len(used), dtype=np.int64)
    elements: dict[Hashable, int] = {}
    used_numbers: list[int] = used.tolist()
    for place, number in enumerate(used_numbers):
        call = calls[number]
        if call.f not in (put, take):
            return None
        if call.f == put:
            kinds[place], element = PUTS, call.argument
        elif not call.known:
            kinds[place] = TELLS_NOTHING
            continue
        elif call.result is None:
            kinds[place] = FINDS_NOTHING
            continue
        else:
            kinds[place], element = TAKES, call.result
        numbers[place] = elements.setdefault(element, len(elements))
    of_part = columns.starts, columns.ends, columns.processes
    return ElementColumns(*of_part, kinds[places], numbers[places], list(elements))


class ObjectSource:
    """Part given as operations."""

    def __init__(self, part: Part, model: Model) -> None:
        self.model = model
        self.operations = part.operations

    def __len__(self) -> int:
        return len(self.operations)

    @property
    def has_positions(self) -> bool:
        """Whether the system returned a position of any operation."""
        return any(operation.position is not None for operation in self.operations)

    @property
    def register(self) -> RegisterColumns | None:
        """Reads and writes of one register; None for any other part."""
        return register_columns(self.operations, self.model)

    @property
    def elements(self) -> ElementColumns | None:
        """Puts and takes of elements; None for any other part."""
        return element_columns(self.columns, self.calls, self.model)

    @cached_property
    def problem(self) -> Problem:
        """Problem for the search in Python."""
        return Problem(self.operations, self.model)

    @cached_property
    def repeated(self) -> Problem:
        """The same with open operations that may take effect any number of times."""
        return _repeated(self.problem, self.model)

    @cached_property
    def columns(self) -> PartColumns:
        """Columns for the compiled search."""
        return columns_of(self.operations, self.problem.call_by_place)

    @property
    def calls(self) -> list[Call]:
        """Calls by the numbers in ``columns``."""
        return self.problem.calls

    @property
    def transitions(self) -> Transitions:
        """Steps by the numbers in ``columns``."""
        return self.problem.transitions

    @cached_property
    def compiled(self) -> "CompiledModel":
        """Steps as arrays."""
        from splitbrain.checker.linearizability.kernel.compiled_search import CompiledModel

        return CompiledModel(self.model, self.calls, self.transitions)


class ColumnSource:
    """Part given as columns: places in the history, by start, equal ones by index, none failed."""

    def __init__(
        self,
        history: OperationColumns,
        places: Integers | slice,
        numbered: NumberedCalls,
        model: Model,
    ) -> None:
        self.model = model
        self._history = history
        self._places = places
        self._numbered = numbered

    def __len__(self) -> int:
        return len(self._history.starts[self._places])

    @cached_property
    def operations(self) -> Sequence[PairedOperation]:
        """Operations made from the columns."""
        places = np.arange(len(self._history))[self._places]
        return [self._history.operation(place) for place in places.tolist()]

    @property
    def has_positions(self) -> bool:
        """Whether the system returned a position of any operation."""
        positions = self._history.positions
        return positions is not None and bool(positions.known[self._places].any())

    @property
    def register(self) -> RegisterColumns | None:
        """Reads and writes of one register; None for any other part."""
        if self.model.register_functions is None:
            return None
        history, places = self._history, self._places
        read, write = (
            history.kind_names.index(f) if f in history.kind_names else -1
            for f in self.model.register_functions
        )
        kinds = history.kinds[places]
        is_write = kinds == write
        if not (is_write | (kinds == read)).all():
            return None
        codes = np.where(is_write, history.arguments[places], history.results[places])
        return RegisterColumns(
            history.starts[places],
            self._ends,
            _numbered_from_0(history.processes[places]),
            is_write,
            self._values(codes.astype(np.int64)),
        )

    @property
    def elements(self) -> ElementColumns | None:
        """Puts and takes of elements; None for any other part."""
        history, places = self._history, self._places
        if self.model.element_kinds is None or not history.flat:
            return element_columns(self.columns, self.calls, self.model)
        names = history.kind_names
        put, take = (names.index(f) if f in names else -1 for f in self.model.element_kinds[:2])
        functions = history.kinds[places]
        is_put = functions == put
        if not (is_put | (functions == take)).all():
            return None
        results = history.results[places]
        codes = np.where(is_put, history.arguments[places], results)
        is_open = history.outcomes[places] != OK
        of_takes = np.select([is_open, results == NOTHING], [TELLS_NOTHING, FINDS_NOTHING], TAKES)
        kinds = np.where(is_put, PUTS, of_takes)
        named = (kinds == PUTS) | (kinds == TAKES)
        used, numbers = np.unique(codes[named], return_inverse=True)
        elements = np.zeros(len(codes), dtype=np.int64)
        elements[named] = numbers
        return ElementColumns(
            history.starts[places],
            self._ends,
            history.processes[places],
            kinds,
            elements,
            # Values that are equal have one code.
            [freeze(history.values[code]) for code in used.tolist()],
        )

    @cached_property
    def problem(self) -> Problem:
        """Problem for the search in Python."""
        return Problem(self.operations, self.model)

    @cached_property
    def repeated(self) -> Problem:
        """The same with open operations that may take effect any number of times."""
        return _repeated(self.problem, self.model)

    @cached_property
    def columns(self) -> PartColumns:
        """Columns for the compiled search."""
        history, places = self._history, self._places
        return PartColumns(
            history.starts[places],
            self._ends,
            history.processes[places],
            self._numbered.numbers[places],
        )

    @property
    def calls(self) -> list[Call]:
        """Calls by the numbers in ``columns``."""
        return self._numbered.calls

    @property
    def transitions(self) -> Transitions:
        """Steps by the numbers in ``columns``."""
        return self._numbered.transitions

    @property
    def compiled(self) -> "CompiledModel":
        """Steps as arrays."""
        return self._numbered.compiled

    @property
    def _ends(self) -> Integers:
        history, places = self._history, self._places
        return np.where(history.outcomes[places] == OK, history.ends[places], NEVER)

    def _values(self, codes: Integers) -> Integers:
        """Return the values as zones number them; those of reads without answer are arbitrary."""
        history = self._history
        nothing = initial_value(self.model)
        if history.flat and nothing is None:
            # Values that are equal have one code, and None has the first.
            return np.where(codes == NOTHING, INITIAL, codes - 1)
        numbers: dict[object, int] = {nothing: INITIAL}
        table = [
            # To the models None is the initial value.
            numbers.setdefault(nothing if frozen is None else frozen, len(numbers) - 1)
            for frozen in map(freeze, history.values)
        ]
        return np.array(table, dtype=np.int64)[codes]


#: Source for the steps of the portfolio: ``ok`` and ``info`` operations by start.
PartSource: TypeAlias = ObjectSource | ColumnSource


def _repeated(problem: Problem, model: Model) -> Problem:
    operations = problem.operations
    repeated = Problem(operations, model, unlimited=range(len(operations)))
    # Calls have the same numbers; sharing the steps gives states the same numbers too.
    repeated.transitions = problem.transitions
    return repeated


def _numbered_from_0(processes: Integers) -> Integers:
    low, high = int(processes.min(initial=0)), int(processes.max(initial=0))
    if low >= 0 and high <= len(processes):
        return processes
    return np.unique(processes, return_inverse=True)[1].astype(np.int64)
