"""Small histories and what the checkers of outcomes must tell of each: red, green or unknown."""

from collections.abc import Mapping
from types import MappingProxyType, ModuleType
from typing import Any, NamedTuple

from splitbrain.checker import (
    bank,
    counter_bounds,
    fencing_tokens,
    queue_totals,
    sessions,
    set_full,
    unique_ids,
)
from splitbrain.history.records import PairedOperation
from tests.unit.checker.operations import operation as op

#: Expected answer: violations by kind, or the verdict where there is none.
Told = tuple[str, ...]


class Case(NamedTuple):
    """A history, how it is asked about, and what must be told of it."""

    operations: tuple[PairedOperation, ...]
    told: Told
    options: Mapping[str, Any] = MappingProxyType({})


def balances(start: int, *amounts: Any, **fields: Any) -> PairedOperation:
    accounts = dict(zip("abc", amounts, strict=False))
    return op("read", None, accounts, start=start, end=start + 1, **fields)


def once(f: str, start: int, argument: Any = None, result: Any = None, **fields: Any) -> Any:
    end = fields.pop("end", start + 1)
    return op(f, argument, result, start=start, end=end, **fields)


def guarded(token: int, start: int, accepted: bool = True, **fields: Any) -> PairedOperation:
    return once("write", start, [token, "v"], [token, "v", accepted], **fields)


VALID, UNKNOWN = ("valid",), ("unknown",)

