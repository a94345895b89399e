"""Smallest history of each anomaly of rows, and one that nearly shows it; as ``cases``."""

import msgspec

from splitbrain.checker.transactions.levels import Kind
from splitbrain.history.records import PairedOperation
from tests.unit.checker.transactions.cases import Case, t

ROWS: Kind = "rows"

ROW_CASES: dict[str, Case] = {
    "G1a": Case(
        ROWS,
        (t("insert g 1", outcome="fail"), t("range g [1]")),
        (t("insert g 1", outcome="info"), t("range g [1]")),
    ),
    "G1b": Case(
        ROWS,
        (t("insert g 1, delete g 1"), t("range g [1]")),
        (t("insert g 1"), t("range g [1], delete g 1")),
    ),
    "G1c": Case(
        ROWS,
        (t("insert g 1, range h [2]"), t("insert h 2, range g [1]")),
        (t("insert g 1, range h [2]"), t("insert h 2, range g []")),
    ),
    "G-single": Case(
        ROWS,
        (t("insert g 1"), t("range g [1], range h [2]"), t("delete g 1, insert h 2")),
        (t("insert g 1"), t("range g [1], range h []"), t("delete g 1, insert h 2")),
    ),
    "G-nonadjacent": Case(
        ROWS,
        (
            *(t("insert g 1"), t("insert h 2")),
            *(t("delete g 1, insert k 3"), t("delete h 2, insert m 4")),
            *(t("range k [3], range h [2]"), t("range m [4], range g [1]")),
        ),
        (
            *(t("insert g 1"), t("insert h 2")),
            *(t("delete g 1, insert k 3"), t("delete h 2, insert m 4")),
            *(t("range k [3], range h [2]"), t("range m [], range g [1]")),
        ),
    ),
    "G2-item": Case(
        ROWS,
        (t("insert g 1, insert h 2"), t("range g [1], delete h 2"), t("range h [2], delete g 1")),
        (t("insert g 1, insert h 2"), t("range g [1], delete h 2"), t("range h [], delete g 1")),
    ),
    "G-single-predicate": Case(
        ROWS,
        (t("insert g 1, insert h 2"), t("range g [1], range h []")),
        (t("insert g 1, insert h 2"), t("range g [], range h []")),
    ),
    "G-single-predicate-process": Case(
        ROWS,
        (t("insert g 1", 0, 1, process=7), t("range g []", 2, 3, process=7)),
        (t("insert g 1", 0, 1, process=7), t("range g [1]", 2, 3, process=7)),
    ),
    "G-single-predicate-realtime": Case(
        ROWS,
        (t("insert g 1", 0, 1), t("range g []", 2, 3), t("delete g 1", 4, 5)),
        (t("insert g 1", 0, 1), t("range g []", 2, 3), t("delete g 1", 2, 5)),
    ),
    "G-nonadjacent-predicate": Case(
        ROWS,
        (
            *(t("insert g 1"), t("insert h 2")),
            *(t("range g [1], range h []"), t("range g [], range h [2]")),
        ),
        (
            *(t("insert g 1"), t("insert h 2")),
            *(t("range g [1], range h []"), t("range g [1], range h [2]")),
        ),
    ),
    "G-nonadjacent-predicate-process": Case(
        ROWS,
        (
            t("insert g 1", 0, 1, process=7),
            t("range h []", 2, 3, process=7),
            t("insert h 2", 0, 1, process=8),
            t("range g []", 2, 3, process=8),
        ),
        (
            t("insert g 1", 0, 1, process=7),
            t("range h []", 2, 3, process=7),
            t("insert h 2", 0, 1, process=8),
            t("range g [1]", 2, 3, process=8),
        ),
    ),
    "G-nonadjacent-predicate-realtime": Case(
        ROWS,
        (
            t("insert g 1", 0, 10),
            t("insert h 2", 0, 10),
            t("range g [1], range h []", 0, 1),
            t("range h [2]", 2, 3, process=7),
            t("range g []", 4, 5, process=9),
        ),
        (
            t("insert g 1", 0, 10),
            t("insert h 2", 0, 10),
            t("range g [1], range h []", 0, 1),
            t("range h [2]", 2, 4, process=7),
            t("range g [1]", 4, 5, process=9),
        ),
    ),
    "G2": Case(
        ROWS,
        (t("range g [], insert g 1"), t("range g [], insert g 2")),
        (t("range g [], insert g 1"), t("range g [1], insert g 2")),
    ),
    "G2-process": Case(
        ROWS,
        (
            t("range g [], insert h 1", 0, 10),
            t("insert g 2", 0, 5, process=8),
            t("range h [], insert k 3", 6, 9, process=8),
        ),
        (
            t("range g [], insert h 1", 0, 10),
            t("insert g 2", 0, 5, process=8),
            t("range h [1], insert k 3", 6, 9, process=8),
        ),
    ),
    "G2-realtime": Case(
        ROWS,
        (t("range g [], insert h 1", 10, 20), t("range h []", 15, 25), t("insert g 2", 0, 9)),
        (t("range g [], insert h 1", 10, 20), t("range h []", 15, 25), t("insert g 2", 0, 15)),
    ),
    "phantom": Case(
        ROWS,
        (t("range g [], range g [1]"), t("insert g 1")),
        (t("range g [], insert g 1, range g [1]"),),
    ),
    "internal": Case(ROWS, (t("insert g 1, range g []"),), (t("insert g 1, range g [1]"),)),
    "own-write-missed": Case(
        ROWS,
        (t("insert g 1"), t("delete g 1, range g [1]")),
        (t("insert g 1"), t("delete g 1, range g []")),
    ),
    "dirty-update": Case(
        ROWS,
        (t("insert g 1", outcome="fail"), t("delete g 1, range g []")),
        (t("insert g 1", outcome="info"), t("delete g 1, range g []")),
    ),
    "duplicate-elements": Case(
        ROWS, (t("insert g 1"), t("range g [1,1]")), (t("insert g 1"), t("range g [1]"))
    ),
    "future-read": Case(ROWS, (t("range g [1], insert g 1"),), (t("range g [], insert g 1"),)),
    "phantom-value": Case(
        ROWS, (t("insert h 1"), t("range g [1]")), (t("insert h 1"), t("range h [1]"))
    ),
    "lost": Case(
        ROWS,
        (t("insert g 1", 0, 1), t("range g []", 2, 3, final=True)),
        (t("insert g 1", 0, 2), t("range g []", 2, 3, final=True)),
    ),
}
#: One that is shown half of what the first one inserted, and not what the other one did.
_HALF = (t("insert g 1, insert g 2"), t("delete g 1, insert g 3"), t("range g [2]"))
_WHOLE = (*_HALF[:2], t("range g [2,3]"))
_HALF_LATER = (
    t("insert g 1", 0, 1, process=7),
    t("delete g 1, insert g 2", 0, 9),
    t("range g []", 2, 3, process=7),
)
_WHOLE_LATER = (*_HALF_LATER[:2], t("range g [2]", 2, 3, process=7))
_HALF_IN_TIME = tuple(msgspec.structs.replace(o, process=0) for o in _HALF_LATER)
_WHOLE_IN_TIME = tuple(msgspec.structs.replace(o, process=0) for o in _WHOLE_LATER)
#: Of missing rows of which no choice is left, at the level that they are about.
ROW_ORDER_CASES: dict[str, Case] = {}
for _base, _name in (
    ("serializable", "no-serial-rows"),
    ("snapshot-isolation", "no-snapshot-rows"),
    ("parallel-snapshot-isolation", "no-parallel-snapshot-rows"),
):
    _strong = "strict-serializable" if _base == "serializable" else f"strong-{_base}"
    ROW_ORDER_CASES |= {
        _name: Case(ROWS, _HALF, _WHOLE, _base),
        f"{_name}-process": Case(ROWS, _HALF_LATER, _WHOLE_LATER, f"strong-session-{_base}"),
        f"{_name}-realtime": Case(ROWS, _HALF_IN_TIME, _WHOLE_IN_TIME, _strong),
    }
