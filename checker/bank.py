"""Checker of a bank: transfers between accounts keep the total.

A ``read`` answers ``{account: balance}``. Every read must show the same total (the given one, else
the most frequent one), only numbers, and, unless allowed, no balance below zero. A wrong read that
no right one follows is ``unknown`` while a member that may hold the missing part was not read: see
``checker.evidence``. Linear in the balances read. Source: Jepsen's bank test.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, cast

from splitbrain.checker.evidence import unread, unread_reason, wrong_for_good
from splitbrain.checker.findings import Findings, Undecided, by_key, of_key
from splitbrain.checker.verdict import CheckResult
from splitbrain.contracts.budget import Budget
from splitbrain.contracts.words import counted
from splitbrain.history.edn_values import is_number, size_of
from splitbrain.history.records import PairedOperation


def check(
    operations: Iterable[PairedOperation],
    budget: Budget,
    *,
    members: frozenset[str] = frozenset(),
    total: int | None = None,
    negative_balances_allowed: bool = False,
) -> CheckResult:
    """Judge all banks of a history.

    Args:
        operations: others than ``read`` are ignored.
        budget: polled; ``unknown`` when it ends.
        members: see ``Evidence.members``.
        total: sum that each read must show; None for the most frequent one of a bank.
        negative_balances_allowed: a balance below zero is no violation.
    """
    findings = Findings("bank", budget, ("wrong-total", "no-balance", "negative-balance"))
    reads = [o for o in operations if o.f == "read" and o.type == "ok"]

    def judge() -> tuple[dict[str, Any], str, str | None]:
        totals: dict[str | None, list[tuple[PairedOperation, Any]]] = {}
        wrong: list[_Wrong] = []
        for read in reads:
            balances = _balances(read)
            for _ in balances:
                findings.poll()
            lacking = [account for account, n in balances.items() if not is_number(n)]
            if lacking:
                shown = f"shows no balance of account {lacking[0]}"
                wrong.append(_Wrong("no-balance", read, shown))
                continue
            totals.setdefault(read.key, []).append((read, sum(map(size_of, balances.values()))))
            below = [account for account, n in balances.items() if n < 0]
            if below and not negative_balances_allowed:
                shown = f"shows {balances[below[0]]} on account {below[0]}"
                wrong.append(_Wrong("negative-balance", read, shown))
        for sums in totals.values():
            expected = total if total is not None else _most_frequent(sums)
            for read, found in sums:
                if found != expected:
                    shown = f"sums up to {found}, not {expected}"
                    wrong.append(_Wrong("wrong-total", read, shown))
        excused, unread_members = _perhaps_elsewhere(reads, wrong, members)
        for kind, read, shown in wrong:
            if read.index not in excused:
                _note(findings, kind, read, shown)
        undecided = _too_little(totals, total)
        if excused:
            what = counted(len(excused), "read shows", "reads show")
            undecided = unread_reason(f"{what} less or more than there must be", unread_members)
        valid_reason = f"All {len(reads):,} reads show the same total of their bank."
        return {"reads": len(reads)}, valid_reason, undecided

    return findings.conclude(judge)


class _Wrong(NamedTuple):
    kind: str
    read: PairedOperation
    #: Predicate of a sentence, verb included.
    shown: str


def _perhaps_elsewhere(
    reads: Sequence[PairedOperation], wrong: Sequence[_Wrong], members: frozenset[str]
) -> tuple[set[int], set[str]]:
    """Return indexes of wrong reads that another member may explain, and these members."""
    indexes = {found.read.index for found in wrong}
    excused: set[int] = set()
    unread_members: set[str] = set()
    for of_bank in by_key(reads).values():
        may_hold = unread(members, of_bank)
        found = wrong_for_good(of_bank, indexes) if may_hold else ()
        excused.update(read.index for read in found)
        unread_members.update(may_hold if found else ())
    return excused, unread_members


def _too_little(
    totals: Mapping[str | None, list[tuple[PairedOperation, Any]]], total: int | None
) -> str | None:
    if not totals:
        return "No bank was ever read, so there is nothing to judge."
    if total is None and all(len(sums) == 1 for sums in totals.values()):
        return "Every bank was read once only and no total is given: nothing to compare it with."
    return None


def _balances(read: PairedOperation) -> dict[str, Any]:
    result: object = read.result
    if not isinstance(result, Mapping):
        raise Undecided(f"the read of index {read.index} answered no balances by account")
    return cast("dict[str, Any]", result)


def _most_frequent(sums: list[tuple[PairedOperation, Any]]) -> Any:
    return Counter(found for _, found in sums).most_common(1)[0][0]


def _note(findings: Findings, kind: str, read: PairedOperation, what: str) -> None:
    findings.note(kind, [read], lambda: f"The read of index {read.index}{of_key(read.key)} {what}.")
