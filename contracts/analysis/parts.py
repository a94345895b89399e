"""Verdicts on the parts of a run: rows of the job's result, the question, and its answer."""

from typing import Literal

import msgspec

from splitbrain.contracts.analysis.run import Row


class PartVerdict(Row, frozen=True):
    """A part of a run that a model judges apart; the verdict is the checker's."""

    table = "part_verdicts/1"
    #: None: the run is one part, or the operations name none.
    key: str | None
    model: str
    #: valid, invalid, unknown
    verdict: str
    algorithm: str
    reason: str
    #: Judged: those that did not fail.
    operations: int
    seconds: float


class KeyDependencies(Row, frozen=True):
    """Findings of the reads of one key, about the transactions that touched it.

    Transactions are indexes in the history; a negative one is a station of this key, see
    ``checker.transactions.dependencies``.
    """

    table = "key_dependencies/1"
    #: JSON; None for a transaction that makes no sense.
    key: str | None
    transactions: int
    #: Answered.
    reads: int
    #: Edges between transactions, as numbers of ``checker.transactions.dependencies``.
    sources: list[int]
    targets: list[int]
    kinds: list[int]
    #: Names of those that are no cycles.
    anomalies: list[str]
    #: Transactions whose writes here nobody read, where their order is open.
    unordered: list[int]
    #: Transactions without an answer that happened.
    seen: list[int]
    #: Why nothing else is said: a transaction that makes no sense, a clause.
    problem: str | None


class PartsRequest(msgspec.Struct, frozen=True):
    """Question for the verdicts on the parts of a run."""

    #: The run's.
    folder: str
    #: Built-in models.
    models: tuple[str, ...]
    #: Kinds of transactions, each with the level that they are held to.
    transactions: tuple[tuple[Literal["list-append", "rw-register"], str], ...] = ()


class PartCount(msgspec.Struct, frozen=True):
    """Parts of one verdict."""

    model: str
    verdict: str
    parts: int
    operations: int


class NamedPart(msgspec.Struct, frozen=True):
    """A part that is not valid."""

    model: str
    key: str | None
    verdict: str
    reason: str
    operations: int


class TransactionsVerdict(msgspec.Struct, frozen=True):
    """Verdict on the transactions of one kind, judged key by key."""

    kind: str
    level: str
    verdict: str
    #: One sentence.
    reason: str
    transactions: int
    keys: int
    #: By name, cycles among them.
    anomalies: dict[str, int]


class PartsAnswer(msgspec.Struct, frozen=True):
    """Verdicts on the parts of a run."""

    counts: list[PartCount]
    #: Smallest first, those of unknown verdict last.
    examples: list[NamedPart]
    #: Unreadable parts of the run, one sentence each.
    damage: tuple[str, ...]
    transactions: list[TransactionsVerdict] = []
