"""Checkers by name, so that workloads can name who judges them.

A name is a checker, or a checker and its option after a colon: ``linearizability:cas-register``,
``set-full``, ``set-full:stale-reads-allowed``, ``bank:total=100``, ``split-brain``. A checker that
crashes is the caller's business: it must make ``unknown`` of it.
"""

from collections.abc import Callable, Collection
from typing import Final

from splitbrain.checker.bank import check as check_bank
from splitbrain.checker.broker_views import check as check_broker_views
from splitbrain.checker.counter_bounds import check as check_counter_bounds
from splitbrain.checker.evidence import Evidence
from splitbrain.checker.fencing_tokens import check as check_fencing_tokens
from splitbrain.checker.linearizability.check import check as check_linearizability
from splitbrain.checker.lost_commits import check as check_lost_commits
from splitbrain.checker.models.registry import MODELS, knows, model_named
from splitbrain.checker.queue_totals import check as check_queue_totals
from splitbrain.checker.set_full import check as check_set_full
from splitbrain.checker.split_brain import check as check_split_brain
from splitbrain.checker.unique_ids import check as check_unique_ids
from splitbrain.checker.verdict import CheckResult
from splitbrain.contracts.budget import Budget
from splitbrain.contracts.errors import UsageError
from splitbrain.history.records import PairedOperation

#: Judges one run.
Checker = Callable[[Evidence, Budget], CheckResult]

#: Judges the operations of one run, and looks at nothing else.
_OperationsChecker = Callable[[tuple[PairedOperation, ...], Budget], CheckResult]

_LINEARIZABILITY: Final = "linearizability"
_SEPARATOR: Final = ":"

_BANK_TOTAL: Final = "bank:total="


def _of_operations(check: _OperationsChecker) -> Checker:
    return lambda evidence, budget: check(evidence.operations, budget)


def _of_members(check: Callable[..., CheckResult], **options: int) -> Checker:
    """A checker of final reads, which must know who may hold what was not read."""

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


def _check_sessions(operations: tuple[PairedOperation, ...], budget: Budget) -> CheckResult:
    # It alone needs the library of graphs, which takes longer to load than most histories to judge.
    from splitbrain.checker.sessions import check

    return check(operations, budget)


_PLAIN: Final[dict[str, Checker]] = {
    "set-full": _of_sets(stale_reads_allowed=False),
    "set-full:stale-reads-allowed": _of_sets(stale_reads_allowed=True),
    "counter-bounds": _of_members(check_counter_bounds),
    "bank": _of_members(check_bank),
    "bank:negative-balances-allowed": _of_members(check_bank, negative_balances_allowed=True),
    "queue-totals": _of_members(check_queue_totals),
    "queue-totals:duplicates-allowed": _of_members(check_queue_totals, duplicates_allowed=True),
    "unique-ids": _of_operations(check_unique_ids),
    "sessions": _of_operations(_check_sessions),
    "fencing": _of_operations(check_fencing_tokens),
    "split-brain": check_split_brain,
    "lost-commits": check_lost_commits,
    "broker-views": check_broker_views,
}


#: What each checker holds a run to, for people; models speak for themselves.
PROMISES: Final[dict[str, str]] = {
    "set-full": "An element that was acknowledged or seen is shown by every read invoked after "
    "that; nothing is shown twice, nor that nobody had asked to add. What one member's final reads "
    "miss and another's show is missing at that member, in whatever order they came. Elements that "
    "no read was invoked for are `unknown`.",
    "set-full:stale-reads-allowed": "The same, but an element may be missing for a while, until "
    "the final reads.",
    "counter-bounds": "Every read of a counter lies between what was surely and what was possibly "
    "added by then.",
    "bank": "Every read of all balances (`read` answers `{account: balance}`) shows one total: "
    "that of `bank:total=100`, else the one that most reads show. No balance is below zero.",
    "bank:negative-balances-allowed": "The same, but for the last sentence.",
    "queue-totals": "What was acknowledged is dequeued before the queue is found empty, nothing "
    "more often than it was enqueued, and nothing that nobody enqueued. What nobody looked for is "
    "`unknown`.",
    "queue-totals:duplicates-allowed": "The same for queues that deliver at least once.",
    "unique-ids": "No two `generate` answer the same id.",
    "sessions": "Each process reads what it read or wrote before, or something newer (monotonic "
    "reads, read your writes): of growing sets, and of registers whose changes have positions, or "
    "whose written values are all distinct. Other keys are `unknown`.",
    "fencing": "No guarded `write` is accepted with a lower token than one accepted "
    "before it was invoked. Two believed holders of the lock, and a token that was given out "
    "twice, are observations.",
    "split-brain": "No two nodes lead in one epoch, by what the nodes themselves logged; no two "
    "committed logs differ at an offset below both nodes' own commit position, whether the nodes "
    "converged or not; no success is without its record. It looks at what there is of both.",
    "lost-commits": "What was acknowledged stands in the logs at the end, in those of a majority, "
    "and of a set in some final read; and the logs agree, as for `split-brain`. What the log of a "
    "single node lacks is an observation. Nothing is called lost before the nodes converged.",
    "broker-views": "Of two views at one broker the later never shows an earlier offset, and each "
    "view (answered `[partitions, offset]`) shows its topic as the committed log has it there.",
}