#: Histories that few random ones are like, and levels that they are judged by.
_RARE: tuple[tuple[str, tuple[PairedOperation, ...]], ...] = (
    ("snapshot-isolation", ROW_CASES["G-nonadjacent-predicate"].shows),
    (
        "serializable",
        (t("insert h 1"), t("range g [], delete h 1"), t("range h [1], insert g 2")),
    ),
    # An insert happened if its row was deleted.
    (
        "strict-serializable",
        (
            t("insert g 1, insert h 2", outcome="info"),
            t("delete g 1", 0, 1),
            t("range h []", 2, 3),
        ),
    ),
    # It may have been gone, if time does not count.
    (
        "serializable",
        (
            t("insert g 1, insert h 2", 0, 1),
            t("range g [], range h [2]", 2, 3),
            t("delete g 1", 4, 5),
        ),
    ),
    # The row was gone by a delete without answer: the first one inserted it behind that,
    (
        "serializable",
        (
            t("insert g 1, insert k 3, range h [2]"),
            t("insert h 2, delete g 1", outcome="info"),
            t("range g [], range k [3]"),
        ),
    ),
    # or somebody still saw it behind that.
    (
        "serializable",
        (
            t("insert g 1, insert k 3"),
            t("delete g 1, insert h 2", outcome="info"),
            t("range g [], range k [3]"),
            t("range h [2], range g [1]"),
        ),
    ),
    # It met nothing, for the row was there behind it; but it came before the insert, too.
    (
        "serializable",
        (
            t("insert g 1, range h []"),
            t("delete g 1, insert h 2", outcome="info"),
            t("range h [2], range g [1]"),
        ),
    ),
)
RARE_ROWS = [
    (level, [msgspec.structs.replace(o, index=n, process=n) for n, o in enumerate(operations)])
    for level, operations in _RARE
]
