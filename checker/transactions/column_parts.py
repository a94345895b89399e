"""Taking transactions apart that were read into columns; pure.

Whatever is not certainly a transaction of its kind is left to ``micro_operations.Sense``, which
knows all of the rules and says what is wrong.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from splitbrain.checker.transactions.levels import Kind
from splitbrain.checker.transactions.micro_operations import WRITES, Flags, Numbers
from splitbrain.history.columns import NOTHING, OK, UNKNOWN, Codes, OperationColumns
from splitbrain.history.transaction_values import Parts, Transactions


class Answered(NamedTuple):
    """Micro-operations of all transactions as answered, or as asked, one behind the other."""

    #: Number of each transaction's.
    sizes: Numbers
    is_write: Flags
    #: Places in ``names``, which are in the order of their first appearance.
    keys: Numbers
    names: Sequence[Any]
    #: Values of writes, and of answered reads.
    written: list[Any]
    shown: Sequence[Any]


def answered(columns: OperationColumns, kind: Kind) -> Answered | None:
    """Take transactions apart that certainly make sense; None where one may not."""
    values = columns.values
    if not isinstance(values, Transactions) or columns.kind_names != ("txn",):
        return None
    if not {"r", WRITES[kind]}.issuperset(values.functions):
        return None
    asked = columns.arguments.astype(np.int64)
    told = np.where(columns.results == UNKNOWN, asked, columns.results)
    if not (asked.all() and told.all()):
        return None
    sizes, first = values.taken(asked)
    told_sizes, parts = values.taken(told)
    is_write = np.array([function != "r" for function in values.functions], dtype=bool)
    is_write = is_write[parts.functions]
    if not (np.array_equal(sizes, told_sizes) and _makes_sense(first, parts, is_write, kind)):
        return None
    keys, order = _by_appearance(parts.keys, len(values.keys))
    if _has_repeated(keys[is_write], parts.plain[is_write], len(values.plain)):
        return None
    is_shown = ~is_write & np.repeat(columns.outcomes == OK, sizes)
    plain = values.plain
    shown: Sequence[Any] = (
        values.lists(parts.at(np.flatnonzero(is_shown)))
        if kind == "list-append"
        else [plain[code] for code in parts.plain[is_shown].tolist()]
    )
    return Answered(
        sizes,
        is_write,
        keys,
        [values.keys[code] for code in order.tolist()],
        [plain[code] for code in parts.plain[is_write].tolist()],
        shown,
    )


def _makes_sense(first: Parts, parts: Parts, is_write: Flags, kind: Kind) -> bool:
    """Return whether answers repeat their questions, and fill in values that can be read."""
    shown = parts.plain[~is_write]
    is_shown = (shown == UNKNOWN) | (shown == NOTHING) if kind == "list-append" else shown >= 0
    return bool(
        np.array_equal(first.functions, parts.functions)
        and np.array_equal(first.keys, parts.keys)
        and np.array_equal(first.plain[is_write], parts.plain[is_write])
        and (parts.plain[is_write] > NOTHING).all()
        and (first.plain[~is_write] == NOTHING).all()
        and is_shown.all()
    )


def _by_appearance(codes: Codes, count: int) -> tuple[Numbers, Numbers]:
    """Return numbers in the order of first appearance, and the code of each number."""
    first = np.full(count, len(codes), dtype=np.int64)
    first[codes[::-1]] = np.arange(len(codes))[::-1]
    order = np.argsort(first, kind="stable")[: np.count_nonzero(first < len(codes))]
    number = np.zeros(count, dtype=np.int64)
    number[order] = np.arange(len(order))
    return number[codes], order


def _has_repeated(keys: Numbers, plain: Codes, count: int) -> bool:
    """Return whether a value is written to a key twice."""
    written = np.sort(keys * count + plain)
    return bool((written[1:] == written[:-1]).any())
