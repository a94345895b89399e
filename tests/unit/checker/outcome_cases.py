"""Small histories and what the checkers of outcomes must tell of each: red, green or unknown.

Each row is a claim; longer than 400 lines because they are one table.
"""

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
Expected = tuple[str, ...]


class Case(NamedTuple):
    """A history, how it is asked about, and what must be told of it."""

    operations: tuple[PairedOperation, ...]
    expected: Expected
    options: Mapping[str, Any] = MappingProxyType({})
    #: Figures, among others.
    figures: Mapping[str, int] = MappingProxyType({})
    #: Of the first violation or observation: its sentence, and the indexes of its operations.
    sentence: str = ""
    indexes: tuple[int, ...] = ()
    #: Part of the reason.
    reason: str = ""
    #: Kinds of observations.
    observed: tuple[str, ...] = ()


def once(f: str, start: int, argument: Any = None, result: Any = None, **fields: Any) -> Any:
    end = fields.pop("end", start + 1)
    return op(f, argument, result, start=start, end=end, **fields)


def balances(start: int, *amounts: Any, **fields: Any) -> PairedOperation:
    return once("read", start, None, dict(zip("abc", amounts, strict=False)), **fields)


def add(value: Any, start: int, end: int | None = None, **fields: Any) -> PairedOperation:
    return op("add", value, start=start, end=end, **fields)


def read(value: Any, start: int, end: int | None = None, **fields: Any) -> PairedOperation:
    return op("read", None, value, start=start, end=start + 1 if end is None else end, **fields)


def put(value: Any, start: int, end: int | None = None, **fields: Any) -> PairedOperation:
    result = fields.pop("result", None if end is None else value)
    return op("enqueue", value, result, start=start, end=end, **fields)


def take(value: Any, start: int, end: int | None = None, **fields: Any) -> PairedOperation:
    return op("dequeue", None, value, start=start, end=end, **fields)


def drain(values: Any, start: int, end: int | None = None) -> PairedOperation:
    return op("drain", None, values, start=start, end=end)


def finals(*values: Any, start: int = 90, **fields: Any) -> tuple[PairedOperation, ...]:
    """Final dequeues, one after the other; None: found nothing."""
    times = range(start, start + 2 * len(values), 2)
    return tuple(
        take(value, time, time + 1, final=True, index=time, **fields)
        for value, time in zip(values, times, strict=True)
    )


def guarded(token: int, start: int, accepted: bool = True, **fields: Any) -> PairedOperation:
    return once("write", start, [token, "v"], [token, "v", accepted], **fields)


def lock(f: str, start: int, process: int, result: Any = True) -> PairedOperation:
    return once(f, start, None, result, process=process)


def ids(*values: Any) -> tuple[PairedOperation, ...]:
    return tuple(once("generate", 2 * n, None, value) for n, value in enumerate(values))


VALID, UNKNOWN = ("valid",), ("unknown",)
DRAINED: Mapping[str, Any] = MappingProxyType({"drained": True})
EMPTY = take(None, 90, 91)
#: A guarded write that lets observations be valid.
ACCEPTED = guarded(1, 900)
HELD = lock("acquire", 0, 1), lock("acquire", 2, 2), lock("release", 4, 1)
#: An element is missing for a while, and comes back.
COMES_BACK = once("add", 0, 1), read([1], 2), read([], 4), read([1], 6)

