"""Tells whether a part is reads and writes of one register, and what a contradiction is about.

A part without order is narrowed to the operations of the values around the contradiction, which is
what is explained: taking away all operations of a value cannot make a contradiction of others.
"""

from collections.abc import Hashable, Sequence
from typing import Any, Final

import numpy as np

from splitbrain.checker.linearizability.kernel.columns import NEVER, returned_at
from splitbrain.checker.linearizability.methods.zones import INITIAL, RegisterColumns
from splitbrain.checker.linearizability.part.parts import Part
from splitbrain.checker.models.model import Model, freeze
from splitbrain.history.edn_values import Number
from splitbrain.history.records import PairedOperation

#: Operations that a search explains as quickly as anyone reads; more are narrowed to as many.
EXPLAINED_MAX: Final = 1_000
#: Operations before a contradiction whose values are kept too, so that what it met is told.
_CONTEXT: Final = 100


def narrowed(part: Part, columns: RegisterColumns, values: Sequence[int]) -> Part:
    """A part that has no order, narrowed to what its contradiction is about.

    Args:
        part: what zones found no order for.
        columns: see ``register_columns``.
        values: those that contradict each other.
    """
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
    return Part(part.key, tuple(part.operations[place] for place in np.flatnonzero(kept).tolist()))


def initial_value(model: Model) -> Hashable:
    """The initial value, told apart from all others."""
    value = freeze(model.initial)
    return Number("number", value) if type(value) is int else value


def register_columns(operations: Sequence[PairedOperation], model: Model) -> RegisterColumns | None:
    """Columns of a part that only reads and writes a register; None for any other.

    Args:
        operations: ``ok`` and ``info`` operations by start, equal ones by index.
        model: names the two kinds, see ``Model.register_functions``.
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
        # The models take no value for the initial one.
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
