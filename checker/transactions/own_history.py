"""Anomalies that hang on what a transaction did and read before, whatever the kind of its keys."""

from typing import Any, cast

from splitbrain.checker.models.model import text_of
from splitbrain.checker.transactions import levels
from splitbrain.checker.transactions.dependencies import Anomaly, called
from splitbrain.checker.transactions.micro_operations import Table, hashable, kind_of


def lost_update(table: Table, first: int, second: int, key: int, value: Any) -> Anomaly:
    """Return the anomaly of two transactions that read one version and both replaced it."""
    name = table.keys[key]
    return Anomaly(
        levels.LOST_UPDATE,
        (first, second),
        name,
        f"{called(table, first)} and {called(table, second)} both read {text_of(value)} of key "
        f"{text_of(name)} and then wrote it, neither on what the other had written.",
    )


def note_internal(table: Table, anomalies: list[Anomaly]) -> None:
    """Note reads that contradict what their own transaction saw or did before."""
    for read, told in table.internal:
        txn, _, key, value, _ = table.reads[read]
        name = table.keys[key]
        anomalies.append(
            Anomaly(
                levels.INTERNAL,
                (txn,),
                name,
                f"{called(table, txn)} read {text_of(value)} of key {text_of(name)}, {told}.",
            )
        )
        own = _written_before(table, read)
        if own and _last_of(value) != own[-1:]:
            anomalies.append(
                Anomaly(
                    levels.OWN_WRITE_MISSED,
                    (txn,),
                    name,
                    f"{called(table, txn)} read {text_of(value)} of key {text_of(name)} after it "
                    f"had written {text_of(own[-1])} itself.",
                )
            )


def _last_of(value: Any) -> list[Any]:
    return cast("list[Any]", value)[-1:] if isinstance(value, list) else [value]


def _written_before(table: Table, read: int) -> list[Any]:
    txn, place, key, _, _ = table.reads[read]
    parts = table.operations[txn].argument[:place]
    return [
        value
        for function, name, value in parts
        if kind_of(function) != "r" and hashable(name) == table.keys[key]
    ]
