"""Each mutant of a rule is told apart, by a case of an anomaly or by the brute force.

The modules are loaded anew with the mutant's text in one of them. A worse first try of an order, or
wrong facts for the solver, are no mutants: what they miss is decided by the search behind them.
"""

from collections.abc import Iterator, Sequence
from functools import cache, partial
from random import Random

import msgspec
import pytest

from splitbrain.checker import transactions
from splitbrain.checker.transactions.levels import Kind
from splitbrain.checker.verdict import Verdict
from splitbrain.contracts.budget import Unlimited
from splitbrain.history.records import PairedOperation
from tests.unit.checker.mutated_package import Check, mutated
from tests.unit.checker.transactions.brute_force import is_of_level
from tests.unit.checker.transactions.cases import CASES, ORDER_CASES, REGISTER_CASES, Case, t
from tests.unit.checker.transactions.small_transactions import (
    random_open_transactions,
    random_transactions,
)
from tests.unit.checker.transactions.test_against_brute_force import drawn

#: Histories of each kind, level and generator.
HISTORIES = 40
LEVELS = (
    *("monotonic-atomic-view", "read-atomic", "causal", "read-committed"),
    *("serializable", "snapshot-isolation", "parallel-snapshot-isolation"),
    *("strong-session-serializable", "strict-serializable", "strong-session-snapshot-isolation"),
)
#: Module, text of its source, and replacement.
MUTANTS = {
    "vanished transactions are allowed": (
        "levels",
        "_RC | {OWN_WRITE_MISSED, VANISHED}",
        "_RC | {OWN_WRITE_MISSED}",
    ),
    "own writes may be missed": ("levels", "{OWN_WRITE_MISSED, VANISHED}", "{VANISHED}"),
    "reads may be fractured": ("levels", "_MAV | {INTERNAL, FRACTURED}", "_MAV | {INTERNAL}"),
    "causality may be violated": ("levels", "_RA | {CAUSALITY}", "_RA"),
    "commit orders need no processes": ("levels", 'order = "process"\n', "pass\n"),
    "own writes are all there is": (
        "own_history",
        "_last_of(value) != own[-1:]",
        "value != own[-1:]",
    ),
    "keys are read once": ("commit_orders", ", self._read_again()]", "]"),
    "processes show nothing": ("commit_orders", ", self._of_process()]", "]"),
    "later reads show nothing": ("commit_orders", "if not is_earlier:", "if False:"),
    "the past holds its transaction": (
        "commit_orders",
        "seen[mine] = past.position[reads.txn[mine]]",
        "pass",
    ),
    "sources know one more": (
        "commit_orders",
        "clock[source] <= past.position[writer]",
        "clock[source] < past.position[writer]",
    ),
    "the beginning may be read for ever": ("commit_orders", "of_beginning[first].tolist()", "()"),
    "reads of the beginning are none": (
        "commit_orders",
        "table.reads.external & table.reads.are_empty",
        "table.reads.external & False",
    ),
    "few reads have no keys in common with many writes": (
        "commit_orders",
        "(writes > reads, read,",
        "(writes > reads + 99, read,",
    ),
    "clocks count no own step": (
        "causal_past",
        "clock[txn, columns[txn]] = counts[txn]",
        "clock[txn, columns[txn]] = 0",
    ),
    "a past has one predecessor": (
        "causal_past",
        "clock[self._before[begin:end]].max(axis=0)",
        "clock[self._before[begin]]",
    ),
    "chains do not follow each other": (
        "open_orders",
        "yield before.last, behind.first, WW, NO_PROOF",
        "yield from ()",
    ),
    "readers stay where they are": ("open_orders", "if txn != behind.first:", "if False:"),
    "neighbours count for snapshots": (
        "open_orders",
        "return [(source, target + nodes)]",
        "return [(source, target)]",
    ),
    "one anti-dependency is as good as two": (
        "open_orders",
        '"snapshot-isolation": SNAPSHOT,\n    "parallel',
        '"snapshot-isolation": PARALLEL,\n    "parallel',
    ),
    "no chain begins at the beginning": (
        "open_orders",
        "if (txn, key) in follows and behind.get((BEGINNING, key)) != txn:",
        "if (txn, key) in follows:",
    ),
    "the solver knows no orders": ("open_orders", "if order in level.orders", "if False"),
    "the first choice is the answer": (
        "order_search",
        "            if not found:\n",
        "            if True:\n",
    ),
    "open orders of registers are there": (
        "openness",
        "return not has_serial_order(found, level, poll)",
        "return False",
    ),
    "open orders of lists are there": (
        "openness",
        "if len(set(on_cycles)) < len(on_cycles):",
        "if False:",
    ),
    "a replay reads anything": (
        "serial_order",
        "if self._state.get(key) != value:",
        "if False:",
    ),
    "a replay knows no orders": ("serial_order", "kept |= kind == number", "pass"),
    "commit orders are looked for nowhere": (
        "check",
        "in COMMIT_ORDERS or self._anom",
        "in () or self._anom",
    ),
    "lost updates may be": (
        "register_versions",
        "np.sort(first[counts > 1]).tolist()",
        "[]",
    ),
    "the first writer replaces nothing": (
        "register_versions",
        "blind = self._writes_without_reading()\n        targets",
        "blind = self._writes_without_reading()[:0]\n        targets",
    ),
    "intermediate values may be read": (
        "register_versions",
        "is_wrong = table.has_failed[writers[known]] | ~is_settled",
        "is_wrong = table.has_failed[writers[known]]",
    ),
    "elements of failed appends may be read": (
        "list_versions",
        "        self._note_aborted(anomalies)\n",
        "",
    ),
    "appends may stand without earlier ones": (
        "list_versions",
        "        self._note_out_of_order(anomalies)\n",
        "",
    ),
    "lists may end within a transaction": (
        "list_versions",
        "        self._note_intermediate(anomalies)\n",
        "",
    ),
    "later appends may be read": ("list_versions", "        self._note_future(anomalies)\n", ""),
    "updates of lists may be lost": (
        "list_versions",
        "        self._note_lost_updates(anomalies)\n",
        "",
    ),
    "appends follow nobody": (
        "list_versions",
        "self._add(edges, self.txn_at(first), self.txn_at(second), WW, self.writes[second])",
        "pass",
    ),
    "lists come from nobody": (
        "list_versions",
        "self._add(edges, self.txn_at(places), self.read_txns[reads], WR, reads)",
        "pass",
    ),
    "lists are replaced by nobody": (
        "list_versions",
        "self._add(edges, self.read_txns[reads], self.txn_at(places), RW, reads)",
        "pass",
    ),
    "lists may contradict each other": (
        "list_versions",
        "if longest[: len(value)] == value:",
        "if True:",
    ),
    "elements may be twice": ("list_versions", "if len(set(known)) == len(known):", "if True:"),
    "elements may come from nowhere": ("list_versions", "if _UNKNOWN in writes:", "if False:"),
    "unread appends stand nowhere": (
        "list_versions",
        "unread &= columns.is_usable[table.writes.keys]",
        "unread &= False",
    ),
    "nobody ends before another begins": (
        "orders",
        "self._edges.add(self._txns[is_before], stations[ended_by], REALTIME)",
        "pass",
    ),
    "places may be behind the end": (
        "orders",
        "self._all_rise and bool(np.all(in_time | is_open))",
        "self._all_rise",
    ),
    "places may fall": (
        "orders",
        "self._all_rise and bool(np.all(in_time | is_open))",
        "bool(np.all(in_time | is_open))",
    ),
    "an open order of registers is one in time": (
        "check",
        'found.unordered and self._kind == "rw-register"',
        "False",
    ),
    "any order in time explains what was read": (
        "serial_order",
        "return np.array_equal(writers[np.where(has_version, before, -1)], reads.source)",
        "return True",
    ),
    "writes are never lost": (
        "durability",
        "if operation.end >= table.operations[read.txn].start or",
        "if operation.end >= 0 or",
    ),
    "writes are lost by those before them": (
        "durability",
        "if operation.end >= table.operations[read.txn].start or read",
        "if read",
    ),
}
#: Histories that few random ones are like, and levels that they are judged by.
RARE: tuple[tuple[Kind, str, list[PairedOperation]], ...] = (
    ("rw-register", "causal", [*REGISTER_CASES["causality-violation"].shows]),
    ("list-append", "monotonic-atomic-view", [t("append x 3"), t("r x [], append x 2, r x [3,2]")]),
    ("rw-register", "monotonic-atomic-view", [t("w x 1"), t("r x 1, r x 1, r x null")]),
    ("rw-register", "monotonic-atomic-view", [t("w x 1, w y 1, w z 1"), t("r x 1, r y null")]),
    (
        "rw-register",
        "snapshot-isolation",
        [
            *(t("w x 9, w y 9"), t("w x 1"), t("w y 1")),
            *(t("r x 1, r y 9"), t("r x 9, r y 1")),
        ],
    ),
)
#: Errors by which a mutant shows itself.
WRONG = (ArithmeticError, AssertionError, LookupError, TypeError, ValueError)


