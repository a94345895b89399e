"""Checkers by name, for workloads to name their judges; ``checker.names`` has the names.

The caller turns a checker that crashes into ``unknown``.
"""

from collections.abc import Callable, Sequence
from typing import Final

from splitbrain.checker.allowing import with_allowed
from splitbrain.checker.bank import check as check_bank
from splitbrain.checker.broker_sessions import check as check_broker_sessions
from splitbrain.checker.broker_views import check as check_broker_views
from splitbrain.checker.counter_bounds import check as check_counter_bounds
from splitbrain.checker.deposed_leaders import check as check_deposed_leaders
from splitbrain.checker.evidence import Checker, Evidence
from splitbrain.checker.fencing_tokens import check as check_fencing_tokens
from splitbrain.checker.linearizability.check import check as check_linearizability
from splitbrain.checker.lost_commits import check as check_lost_commits
from splitbrain.checker.member_digests import check as check_member_digests
from splitbrain.checker.models.registry import model_named
from splitbrain.checker.names import (
    OFFERS,
    bank_total,
    checker_names,
    linearizability_model,
    transactions_level,
)
from splitbrain.checker.queue_totals import check as check_queue_totals
from splitbrain.checker.set_full import check as check_set_full
from splitbrain.checker.split_brain import check as check_split_brain
from splitbrain.checker.transactions.levels import Kind
from splitbrain.checker.unique_ids import check as check_unique_ids
from splitbrain.checker.verdict import CheckResult
from splitbrain.contracts.budget import Budget
from splitbrain.contracts.errors import UsageError
from splitbrain.contracts.system import AllowedAnomaly
from splitbrain.history.records import PairedOperation

#: Judges the operations of one run alone.
_OperationsChecker = Callable[[Sequence[PairedOperation], Budget], CheckResult]


def _of_operations(check: _OperationsChecker) -> Checker:
    return lambda evidence, budget: check(evidence.operations, budget)


def _of_members(check: Callable[..., CheckResult], **options: int) -> Checker:
    """Return a checker of final reads, given the members that may hold data of their own."""

    def judge(evidence: Evidence, budget: Budget) -> CheckResult:
        return check(evidence.operations, budget, members=evidence.members, **options)

    return judge


def _of_sets(*, stale_reads_allowed: bool) -> Checker:
    return lambda evidence, budget: check_set_full(
        evidence.operations,
        budget,
        faults=evidence.faults,
        members=evidence.members,
        converged=evidence.converged,
        stale_reads_allowed=stale_reads_allowed,
    )


def _check_queues(evidence: Evidence, budget: Budget) -> CheckResult:
    # A bare history declares no functions of a queue, and has no end of its own.
    drained = "dequeue" in evidence.functions
    return check_queue_totals(
        evidence.operations, budget, members=evidence.members, drained=drained
    )


def _allowing(check: Checker, *always: AllowedAnomaly) -> Checker:
    """Return a checker that counts what is allowed, by the system or ``always``."""
    return lambda evidence, budget: with_allowed(
        check(evidence, budget), (*always, *evidence.allowed)
    )


def _check_sessions(operations: Sequence[PairedOperation], budget: Budget) -> CheckResult:
    # Only this one needs networkx, which loads longer than most histories take to judge.
    from splitbrain.checker.sessions import check

    return check(operations, budget)


def _check_logs(operations: Sequence[PairedOperation], budget: Budget) -> CheckResult:
    # networkx is loaded with the first history of logs.
    from splitbrain.checker.logs.check import check

    return check(operations, budget)


def _check_replicas(evidence: Evidence, budget: Budget) -> CheckResult:
    # As that of logs.
    from splitbrain.checker.logs.replicas import check

    return check(evidence, budget)


def _of_logs(why: str, *kinds: str) -> Checker:
    allowed = (AllowedAnomaly("log", kind, why) for kind in kinds)
    return _allowing(_of_operations(_check_logs), *allowed)


def _check_exactly_once(operations: Sequence[PairedOperation], budget: Budget) -> CheckResult:
    # As that of groups.
    from splitbrain.checker.exactly_once import check

    return check(operations, budget)


def _check_share_groups(operations: Sequence[PairedOperation], budget: Budget) -> CheckResult:
    # As that of groups.
    from splitbrain.checker.share_groups.check import check

    return check(operations, budget)


def _check_groups(operations: Sequence[PairedOperation], budget: Budget) -> CheckResult:
    # The reader of polls is loaded with the first history of groups.
    from splitbrain.checker.groups.check import check

    return check(operations, budget)


def _of_transactions(kind: Kind, level: str) -> Checker:
    def judge(evidence: Evidence, budget: Budget) -> CheckResult:
        # numpy and its columns are loaded with the first history of transactions.
        from splitbrain.checker.transactions.check import check

        return check(evidence.operations, budget, kind, level)

    return judge


_PLAIN: Final[dict[str, Checker]] = {
    "set-full": _of_sets(stale_reads_allowed=False),
    "set-full:stale-reads-allowed": _of_sets(stale_reads_allowed=True),
    "counter-bounds": _of_members(check_counter_bounds),
    "bank": _of_members(check_bank),
    "bank:negative-balances-allowed": _of_members(check_bank, negative_balances_allowed=True),
    "queue-totals": _check_queues,
    "queue-totals:duplicates-allowed": _allowing(
        _check_queues,
        AllowedAnomaly("queue-totals", "duplicated", "asked to be allowed by the checker's name"),
    ),
    "unique-ids": _of_operations(check_unique_ids),
    "sessions": _of_operations(_check_sessions),
    "fencing": _of_operations(check_fencing_tokens),
    "log": _of_operations(_check_logs),
    "log:duplicates-allowed": _of_logs(
        "producers that are not idempotent send again", "duplicated"
    ),
    "log:read-uncommitted": _of_logs(
        "consumers read what is not committed",
        *("aborted-read", "precommitted-read", "torn-transaction", "G1c"),
    ),
    "groups": _of_operations(_check_groups),
    "split-brain": check_split_brain,
    "lost-commits": check_lost_commits,
    "member-digests": check_member_digests,
    "exactly-once": _of_operations(_check_exactly_once),
    "share-groups": _of_operations(_check_share_groups),
    "replicas": _check_replicas,
    "broker-views": check_broker_views,
    "broker-sessions": check_broker_sessions,
    "deposed-leaders": check_deposed_leaders,
}


def checker_named(name: str) -> Checker:
    """Return the checker of that name.

    Raises:
        UsageError: there is no such checker or model.
    """
    model = linearizability_model(name)
    if model is not None:
        model_named(model)
        return _allowing(lambda of, budget: check_linearizability(of.operations, model, budget))
    checker = _PLAIN.get(name)
    total = bank_total(name)
    if total is not None:
        checker = _of_members(check_bank, total=total)
    transactions = transactions_level(name)
    if transactions is not None:
        checker = _of_transactions(*transactions)
    if checker is not None:
        return _allowing(checker)
    offered = OFFERS.offered(name)
    if offered is None:
        raise UsageError(
            f"there is no checker called {name!r}", f"Choose one of: {', '.join(checker_names())}"
        )
    return offered.check
