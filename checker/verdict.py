"""A checker's answer: a verdict, its reason, and the evidence as data."""

from collections.abc import Iterable
from enum import StrEnum
from typing import Any

import msgspec


class Verdict(StrEnum):
    """invalid > unknown > valid when verdicts are merged."""

    VALID = "valid"
    UNKNOWN = "unknown"
    INVALID = "invalid"


_RANK = {Verdict.VALID: 0, Verdict.UNKNOWN: 1, Verdict.INVALID: 2}


def merge(verdicts: Iterable[Verdict]) -> Verdict:
    """The worst of them; ``valid`` for none."""
    return max(verdicts, key=_RANK.__getitem__, default=Verdict.VALID)


class CheckResult(msgspec.Struct, frozen=True):
    """Result of one checker on one run; JSON-ready apart from nothing."""

    #: Its name as in ``checker.registry``, apart from options.
    checker: str
    verdict: Verdict
    #: One English sentence: what was found, or why nothing could be said.
    reason: str
    #: Figures, by name.
    figures: dict[str, Any] = {}
    #: Violations, one JSON-ready object each with ``kind`` and ``sentence``, most telling first.
    violations: tuple[dict[str, Any], ...] = ()
    #: Harmless but telling facts, same shape.
    observations: tuple[dict[str, Any], ...] = ()
    #: Lists by name, of all that the violations describe the first of; JSON-ready.
    lists: dict[str, tuple[dict[str, Any], ...]] = {}
