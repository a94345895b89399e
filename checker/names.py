"""Names of checkers and the promise of each, without the checkers themselves.

A name is a checker, or a checker and its option after a colon: ``linearizability:cas-register``,
``set-full``, ``set-full:stale-reads-allowed``, ``bank:total=100``, ``split-brain``. That of
transactions has two: their kind and a level, ``transactions:list-append:serializable``.
"""

from collections.abc import Collection
from typing import Final

from splitbrain.checker.models.registry import knows, model_names
from splitbrain.checker.own_checker import OwnChecker
from splitbrain.checker.transactions.levels import (
    ANOMALIES,
    LEVELS,
    STRICT_SERIALIZABLE,
    Kind,
    levels_of,
)
from splitbrain.checker.transactions.levels import KINDS as TRANSACTION_MODELS
from splitbrain.contracts.errors import UsageError
from splitbrain.plugins.offers import Offers

_LINEARIZABILITY: Final = "linearizability"
_SEPARATOR: Final = ":"
_BANK_TOTAL: Final = "bank:total="
_TRANSACTIONS: Final = "transactions:"

#: Promise that each checker holds a run to, for people; models describe themselves.
PROMISES: Final[dict[str, str]] = {
    "set-full": "An element that was acknowledged or seen is shown by every read invoked after "
    "that; nothing is shown twice, nor that nobody had asked to add. What one member's final reads "
    "miss and another's show is missing at that member, in whatever order they came. Elements that "
    "no read was invoked for are `unknown`.",
    "set-full:stale-reads-allowed": "As `set-full`, but an element may be missing for a while, "
    "until the final reads.",
    "counter-bounds": "Every read of a counter lies between what was surely and what was possibly "
    "added by then.",
    "bank": "Every read of all balances (`read` answers `{account: balance}`) shows one total: "
    "that of `bank:total=100`, else the one that most reads show. No balance is below zero.",
    "bank:negative-balances-allowed": "As `bank`, but balances may be below zero.",
    "queue-totals": "What was acknowledged is dequeued before the queue is found empty, nothing "
    "more often than it was enqueued, and nothing that nobody enqueued. What nobody looked for is "
    "`unknown`. Where the workload drains its queues at the end, the queue must have been found "
    "empty there, three times in a row.",
    "queue-totals:duplicates-allowed": "As `queue-totals`, for queues that deliver at least once: "
    "duplicates are counted and allowed.",
    "unique-ids": "No two `generate` answer the same id.",
    "sessions": "Each process reads what it read or wrote before, or something newer (monotonic "
    "reads, read your writes): of growing sets, and of registers whose changes have positions, or "
    "whose written values are all distinct. Other keys are `unknown`.",
    "fencing": "No guarded `write` is accepted with a lower token than one accepted "
    "before it was invoked. Two believed holders of the lock, and a token that was given out "
    "twice, are observations.",
    "transactions:list-append": "Transactions (`txn`) of `r` and `append` show no anomaly that a "
    "level of isolation rules out: strict serializability, or that behind a colon, as in "
    "`transactions:list-append:snapshot-isolation`. What was acknowledged and stands in no final "
    "read is lost, at any level. `monotonic-atomic-view`, `read-atomic` and `causal`, which have "
    "the order of each process in their definitions, are decided exactly.",
    "transactions:rw-register": "Transactions (`txn`) of `r` and `w`, whose written values are "
    "distinct in each key, are held to a level as those of `transactions:list-append` are. Where "
    "the order of writes that nobody had read before is open, a solver looks for one; without the "
    "extra `[sat]` it may stay `unknown`.",
    "transactions:rows": "Transactions (`txn`) of `insert`, `delete` and `range` are held to a "
    "level as those of `transactions:list-append` are, but for commit orders. A row is inserted "
    "once and deleted once at most, so a range without it came before the one or after the other; "
    "where that is open, a solver looks for a way that fits. `G2` and its like rest on a range, "
    "and `repeatable-read` permits them. What was acknowledged and final ranges deny is lost.",
    "log": "What was sent to a partitioned log (`send`, `txn`) and acknowledged is read by whoever "
    "passes over its offset (`poll`), and by final reads; one record has one offset, in the order "
    "of sends; consumers that were assigned their logs neither skip nor go back; of a transaction "
    "that is not committed nothing is read, of a committed one all. What no read came to is "
    "`unknown`.",
    "log:duplicates-allowed": "As `log`, for producers that are not idempotent.",
    "log:read-uncommitted": "As `log`, for consumers that read what is not committed.",
    "groups": "What a member of a consumer group (`consume`) committed (`commit`) and was told so "
    "is the offset that all later answers tell (`fetch-offsets`, and where a member begins), or "
    "one committed since; no commit is accepted of a member whose generation, or epoch, is over; a "
    "log has one owner in each; no committed offset passes a record of a final read (`poll`) that "
    "no member had been delivered. A group that does not come to the end of its logs is `unknown`. "
    "Deliveries that come again are counted.",
    "split-brain": "No two nodes lead in one epoch, by what the nodes themselves logged; no two "
    "committed logs differ at an offset below both nodes' own commit position, whether the nodes "
    "converged or not; no success is without its record. It looks at what there is of both.",
    "lost-commits": "What was acknowledged stands in the logs at the end, in those of a majority, "
    "and of a set in some final read; and the logs agree, as for `split-brain`. What the log of a "
    "single node lacks is an observation. Nothing is called lost before the nodes converged.",
    "member-digests": "Members that tell digests of their states tell one digest at one position "
    "and in one scope, whenever they were asked and whatever faults there were. At the end those "
    "that run stand at one position; else, and where no two were ever at one, it is `unknown`.",
    "exactly-once": "Of records that are read from an input, transformed and written to an output "
    "in transactions that commit the offset, too (`transform`): at the end each input below the "
    "committed offset has one output, none behind it has any, and no output is of anything else. "
    "What was acknowledged, inputs among it, is there; and whoever lost an input to another client "
    "has nothing acknowledged that it began afterwards.",
    "share-groups": "Of records that the members of a share group acquire and settle (`acquire`, "
    "`settle`): each that was acknowledged is delivered to some member before the group is at the "
    "end of its log, is what final reads show at its offset, is held by one member at a time, "
    "until that gives it back or its lock expires, and is never delivered again once it was "
    "accepted or rejected. Where nobody saw the end of a log, it is `unknown`; where so many "
    "acquires got no answer that a record may have been given up unseen, it is counted.",
    "replicas": "The replicas of a log, read from the disks of stopped nodes, are equal byte by "
    "byte wherever two of them have a record, once the nodes converged, and hold what final reads "
    "showed; before that as far as both had noted it as committed. Along each one leaders' epochs "
    "do not go back, and the numbers of a producer follow one another.",
    "broker-views": "Of two views at one broker the later never shows an earlier offset, and each "
    "view (answered `[partitions, offset]`) shows its topic as the committed log has it there.",
    "broker-sessions": "A broker that faults keep silent for longer than a session is fenced, if "
    "one controller leads, and commits, for so long without a fault of its own. A new leader gives "
    "each broker a new session.",
    "deposed-leaders": "A leader that hears nothing of a majority resigns: beside one of a later "
    "epoch it goes on for no longer than its system promises, not counted what hindered its "
    "process. Links that are cut are no excuse.",
}