@pytest.mark.nightly
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", MUTANTS)
def test_a_mutant_is_told_apart(name: str) -> None:
    module, old, new = MUTANTS[name]
    with_it = loaded(module, old, new)
    assert not agrees(with_it), name


@pytest.mark.nightly
@pytest.mark.timeout(3600)
def test_without_a_mutant_everything_agrees() -> None:
    assert agrees(loaded("levels", "G0: Final", "G0: Final"))


def loaded(module: str, old: str, new: str) -> Check:
    """The checker with one text replaced, in modules of its own."""
    return mutated(transactions, module, old, new, later=["order_search", "row_check"])


def agrees(check: Check) -> bool:
    """Whether a checker says what the cases and the brute force say."""
    try:
        cases = [*CASES.items(), *REGISTER_CASES.items(), *ORDER_CASES.items()]
        return all(knows(check, cases)) and all(map(partial(is_right, check), corpus()))
    except WRONG:
        return False


def is_right(check: Check, judged: tuple[list[PairedOperation], Kind, str, bool]) -> bool:
    history, kind, level, expected = judged
    verdict = check(history, Unlimited(), kind, level).verdict
    return verdict is (Verdict.VALID if expected else Verdict.INVALID)


def knows(check: Check, cases: Sequence[tuple[str, Case]]) -> Iterator[bool]:
    for name, case in cases:
        for operations, expected in ((case.shows, True), (case.nearly, False)):
            history = [
                msgspec.structs.replace(o, index=n, process=o.process or 100 + n)
                for n, o in enumerate(operations)
            ]
            result = check(history, Unlimited(), case.kind, case.level)
            kinds = {found["kind"] for found in (*result.violations, *result.observations)}
            yield (name in kinds) == expected


@cache
def corpus() -> list[tuple[list[PairedOperation], Kind, str, bool]]:
    """Random histories, and whether they are of a level; half of them are."""
    kinds: tuple[Kind, ...] = ("rw-register", "list-append")
    found: list[tuple[list[PairedOperation], Kind, str, bool]] = []
    for kind, level, operations in RARE:
        history = [msgspec.structs.replace(o, index=n, process=n) for n, o in enumerate(operations)]
        found.append((history, kind, level, is_of_level(history, level)))
    for kind in kinds:
        for level in LEVELS:
            random = Random(f"mutants {kind} {level}")
            for number in range(HISTORIES):
                draw = random_open_transactions if number % 4 < 2 else random_transactions
                expected = number % 2 == 0
                history = drawn(random, kind, level, draw, wanted=expected)
                found.append((history, kind, level, expected))
    return found
