"""Anomalies of rows that single ranges and deletes show, without any cycle; pure.

Sources: Adya 1999, section 3.1 (G1a, G1b); Berenson and others 1995 (P3, phantoms).
"""

from collections.abc import Iterator

from splitbrain.checker.models.model import text_of
from splitbrain.checker.transactions import levels
from splitbrain.checker.transactions.dependencies import Anomaly
from splitbrain.checker.transactions.row_operations import NOBODY, Range, RowTable
from splitbrain.history.value_shapes import shown


def called_txn(table: RowTable, txn: int) -> str:
    """Return a transaction for a sentence."""
    operation = table.operations[txn]
    return f"transaction {operation.index} (process {operation.process})"


def called_row(table: RowTable, number: int) -> str:
    """Return a row for a sentence."""
    row = table.rows[number]
    return f"row {shown(row.id)} of group {text_of(table.groups[row.group])}"


def row_anomalies(table: RowTable) -> Iterator[Anomaly]:
    """Yield what single ranges and deletes show."""
    before: dict[tuple[int, int], Range] = {}
    for each in table.ranges:
        yield from _of_ids(table, each)
        yield from _of_rows(table, each)
        earlier = before.get((each.txn, each.group))
        if earlier is not None:
            yield from _phantom(table, earlier, each)
        before[each.txn, each.group] = each
    yield from _of_deletes(table)
    yield from _lost(table)


def _reader(table: RowTable, each: Range) -> str:
    return called_txn(table, each.txn)


def _of_ids(table: RowTable, each: Range) -> Iterator[Anomaly]:
    group = table.groups[each.group]
    for stranger in dict.fromkeys(map(shown, each.strangers)):
        told = (
            f"{_reader(table, each)} was shown row {stranger} of group {text_of(group)}, which "
            "nobody inserted."
        )
        yield Anomaly(levels.PHANTOM_VALUE, (each.txn,), group, told)
    if len(each.shown) > len(each.rows) + len(set(map(shown, each.strangers))):
        told = (
            f"{_reader(table, each)} was shown one row of group {text_of(group)} twice, in "
            f"{shown(list(each.shown))}."
        )
        yield Anomaly(levels.DUPLICATE_ELEMENTS, (each.txn,), group, told)


def _of_rows(table: RowTable, each: Range) -> Iterator[Anomaly]:
    reader = _reader(table, each)
    for number in sorted(each.rows):
        row = table.rows[number]
        by, group = called_txn(table, row.inserter), table.groups[row.group]
        told = f"{reader} was shown {called_row(table, number)}"
        if row.inserter == each.txn:
            if row.inserted_at > each.place:
                told = f"{told} before it inserted it itself."
                yield Anomaly(levels.FUTURE_READ, (each.txn,), group, told)
        elif table.has_failed[row.inserter]:
            told = f"{told}, inserted by {by}, which certainly failed."
            yield Anomaly(levels.ABORTED_READ, (row.inserter, each.txn), group, told)
        elif row.deleter == row.inserter and row.deleted_at > row.inserted_at:
            told = f"{told}, which {by} inserted and then deleted itself."
            yield Anomaly(levels.INTERMEDIATE_READ, (row.inserter, each.txn), group, told)
        if row.deleter == each.txn and row.was_met and row.deleted_at < each.place:
            told = f"{reader} was shown {called_row(table, number)} after it had deleted it itself."
            for name in (levels.INTERNAL, levels.OWN_WRITE_MISSED):
                yield Anomaly(name, (each.txn,), group, told)
    for number in table.rows_of[each.group]:
        row = table.rows[number]
        if number in each.rows or row.inserter != each.txn or row.inserted_at > each.place:
            continue
        if row.deleter == each.txn and row.inserted_at < row.deleted_at < each.place:
            continue
        told = (
            f"{reader} was not shown {called_row(table, number)} after it had inserted it itself."
        )
        for name in (levels.INTERNAL, levels.OWN_WRITE_MISSED):
            yield Anomaly(name, (each.txn,), table.groups[row.group], told)


