"""Sightings of elements in the reads of a set, counted in passes over whole reads.

Work per element read is done by set operations, never by a loop of ours: a read of a hundred
thousand elements is one difference of two sets. A loop runs over first sights and over elements
missing at the end only. Equal times are concurrent: a read is *due* to show an element only if it
was invoked after the element was known. Source: issue 7, item 9.
"""

from bisect import bisect_right
from collections import Counter
from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from splitbrain.checker.findings import Poll
from splitbrain.checker.models.model import freeze
from splitbrain.history.records import PairedOperation


class Sightings(msgspec.Struct, frozen=True):
    """Sightings of the elements of one set in its reads."""

    #: First read to return that showed it, by element.
    first: dict[Hashable, PairedOperation]
    #: Number of reads that showed it, by element.
    total: Counter[Hashable]
    #: Since when every read must show the element: acknowledged, or seen; ns.
    known: dict[Hashable, int]
    #: Reads that were due to show a known element and did not; only where any did.
    missing: dict[Hashable, int]
    #: Known elements that no read was due to show.
    not_due: frozenset[Hashable]
    #: Reads that showed an element more than once.
    repeating: tuple[PairedOperation, ...]


class FinalReads:
    """Final reads of one set, by the member that answered; unknown members are left out."""

    def __init__(self, reads: Sequence[PairedOperation], poll: Poll) -> None:
        by_node: dict[str, list[tuple[PairedOperation, set[Hashable]]]] = {}
        finals = sorted((read for read in reads if read.final), key=lambda read: read.start)
        for read, shown in _shown(finals, poll):
            if read.node is not None:
                by_node.setdefault(read.node, []).append((read, shown))
        self._by_node = dict(sorted(by_node.items()))

    def sides(
        self, element: Hashable, since: int
    ) -> tuple[dict[str, PairedOperation], dict[str, PairedOperation]]:
        """Return the members with a final read that shows the element, and those without.

        Each comes with the last of its final reads that says so. Only reads invoked after the time
        at which the element was known must show it, ns.
        """
        showing: dict[str, PairedOperation] = {}
        lacking: dict[str, PairedOperation] = {}
        for node, reads in self._by_node.items():
            shown = [read for read, elements in reads if element in elements]
            due = [read for read, _ in reads if read.start > since]
            if shown:
                showing[node] = shown[-1]
            elif due:
                lacking[node] = due[-1]
        return showing, lacking

    def due(self, since: int) -> Iterator[PairedOperation]:
        """Yield the reads invoked after this time, ns."""
        for reads in self._by_node.values():
            yield from (read for read, _ in reads if read.start > since)


def elements_of(read: PairedOperation) -> list[Hashable]:
    """Return the elements in a read, in its order, hashable."""
    result: list[Any] = read.result or []
    try:
        set(result)
    except TypeError:
        return [freeze(element) for element in result]
    return result


def count_sightings(
    reads: Sequence[PairedOperation], acknowledged: Mapping[Hashable, int], poll: Poll
) -> Sightings:
    """Compare every element with every completed read of a set that was due to show it.

    ``acknowledged`` has the time at which each element's add was acknowledged, ns.
    """
    first, repeating = _first_sights(reads, poll)
    known = dict(acknowledged)
    for element, read in first.items():
        end = _end(read)
        if known.get(element, end) >= end:
            known[element] = end
    by_start = sorted(reads, key=lambda read: read.start)
    newly_known = sorted(known, key=known.__getitem__)
    position = 0
    must_show: set[Hashable] = set()
    total: Counter[Hashable] = Counter()
    #: Sightings by reads that were not due to show the element.
    early: Counter[Hashable] = Counter()
    for read, shown in _shown(by_start, poll):
        while position < len(newly_known) and known[newly_known[position]] < read.start:
            must_show.add(newly_known[position])
            position += 1
        total.update(shown)
        early.update(shown - must_show)
    starts = [read.start for read in by_start]
    missing: dict[Hashable, int] = {}
    for element, since in known.items():
        due = len(starts) - bisect_right(starts, since)
        lacking = due - (total[element] - early[element])
        if lacking:
            missing[element] = lacking
    return Sightings(
        first=first,
        total=total,
        known=known,
        missing=missing,
        not_due=frozenset(newly_known[position:]),
        repeating=repeating,
    )


def last_sights(
    reads: Sequence[PairedOperation], elements: Collection[Hashable], poll: Poll
) -> dict[Hashable, int]:
    """Return when the last read to return that showed each of these elements did so, ns."""
    found: dict[Hashable, int] = {}
    unseen = set(elements)
    for read, shown in _shown(sorted(reads, key=_end, reverse=True), poll):
        if not unseen:
            break
        seen = unseen & shown
        unseen -= seen
        found.update(dict.fromkeys(seen, _end(read)))
    return found


def first_misses(
    reads: Sequence[PairedOperation], since: Mapping[Hashable, int], poll: Poll
) -> dict[Hashable, PairedOperation]:
    """Return by element the earliest read invoked after its time that does not show it."""
    found: dict[Hashable, PairedOperation] = {}
    unseen = dict(since)
    for read, shown in _shown(sorted(reads, key=lambda read: (read.start, read.index)), poll):
        for element in [e for e, time in unseen.items() if read.start > time and e not in shown]:
            found[element] = read
            del unseen[element]
        if not unseen:
            break
    return found


def _first_sights(
    reads: Sequence[PairedOperation], poll: Poll
) -> tuple[dict[Hashable, PairedOperation], tuple[PairedOperation, ...]]:
    """Return the first read of each element, and the reads that show any twice."""
    first: dict[Hashable, PairedOperation] = {}
    repeating: list[PairedOperation] = []
    seen: set[Hashable] = set()
    for read in sorted(reads, key=_end):
        poll(1 + len(read.result or ()))
        elements = elements_of(read)
        shown = set(elements)
        if len(shown) < len(elements):
            repeating.append(read)
        new = shown - seen
        if new:
            seen |= new
            # In the order of the read, which is the same in every run.
            first.update((element, read) for element in elements if element in new)
    return first, tuple(repeating)


def _shown(
    reads: Sequence[PairedOperation], poll: Poll
) -> Iterator[tuple[PairedOperation, set[Hashable]]]:
    for read in reads:
        poll(1 + len(read.result or ()))
        yield read, set(elements_of(read))


def _end(read: PairedOperation) -> int:
    assert read.end is not None, f"the read of index {read.index} is ok and has no end"
    return read.end
