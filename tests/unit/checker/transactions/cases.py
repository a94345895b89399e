"""Smallest history of each anomaly, and one that nearly shows it.

A transaction is written ``t("r x [1], append y 2", start, end)``; a list or value of a read is
JSON. Each has a process of its own unless one is named.
"""

import json
from typing import Any, NamedTuple

from splitbrain.checker.transactions.levels import Kind
from splitbrain.history.records import PairedOperation
from tests.unit.checker.transactions.small_transactions import transaction


def t(text: str, start: int = 0, end: int = 100, **fields: Any) -> PairedOperation:
    """One transaction; its index comes later."""
    micro_operations = [
        [f, key, json.loads(value)]
        for f, key, value in (part.split(" ", 2) for part in text.split(", "))
    ]
    return transaction(0, micro_operations, start, end, **fields)


class Case(NamedTuple):
    """A history that shows an anomaly, and one that lacks it by little."""

    kind: Kind
    shows: tuple[PairedOperation, ...]
    nearly: tuple[PairedOperation, ...]
    #: Level that is asked about.
    level: str = "strict-serializable"


LISTS: Kind = "list-append"
REGISTERS: Kind = "rw-register"

CASES: dict[str, Case] = {
    "G0": Case(
        LISTS,
        (t("append x 1, append y 1"), t("append x 2, append y 2"), t("r x [1,2], r y [2,1]")),
        (t("append x 1, append y 1"), t("append x 2, append y 2"), t("r x [1,2], r y [1,2]")),
    ),
    "G0-process": Case(
        LISTS,
        (t("append x 1", 0, 1, process=7), t("append x 2", 2, 3, process=7), t("r x [2,1]")),
        (t("append x 1", 0, 1, process=7), t("append x 2", 2, 3, process=7), t("r x [1,2]")),
    ),
    "G0-realtime": Case(
        LISTS,
        (t("append x 1", 0, 1), t("append x 2", 2, 3), t("r x [2,1]")),
        (t("append x 1", 0, 2), t("append x 2", 2, 3), t("r x [2,1]")),
    ),
    "G1a": Case(
        LISTS,
        (t("append x 1", outcome="fail"), t("r x [1]")),
        (t("append x 1", outcome="info"), t("r x [1]")),
    ),
    "G1b": Case(
        LISTS,
        (t("append x 1, append x 2"), t("r x [1]")),
        (t("append x 1, append x 2"), t("r x [1,2]")),
    ),
    "G1c": Case(
        LISTS,
        (t("append x 1, r y [1]"), t("append y 1, r x [1]")),
        (t("append x 1, r y [1]"), t("append y 1, r x []")),
    ),
    "G1c-process": Case(
        LISTS,
        (t("r x [1]", 0, 1, process=7), t("append x 1", 2, 3, process=7)),
        (t("r x []", 0, 1, process=7), t("append x 1", 2, 3, process=7)),
    ),
    "G1c-realtime": Case(
        LISTS,
        (t("r x [1]", 0, 1), t("append x 1", 2, 3)),
        (t("r x [1]", 0, 2), t("append x 1", 2, 3)),
    ),
    "G-single": Case(
        LISTS,
        (t("append x 1, append y 1"), t("r x [1], r y []")),
        (t("append x 1, append y 1"), t("r x [1], r y [1]")),
    ),
    "G-single-process": Case(
        LISTS,
        (t("append x 1", 0, 1, process=7), t("r x []", 2, 3, process=7)),
        (t("append x 1", 0, 1, process=7), t("r x [1]", 2, 3, process=7)),
    ),
    "G-single-realtime": Case(
        LISTS,
        (t("append x 1", 0, 1), t("r x []", 2, 3)),
        (t("append x 1", 0, 2), t("r x []", 2, 3)),
    ),
    "G-nonadjacent": Case(
        LISTS,
        (t("append x 1"), t("append y 1"), t("r x [1], r y []"), t("r x [], r y [1]")),
        (t("append x 1"), t("append y 1"), t("r x [1], r y []"), t("r x [1], r y [1]")),
    ),
    "long-fork": Case(
        LISTS,
        (t("append x 1"), t("append y 1"), t("r x [1], r y []"), t("r x [], r y [1]")),
        (t("append x 1"), t("append y 1"), t("r x [1], r y []"), t("r x [], r y []")),
    ),
    "G-nonadjacent-process": Case(
        LISTS,
        (
            t("append x 1", 0, 1, process=7),
            t("r y []", 2, 3, process=7),
            t("append y 1", 0, 1, process=8),
            t("r x []", 2, 3, process=8),
        ),
        (
            t("append x 1", 0, 1, process=7),
            t("r y []", 2, 3, process=7),
            t("append y 1", 0, 1, process=8),
            t("r x [1]", 2, 3, process=8),
        ),
    ),
    "G-nonadjacent-realtime": Case(
        LISTS,
        (
            t("append x 1", 0, 10),
            t("append y 1", 0, 10),
            t("r x [1], r y []", 0, 1),
            t("r y [1]", 2, 3, process=7),
            t("r x []", 4, 5, process=9),
        ),
        (
            t("append x 1", 0, 10),
            t("append y 1", 0, 10),
            t("r x [1], r y []", 0, 1),
            t("r y [1]", 2, 4, process=7),
            t("r x [1]", 4, 5, process=9),
        ),
    ),
    "G2-item": Case(
        LISTS,
        (t("r x [], append y 1"), t("r y [], append x 1")),
        (t("r x [], append y 1"), t("r y [1], append x 1")),
    ),
    "G2-item-process": Case(
        LISTS,
        (
            t("r x [], append y 1", 0, 10, process=7),
            t("r y []", 0, 10),
            t("append x 1", 0, 5, process=8),
            t("r y [], append z 1", 6, 9, process=8),
            t("r z [], append x 2", 0, 20, process=9),
        ),
        (t("r x [], append y 1", 0, 10), t("r y []", 0, 10), t("append x 1", 0, 5)),
    ),
    "G2-item-realtime": Case(
        LISTS,
        (
            t("r x [], append y 1", 10, 20),
            t("r y [], append z 1", 15, 25),
            t("append x 1", 0, 9),
        ),
        (
            t("r x [], append y 1", 10, 20),
            t("r y [], append z 1", 15, 25),
            t("append x 1", 0, 15),
        ),
    ),
    "internal": Case(
        LISTS,
        (t("append x 1, r x []"),),
        (t("append x 1, r x [1]"),),
    ),
    "own-write-missed": Case(
        LISTS,
        (t("append x 1, r x []"),),
        (t("append x 1, r x [1]"),),
    ),
    "observed-transaction-vanishes": Case(
        LISTS,
        (t("append x 1, append y 1"), t("r x [1], r y []")),
        (t("append x 1, append y 1"), t("r y [], r x [1]")),
    ),
    "fractured-read": Case(
        LISTS,
        (t("append x 1, append y 1"), t("r y [], r x [1]")),
        (t("append x 1"), t("append y 1, r x [1]"), t("r x [], r y [1]")),
    ),
    "causality-violation": Case(
        LISTS,
        (t("append x 1"), t("r x [1], append y 1"), t("r x [], r y [1]")),
        (t("append x 1"), t("r x [1], append y 1"), t("r x [1], r y [1]")),
    ),
    "dirty-update": Case(
        LISTS,
        (t("append x 1", outcome="fail"), t("append x 2"), t("r x [1,2]")),
        (t("append x 1", outcome="fail"), t("append x 2"), t("r x [2,1]")),
    ),
    "lost-update": Case(
        LISTS,
        (t("r x [], append x 1"), t("r x [], append x 2"), t("r x [1,2]")),
        (t("r x [], append x 1"), t("r x [1], append x 2"), t("r x [1,2]")),
    ),
    "duplicate-elements": Case(
        LISTS,
        (t("append x 1"), t("r x [1,1]")),
        (t("append x 1"), t("append x 2"), t("r x [1,2]")),
    ),
    "incompatible-order": Case(
        LISTS,
        (t("append x 1"), t("append x 2"), t("r x [1,2]"), t("r x [2]")),
        (t("append x 1"), t("append x 2"), t("r x [1,2]"), t("r x [1]")),
    ),
    "future-read": Case(
        LISTS,
        (t("r x [1], append x 1"),),
        (t("r x [], append x 1"),),
    ),
    "phantom-value": Case(
        LISTS, (t("append x 1"), t("r x [1,2]")), (t("append x 1"), t("r x [1]"))
    ),
    "cyclic-versions": Case(
        REGISTERS,
        (t("r x 2, w x 1"), t("r x 1, w x 2")),
        (t("r x null, w x 1"), t("r x 1, w x 2")),
    ),
    "lost": Case(
        LISTS,
        (t("append x 1", 0, 1), t("r x []", 2, 3, final=True)),
        (t("append x 1", 0, 2), t("r x []", 2, 3, final=True)),
    ),
}
#: Of orders that a solver does not find, at the level that they are about.
ORDER_CASES: dict[str, Case] = {
    "no-parallel-snapshot-order": Case(
        LISTS,
        (t("r y [], append y 1, append x 2"), t("r x [], append y 3")),
        (t("r y [], append y 1, append x 2"), t("r x [], append z 3")),
        "parallel-snapshot-isolation",
    ),
    "no-parallel-snapshot-order-process": Case(
        REGISTERS,
        (
            t("w z 1", 0, 1, process=7),
            t("r z null, w z 2, w x 3"),
            t("r x 3, r z 2", 2, 3, process=7),
        ),
        (
            t("w z 1", 0, 1, process=7),
            t("r z null, w z 2, w x 3"),
            t("r x 3, r z 1", 2, 3, process=7),
        ),
        "strong-session-parallel-snapshot-isolation",
    ),
    "no-parallel-snapshot-order-realtime": Case(
        REGISTERS,
        (t("r x null, w x 3"), t("w x 1", 0, 1), t("r x 3", 2, 3)),
        (t("r x null, w x 3"), t("w x 1", 0, 2), t("r x 3", 2, 3)),
        "strong-parallel-snapshot-isolation",
    ),
    "no-snapshot-order": Case(
        LISTS,
        (t("r x [], append y 1, append z 1"), t("r y [], append x 1, append z 2")),
        (t("r x [], append y 1, append z 1"), t("r y [], append x 1")),
        "snapshot-isolation",
    ),
    "no-snapshot-order-process": Case(
        LISTS,
        (
            t("r y [], append z 1", 0, 1, process=7),
            t("r z [], append y 3"),
            t("r y [], append y 2", 2, 3, process=7),
        ),
        (
            t("r y [], append z 1", 0, 1, process=7),
            t("r z [], append y 3"),
            t("append y 2", 2, 3, process=7),
        ),
        "strong-session-snapshot-isolation",
    ),
    "no-snapshot-order-realtime": Case(
        REGISTERS,
        (t("r x null, w x 3"), t("w x 1", 0, 1), t("r x 3", 2, 3)),
        (t("r x null, w x 3"), t("w x 1", 0, 2), t("r x 3", 2, 3)),
        "strong-snapshot-isolation",
    ),
    "no-serial-order": Case(
        REGISTERS,
        (t("r y 2, r x 3"), t("w x 1, w y 2"), t("r x null, w x 3")),
        (t("r y 2, r x 1"), t("w x 1, w y 2"), t("r x null, w x 3")),
    ),
    "no-serial-order-process": Case(
        REGISTERS,
        (
            t("w x 1, w y 2", 0, 1, process=7),
            t("r y 3", 2, 3, process=7),
            t("r x null, w y 3"),
        ),
        (
            t("w x 1, w y 2", 0, 1, process=7),
            t("r y 2", 2, 3, process=7),
            t("r x null, w y 3"),
        ),
        "strong-session-serializable",
    ),
    "no-serial-order-realtime": Case(
        REGISTERS,
        (t("r x null, w y 3, w x 4"), t("w x 1, w z 2", 0, 1), t("r x 4", 2, 3)),
        (t("r x null, w y 3, w x 4"), t("w x 1, w z 2", 0, 2), t("r x 4", 2, 3)),
    ),
}
#: The same of registers, where they show it otherwise.
REGISTER_CASES: dict[str, Case] = {
    "G1a": Case(
        REGISTERS,
        (t("w x 1", outcome="fail"), t("r x 1")),
        (t("w x 1", outcome="info"), t("r x 1")),
    ),
    "G1b": Case(REGISTERS, (t("w x 1, w x 2"), t("r x 1")), (t("w x 1, w x 2"), t("r x 2"))),
    "G1c": Case(
        REGISTERS,
        (t("w x 1, r y 1"), t("w y 1, r x 1")),
        (t("w x 1, r y 1"), t("w y 1, r x null")),
    ),
    "G-single": Case(
        REGISTERS,
        (t("w x 1, w y 1"), t("r x 1, r y null")),
        (t("w x 1, w y 1"), t("r x null, r y null")),
    ),
    "G-nonadjacent": Case(
        REGISTERS,
        (t("w x 1"), t("w y 1"), t("r x 1, r y null"), t("r x null, r y 1")),
        (t("w x 1"), t("w y 1"), t("r x 1, r y null"), t("r x 1, r y 1")),
    ),
    "G2-item": Case(
        REGISTERS,
        (t("r x null, w y 1"), t("r y null, w x 1")),
        (t("r x null, w y 1"), t("r y 1, w x 1")),
    ),
    "lost-update": Case(
        REGISTERS,
        (t("r x null, w x 1"), t("r x null, w x 2")),
        (t("r x null, w x 1"), t("r x 1, w x 2")),
    ),
    "dirty-update": Case(
        REGISTERS,
        (t("w x 1", outcome="fail"), t("r x 1, w x 2")),
        (t("w x 1", outcome="info"), t("r x 1, w x 2")),
    ),
    "own-write-missed": Case(
        REGISTERS,
        (t("w x 1, w x 2, r x 1"),),
        (t("w x 2"), t("r x 2, r x null")),
    ),
    "observed-transaction-vanishes": Case(
        REGISTERS,
        (t("w x 1, w y 1"), t("w x 2, w y 2"), t("r x 1, r y 2"), t("r x 2, r y 1")),
        (t("w x 1, w y 1"), t("w x 2, w y 2"), t("r x 1, r y 2"), t("r x 1, r y 2")),
    ),
    "fractured-read": Case(
        REGISTERS,
        (t("w x 1, w y 1"), t("w x 2, w y 2"), t("r x 1, r y 2")),
        (t("w x 1, w y 1"), t("w y 2"), t("r x 1, r y 2")),
    ),
    "causality-violation": Case(
        REGISTERS,
        (t("w x 1"), t("r x 1, w x 2"), t("r x 2, w y 1"), t("r y 1, r x 1")),
        (t("w x 1"), t("r x 1, w x 2"), t("r x 2, w y 1"), t("r y 1, r x 2")),
    ),
    "internal": Case(REGISTERS, (t("w x 1, r x null"),), (t("w x 1, r x 1"),)),
    "future-read": Case(REGISTERS, (t("r x 1, w x 1"),), (t("r x null, w x 1"),)),
    "phantom-value": Case(REGISTERS, (t("r x 1"),), (t("w x 1"), t("r x 1"))),
    "lost": Case(
        REGISTERS,
        (t("w x 1", 0, 1), t("r x null", 2, 3, final=True)),
        (t("w x 1", 0, 2), t("r x null", 2, 3, final=True)),
    ),
}