CASES: dict[ModuleType, dict[str, Case]] = {
    bank: {
        "a transfer keeps the total": Case(
            (balances(0, 5, 5), once("transfer", 2, {"amount": 3}), balances(4, 2, 8)),
            VALID,
            figures={"reads": 2},
        ),
        "amid a transfer": Case(
            (balances(0, 5, 5), balances(2, 2, 5), balances(4, 2, 8)),
            ("wrong-total",),
            sentence="The read of index 2 of key a sums up to 7, not 10.",
        ),
        "wrong from the beginning": Case((balances(0, 5, 4), balances(2, 4, 5)), VALID),
        "wrong from the beginning, the total given": Case(
            (balances(0, 5, 4), balances(2, 4, 5)), ("wrong-total",) * 2, {"total": 10}
        ),
        "below zero": Case((balances(0, 5, 5), balances(2, -1, 11)), ("negative-balance",)),
        "below zero, allowed": Case(
            (balances(0, 5, 5), balances(2, -1, 11)), VALID, {"negative_balances_allowed": True}
        ),
        "a balance of null": Case((balances(0, 5, 5), balances(2, None, 10)), ("no-balance",)),
        "a balance of true": Case(
            (balances(0, 5, 5), balances(2, 5, 5), balances(4, True, 9)), ("no-balance",)
        ),
        "a failed read": Case(
            (balances(0, 5, 5), balances(2, 5, 5), balances(4, 1, 2, outcome="fail")), VALID
        ),
        "banks are judged apart": Case(
            tuple(balances(n, 5, 5 + n // 4, key="ab"[n // 4]) for n in (0, 2, 4, 6)), VALID
        ),
        "one read of each bank": Case((balances(0, 5, 5), balances(2, 5, 6, key="b")), UNKNOWN),
        "one read": Case((balances(0, 5, 5),), UNKNOWN),
        "one read, the total given": Case((balances(0, 5, 5),), VALID, {"total": 10}),
        "a total of zero": Case((balances(0, 0, 0), balances(2, 0, 0)), VALID, {"total": 0}),
        "no total of zero": Case(
            (balances(0, 1, 0), balances(2, 1, 0)), ("wrong-total",) * 2, {"total": 0}
        ),
        "no read": Case((), UNKNOWN),
        "no balances at all": Case(
            (read(3, 0),),
            UNKNOWN,
            reason="Not finished: the read of index 0 answered no balances by account.",
        ),
    },
    unique_ids: {
        "distinct": Case(
            ids(*(f"id-{n}" for n in range(9))),
            VALID,
            figures={"asked": 9, "acknowledged": 9, "distinct": 9, "duplicated": 0},
        ),
        "twice": Case(
            ids(7, 8, 7),
            ("duplicated",),
            sentence="The id 7 was given out twice: at index 0 and at index 4.",
            indexes=(0, 4),
        ),
        "twice, on two keys": Case(
            (*ids(1), once("generate", 2, None, 1, key="b")), ("duplicated",)
        ),
        "thrice": Case(ids(1, 1, 1), ("duplicated",) * 2),
        "equal lists": Case(ids([1, {"node": "n1"}], [1, {"node": "n1"}]), ("duplicated",)),
        "other lists": Case(ids([1, {"node": "n1"}], [1, {"node": "n2"}]), VALID),
        "unanswered and failed": Case(
            (
                *ids(1),
                *(op("generate", start=n) for n in (2, 3)),
                *(op("generate", start=n, outcome="fail") for n in (5, 6)),
            ),
            VALID,
        ),
        "another function": Case((*ids(1), once("other", 2, None, 1)), VALID),
        "none answered": Case(
            (op("generate", start=2), op("generate", start=5, outcome="fail")), UNKNOWN
        ),
    },
    counter_bounds: {
        "what was acknowledged": Case(
            (once("add", 0, 2), once("add", 2, 3), read(5, 4)), VALID, figures={"reads": 1}
        ),
        "less than was acknowledged": Case(
            (once("add", 0, 2), read(0, 2)),
            ("too-low",),
            sentence="read of index 2 of key a answered 0, and the adds allow 2 to 2.",
        ),
        "more than was asked for": Case((once("add", 0, 3), read(4, 2)), ("too-high",)),
        "what was asked for later": Case((read(2, 0), once("add", 2, 2)), ("too-high",)),
        "an open add may count or not": Case((add(3, 0), read(0, 2), read(3, 4)), VALID),
        "a decrement": Case((once("add", 0, -3), read(0, 2)), ("too-high",)),
        "an open decrement": Case((once("add", 0, 2), add(-3, 2), read(-1, 3)), VALID),
        "an increment and a decrement": Case(
            (once("add", 0, 2), once("add", 2, -3), read(2, 4)), ("too-high",)
        ),
        "a failed add": Case(
            (once("add", 0, 3), once("add", 2, 2, outcome="fail"), read(5, 4)), ("too-high",)
        ),
        "an answer has its own part": Case((once("add-and-get", 0, 3, 3), read(3, 2)), VALID),
        "an answer lacks its own part": Case((once("add-and-get", 0, 3, 0),), ("too-low",)),
        "an answer lacks its own decrement": Case((once("add-and-get", 0, -2, 0),), ("too-high",)),
        "a read begins as the add ends": Case(
            (add(2, 0, 4), read(0, 4, index=5), read(2, 4, index=6)), VALID
        ),
        "a read ends as the add begins": Case(
            (read(0, 0, 4, index=0), read(2, 0, 4, index=1), add(2, 4, 5)), VALID
        ),
        "counters are judged apart": Case((once("add", 0, 3, key="b"), read(3, 2)), ("too-high",)),
        "nothing": Case((), UNKNOWN),
        "nothing read": Case((once("add", 0, 3),), UNKNOWN),
        "an answer that is no number": Case(
            (once("add", 0, 1), read([1], 2)), UNKNOWN, reason="needs a number, and not [1]"
        ),
    },
    queue_totals: {
        "all was taken": Case(
            (put(1, 0, 1), put(2, 2, 3), take(2, 4, 5), take(1, 6, 7), EMPTY),
            VALID,
            figures={"dequeued": 2},
        ),
        "one was not taken": Case(
            (put(1, 0, 1), EMPTY),
            ("lost",),
            sentence="Element 1 of key a was acknowledged, never dequeued, and the queue was found "
            "empty after that (index 90): 1 lost.",
        ),
        "an unanswered dequeue may have taken it": Case(
            (put(1, 0, 1), take(None, 2), EMPTY), VALID, figures={"taken-unanswered": 1}
        ),
        "an unanswered dequeue took one at most": Case(
            (*(put(n, 0, 1, index=n) for n in (1, 2, 3)), take(None, 4), EMPTY),
            ("lost",),
            figures={"lost": 2},
            reason="3 elements of key a were acknowledged (1 and others)",
        ),
        "an unanswered drain took any number": Case(
            (put(1, 0, 1), put(2, 0, 1, index=2), drain(None, 4), EMPTY), VALID
        ),
        "a failed dequeue took nothing": Case(
            (put(1, 0, 1), take(None, 4, 5, outcome="fail"), EMPTY), ("lost",)
        ),
        "an unanswered enqueue need not be taken": Case((put(1, 0), EMPTY), VALID),
        "an unanswered enqueue may be taken": Case((put(1, 0), take(1, 5, 6), EMPTY), VALID),
        "nobody found it empty": Case((put(1, 0, 1),), UNKNOWN, figures={"never-looked-for": 1}),
        "it was empty before the enqueue ended": Case(
            (put(1, 0, 95), EMPTY), UNKNOWN, figures={"never-looked-for": 1}
        ),
        "it was empty as the enqueue ended": Case(
            (put(1, 0, 90), EMPTY), UNKNOWN, figures={"never-looked-for": 1}
        ),
        "of equal elements the first was taken": Case(
            (put(1, 0, 1), EMPTY, put(1, 92, 93), take(1, 94, 95)), UNKNOWN
        ),
        "taken twice": Case((put(1, 0, 1), take(1, 2, 3), take(1, 4, 5), EMPTY), ("duplicated",)),
        "asked for twice and taken twice": Case(
            (put(1, 0, 1), put(1, 2), take(1, 3, 4), take(1, 4, 5), EMPTY), VALID
        ),
        "from nowhere": Case((take(7, 0, 1),), ("phantom",)),
        "before its enqueue": Case((take(7, 0, 1), put(7, 2, 3), EMPTY), ("phantom",)),
        "as its enqueue begins": Case((take(7, 0, 2), put(7, 2, 3), EMPTY), VALID),
        "of a failed enqueue": Case((put(1, 0, 1, outcome="fail"), take(1, 2, 3)), ("phantom",)),
        "of a refused enqueue": Case((put(1, 0, 1, result=False), take(1, 2, 3)), ("phantom",)),
        "a refused enqueue is not lost": Case((put(1, 0, 1, result=False), EMPTY), VALID),
        "a drain takes all": Case((put(1, 0, 1), put(2, 2, 3), drain([2, 1], 4, 9)), VALID),
        "a drain finds nothing more": Case(
            (put(1, 0, 1), put(2, 2, 3), drain([2], 4, 9)), ("lost",)
        ),
        "queues are judged apart": Case(
            (put(1, 0, 1, key="a"), take(1, 2, 3, key="b")), ("phantom",)
        ),
        "drained": Case(
            (put(1, 0, 1), put(2, 0, 1), take(2, 2, 3), *finals(1, None, None, None)),
            VALID,
            DRAINED,
            figures={"dequeued": 2, "not-drained": 0},
        ),
        "drained, lost": Case(
            (put(1, 0, 1), put(2, 0, 1), *finals(2, None, None, None)),
            ("lost",),
            DRAINED,
            sentence="Element 1 of key a was acknowledged, never dequeued, and the queue was found "
            "empty after that (index 96): 1 lost.",
        ),
        "drained, handed out again": Case(
            (put(1, 0, 1), take(1, 2, 3), *finals(1, None, None, None)), ("duplicated",), DRAINED
        ),
        "drained, from nowhere": Case(
            (put(1, 0, 1), *finals(1, 7, None, None, None)), ("phantom",), DRAINED
        ),
        "drained, an answer lost may have taken it": Case(
            (put(1, 0, 1), take(None, 2), *finals(None, None, None)), VALID, DRAINED
        ),
        "found empty in the load alone": Case(
            (put(1, 0, 1), *(take(None, n, n + 1) for n in (4, 6, 8))),
            UNKNOWN,
            DRAINED,
            figures={"never-looked-for": 1},
        ),
        "the drain ended before it was empty": Case(
            (put(1, 0, 1), put(2, 0, 1), *finals(2)), UNKNOWN, DRAINED
        ),
        "the drain ended before it was empty so often": Case(
            (put(1, 0, 1), *finals(None, None)), UNKNOWN, DRAINED, reason="several times in a row"
        ),
        "the drain ended early, and nothing is missing": Case(
            (put(1, 0, 1), take(1, 2, 3), *finals(None, None)),
            UNKNOWN,
            DRAINED,
            figures={"not-drained": 1},
            reason="1 queue was not drained",
        ),
        "one came back late, and nobody looked on": Case(
            (put(1, 0, 1), put(2, 0, 1), *finals(None, None, 1, None)), UNKNOWN, DRAINED
        ),
        "empties of two members do not add up": Case(
            (put(1, 0, 1), *finals(None, None, node="n1"), *finals(None, start=96, node="n2")),
            UNKNOWN,
            DRAINED,
        ),
        "final ones that failed found nothing out": Case(
            (put(1, 0, 1), *finals(None, None, None, outcome="fail")), UNKNOWN, DRAINED
        ),
        "drained in one go, in the load": Case((put(1, 0, 1), drain([], 4, 5)), UNKNOWN, DRAINED),
        "drained in one go": Case(
            (put(1, 0, 1), put(2, 0, 1), op("drain", None, [2], start=90, end=91, final=True)),
            ("lost",),
            DRAINED,
        ),
        "nothing": Case((), UNKNOWN),
        "a drain of no list": Case((drain(3, 0, 1),), UNKNOWN, reason="answered no list"),
    },
    fencing_tokens: {
        "rising": Case(
            (guarded(1, 0), guarded(1, 2), guarded(4, 4)), VALID, figures={"accepted": 3}
        ),
        "falling": Case(
            (guarded(4, 0), guarded(3, 2)),
            ("lower-token-accepted",),
            sentence="The write of index 2 of key a was accepted with token 3, after token 4 had "
            "been (index 0).",
        ),
        "falling at the same moment": Case((guarded(2, 0), guarded(1, 1)), VALID),
        "falling, the lower refused": Case((guarded(2, 0), guarded(1, 2, accepted=False)), VALID),
        "falling, the lower unanswered": Case(
            (guarded(2, 0), op("write", [1, "v"], start=2)), VALID
        ),
        "falling, the higher refused": Case((guarded(2, 0, accepted=False), guarded(1, 2)), VALID),
        "falling, the higher unanswered": Case(
            (op("write", [9, "v"], start=0), guarded(1, 2)), VALID
        ),
        "falling on another key": Case((guarded(2, 0, key="b"), guarded(1, 2)), VALID),
        "the highest counts, not the last": Case(
            (guarded(3, 0), guarded(2, 0, end=5, index=1), guarded(2, 6)), ("lower-token-accepted",)
        ),
        "none accepted": Case((guarded(1, 0, accepted=False),), UNKNOWN),
        "nothing": Case((), UNKNOWN),
        "no token": Case(
            (once("write", 0, "x", [1, 2, True]),), UNKNOWN, reason="has no argument [token, value]"
        ),
        "two holders": Case(
            (ACCEPTED, *HELD),
            VALID,
            sentence="Process 2 acquired the lock of key a (index 2) while process 1 believed to "
            "hold it (index 0).",
            observed=("two-believed-holders",),
        ),
        "one holder after the other": Case(
            (
                ACCEPTED,
                lock("acquire", 0, 1),
                lock("release", 2, 1),
                once("acquire", 2, None, True, process=2, index=3),
                once("acquire", 3, None, False, process=3, index=4),
                once("release", 4, None, True, process=2, index=5),
                lock("acquire", 6, 1),
            ),
            VALID,
        ),
        "a token twice": Case(
            (ACCEPTED, lock("acquire", 0, 1, 33), lock("release", 2, 1), lock("acquire", 4, 2, 33)),
            VALID,
            observed=("token-repeated",),
        ),
    },
    sessions: {
        "a process reads what others added": Case(
            (once("add", 0, 1, process=9), read([1], 2, process=1)), VALID
        ),
        "a process misses what it added": Case(
            (once("add", 0, 1, process=1), read([], 2, process=1)), ("read-your-writes",)
        ),
        "a process misses what others added": Case(
            (once("add", 0, 1, process=1), read([], 2, process=2)), VALID
        ),
        "a process misses what it may have added": Case(
            (op("add", 1, start=0, process=1), read([], 2, process=1)), VALID
        ),
        "a process misses what it read": Case(
            (
                once("add", 0, 1, process=9),
                *(read([1] * (n < 4), n, process=1) for n in (2, 4, 6)),
            ),
            ("monotonic-reads",),
            sentence="Process 1 read element 1 of key a (index 2) and missed it later (index 4).",
        ),
        "an element is due again once it was read again": Case(
            (
                once("add", 0, 1, process=9),
                *(read([1] * (n % 4 == 2), n, process=1) for n in (2, 4, 6, 8)),
            ),
            ("monotonic-reads",) * 2,
        ),
        "a set only grows": Case(
            (
                once("add", 0, 1, process=9),
                *(read(shown, start, process=1) for start, shown in ((2, []), (4, [1]))),
                once("add", 6, 2, process=1),
                read([2, 1], 8, process=1),
            ),
            VALID,
        ),
        "a queue": Case(
            (once("enqueue", 0, 1),), UNKNOWN, reason="cannot tell what enqueue leaves behind"
        ),
        "adds to no set": Case(
            (once("add", 0, 1, process=1), read(1, 2, process=1)),
            UNKNOWN,
            reason="its adds are to no set",
        ),
        "a failed write never was": Case(
            (
                *(once("write", n, 1, outcome="fail" if n == 0 else "ok") for n in (0, 2)),
                read(1, 4),
            ),
            VALID,
        ),
        "a process does not read what it wrote": Case(
            (once("write", 0, 1, process=1), read(None, 2, process=1)), ("read-your-writes",)
        ),
        "a process does not read what it did not write": Case(
            (once("write", 0, 1, process=1, outcome="fail"), read(None, 2, process=1)), VALID
        ),
        "another process does not read what may have been written": Case(
            (op("write", 1, start=0, process=1), read(None, 4, process=2)), VALID
        ),
        "a process reads something newer than it wrote": Case(
            (
                *(once("write", 2 * n, n + 1, process=n + 1) for n in (0, 1)),
                read(2, 4, process=1),
            ),
            VALID,
        ),
        "a process goes back by position": Case(
            (
                *(once("write", 2 * n, n + 1, process=9, position=(1, n + 1)) for n in (0, 1)),
                *(read(3 - n // 4, n, process=1) for n in (4, 8)),
            ),
            ("monotonic-reads",),
        ),
        "a value was written twice": Case(
            (*(once("write", 2 * n, 1, process=n) for n in (0, 1)), read(1, 4, process=1)),
            UNKNOWN,
            reason="1 was written more than once",
        ),
        "null was written": Case(
            (once("write", 0, None, process=1), read(None, 4, process=1)),
            UNKNOWN,
            reason="null was written",
        ),
        "nothing": Case((), UNKNOWN, reason="Nothing was ever read"),
    },
    set_full: {
        "all is kept": Case(
            (add(1, 0, 5), add(2, 3, 9), read([1], 6, 8), read([1, 2], 10, 12, final=True)),
            VALID,
            figures={"acknowledged": 2, "final-reads": 1},
        ),
        "lost": Case(
            (once("add", 0, 1), read([], 2)),
            ("lost",),
            sentence="Element 1 of set a was acknowledged (index 0), and is missing from the read "
            "of index 2 and from every later one.",
        ),
        "lost although nobody knew of the add": Case(
            (add(1, 0), read([1], 2), read([], 4)), ("lost",)
        ),
        "lost after the last sight, and missing before": Case(
            (add(1, 0, 5), read([], 6), read([1], 8), read([], 10)), ("lost",)
        ),
        "never seen and not acknowledged": Case(
            (add(1, 0), read([], 2), once("add", 3, 2), read([2], 5)), VALID
        ),
        "a read that overlaps the add": Case((once("add", 0, 1), read([], 1), read([1], 3)), VALID),
        "comes back": Case(COMES_BACK, ("stale",)),
        "comes back, allowed": Case(
            COMES_BACK, VALID, {"stale_reads_allowed": True}, observed=("stale",)
        ),
        # The read that misses it was invoked last, but the one that shows it returned later.
        "missing beside the last sight": Case(
            (add(1, 0, 5), read([1], 6, 20), read([], 7, 9)), ("stale",)
        ),
        "shown twice": Case((once("add", 0, 1), read([1, 1], 2)), ("duplicated",)),
        "from nowhere": Case(
            (once("add", 0, 1), read([1, 7], 2)), ("phantom",), reason="nobody ever asked"
        ),
        "of a failed add": Case(
            (add(1, 0, 5, outcome="fail", error="not-leader"), read([1], 6)), ("phantom",)
        ),
        "before its add": Case((read([1], 0, 3), add(1, 5, 8), read([1], 9)), ("phantom",)),
        "before its add, of an earlier one": Case(
            (add(1, 0), read([1], 2), add(1, 5, 8), read([1], 9)), VALID
        ),
        "a failed read shows nothing": Case(
            (add(1, 0, 5), op("read", start=6, end=7, outcome="fail"), read([1], 8)), VALID
        ),
        "never looked for": Case(
            (once("add", 0, 1),), UNKNOWN, figures={"never-read": 1}, reason="never looked for"
        ),
        "looked for too early": Case(
            (add(1, 0, 5), read([], 2, 4)), UNKNOWN, figures={"never-read": 1}
        ),
        # As when the history of a register is judged as one of sets.
        "no element": Case((once("write", 0, 1), read(None, 6)), UNKNOWN),
        "nothing": Case((), UNKNOWN),
        **{
            f"a read answers {type(answer).__name__}": Case(
                (once("add", 0, 1), read(answer, 6)),
                UNKNOWN,
                reason="Not finished: the read of index 6 answered no list of elements.",
            )
            for answer in (5, "abc", {"a": 1})
        },
    },
}
