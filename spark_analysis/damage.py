"""Damage of a run: a kind for queries and a sentence for people, each.

Must never end an ingest: a run folder is read as far as possible, and the rest reported here.
"""

from typing import Final, Literal

#: Missing files or parts: a run that ended out of order, or was not kept whole.
Missing = Literal[
    "no-plan",
    "no-history",
    "no-faults",
    "no-node",  # a node of the plan has no folder
    "no-log",  # its committed log was to be dumped and was not
    "no-results",
    "unsealed",  # the run began to seal its evidence and never did
]
#: Files that are there and cannot be trusted or read.
Broken = Literal[
    "plan-unreadable",
    "history-torn",  # its last line
    "history-broken",  # taken up to a broken place
    "lines-broken",  # of any other file, left out
    "log-cut",  # a dump stops before its end
    "results-unreadable",
    "file-unreadable",
    "changed-since",  # not what the run sealed
    "values-refused",  # rows that fit no column: numbers beyond 64 bits, text that is no Unicode
]
#: No damage: a suite keeps only the results of a valid run.
Pruned = Literal["pruned"]
DamageKind = Missing | Broken | Pruned

_MISSING: Final = frozenset(Missing.__args__)
_BROKEN: Final = frozenset(Broken.__args__)


class Damage:
    """Collection of everything left out of one run."""

    def __init__(self) -> None:
        self._found: list[tuple[DamageKind, str]] = []

    def add(self, kind: DamageKind, sentence: str) -> None:
        """Report one damage, once."""
        if (kind, sentence) not in self._found:
            self._found.append((kind, sentence))

    @property
    def sentences(self) -> tuple[str, ...]:
        """Sentences in the order of their discovery."""
        return tuple(sentence for _, sentence in self._found)

    @property
    def kinds(self) -> tuple[DamageKind, ...]:
        """Kinds, sorted, each once."""
        return tuple(sorted({kind for kind, _ in self._found}))

    def state(self, *, is_open: bool) -> str:
        """Return one word for the run, the first of these that fits.

        ``open`` still under way; ``damaged`` something cannot be read or trusted; ``partial``
        something is missing; ``pruned`` a suite kept only its results; ``whole``.
        """
        kinds = set(self.kinds)
        if is_open:
            return "open"
        if kinds & _BROKEN:
            return "damaged"
        if kinds & _MISSING:
            return "partial"
        return "pruned" if kinds else "whole"