#: Kinds of evidence besides the history.
STATE_EVENTS: Final = "state-events"
COMMITTED_LOGS: Final = "committed-logs"
MEMBER_DIGESTS: Final = "digests"
REPLICA_LOGS: Final = "replica-logs"

_EVIDENCE_NEEDED: Final[dict[str, frozenset[str]]] = {
    "split-brain": frozenset({STATE_EVENTS, COMMITTED_LOGS}),
    "lost-commits": frozenset({COMMITTED_LOGS}),
    "member-digests": frozenset({MEMBER_DIGESTS}),
    "replicas": frozenset({REPLICA_LOGS}),
    "broker-views": frozenset({COMMITTED_LOGS}),
    "broker-sessions": frozenset({COMMITTED_LOGS}),
    "deposed-leaders": frozenset({STATE_EVENTS}),
}


#: Kinds of violations of each checker, by its name in verdicts; any model has the same.
KINDS: Final[dict[str, tuple[str, ...]]] = {
    _LINEARIZABILITY: ("not-linearizable",),
    "set-full": ("lost", "phantom", "duplicated", "missing-at-member", "stale"),
    "counter-bounds": ("too-low", "too-high"),
    "bank": ("wrong-total", "no-balance", "negative-balance"),
    "queue-totals": ("lost", "phantom", "duplicated"),
    "unique-ids": ("duplicated",),
    "sessions": ("monotonic-reads", "read-your-writes"),
    "fencing": ("lower-token-accepted",),
    "transactions": ANOMALIES,
    "log": (
        *("lost", "vanished", "torn-transaction", "inconsistent-offsets", "duplicated", "phantom"),
        *("aborted-read", "precommitted-read", "hanging-transaction"),
        *("future-read", "G1c", "end-went-back"),
        *("nonmonotonic-send", "nonmonotonic-poll", "skipped-poll"),
    ),
    "groups": (
        *("lost-commit", "two-owners", "outdated-commit-accepted", "phantom-offset"),
        *("delivered-to-nobody", "passed-before-delivery", "stale-offset"),
    ),
    "split-brain": (
        "two-leaders-in-one-epoch",
        "different-committed-records",
        "epoch-goes-back",
        "success-without-record",
    ),
    "lost-commits": ("lost", "different-committed-records"),
    "member-digests": ("digests-differ",),
    "exactly-once": (
        *("lost-input", "lost-output", "duplicated-output", "output-without-offset"),
        *("phantom-output", "offset-went-back", "zombie-not-fenced"),
    ),
    "share-groups": (
        *("lost-record", "redelivered", "two-holders", "phantom-record", "stale-delivery"),
    ),
    "replicas": (
        *("different-records", "record-missing", "unlike-final-read"),
        *("epoch-goes-back", "number-out-of-order"),
    ),
    "broker-views": ("view-went-back", "view-not-as-committed"),
    "broker-sessions": ("silent-not-fenced",),
    "deposed-leaders": ("deposed-leader-goes-on",),
}


