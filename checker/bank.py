"""Whether transfers between accounts keep the total: a bank's reads show all balances at once.

A ``read`` answers ``{account: balance}``. Every read must show the same total (the one that is
given, else the one that most reads show), no balance that is no number, and, unless that is
allowed, none below zero. Linear in the balances read. Source: Jepsen's bank test.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, cast

from checker.findings import Findings, Undecided, of_key
from checker.verdict import CheckResult
from contracts.budget import Budget
from history.edn_values import is_number, size_of
from history.records import PairedOperation


def check(
    operations: Iterable[PairedOperation],
    budget: Budget,
    *,
    total: int | None = None,
    negative_balances_allowed: bool = False,
) -> CheckResult:
    """Judge all banks of a history.

    Args:
        operations: its ``read`` operations; others are not looked at.
        budget: polled; ``unknown`` when it ends.
        total: what each read must sum up to; None for what most reads of a bank show.
        negative_balances_allowed: a balance below zero is no violation.
    """
    findings = Findings("bank", budget, ("wrong-total", "no-balance", "negative-balance"))
    reads = [o for o in operations if o.f == "read" and o.type == "ok"]

    def judge() -> tuple[dict[str, Any], str, str | None]:
        totals: dict[str | None, list[tuple[PairedOperation, Any]]] = {}
        for read in reads:
            balances = _balances(read)
            for _ in balances:
                findings.poll()
            lacking = [account for account, n in balances.items() if not _is_number(n)]
            if lacking:
                _note(findings, "no-balance", read, f"shows no balance of account {lacking[0]}")
                continue
            totals.setdefault(read.key, []).append((read, sum(map(size_of, balances.values()))))
            below = [account for account, n in balances.items() if n < 0]
            if below and not negative_balances_allowed:
                shown = f"shows {balances[below[0]]} on account {below[0]}"
                _note(findings, "negative-balance", read, shown)
        for sums in totals.values():
            expected = total if total is not None else _most_frequent(sums)
            for read, found in sums:
                if found != expected:
                    _note(findings, "wrong-total", read, f"sums up to {found}, not {expected}")
        well = f"All {len(reads):,} reads show the same total of their bank."
        return {"reads": len(reads)}, well, _too_little(totals, total)

    return findings.conclude(judge)


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


def _is_number(balance: object) -> bool:
    return is_number(balance)


def _most_frequent(sums: list[tuple[PairedOperation, Any]]) -> Any:
    return Counter(found for _, found in sums).most_common(1)[0][0]


def _note(findings: Findings, kind: str, read: PairedOperation, what: str) -> None:
    findings.note(kind, [read], lambda: f"The read of index {read.index}{of_key(read.key)} {what}.")
