"""What Spark's jobs found in one run, out of ``analysis/summary.json``, and each as one sentence.

Mirrors ``spark_analysis.finding_summary``, which cannot be imported without Spark. Tolerates a
summary that lacks a part, or all: an analysis may be older than its reader. Must never judge:
verdicts are the checkers'.
"""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from splitbrain.harness.folder.results import counted

Row = dict[str, Any]
#: Classes of errors that a sentence names.
_CLASSES_MAX: Final = 3


class Reigns(msgspec.Struct, frozen=True):
    """Who led, and how it ended."""

    count: int
    #: How a reign ended, to how many did.
    ended: dict[str, int]
    #: Longest time without a leader between reigns; None: there were fewer than two.
    leaderless_max_ms: float | None = None
    #: Reigns before which there was no leader for longest.
    examples: list[Row] = []


class Divergences(msgspec.Struct, frozen=True):
    """Committed logs that differ."""

    #: None: fewer than two were dumped.
    pairs: int | None = None
    examples: list[Row] = []


class Duplicates(msgspec.Struct, frozen=True):
    """What is there more often than it may be."""

    #: Writes that stand too often in a committed log; None: no log was dumped.
    committed: int | None = None
    #: Elements that one read returned twice.
    read: int = 0
    examples: list[Row] = []


class StaleReads(msgspec.Struct, frozen=True):
    """Reads of what was certainly overwritten."""

    count: int = 0
    age_max_ms: float | None = None
    age_max_versions: int | None = None
    #: The oldest first.
    examples: list[Row] = []


class ErrorClass(msgspec.Struct, frozen=True):
    """Operations that failed alike; times of invocations, in ms since the run's start."""

    type: str
    error: str
    count: int
    first_ms: float
    last_ms: float


class ClientErrors(msgspec.Struct, frozen=True):
    """Operations that did not end ok."""

    count: int = 0
    #: The most frequent first.
    classes: list[ErrorClass] = []


class RunFindings(msgspec.Struct, frozen=True):
    """All of them; None where the analysis does not tell."""

    reigns: Reigns | None = None
    divergences: Divergences | None = None
    duplicates: Duplicates | None = None
    stale_reads: StaleReads | None = None
    client_errors: ClientErrors | None = None


def findings_of(summary: Mapping[str, Any] | None) -> RunFindings:
    """The findings that a summary tells; none of those that it tells otherwise."""
    told: dict[str, Any] = {}
    for field in msgspec.structs.fields(RunFindings):
        try:
            told[field.name] = msgspec.convert((summary or {}).get(field.name), field.type)
        except msgspec.ValidationError:
            continue
    return RunFindings(**told)


def finding_sentences(findings: RunFindings) -> list[str]:
    """One sentence for each finding that there is something to say of."""
    sentences = (
        _reigns(findings.reigns),
        divergence_sentence(findings.divergences),
        duplicate_sentence(findings.duplicates),
        stale_sentence(findings.stale_reads),
        _errors(findings.client_errors),
    )
    return [sentence for sentence in sentences if sentence]


def _reigns(found: Reigns | None) -> str:
    return "" if found is None or found.leaderless_max_ms is None else reign_sentence(found)


def reign_sentence(found: Reigns) -> str:
    """How many reigns there were and how they ended."""
    ends = ", ".join(f"{count:,} {how}" for how, count in found.ended.items())
    gap = found.leaderless_max_ms
    longest = "" if gap is None else f"; the longest time without a leader was {gap:,.0f} ms"
    return f"{counted(found.count, 'reign')} ({ends}){longest}."


def divergence_sentence(found: Divergences | None) -> str:
    """Which logs differ, empty where none do."""
    if found is None or not found.pairs:
        return ""
    pairs = counted(found.pairs, "pair of committed logs differs", "pairs of committed logs differ")
    where = ""
    if found.examples:
        first = found.examples[0]
        where = f": {first.get('node_a')} and {first.get('node_b')} from offset "
        where += f"{first.get('offset')} on"
    return f"{pairs}{where}."


def duplicate_sentence(found: Duplicates | None) -> str:
    """What is there twice, empty where nothing is."""
    if found is None:
        return ""
    told: list[str] = []
    if found.committed:
        told.append(
            counted(
                found.committed,
                "write stands too often in a committed log",
                "writes stand too often in committed logs",
            )
        )
    if found.read:
        told.append(
            counted(
                found.read,
                "element was returned twice by one read",
                "elements were returned twice by one read",
            )
        )
    return f"{', '.join(told)}." if told else ""


def stale_sentence(found: StaleReads | None) -> str:
    """How stale reads were, empty where none was."""
    if found is None or not found.count or found.age_max_ms is None:
        return ""
    versions = found.age_max_versions
    behind = "" if versions is None else f", by up to {counted(versions, 'version')}"
    return (
        f"{counted(found.count, 'read')} of what was certainly overwritten, for up to "
        f"{found.age_max_ms:,.0f} ms{behind}."
    )


def _errors(found: ClientErrors | None) -> str:
    if found is None or not found.classes:
        return ""
    told = [
        f"{one.count:,} {one.error} ({one.type}, {one.first_ms / 1000:,.1f} s to "
        f"{one.last_ms / 1000:,.1f} s)"
        for one in found.classes[:_CLASSES_MAX]
    ]
    more = len(found.classes) - len(told)
    others = f", and {counted(more, 'more class', 'more classes')}" if more > 0 else ""
    return f"Errors of clients: {', '.join(told)}{others}."
