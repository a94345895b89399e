"""Acknowledged writes that are gone at the end; pure.

No level promises that a write is ever seen, so this is a rule of its own. A write is lost where a
final read of its key that began after it had ended lacks it, and no final read shows it. A register
may have been written again, so there only one that is empty at the end has lost something.
"""

import numpy as np

from splitbrain.checker.models.model import text_of
from splitbrain.checker.transactions.dependencies import Anomaly, called
from splitbrain.checker.transactions.levels import LOST, Kind
from splitbrain.checker.transactions.micro_operations import Read, Table, hashable


def lost_writes(table: Table, kind: Kind) -> list[Anomaly]:
    """Return the lost writes of a history, one for each list, at most one for each register."""
    final: dict[int, list[Read]] = {}
    for number in np.flatnonzero(table.is_final[table.reads.txns]).tolist():
        read = table.reads[number]
        final.setdefault(read.key, []).append(read)
    shown = {key: _shown(reads, kind) for key, reads in final.items()}
    # Whoever began last saw most.
    last = {
        key: max(reads, key=lambda r: table.operations[r.txn].start) for key, reads in final.items()
    }
    found: list[Anomaly] = []
    is_asked = np.isin(table.writes.keys, [*final]) & table.is_ok[table.writes.txns]
    for number in np.flatnonzero(is_asked).tolist():
        write = table.writes[number]
        operation, read = table.operations[write.txn], last[write.key]
        if operation.end is None:
            continue
        if operation.end >= table.operations[read.txn].start or read.txn == write.txn:
            continue
        values = shown[write.key]
        is_lost = not values if kind == "rw-register" else hashable(write.value) not in values
        if is_lost:
            key = table.keys[write.key]
            told = (
                f"{called(table, write.txn)} wrote {text_of(write.value)} to key {text_of(key)}, "
                f"was acknowledged, and no final read shows it; {called(table, read.txn)} read "
                f"{text_of(read.value)} after it."
            )
            found.append(Anomaly(LOST, (write.txn, read.txn), key, told))
    return found


def _shown(reads: list[Read], kind: Kind) -> set[object]:
    if kind == "rw-register":
        return {hashable(read.value) for read in reads if read.value is not None}
    return {hashable(element) for read in reads for element in read.value}
