"""Deliveries of a group and how far it committed; pure.

A record is visible that a final read of its log shows. It is delivered once the ``consume`` that
read it ended: before, nobody can have handled it.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Hashable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import NamedTuple

from splitbrain.checker.findings import end_of
from splitbrain.checker.groups.readings import Consumed
from splitbrain.checker.transactions.micro_operations import hashable
from splitbrain.history.records import PairedOperation


class Record(NamedTuple):
    """A visible record."""

    offset: int
    value: Hashable


class Passing(NamedTuple):
    """An operation that committed an offset, or was told one; all below it was delivered by then.

    ``by`` is the time by which that was: a commit's invocation, a read's end.
    """

    offset: int
    operation: PairedOperation
    by: int


class Deliveries:
    """Deliveries of one log to members of a group."""

    def __init__(self) -> None:
        #: The first to end of each record.
        self._first: dict[Record, PairedOperation] = {}
        self.count = 0

    def note(self, consumed: Consumed, log: str) -> None:
        """Note what one answer delivered."""
        for offset, value in consumed.records.get(log, ()):
            self.count += 1
            record, operation = Record(offset, hashable(value)), consumed.operation
            known = self._first.setdefault(record, operation)
            if end_of(operation) < end_of(known):
                self._first[record] = operation

    @property
    def repeated(self) -> int:
        """Deliveries of what had been delivered before, as after each rebalance."""
        return self.count - len(self._first)

    def lacks(self, record: Record) -> bool:
        """Return whether nobody was delivered a record."""
        return record not in self._first

    def to_nobody(
        self, visible: Sequence[Record], passings: Sequence[Passing]
    ) -> Iterator[tuple[Record, Passing]]:
        """Yield records that were passed and delivered to nobody, each with the first that did."""
        passed = sorted(passings, key=lambda each: each.operation.index)
        reached = [*accumulate((each.offset for each in passed), max)]
        for record in visible:
            if self.lacks(record):
                place = bisect_right(reached, record.offset)
                if place < len(passed):
                    yield record, passed[place]

    def too_late(
        self, visible: Sequence[Record], passings: Sequence[Passing]
    ) -> Iterator[tuple[Record, PairedOperation, Passing]]:
        """Yield operations that passed what was delivered later only; each with one such."""
        delivered = [record for record in visible if not self.lacks(record)]
        offsets = [record.offset for record in delivered]
        latest = [*accumulate(delivered, self._later)]
        for passing in passings:
            place = bisect_left(offsets, passing.offset)
            if place:
                record = latest[place - 1]
                first = self._first[record]
                if end_of(first) > passing.by:
                    yield record, first, passing

    def _later(self, one: Record, other: Record) -> Record:
        return max(one, other, key=lambda each: end_of(self._first[each]))


def deliveries_of(consumed: Sequence[Consumed]) -> Mapping[str, Deliveries]:
    """Return the deliveries of each log."""
    found: dict[str, Deliveries] = {}
    for each in consumed:
        for log in each.records:
            found.setdefault(log, Deliveries()).note(each, log)
    return found
