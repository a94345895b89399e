"""Merges what several sources tell, each in the order of time, into one stream in that order.

A source's watermark is its promise: nothing older than this will come. An event older than
the oldest watermark of all can be told, because nothing can come before it any more, nor at the
same time. A source that is gone without having ended is abandoned: what it did from its last
watermark on nobody knows, so nothing from there on is ever told, and what was told stays all that
happened before a moment. Only what was sent ahead of the oldest watermark is held.
"""

from bisect import bisect_left
from collections.abc import Sequence

#: Watermark of a source that has ended: no time comes after it.
ENDED = (1 << 63) - 1


class _Source:
    def __init__(self) -> None:
        self.watermark = 0
        self.times: list[int] = []
        self.lines: list[bytes] = []
        self.held_bytes = 0

    def drop_from(self, time: int) -> None:
        end = bisect_left(self.times, time)
        self.held_bytes -= sum(map(len, self.lines[end:]))
        del self.times[end:], self.lines[end:]


class Merge:
    """A merge of ``count`` sources, numbered from 0."""

    def __init__(self, count: int) -> None:
        self._sources = [_Source() for _ in range(count)]
        #: Nothing is told any more that is not older.
        self._cut = ENDED

    def add(
        self, number: int, watermark: int, times: Sequence[int], lines: Sequence[bytes]
    ) -> None:
        """Take a source's events, in the order of time, none older than its watermark before.

        Nothing older than the ``watermark`` will come from it; ``ENDED``: nothing at all.

        Raises:
            ValueError: the source breaks an earlier promise.
        """
        source = self._sources[number]
        if watermark < source.watermark or (times and times[0] < source.watermark):
            message = f"source {number} promised nothing older than {source.watermark}"
            raise ValueError(message)
        source.watermark = watermark
        source.times += times
        source.lines += lines
        source.held_bytes += sum(map(len, lines))
        if self._cut != ENDED:
            source.drop_from(self._cut)

    def abandon(self, number: int) -> None:
        """A source is gone that has not ended: tell only what is older than its watermark."""
        self._cut = min(self._cut, self._sources[number].watermark)
        self._sources[number].watermark = ENDED
        for source in self._sources:
            source.drop_from(self._cut)

    def held_bytes(self, number: int) -> int:
        """Size of what a source has sent ahead of the others."""
        return self._sources[number].held_bytes

    def take(self) -> list[bytes]:
        """All that can be told now, in the order of time; equal times in the sources' order."""
        limit = min(source.watermark for source in self._sources)
        times: list[int] = []
        lines: list[bytes] = []
        for source in self._sources:
            end = bisect_left(source.times, limit)
            if not end:
                continue
            taken = source.lines[:end]
            source.held_bytes -= sum(map(len, taken))
            times += source.times[:end]
            lines += taken
            del source.times[:end], source.lines[:end]
        # Runs that are in order already: sorting them is one pass.
        return [lines[place] for place in sorted(range(len(times)), key=times.__getitem__)]