#: Those whose violations no later event mends, so that they may judge the beginning of a history
#: (of values that are distinct, where that is asked of them); a bank does, where its total is told.
_FOR_GOOD: Final = (
    *(_LINEARIZABILITY, "transactions", "counter-bounds", "unique-ids", "sessions", "fencing"),
)

#: Checkers of installed packages.
OFFERS: Final = Offers[OwnChecker]("checker", "splitbrain.checkers", OwnChecker, PROMISES)


def evidence_needed(name: str) -> frozenset[str]:
    """Return the kinds of further evidence of which a checker needs one; empty for none."""
    is_ours = (
        name in PROMISES
        or linearizability_model(name) is not None
        or name.startswith(_TRANSACTIONS)
    )
    if is_ours:
        return _EVIDENCE_NEEDED.get(name, frozenset())
    try:
        offered = OFFERS.offered(name)
    except UsageError:
        return frozenset()  # whoever is to judge with it says why it cannot
    return frozenset() if offered is None else frozenset(offered.needs)


def is_for_good(name: str) -> bool:
    """Return whether its violations of the beginning of a history are some of the whole."""
    # A delete that is still to come may explain why a row was missing.
    is_of_rows = name.startswith(f"{_TRANSACTIONS}rows")
    is_named = name.partition(_SEPARATOR)[0] in _FOR_GOOD and not is_of_rows
    return is_named or name.startswith(_BANK_TOTAL)


