"""Answer of a checker: a verdict, its reason, and the evidence as data."""

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Any, Final, cast

import msgspec


class Verdict(StrEnum):
    """Verdict on a run; merging ranks invalid > unknown > valid."""

    VALID = "valid"
    UNKNOWN = "unknown"
    INVALID = "invalid"


_RANK = {Verdict.VALID: 0, Verdict.UNKNOWN: 1, Verdict.INVALID: 2}


def merge(verdicts: Iterable[Verdict]) -> Verdict:
    """Return the worst of them; ``valid`` for none."""
    return max(verdicts, key=_RANK.__getitem__, default=Verdict.VALID)


#: Figure of a result, and its word in place of ``valid``.
ALLOWED: Final = "allowed"


class CheckResult(msgspec.Struct, frozen=True):
    """Result of one checker on one run; JSON-ready."""

    #: Name as in ``checker.registry``, without options.
    checker: str
    verdict: Verdict
    #: One English sentence: the finding, or why nothing could be said.
    reason: str
    figures: dict[str, Any] = {}
    #: JSON-ready objects with ``kind`` and ``sentence``, most telling first.
    violations: tuple[dict[str, Any], ...] = ()
    #: Harmless but telling facts, in the same form.
    observations: tuple[dict[str, Any], ...] = ()
    #: JSON-ready complete lists where the violations describe only the first.
    lists: dict[str, tuple[dict[str, Any], ...]] = {}
    #: Reason why not all could be judged, also beside violations; None where all was.
    undecided: str | None = None

    @property
    def allowed(self) -> Mapping[str, int]:
        """Number of anomalies of each kind that the system documents, of those that were found."""
        counts = self.figures.get(ALLOWED)
        return cast("dict[str, int]", counts) if isinstance(counts, dict) else {}

    @property
    def word(self) -> str:
        """The verdict for people; ``allowed`` where it is valid but for what is allowed."""
        return ALLOWED if self.allowed and self.verdict is Verdict.VALID else self.verdict.value
