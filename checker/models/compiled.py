"""Calls of the built-in models as integers: what kernels work on instead of operations.

A history of millions of operations has few distinct calls where it has few values; each is made
once. Must name exactly the calls that ``checker.models.model.call_of`` makes of the operations.
"""

from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from checker.models.model import Call, Model

Integers = NDArray[np.int64]

#: Value that nobody wrote, and answer that never came.
NOTHING: Final = -1
#: Distinct combinations up to which they are told apart by a table instead of by sorting.
_TABLE_MAX: Final = 1 << 22
_NUMBERS_MAX: Final = 1 << 62


class CallColumns(NamedTuple):
    """What was asked and answered, one entry per operation."""

    #: Place in ``functions``.
    kinds: Integers
    #: Number of the value written, appended, added or set; ``NOTHING`` where there is none.
    arguments: Integers
    #: Number of the value that a cas expects.
    expected: Integers
    #: Number of the value read; 1 and 0 for a cas that was done and refused.
    results: Integers
    #: Whether there is an answer.
    known: NDArray[np.bool_]
    #: Kinds of operations by number.
    functions: tuple[str, ...]
    #: Values by number, frozen.
    values: tuple[Any, ...]


def number_calls(columns: CallColumns, model: Model) -> tuple[Integers, list[Call]] | None:
    """Number of each operation's call, and the calls by number; None if there are too many values.

    Calls are numbered in no particular order.
    """
    fields = (columns.kinds, columns.arguments, columns.expected, columns.results, columns.known)
    packed = np.zeros(len(columns.kinds), dtype=np.int64)
    sizes: list[int] = []
    total = 1
    for field in fields:
        sizes.append(int(field.max(initial=0)) + 2)
        total *= sizes[-1]
        if total >= _NUMBERS_MAX:
            return None
        packed = packed * sizes[-1] + (field.astype(np.int64) + 1)
    if total <= _TABLE_MAX:
        met = np.zeros(total, dtype=np.bool_)
        met[packed] = True
        distinct = np.flatnonzero(met)
        numbers = np.cumsum(met)[packed] - 1
    else:
        distinct, numbers = np.unique(packed, return_inverse=True)
    calls = [_call(code, sizes, columns, model) for code in distinct.tolist()]
    return numbers.astype(np.int64), calls


def _call(code: int, sizes: list[int], columns: CallColumns, model: Model) -> Call:
    numbers: list[int] = []
    for size in reversed(sizes):
        code, number = divmod(code, size)
        numbers.append(number - 1)
    known, result, expected, argument, kind = numbers
    f = columns.functions[kind]

    def value(number: int) -> Any:
        return model.initial if number == NOTHING else columns.values[number]

    if f in model.pure_functions:
        return Call(f, None, value(result) if known else None, known=bool(known))
    if f in model.answerless_functions:
        return Call(f, value(argument), None, known=True)
    asked = (value(expected), value(argument))
    return Call(f, asked, (*asked, bool(result)) if known else None, known=bool(known))
