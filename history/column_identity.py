"""Identity of values in columns; see ``history.identity``. Must never make two values one."""

from typing import Any

import msgspec
import numpy as np

from splitbrain.history.columns import UNKNOWN, OperationColumns
from splitbrain.history.identity import PLAIN, PUTTING_TOGETHER, ValuesApart, is_value


def columns_apart(
    columns: OperationColumns, *, one_kind_of_number: bool = True
) -> OperationColumns:
    """Columns whose values Python tells apart.

    Args:
        columns: all of a history.
        one_kind_of_number: see ``history.identity.ValuesApart``.
    """
    if columns.flat:
        return columns
    apart = ValuesApart(
        _things(columns),
        putting_together=lambda: PUTTING_TOGETHER in columns.kind_names,
        one_kind_of_number=one_kind_of_number,
    )
    values = columns.values if apart.is_plain else tuple(map(apart.of, columns.values))
    return msgspec.structs.replace(
        columns,
        values=values,
        flat=PLAIN.issuperset(map(type, values)),
        mixes_numbers=apart.mixes_numbers,
    )


def _things(columns: OperationColumns) -> list[Any]:
    """Arguments and those answers that are values, each once."""
    values = columns.values
    met = np.zeros(len(values), dtype=bool)
    met[columns.arguments] = True
    truths = {code for code, value in enumerate(values) if type(value) is bool}
    for number, kind in enumerate(columns.kind_names):
        if is_value(kind, None):
            answered = columns.results[(columns.kinds == number) & (columns.results != UNKNOWN)]
            known = np.fromiter(
                (c for c in truths if not is_value(kind, values[c])), dtype=np.int32
            )
            met[answered[~np.isin(answered, known)]] = True
    return [values[code] for code in np.flatnonzero(met).tolist()]