CASES: dict[ModuleType, list[Case]] = {
    bank: [
        Case((balances(0, 5, 5), balances(2, 2, 8), balances(4, 0, 10)), VALID),
        Case((balances(0, 5, 5), balances(2, 2, 5), balances(4, 2, 8)), ("wrong-total",)),
        Case((balances(0, 5, 4), balances(2, 4, 5)), VALID),
        Case((balances(0, 5, 4), balances(2, 4, 5)), ("wrong-total",) * 2, {"total": 10}),
        Case((balances(0, 5, 5), balances(2, -1, 11)), ("negative-balance",)),
        Case((balances(0, 5, 5), balances(2, -1, 11)), VALID, {"negative_balances_allowed": True}),
        Case((balances(0, 5, 5), balances(2, 5, 5), balances(4, None, 10)), ("no-balance",)),
        Case((balances(0, 5, 5), balances(2, 5, 5), balances(4, True, 9)), ("no-balance",)),
        Case((balances(0, 5, 5), balances(2, 5, 5), balances(4, 1, 2, outcome="fail")), VALID),
        Case((*(balances(n, 5, 5 + n // 4, key="ab"[n // 4]) for n in (0, 2, 4, 6)),), VALID),
        Case((balances(0, 5, 5), balances(2, 5, 6, key="b")), UNKNOWN),
        Case((balances(0, 5, 5),), VALID, {"total": 10}),
        Case((balances(0, 0, 0), balances(2, 0, 0)), VALID, {"total": 0}),
        Case((balances(0, 1, 0), balances(2, 1, 0)), ("wrong-total",) * 2, {"total": 0}),
        Case((), UNKNOWN),
    ],
    unique_ids: [
        Case((once("generate", 0, None, 1), once("generate", 2, None, 2)), VALID),
        Case((once("generate", 0, None, 1), once("generate", 2, None, 1)), ("duplicated",)),
        Case(
            (once("generate", 0, None, 1), once("generate", 2, None, 1, key="b")), ("duplicated",)
        ),
        Case(tuple(once("generate", 2 * n, None, 1) for n in range(3)), ("duplicated",) * 2),
        Case((once("generate", 0, None, [1]), once("generate", 2, None, [1])), ("duplicated",)),
        Case(
            (once("generate", 0, None, 1), op("generate", start=2), op("generate", start=3)), VALID
        ),
        Case((once("generate", 0, None, 1), once("other", 2, None, 1)), VALID),
        Case((op("generate", start=2),), UNKNOWN),
    ],
    counter_bounds: [
        Case((once("add", 0, 3), once("read", 2, None, 3)), VALID),
        Case((once("add", 0, 3), once("read", 2, None, 2)), ("too-low",)),
        Case((once("add", 0, 3), once("read", 2, None, 4)), ("too-high",)),
        Case((op("add", 3, start=0), once("read", 2, None, 0), once("read", 4, None, 3)), VALID),
        Case((once("add", 0, -3), once("read", 2, None, 0)), ("too-high",)),
        Case(
            (once("add", 0, 3), once("add", 2, 2, outcome="fail"), once("read", 4, None, 5)),
            ("too-high",),
        ),
        Case((once("add-and-get", 0, 3, 3), once("read", 2, None, 3)), VALID),
        Case((once("add-and-get", 0, 3, 0),), ("too-low",)),
        Case((once("add", 0, 3), once("read", 1, None, 0)), VALID),
        Case((once("read", 0, None, 3), once("add", 1, 3)), VALID),
        Case((once("add", 0, 3, key="b"), once("read", 2, None, 3)), ("too-high",)),
        Case((once("add", 0, 3),), UNKNOWN),
    ],
    queue_totals: [
        Case((once("enqueue", 0, 1), once("dequeue", 2, None, 1), once("dequeue", 4)), VALID),
        Case((once("enqueue", 0, 1), once("dequeue", 4)), ("lost",)),
        Case((once("enqueue", 0, 1), op("dequeue", start=2), once("dequeue", 4)), VALID),
        Case((once("enqueue", 0, 1), once("dequeue", 1)), UNKNOWN),
        Case((once("enqueue", 0, 1),), UNKNOWN),
        Case(
            (once("enqueue", 0, 1), *(once("dequeue", n, None, 1) for n in (2, 4))), ("duplicated",)
        ),
        Case(
            (once("enqueue", 0, 1), *(once("dequeue", n, None, 1) for n in (2, 4))),
            VALID,
            {"duplicates_allowed": True},
        ),
        Case((once("dequeue", 0, None, 7),), ("phantom",)),
        Case((once("dequeue", 0, None, 7), once("enqueue", 2, 7)), ("phantom",)),
        Case((once("dequeue", 0, None, 7), once("enqueue", 1, 7)), VALID),
        Case((once("enqueue", 0, 1, outcome="fail"), once("dequeue", 2, None, 1)), ("phantom",)),
        Case((once("enqueue", 0, 1, False), once("dequeue", 2)), VALID),
        Case((once("enqueue", 0, 1), once("drain", 2, None, [1])), VALID),
        Case((once("enqueue", 0, 1), once("drain", 2, None, [])), ("lost",)),
        Case((), UNKNOWN),
    ],
    fencing_tokens: [
        Case((guarded(1, 0), guarded(2, 2)), VALID),
        Case((guarded(2, 0), guarded(1, 2)), ("lower-token-accepted",)),
        Case((guarded(2, 0), guarded(1, 1)), VALID),
        Case((guarded(2, 0), guarded(2, 2)), VALID),
        Case((guarded(2, 0), guarded(1, 2, accepted=False)), VALID),
        Case((guarded(2, 0, accepted=False), guarded(1, 2)), VALID),
        Case((guarded(2, 0, key="b"), guarded(1, 2)), VALID),
        Case((op("write", [9, "v"], start=0), guarded(1, 2)), VALID),
        Case(
            (guarded(3, 0), guarded(2, 0, end=5, index=1), guarded(2, 6)), ("lower-token-accepted",)
        ),
        Case((guarded(1, 0, accepted=False),), UNKNOWN),
    ],
    sessions: [
        Case((once("add", 0, 1, process=9), once("read", 2, None, [1], process=1)), VALID),
        Case(
            (once("add", 0, 1, process=1), once("read", 2, None, [], process=1)),
            ("read-your-writes",),
        ),
        Case((once("add", 0, 1, process=1), once("read", 2, None, [], process=2)), VALID),
        Case((op("add", 1, start=0, process=1), once("read", 2, None, [], process=1)), VALID),
        Case(
            (
                once("add", 0, 1, process=9),
                *(once("read", n, None, [1] * (n < 4), process=1) for n in (2, 4)),
            ),
            ("monotonic-reads",),
        ),
        Case((once("enqueue", 0, 1),), UNKNOWN),
        Case(
            (
                *(once("write", n, 1, outcome="fail" if n == 0 else "ok") for n in (0, 2)),
                once("read", 4, None, 1),
            ),
            VALID,
        ),
        Case(
            (once("write", 0, 1, process=1), once("read", 2, None, None, process=1)),
            ("read-your-writes",),
        ),
        Case(
            (
                once("write", 0, 1, process=1, outcome="fail"),
                once("read", 2, None, None, process=1),
            ),
            VALID,
        ),
        Case(
            (
                once("write", 0, 1, process=9, position=(1, 1)),
                once("write", 2, 2, process=9, position=(1, 2)),
                *(once("read", n, None, 3 - n // 4, process=1) for n in (4, 8)),
            ),
            ("monotonic-reads",),
        ),
        Case((), UNKNOWN),
    ],
    set_full: [
        Case((once("add", 0, 1), once("read", 2, None, [1])), VALID),
        Case((once("add", 0, 1), once("read", 2, None, [])), ("lost",)),
        Case((once("add", 0, 1), once("read", 1, None, []), once("read", 3, None, [1])), VALID),
        Case(
            (once("add", 0, 1), *(once("read", n, None, [1] * (n != 4)) for n in (2, 4, 6))),
            ("stale",),
        ),
        Case(
            (once("add", 0, 1), *(once("read", n, None, [1] * (n != 4)) for n in (2, 4, 6))),
            VALID,
            {"stale_reads_allowed": True},
        ),
        Case((once("add", 0, 1), once("read", 2, None, [1, 1])), ("duplicated",)),
        Case((once("add", 0, 1), once("read", 2, None, [1, 7])), ("phantom",)),
        Case(
            (
                op("add", 1, start=0),
                once("read", 2, None, []),
                once("add", 3, 2),
                once("read", 5, None, [2]),
            ),
            VALID,
        ),
        Case(
            (op("add", 1, start=0), once("read", 2, None, [1]), once("read", 4, None, [])),
            ("lost",),
        ),
        Case((once("add", 0, 1),), UNKNOWN),
    ],
}
