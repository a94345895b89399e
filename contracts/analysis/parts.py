"""Verdicts on the parts of a run: rows of the job's result, the question, and its answer."""

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


class PartsRequest(msgspec.Struct, frozen=True):
    """Question for the verdicts on the parts of a run."""

    #: The run's.
    folder: str
    #: Built-in models; at least one.
    models: tuple[str, ...]


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


class PartsAnswer(msgspec.Struct, frozen=True):
    """Verdicts on the parts of a run."""

    counts: list[PartCount]
    #: Smallest first, those of unknown verdict last.
    examples: list[NamedPart]
    #: Unreadable parts of the run, one sentence each.
    damage: tuple[str, ...]