def can_judge(name: str, evidence: Collection[str]) -> bool:
    """Return whether a checker can say something, given these kinds of further evidence."""
    needed = evidence_needed(name)
    return not needed or not needed.isdisjoint(evidence)


def violation_kinds(name: str) -> tuple[str, ...] | None:
    """Return the kinds of violations of a checker, named as in verdicts; None: there is none such.

    Empty for a checker of a package, whose kinds are its own.
    """
    if linearizability_model(name) is not None:
        return KINDS[_LINEARIZABILITY] if name in checker_names() else None
    if name.startswith(_TRANSACTIONS):
        return None if _is_no_level(name) else ANOMALIES
    if name in KINDS and name != _LINEARIZABILITY:
        return KINDS[name]
    return () if name in OFFERS.names() else None


def checker_names() -> tuple[str, ...]:
    """Return every name that ``checker_named`` knows."""
    models = (f"{_LINEARIZABILITY}{_SEPARATOR}{model}" for model in model_names())
    return (*models, *PROMISES, *sorted(OFFERS.names()))


def linearizability_model(name: str) -> str | None:
    """Return the model of a ``linearizability:MODEL`` checker, None for other checkers."""
    checker, separator, model = name.partition(_SEPARATOR)
    return model if checker == _LINEARIZABILITY and separator else None


def history_models() -> tuple[str, ...]:
    """Return the names of models and checkers that need only a history."""
    names = (*PROMISES, *sorted(OFFERS.names()))
    usable = (name.removeprefix(_TRANSACTIONS) for name in names if not evidence_needed(name))
    return (*model_names(), *usable)


def history_checker(model: str) -> str:
    """Return the name of the checker that judges a bare history against a model, ``cas-register``.

    Raises:
        UsageError: there is no model of this name that needs nothing but a history.
    """
    names = history_models()
    if knows(model):
        return f"{_LINEARIZABILITY}{_SEPARATOR}{model}"
    if model.partition(_SEPARATOR)[0] in TRANSACTION_MODELS:
        transactions_level(f"{_TRANSACTIONS}{model}")
        return f"{_TRANSACTIONS}{model}"
    if model in names or bank_total(model) is not None:
        return model
    raise UsageError(
        f"there is no model called {model!r} for a bare history",
        f"Choose one of: {', '.join(names)}",
    )


def bank_total(name: str) -> int | None:
    """Return the total in ``bank:total=N``, None for other names.

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


def transactions_level(name: str) -> tuple[Kind, str] | None:
    """Return kind and level of a ``transactions:KIND:LEVEL`` checker, None for other checkers.

    Raises:
        UsageError: there is no such kind or level.
    """
    if not name.startswith(_TRANSACTIONS):
        return None
    called, _, level = name.removeprefix(_TRANSACTIONS).partition(_SEPARATOR)
    kind: Kind | None = next((each for each in TRANSACTION_MODELS if each == called), None)
    if kind is None:
        raise UsageError(
            f"there are no transactions called {called!r}",
            f"Choose one of: {', '.join(TRANSACTION_MODELS)}",
        )
    if level and level not in LEVELS:
        raise UsageError(
            f"there is no isolation level called {level!r}", f"Choose one of: {', '.join(LEVELS)}"
        )
    if level and level not in levels_of(kind):
        raise UsageError(
            f"the isolation level {level!r} is defined for reads of single keys, and {kind} are "
            "read by a predicate",
            f"Choose one of: {', '.join(levels_of(kind))}",
        )
    return kind, level or STRICT_SERIALIZABLE


def _is_no_level(name: str) -> bool:
    """Return whether a ``transactions:`` name has a kind or a level that does not exist."""
    try:
        transactions_level(name)
    except UsageError:
        return True
    return False