#: Evidence besides the history that a checker cannot do without.
STATE_EVENTS: Final = "state-events"
COMMITTED_LOGS: Final = "committed-logs"

_EVIDENCE_NEEDED: Final[dict[str, frozenset[str]]] = {
    "split-brain": frozenset({STATE_EVENTS, COMMITTED_LOGS}),
    "lost-commits": frozenset({COMMITTED_LOGS}),
    "broker-views": frozenset({COMMITTED_LOGS}),
}


def evidence_needed(name: str) -> frozenset[str]:
    """Evidence besides the history of which a checker needs any one kind; empty for none."""
    return _EVIDENCE_NEEDED.get(name, frozenset())


def can_judge(name: str, evidence: Collection[str]) -> bool:
    """Whether a checker can say something, given these kinds of evidence besides the history."""
    needed = evidence_needed(name)
    return not needed or not needed.isdisjoint(evidence)


def checker_names() -> tuple[str, ...]:
    """Every name that ``checker_named`` knows."""
    return (*(f"{_LINEARIZABILITY}{_SEPARATOR}{model}" for model in MODELS), *_PLAIN)


def linearizability_model(name: str) -> str | None:
    """Model of a ``linearizability:MODEL`` checker, None for other checkers.

    Those split into parts that can be judged apart, see ``checker.linearizability``.
    """
    checker, separator, model = name.partition(_SEPARATOR)
    return model if checker == _LINEARIZABILITY and separator else None


def history_models() -> tuple[str, ...]:
    """What a bare history can be judged against."""
    return (*MODELS, *(name for name in _PLAIN if not evidence_needed(name)))


def history_checker(model: str) -> str:
    """Name of the checker that judges a bare history against a model, ``cas-register``.

    Raises:
        UsageError: there is no model of this name that needs nothing but a history.
    """
    names = history_models()
    if knows(model):
        return f"{_LINEARIZABILITY}{_SEPARATOR}{model}"
    if model in names or _bank_total(model) is not None:
        return model
    raise UsageError(
        f"there is no model called {model!r} for a bare history",
        f"Choose one of: {', '.join(names)}",
    )


def checker_named(name: str) -> Checker:
    """The checker of that name.

    Raises:
        UsageError: there is no such checker or model.
    """
    model = linearizability_model(name)
    if model is not None:
        model_named(model)
        return lambda evidence, budget: check_linearizability(evidence.operations, model, budget)
    checker = _PLAIN.get(name)
    total = _bank_total(name)
    if total is not None:
        return _of_members(check_bank, total=total)
    if checker is None:
        raise UsageError(
            f"there is no checker called {name!r}", f"Choose one of: {', '.join(checker_names())}"
        )
    return checker


def _bank_total(name: str) -> int | None:
    """The total that ``bank:total=N`` names, None for other names.

    Raises:
        UsageError: it is no whole number.
    """
    if not name.startswith(_BANK_TOTAL):
        return None
    try:
        return int(name.removeprefix(_BANK_TOTAL))
    except ValueError:
        raise UsageError(
            f"the total in {name!r} is no whole number", "Write it as in bank:total=100"
        ) from None
