"""Each mutant of a rule on rows is told apart, by a case of an anomaly or by the brute force."""

from functools import cache, partial
from random import Random

import pytest

from splitbrain.checker.transactions.levels import Kind
from splitbrain.history.records import PairedOperation
from tests.unit.checker.transactions.brute_force_rows import is_of_level
from tests.unit.checker.transactions.row_cases import RARE_ROWS, ROW_CASES, ROW_ORDER_CASES
from tests.unit.checker.transactions.small_rows import random_row_transactions
from tests.unit.checker.transactions.test_mutants import WRONG, Check, is_right, knows, loaded

#: Histories of each level.
HISTORIES = 160
#: Levels that rows are judged by.
LEVELS = (
    *("read-committed", "repeatable-read", "parallel-snapshot-isolation", "snapshot-isolation"),
    *("serializable", "strong-session-serializable", "strict-serializable"),
)

#: Module, text of its source, and replacement.
MUTANTS = {
    "ranges may be torn": (
        "levels",
        "frozenset({G_SINGLE_PREDICATE, PHANTOM, NO_PARALLEL_ROWS})",
        "frozenset({NO_PARALLEL_ROWS})",
    ),
    "snapshots of ranges may fork": (
        "levels",
        "_PSI_ROWS | {G_NONADJACENT_PREDICATE, NO_SNAPSHOT_ROWS}",
        "_PSI_ROWS | {NO_SNAPSHOT_ROWS}",
    ),
    "inserts may be skewed": (
        "levels",
        "_SI_ROWS | {G2, NO_SERIAL_ROWS}",
        "_SI_ROWS | {NO_SERIAL_ROWS}",
    ),
    "repeatable reads have no phantoms": (
        "levels",
        '"repeatable-read": _ITEMS,',
        '"repeatable-read": _ITEMS | _ROWS,',
    ),
    "ranges have neighbours among ranges alone": (
        "cycles",
        "        OF_PREDICATES,\n        ANTI_DEPENDENCIES,\n",
        "        OF_PREDICATES,\n        OF_PREDICATES,\n",
    ),
    "deletes follow no inserts": (
        "row_versions",
        "yield row.inserter, row.deleter, WW, number",
        "yield from ()",
    ),
    "deletes that meet nothing say nothing": (
        "row_versions",
        "yield row.deleter, row.inserter, PREDICATE_RW, number",
        "yield from ()",
    ),
    "rows come from nobody": (
        "row_versions",
        "yield row.inserter, each.txn, WR, number",
        "pass",
    ),
    "rows are deleted by nobody": (
        "row_versions",
        "yield each.txn, row.deleter, RW, number",
        "pass",
    ),
    "missing rows are inserted by nobody": (
        "row_versions",
        "early = ~may_be_gone & ~own",
        "early = may_be_gone & own",
    ),
    "missing rows are never gone": (
        "row_versions",
        "may_be_gone = may_delete[row] & ~own",
        "may_be_gone = may_delete[row] & own",
    ),
    "an own delete explains a range before it": (
        "row_versions",
        "own[own] = _is_behind_delete(table, reader[own], row[own])",
        "pass",
    ),
    "rows that were shown need not have been inserted": (
        "row_versions",
        "happened[[table.rows[row].inserter for row in each.rows]] = True",
        "pass",
    ),
    "deletes need no insert that happened": (
        "row_versions",
        "happened[row.inserter] = True",
        "pass",
    ),
    "what is likely is so": ("row_search", "if not (on_cycle & ~free).any():", "if True:"),
    "no order settles anything in time": (
        "row_search",
        "frozenset({WW, WR, PROCESS, REALTIME, PASS})",
        "frozenset()",
    ),
    "what time settles is settled for all": (
        "row_search",
        '(PREDICATE_RW_REALTIME, "realtime",',
        '(PREDICATE_RW, "",',
    ),
    "the solver is not asked about rows": (
        "row_check",
        "return self._search(search)",
        "return None",
    ),
    "the solver knows no orders of rows": ("row_search", "if o in level.orders]", "if not o]"),
    "what has no answer met nothing": (
        "row_choices",
        "self._options.append((row.inserter, row.deleter, WW, number, met))",
        "pass",
    ),
    "what has no answer replaced nothing": (
        "row_choices",
        "self._options.append((reader, row.deleter, RW, number, met))",
        "pass",
    ),
    "what has no answer missed nothing": (
        "row_choices",
        "self._options.append((row.deleter, row.inserter, PREDICATE_RW, number, met_none))",
        "pass",
    ),
    "rows are gone without a delete": (
        "row_choices",
        "found[(place + 1, met) if free[place] else (met,)] = None",
        "pass",
    ),
    "rows of failed inserts may be shown": (
        "row_anomalies",
        'elif table.has_failed[row.inserter]:\n            told = f"{told}, inserted',
        'elif False:\n            told = f"{told}, inserted',
    ),
    "rows may be shown that were gone in the end": (
        "row_anomalies",
        "elif row.deleter == row.inserter and row.deleted_at > row.inserted_at:",
        "elif False:",
    ),
    "rows may be shown before they are inserted": (
        "row_anomalies",
        "if row.inserted_at > each.place:",
        "if False:",
    ),
    "own deletes may be missed": (
        "row_anomalies",
        "if row.deleter == each.txn and row.was_met and row.deleted_at < each.place:",
        "if False:",
    ),
    "own inserts may be missed": (
        "row_anomalies",
        "if number in each.rows or row.inserter != each.txn or row.inserted_at > each.place:",
        "if True:",
    ),
    "a transaction's ranges may differ": (
        "row_anomalies",
        "    for number in sorted(first.rows ^ second.rows):",
        "    for number in ():",
    ),
    "rows may be shown twice": (
        "row_anomalies",
        "if len(each.shown) > len(each.rows) + len(set(map(shown, each.strangers))):",
        "if False:",
    ),
    "rows may come from nowhere": (
        "row_anomalies",
        "for stranger in dict.fromkeys(map(shown, each.strangers)):",
        "for stranger in ():",
    ),
    "rows are never lost": (
        "row_anomalies",
        "if may_be and not is_shown and _ended_before(table, row.inserter, last):",
        "if False:",
    ),
}


@pytest.mark.nightly
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", MUTANTS)
def test_a_mutant_is_told_apart(name: str) -> None:
    assert not agrees(loaded(*MUTANTS[name])), name


@pytest.mark.nightly
@pytest.mark.timeout(3600)
def test_without_a_mutant_everything_agrees() -> None:
    assert agrees(loaded("levels", "G0: Final", "G0: Final"))


def agrees(check: Check) -> bool:
    """Whether a checker says what the cases and the brute force say."""
    try:
        cases = [*ROW_CASES.items(), *ROW_ORDER_CASES.items()]
        return all(knows(check, cases)) and all(map(partial(is_right, check), corpus()))
    except WRONG:
        return False


@cache
def corpus() -> list[tuple[list[PairedOperation], Kind, str, bool]]:
    """Random histories of rows, each of which has a range."""
    found: list[tuple[list[PairedOperation], Kind, str, bool]] = []
    for level, history in RARE_ROWS:
        found.append(([*history], "rows", level, is_of_level(history, level)))
    for level in LEVELS:
        random = Random(f"mutants of rows {level}")
        for _ in range(HISTORIES):
            history = random_row_transactions(random)
            answered = [part for o in history if o.type == "ok" for part in o.result]
            if any(f == "range" for f, _, _ in answered):
                found.append((history, "rows", level, is_of_level(history, level)))
    return found
