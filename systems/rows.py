"""Operations upon rows of an SQL database that an open transaction reads and writes. Pure.

Transactions of several parts name keys of their own; all other operations read cells and change
them by the rules of ``systems.cells``, to which those of a single value are added here.
"""

from collections.abc import Mapping
from typing import Any, Final

from splitbrain.contracts.operations import Operation
from splitbrain.systems.cells import RULES, Rule, Step, only_reads

LIST_APPEND: Final = "list-append"
#: Workloads whose transactions name keys of their own, and no object.
OF_KEYS: Final = (LIST_APPEND, "rw-register", "long-fork", "rows")
SET: Final = "set"
#: All that such systems serve, the usual one first.
WORKLOADS: Final = (
    *(*OF_KEYS, "register", "set", "counter", "bank", "kv", "multi-register", "mutex"),
    "sessions",
)


def _itself(operation: Operation) -> tuple[str, ...]:
    return (operation.key or "",)


def _look(_operation: Operation, values: Mapping[str, Any]) -> Step:
    (present,) = values.values()
    return Step(present)


def _overwrite(operation: Operation, values: Mapping[str, Any]) -> Step:
    (cell,) = values
    return Step(operation.value, {cell: operation.value})


def _compare_and_set(operation: Operation, values: Mapping[str, Any]) -> Step:
    ((cell, present),) = values.items()
    expected, new = operation.value
    if present != expected:
        return Step([expected, new, False])
    return Step([expected, new, True], {cell: new})


CELL_RULES: Final[Mapping[str, Rule]] = {
    **RULES,
    "read": Rule(_itself, _look),
    "get": Rule(_itself, _look),
    "write": Rule(_itself, _overwrite),
    "put": Rule(_itself, _overwrite),
    "cas": Rule(_itself, _compare_and_set),
}
_READING: Final = ("read", "get")


def only_looks(operation: Operation) -> bool:
    """Return whether an operation changes nothing, whatever it finds."""
    return operation.f in _READING or (operation.f in RULES and only_reads(operation))
