"""Checker of a counter: every read lies within the bounds that the adds allow; n log n.

A read is at least the sum of all increments acknowledged before it was invoked and of all
decrements that may have happened before it returned, and at most the other way round. An answer of
``add-and-get`` is a read that certainly includes its own part. Unanswered adds are possible from
their invocation on, failed ones never.

A wrong read that an unread member may explain is ``unknown`` if no later read is right: see
``checker.evidence``. Compares no two reads, so it finds far less than the model ``counter``, but at
any size. Equal times are concurrent. Source: Jepsen's counter checker.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import Any, NamedTuple

from splitbrain.checker.evidence import unread, unread_reason, wrong_for_good
from splitbrain.checker.findings import Findings, by_key, end_of, number_of, of_key
from splitbrain.checker.verdict import CheckResult
from splitbrain.contracts.budget import Budget
from splitbrain.contracts.words import counted
from splitbrain.history.records import PairedOperation

_ADDS = frozenset({"add", "add-and-get"})
_READS = frozenset({"read", "add-and-get"})


def check(
    operations: Iterable[PairedOperation],
    budget: Budget,
    *,
    members: frozenset[str] = frozenset(),
) -> CheckResult:
    """Judge all counters of a history; ``members`` as in ``Evidence``."""
    findings = Findings("counter-bounds", budget, ("too-low", "too-high"))
    relevant = [o for o in operations if o.f in _ADDS | _READS and o.type != "fail"]

    def judge() -> tuple[dict[str, Any], str, str | None]:
        reads = excused = 0
        unread_members: set[str] = set()
        for counter in by_key(relevant).values():
            answered = [read for read in counter if read.f in _READS and read.type == "ok"]
            reads += len(answered)
            may_hold = unread(members, answered)
            elsewhere = _judge_counter(counter, answered, findings, may_lack=bool(may_hold))
            excused += elsewhere
            unread_members.update(may_hold if elsewhere else ())
        figures = {"reads": reads, "adds": sum(o.f in _ADDS for o in relevant)}
        undecided = None
        if not reads:
            undecided = "No counter was ever read, so there is nothing to judge."
        elif excused:
            what = counted(excused, "answer lacks", "answers lack")
            undecided = unread_reason(f"{what} what was acknowledged", unread_members)
        return figures, f"All {reads:,} answers lie within what the adds allow.", undecided

    return findings.conclude(judge)


class _Wrong(NamedTuple):
    read: PairedOperation
    answer: int | float
    lowest: int | float
    highest: int | float
    #: Whether a subset of all requested amounts, acknowledged or not, gives the answer.
    possible: bool


class _Sums:
    def __init__(self, amounts: Sequence[tuple[int, int | float]]) -> None:
        ordered = sorted(amounts, key=lambda pair: pair[0])
        self._times = [time for time, _ in ordered]
        self._sums = [0, *accumulate(amount for _, amount in ordered)]

    def before(self, time: int) -> int | float:
        return self._sums[bisect_left(self._times, time)]

    def until(self, time: int) -> int | float:
        """Sum of the amounts up to and at this time."""
        return self._sums[bisect_right(self._times, time)]


def _judge_counter(
    members: Sequence[PairedOperation],
    reads: Sequence[PairedOperation],
    findings: Findings,
    *,
    may_lack: bool,
) -> int:
    """Note answers out of bounds, and count those that another member may explain instead.

    That is where an acknowledged add may be held only by a member that was not read.
    """
    amounts = [(add, number_of(add, add.argument)) for add in members if add.f in _ADDS]
    sure = [(end_of(add), n) for add, n in amounts if add.type == "ok"]
    possible = [(add.start, n) for add, n in amounts]
    sure_up, sure_down = (_Sums([pair for pair in sure if sign * pair[1] > 0]) for sign in (1, -1))
    up, down = (_Sums([pair for pair in possible if sign * pair[1] > 0]) for sign in (1, -1))
    wrong: dict[int, _Wrong] = {}
    for read in reads:
        findings.poll()
        answer = number_of(read, 0 if read.result is None else read.result)
        own = 0 if read.f == "read" else number_of(read, read.argument)
        least, most = down.until(end_of(read)) + max(own, 0), up.until(end_of(read)) + min(own, 0)
        lowest = least + sure_up.before(read.start)
        highest = most + sure_down.before(read.start)
        if not lowest <= answer <= highest:
            possible = least <= answer <= most
            wrong[read.index] = _Wrong(read, answer, lowest, highest, possible)
    excused = {
        read.index
        for read in (wrong_for_good(reads, wrong) if may_lack else ())
        if wrong[read.index].possible
    }
    for index, found in wrong.items():
        if index not in excused:
            _note(found, findings)
    return len(excused)


def _note(wrong: _Wrong, findings: Findings) -> None:
    read, answer = wrong.read, wrong.answer
    findings.note(
        "too-low" if answer < wrong.lowest else "too-high",
        [read],
        lambda: (
            f"{read.f} of index {read.index}{of_key(read.key)} answered {answer}, and the "
            f"adds allow {wrong.lowest} to {wrong.highest}."
        ),
    )
