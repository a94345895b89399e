"""Checker of fencing tokens: no write is accepted with a token lower than an earlier one.

A guarded ``write`` has the argument ``[token, value]`` and the answer ``[token, value, accepted]``;
asked with null for a token, it was written with the one of the answer, which its client knew.
*Earlier* is one that was accepted and had returned before this one was invoked; equal times are
concurrent. Unanswered writes accuse nobody. n log n.

Two clients believing to hold the lock at once is an observation: leases run out, clocks differ, and
fencing is there for that. A granted ``acquire`` begins such a belief when it returns, the same
process' ``release`` ends it when it is invoked. A token answered by two acquires is an observation
too. Looks at no value, so it finds less than the model ``fenced-register``, but at any size.
Source: Kleppmann 2016, "How to do distributed locking"; issue 7, item 1.
"""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from math import inf
from typing import Any

from splitbrain.checker.findings import Findings, Undecided, by_key, end_of, number_of, of_key
from splitbrain.checker.models.model import granted, is_list_of
from splitbrain.checker.verdict import CheckResult
from splitbrain.contracts.budget import Budget
from splitbrain.history.edn_values import is_number
from splitbrain.history.records import PairedOperation

_KINDS = ("lower-token-accepted",)
_OBSERVED = ("two-believed-holders", "token-repeated")


def check(operations: Iterable[PairedOperation], budget: Budget) -> CheckResult:
    """Judge all guarded objects of a history, by key."""
    findings = Findings("fencing", budget, _KINDS, _OBSERVED)
    relevant = [o for o in operations if o.f in ("write", "acquire", "release")]

    def judge() -> tuple[dict[str, Any], str, str | None]:
        accepted = refused = acquired = 0
        for members in by_key(relevant).values():
            answered = [o for o in members if o.f == "write" and o.type == "ok"]
            passed = [write for write in answered if granted(write.result)]
            accepted += len(passed)
            refused += len(answered) - len(passed)
            _judge_writes(passed, findings)
            acquired += _observe_holders(members, findings)
        figures = {"accepted": accepted, "refused": refused, "acquired": acquired}
        nothing = None if accepted else "No guarded write was ever accepted: nothing to judge."
        return figures, f"None of {accepted:,} accepted writes had an outdated token.", nothing

    return findings.conclude(judge)


def _judge_writes(accepted: Sequence[PairedOperation], findings: Findings) -> None:
    """Go through the writes by start, with the highest token returned by then."""
    by_end = sorted(accepted, key=end_of)
    position = 0
    highest: tuple[int | float, PairedOperation] | None = None
    for write in sorted(accepted, key=lambda write: (write.start, write.index)):
        findings.poll()
        while position < len(by_end) and end_of(by_end[position]) < write.start:
            earlier = by_end[position]
            token = _token(earlier)
            if highest is None or token > highest[0]:
                highest = token, earlier
            position += 1
        token = _token(write)
        if highest is not None and token < highest[0]:
            findings.note(
                "lower-token-accepted",
                [highest[1], write],
                lambda write=write, token=token, highest=highest: (
                    f"The write of index {write.index}{of_key(write.key)} was accepted with token "
                    f"{token}, after token {highest[0]} had been (index {highest[1].index})."
                ),
            )


def _token(accepted: PairedOperation) -> int | float:
    if not is_list_of(accepted.argument, 2):
        raise Undecided(f"the write of index {accepted.index} has no argument [token, value]")
    token = accepted.argument[0]
    if token is None and is_list_of(accepted.result, 3):
        token = accepted.result[0]
    return number_of(accepted, token)


def _observe_holders(members: Sequence[PairedOperation], findings: Findings) -> int:
    """Note beliefs that overlap and repeated tokens; return the number of granted acquires."""
    released: dict[int, list[PairedOperation]] = {}
    for operation in sorted(members, key=_index):
        if operation.f == "release" and operation.type != "fail":
            released.setdefault(operation.process, []).append(operation)
    acquires = [o for o in members if o.f == "acquire" and o.type == "ok" and granted(o.result)]
    # Latest end of a belief so far, with its operation; infinite for one that never ended.
    latest: tuple[float, PairedOperation] | None = None
    tokens: dict[int | float, PairedOperation] = {}
    for acquire in sorted(acquires, key=end_of):
        findings.poll()
        if latest is not None and latest[0] > end_of(acquire) and _of_others(latest[1], acquire):
            _note_holders(findings, latest[1], acquire)
        releases = released.get(acquire.process, [])
        following = bisect_right(releases, acquire.index, key=_index)
        until = releases[following].start if following < len(releases) else inf
        if latest is None or until > latest[0]:
            latest = until, acquire
        token: Any = acquire.result
        if is_number(token):
            earlier = tokens.setdefault(token, acquire)
            if earlier is not acquire:
                _note_repeated(findings, earlier, acquire, token)
    return len(acquires)


def _of_others(first: PairedOperation, second: PairedOperation) -> bool:
    return first.process != second.process


def _index(operation: PairedOperation) -> int:
    return operation.index


def _note_holders(findings: Findings, holder: PairedOperation, other: PairedOperation) -> None:
    findings.note(
        "two-believed-holders",
        [holder, other],
        lambda: (
            f"Process {other.process} acquired the lock{of_key(other.key)} (index {other.index}) "
            f"while process {holder.process} believed to hold it (index {holder.index})."
        ),
    )


def _note_repeated(
    findings: Findings, earlier: PairedOperation, later: PairedOperation, token: float
) -> None:
    findings.note(
        "token-repeated",
        [earlier, later],
        lambda: (
            f"Token {token}{of_key(later.key)} was given out twice: at index {earlier.index} and "
            f"at index {later.index}."
        ),
    )