def _phantom(table: RowTable, first: Range, second: Range) -> Iterator[Anomaly]:
    for number in sorted(first.rows ^ second.rows):
        row = table.rows[number]
        if row.inserter == first.txn:
            continue
        own = row.deleter == first.txn and first.place < row.deleted_at < second.place
        if own and number in first.rows:
            continue
        ways = ("was", "was not") if number in first.rows else ("was not", "was")
        told = (
            f"{_reader(table, first)} {ways[0]} shown {called_row(table, number)} and then "
            f"{ways[1]}, without having changed it itself."
        )
        others = row.inserter if number in second.rows else row.deleter
        txns = (first.txn,) if others == NOBODY else (first.txn, others)
        yield Anomaly(levels.PHANTOM, txns, table.groups[row.group], told)
        return


def _of_deletes(table: RowTable) -> Iterator[Anomaly]:
    for number, row in enumerate(table.rows):
        if not row.was_met:
            continue
        deleter, group = called_txn(table, row.deleter), table.groups[row.group]
        told = f"{deleter} deleted {called_row(table, number)}"
        is_own_later = row.inserter == row.deleter and row.inserted_at > row.deleted_at
        if row.inserter == NOBODY:
            yield Anomaly(
                levels.PHANTOM_VALUE, (row.deleter,), group, f"{told}, which nobody inserted."
            )
        elif is_own_later:
            told = f"{told} before it inserted it itself."
            yield Anomaly(levels.FUTURE_READ, (row.deleter,), group, told)
        elif table.has_failed[row.inserter]:
            told = f"{told} of {called_txn(table, row.inserter)}, which certainly failed."
            for name in (levels.ABORTED_READ, levels.DIRTY_UPDATE):
                yield Anomaly(name, (row.inserter, row.deleter), group, told)
    for number in table.missed_by_delete:
        row = table.rows[number]
        told = (
            f"{called_txn(table, row.inserter)} met no {called_row(table, number)} to be deleted "
            "after it had inserted it itself."
        )
        for name in (levels.INTERNAL, levels.OWN_WRITE_MISSED):
            yield Anomaly(name, (row.inserter,), table.groups[row.group], told)


def _lost(table: RowTable) -> Iterator[Anomaly]:
    """Yield acknowledged inserts and deletes that final ranges deny, see ``durability``."""
    final: dict[int, list[Range]] = {}
    for each in table.ranges:
        if table.operations[each.txn].final:
            final.setdefault(each.group, []).append(each)
    for number, row in enumerate(table.rows):
        ranges = final.get(row.group, [])
        if not ranges or row.inserter in (NOBODY, row.deleter):
            continue
        last = max(ranges, key=lambda each: table.operations[each.txn].start)
        is_shown = any(number in each.rows for each in ranges)
        is_deleted = row.deleter != NOBODY and bool(row.was_met)
        may_be = row.deleter == NOBODY or row.was_met is False or table.has_failed[row.deleter]
        if may_be and not is_shown and _ended_before(table, row.inserter, last):
            told = f"{called_txn(table, row.inserter)} inserted {called_row(table, number)}"
            end = f"no final range shows it; {_reader(table, last)} was the last."
            txn = row.inserter
        elif is_deleted and number in last.rows and _ended_before(table, row.deleter, last):
            told = f"{called_txn(table, row.deleter)} deleted {called_row(table, number)}"
            end = f"{_reader(table, last)} was shown it at the end."
            txn = row.deleter
        else:
            continue
        told = f"{told}, was acknowledged, and {end}"
        yield Anomaly(levels.LOST, (txn, last.txn), table.groups[row.group], told)


def _ended_before(table: RowTable, txn: int, last: Range) -> bool:
    end = table.operations[txn].end
    is_before = table.is_ok[txn] and end is not None and txn != last.txn
    return is_before and end is not None and end < table.operations[last.txn].start
