"""Committed offsets as registers, one a log: each answer must be explained by some order; pure.

Of one answer by itself: some commit that it shows, or none, was the last before it in an order of
all commits that is true to time. An acknowledged commit happened between its ends, an open one at
any time since it was invoked, but not once its member was fenced. Two answers are not compared.

An answer that an older state explains is *stale*. It is *lost* what it lacks where no coordinator
of old can have answered: in a final read, or where the commit's standing was over before that of
the member that asked, whose coordinator had then all that came before.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import accumulate
from typing import NamedTuple

from splitbrain.checker.findings import end_of
from splitbrain.checker.groups.fences import Fences
from splitbrain.checker.groups.readings import Committed, Group, OffsetRead


class Unexplained(NamedTuple):
    """An answer that nothing explains, and the commit that it lacks, if that is why."""

    read: OffsetRead
    lacks: Committed | None = None
    is_lost: bool = False


class _Span(NamedTuple):
    """A commit of one log and the time in which it happened, if it did; None: open."""

    commit: Committed
    offset: int
    end: int | None


def spans_by_log(group: Group, fences: Fences) -> dict[str, list[_Span]]:
    """Return the commits of each log."""
    found: dict[str, list[_Span]] = {}
    for commit in group.commits:
        for log, offset in commit.offsets.items():
            end = commit.operation.end if commit.is_sure else None
            if not commit.is_sure:
                fence = fences.end_of(commit.standing, log)
                end = None if fence is None else fence.operation.end
                if end is not None and end < commit.operation.start:
                    continue
            found.setdefault(log, []).append(_Span(commit, offset, end))
    return found


def unexplained(reads: Sequence[OffsetRead], spans: Sequence[_Span]) -> list[Unexplained]:
    """Return the reads of one log that no order of its commits explains."""
    register = _Register(spans)
    return [found for read in reads if (found := register.judge(read)) is not None]


class _Register:
    def __init__(self, spans: Sequence[_Span]) -> None:
        self._sure = sorted(
            (span.commit for span in spans if span.commit.is_sure),
            key=lambda commit: end_of(commit.operation),
        )
        self._ends = [end_of(commit.operation) for commit in self._sure]
        #: Of each and those before it, the one that was invoked last.
        self._latest = [*accumulate(self._sure, _later)]
        self._by_offset: dict[int, _Candidates] = {}
        grouped: dict[int, list[_Span]] = {}
        for span in spans:
            grouped.setdefault(span.offset, []).append(span)
        self._by_offset = {offset: _Candidates(found) for offset, found in grouped.items()}

    def judge(self, read: OffsetRead) -> Unexplained | None:
        before = bisect_left(self._ends, read.operation.start)
        if read.offset is None:
            end: float | None = -1
        else:
            found = self._by_offset.get(read.offset)
            end = None if found is None else found.last_end(end_of(read.operation))
        if end is None:
            return Unexplained(read)
        lacks = self._latest[before - 1] if before else None
        if lacks is None or end >= lacks.operation.start:
            return None
        surely = [commit for commit in self._sure[:before] if _is_known(commit, read)]
        newest = max(surely, key=_start, default=None)
        if newest is None or end >= newest.operation.start:
            return Unexplained(read, lacks)
        return Unexplained(read, newest, is_lost=True)


class _Candidates:
    """Commits of one offset."""

    def __init__(self, spans: list[_Span]) -> None:
        spans.sort(key=lambda span: span.commit.operation.start)
        self._starts = [span.commit.operation.start for span in spans]
        ends = (float("inf") if span.end is None else span.end for span in spans)
        self._last = [*accumulate(ends, max)]

    def last_end(self, until: int) -> float | None:
        """Return until when one of those that began by then may have happened; None: none did."""
        place = bisect_right(self._starts, until)
        return self._last[place - 1] if place else None


def _is_known(commit: Committed, read: OffsetRead) -> bool:
    """Return whether any coordinator that can have answered had this commit."""
    if read.operation.final:
        return True
    own, asked = commit.standing, read.standing
    if asked is None or own.is_generation != asked.is_generation:
        return False
    return own.number < asked.number and (own.is_generation or own.member != asked.member)


def _start(commit: Committed) -> int:
    return commit.operation.start


def _later(one: Committed, other: Committed) -> Committed:
    return max(one, other, key=_start)
