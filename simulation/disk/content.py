"""The bytes of one simulated file: as processes see them, and as the disk holds them.

Written bytes are dirty until a sync copies them, and only them, to the disk. A failed sync does as
Linux does: the dirty pages count as clean though they never reached the disk, so neither a later
sync nor write-back takes them there. At a crash each 512-byte sector that holds dirty bytes is kept
or lost for itself, and a changed size may be any between the two.

The disk takes whole sectors: a sync takes a clean byte along where its sector holds a dirty one.

Must never copy a whole file at a sync: the cost would grow with the square of a log's length.

Source: Rebello et al., "Can Applications Recover from fsync Failures?" (ATC 2020), for ext4.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

from splitbrain.contracts.random_source import RandomSource

SECTOR_BYTES: Final = 512
#: Share of crashes that keep everything unsynced of a file, and that tear it; the rest loses all.
_KEEP_ALL: Final = 0.25
_TEAR: Final = 0.5
_KEEP_SECTOR: Final = 0.5

#: Start and end of a run of bytes.
Range = tuple[int, int]


class Unsynced(NamedTuple):
    """Return the bytes that a sync would take to the disk."""

    #: As written: unsorted, may overlap.
    ranges: list[Range]
    #: Whether the size changed.
    resized: bool


class Patch(NamedTuple):
    """Content that one sync takes to the disk: bytes as they were at its moment."""

    #: New size; None: as it was.
    size_bytes: int | None
    #: Position and bytes, ascending.
    parts: list[tuple[int, bytes]]


class Content:
    """The bytes behind a name."""

    __slots__ = ("current", "dirty", "durable", "resized")

    def __init__(self) -> None:
        #: Content that reads return.
        self.current = bytearray()
        #: Content that a crash leaves, if it leaves nothing unsynced.
        self.durable = bytearray()
        #: Ranges written since the last sync, in order of writing. Only appended to by writes.
        self.dirty: list[Range] = []
        #: Whether the size changed since the last sync.
        self.resized = False

    def write(self, position: int, data: bytes) -> None:
        """Write at ``position``, zeros before it where the file ends earlier."""
        if not data:
            return
        current = self.current
        size_bytes = len(current)
        end = position + len(data)
        if position > size_bytes:
            current.extend(bytes(position - size_bytes))
        current[position:end] = data
        # After the bytes: a sync in between, on another thread, finds nothing or all of it later.
        self.dirty.append((min(position, size_bytes), end))
        if end > size_bytes:
            self.resized = True

    def truncate(self, size_bytes: int) -> None:
        """Cut, or extend with zeros."""
        current = self.current
        before = len(current)
        if size_bytes < before:
            del current[size_bytes:]
            kept = ((start, min(end, size_bytes)) for start, end in self.dirty)
            self.dirty = [(start, end) for start, end in kept if start < end]
        elif size_bytes > before:
            current.extend(bytes(size_bytes - before))
            self.dirty.append((before, size_bytes))
        if size_bytes != before:
            self.resized = True

    def take_unsynced(self) -> Unsynced:
        """Mark everything clean; what was dirty."""
        resized, self.resized = self.resized, False
        ranges = self.dirty[:]
        del self.dirty[: len(ranges)]
        return Unsynced(ranges, resized)

    def give_back(self, unsynced: Unsynced) -> None:
        """Undo ``take_unsynced``."""
        self.dirty[:0] = unsynced.ranges
        self.resized = self.resized or unsynced.resized

    def patch(self, unsynced: Unsynced) -> Patch:
        """Return the bytes that a sync takes along now."""
        size_bytes = len(self.current) if unsynced.resized else None
        return Patch(size_bytes, self._parts(_merged(unsynced.ranges, SECTOR_BYTES)))

    def settle(self, patch: Patch) -> None:
        """Note that the disk has taken a sync's bytes."""
        durable = self.durable
        if patch.size_bytes is not None:
            _resize(durable, patch.size_bytes)
        for start, data in patch.parts:
            if start > len(durable):
                _resize(durable, start)
            durable[start : start + len(data)] = data

    def sync(self) -> None:
        """Take everything dirty to the disk at once."""
        self.settle(self.patch(self.take_unsynced()))

    def flip(self, position: int, mask: int) -> None:
        """Flip bits of one byte, wherever it is."""
        for content in (self.current, self.durable):
            if position < len(content):
                content[position] ^= mask

    def is_flushed(self, position: int) -> bool:
        """Whether this byte is on the disk and nothing is on the way there."""
        current, durable = self.current, self.durable
        return (
            position < min(len(current), len(durable))
            and current[position] == durable[position]
            and not any(start <= position < end for start, end in self.dirty)
        )

    def is_durable(self, start: int, end: int) -> bool:
        """Whether these bytes are the same after any crash."""
        current, durable = self.current, self.durable
        if end > len(current) or end > len(durable):
            return False
        return current[start:end] == durable[start:end]

    def crash(self, random: RandomSource | None) -> int:
        """Lose power; how many unsynced bytes are lost. None: all."""
        unsynced = self.take_unsynced()
        dirty_bytes = sum(end - start for start, end in _merged(unsynced.ranges, 1))
        lost_bytes = dirty_bytes
        if random is not None and (dirty_bytes or unsynced.resized):
            draw = random.random()
            if draw < _KEEP_ALL:
                self.settle(self.patch(unsynced))
                lost_bytes = 0
            elif draw < _KEEP_ALL + _TEAR:
                lost_bytes = dirty_bytes - self._tear(unsynced, random)
        self.current[:] = self.durable
        return lost_bytes

    def _tear(self, unsynced: Unsynced, random: RandomSource) -> int:
        """Keep some size, and some of the sectors below it; how many dirty bytes are kept."""
        dirty = _merged(unsynced.ranges, 1)
        new_size = len(self.current)
        if not unsynced.resized:
            # Beyond the disk's size only where a sync of it has failed.
            new_size = max(len(self.durable), dirty[-1][1])
        low, high = sorted((len(self.durable), new_size))
        size_bytes = low + int(random.random() * (high - low + 1))
        _resize(self.durable, size_bytes)
        kept: list[Range] = []
        for start, end in _merged(unsynced.ranges, SECTOR_BYTES):
            sectors = range(start, min(end, size_bytes), SECTOR_BYTES)
            kept += [
                (sector, min(sector + SECTOR_BYTES, size_bytes))
                for sector in sectors
                if random.random() < _KEEP_SECTOR
            ]
        for position, data in self._parts(kept):
            self.durable[position : position + len(data)] = data
        return sum(max(0, min(a[1], b[1]) - max(a[0], b[0])) for a in dirty for b in kept)

    def _parts(self, ranges: list[Range]) -> list[tuple[int, bytes]]:
        return [(start, bytes(self.current[start:end])) for start, end in ranges]


def _merged(ranges: Sequence[Range], block_bytes: int) -> list[Range]:
    """Return the blocks that hold these bytes as ascending ranges that do not touch."""
    result: list[Range] = []
    for start, end in sorted(ranges):
        first = start - start % block_bytes
        last = end + -end % block_bytes
        if result and first <= result[-1][1]:
            if last > result[-1][1]:
                result[-1] = (result[-1][0], last)
        else:
            result.append((first, last))
    return result


def _resize(content: bytearray, size_bytes: int) -> None:
    if size_bytes < len(content):
        del content[size_bytes:]
    else:
        content.extend(bytes(size_bytes - len(content)))
