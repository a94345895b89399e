"""Damage of a run: a kind for queries and a sentence for people, each.

Must never end an ingest: whatever a run folder holds, it is taken as far as it goes, and what is
left out is said here.
"""

from typing import Final, Literal

#: What is not there: a run that ended out of order, or of which a part was not kept.
Missing = Literal[
    "no-plan",
    "no-history",
    "no-faults",
    "no-node",  # a node of the plan has no folder
    "no-log",  # its committed log was to be dumped and was not
    "no-results",
    "unsealed",  # the run began to seal its evidence and never did
]
#: What is there and cannot be trusted or read.
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
#: Not damage: of a valid run of a suite only its results are kept.
Pruned = Literal["pruned"]
DamageKind = Missing | Broken | Pruned

_MISSING: Final = frozenset(Missing.__args__)
_BROKEN: Final = frozenset(Broken.__args__)


class Damage:
    """Collects what is left out of one run."""

    def __init__(self) -> None:
        self._found: list[tuple[DamageKind, str]] = []

    def add(self, kind: DamageKind, sentence: str) -> None:
        """Say one thing, once."""
        if (kind, sentence) not in self._found:
            self._found.append((kind, sentence))

    @property
    def sentences(self) -> tuple[str, ...]:
        """For people, in the order in which they were found."""
        return tuple(sentence for _, sentence in self._found)

    @property
    def kinds(self) -> tuple[DamageKind, ...]:
        """For queries, sorted, each once."""
        return tuple(sorted({kind for kind, _ in self._found}))

    def state(self, *, is_open: bool) -> str:
        """One word for the run: the first of these that fits.

        ``open`` it is still under way; ``damaged`` something cannot be read or trusted;
        ``partial`` something is missing; ``pruned`` a suite kept its results alone; ``whole``.
        """
        kinds = set(self.kinds)
        if is_open:
            return "open"
        if kinds & _BROKEN:
            return "damaged"
        if kinds & _MISSING:
            return "partial"
        return "pruned" if kinds else "whole"
