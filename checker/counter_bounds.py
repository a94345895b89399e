"""Whether every read of a counter lies within what the adds allow; n log n.

A read is at least the sum of all increments acknowledged before it was invoked and of all
decrements that may have happened before it returned, and at most the other way round. An answer of
``add-and-get`` is a read that surely has its own part in it. Unanswered adds are possible from
their invocation on, failed ones never.

Finds far less than the model ``counter`` (no two reads are compared), at any size. Equal times are
concurrent. Source: Jepsen's counter checker.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import Any

from checker.findings import Findings, by_key, end_of, number_of, of_key
from checker.verdict import CheckResult
from contracts.budget import Budget
from history.records import PairedOperation

_ADDS = frozenset({"add", "add-and-get"})
_READS = frozenset({"read", "add-and-get"})


def check(operations: Iterable[PairedOperation], budget: Budget) -> CheckResult:
    """Judge all counters of a history."""
    findings = Findings("counter-bounds", budget, ("too-low", "too-high"))
    relevant = [o for o in operations if o.f in _ADDS | _READS and o.type != "fail"]

    def judge() -> tuple[dict[str, Any], str, str | None]:
        reads = 0
        for members in by_key(relevant).values():
            reads += _judge_counter(members, findings)
        figures = {"reads": reads, "adds": sum(o.f in _ADDS for o in relevant)}
        nothing = None if reads else "No counter was ever read, so there is nothing to judge."
        return figures, f"All {reads:,} answers lie within what the adds allow.", nothing

    return findings.conclude(judge)


class _Sums:
    """Sum of the amounts at all times up to one."""

    def __init__(self, amounts: Sequence[tuple[int, int | float]]) -> None:
        ordered = sorted(amounts, key=lambda pair: pair[0])
        self._times = [time for time, _ in ordered]
        self._sums = [0, *accumulate(amount for _, amount in ordered)]

    def before(self, time: int) -> int | float:
        """Without what is at that very time."""
        return self._sums[bisect_left(self._times, time)]

    def until(self, time: int) -> int | float:
        """With what is at that very time."""
        return self._sums[bisect_right(self._times, time)]


def _judge_counter(members: Sequence[PairedOperation], findings: Findings) -> int:
    amounts = [(add, number_of(add, add.argument)) for add in members if add.f in _ADDS]
    sure = [(end_of(add), n) for add, n in amounts if add.type == "ok"]
    possible = [(add.start, n) for add, n in amounts]
    sure_up, sure_down = (_Sums([pair for pair in sure if sign * pair[1] > 0]) for sign in (1, -1))
    up, down = (_Sums([pair for pair in possible if sign * pair[1] > 0]) for sign in (1, -1))
    reads = [read for read in members if read.f in _READS and read.type == "ok"]
    for read in reads:
        findings.poll()
        answer = number_of(read, 0 if read.result is None else read.result)
        own = 0 if read.f == "read" else number_of(read, read.argument)
        lowest = sure_up.before(read.start) + down.until(end_of(read)) + max(own, 0)
        highest = up.until(end_of(read)) + sure_down.before(read.start) + min(own, 0)
        if not lowest <= answer <= highest:
            findings.note(
                "too-low" if answer < lowest else "too-high",
                [read],
                lambda read=read, answer=answer, bounds=(lowest, highest): (
                    f"{read.f} of index {read.index}{of_key(read.key)} answered {answer}, and the "
                    f"adds allow {bounds[0]} to {bounds[1]}."
                ),
            )
    return len(reads)
