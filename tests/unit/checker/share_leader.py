"""Leader of a log in a simulated share group: an epoch, locks that expire, and what is on disk."""

from typing import Any, Protocol

LOCK_MS = 150
DELIVERIES_MAX = 10


class Surroundings(Protocol):
    """World that a leader lives in."""

    now: int

    def strikes(self, defect: str) -> bool:
        """Whether it errs in this way, this time."""
        ...


class Leader:
    """All lives of the leaders of one log: the disk outlives them, the rest does not."""

    def __init__(self, world: Surroundings) -> None:
        self.world, self.epoch = world, 1
        self.values: list[int] = []
        #: On disk: offsets that are settled for good, or given up.
        self.over: set[int] = set()
        self.counts: dict[int, int] = {}
        #: In memory: who holds an offset until when, and what is over but not on disk.
        self.locks: dict[int, tuple[str, int]] = {}
        self.forgettable: set[int] = set()
        #: Another one leads, which this one does not know.
        self.is_replaced = False

    def give(self, member: str, most: int) -> list[list[Any]]:
        """Lock records for a member."""
        given: list[list[Any]] = []
        for offset in range(len(self.values)):
            if len(given) < most and self._is_free(offset):
                self.counts[offset] = self.counts.get(offset, 0) + 1
                self.locks[offset] = member, self.world.now + LOCK_MS
                at = offset
                if self.world.strikes("value-mixed"):
                    at = offset - 1
                given.append([offset, self.values[at], self.counts[offset]])
        return given

    def settle(self, member: str, offsets: list[int], how: str) -> list[int]:
        """Settle what the member still holds; return it."""
        # Nobody puts on disk any more what it says.
        if self.is_replaced:
            return []
        done = [offset for offset in offsets if self._holder(offset) == member]
        for offset in done:
            if how == "release":
                self._free(offset)
            elif self.world.strikes("not-on-disk"):
                self.forgettable.add(offset)
                self._free(offset)
            else:
                self.over.add(offset)
                self._free(offset)
        return done

    def forget(self, member: str) -> None:
        """Take back all that a member holds, which left or was cut off."""
        for offset in [one for one, (holder, _) in self.locks.items() if holder == member]:
            self._free(offset)

    def change(self) -> "Leader":
        """Let another node lead; return the one that did."""
        replaced = Leader(self.world)
        replaced.epoch, replaced.is_replaced = self.epoch, True
        replaced.values, replaced.over = [*self.values], {*self.over}
        replaced.counts, replaced.locks = {**self.counts}, {**self.locks}
        self.epoch += 1
        for offset in [*self.locks]:
            self._free(offset)
        self.forgettable.clear()
        untouched = set(range(len(self.values))) - self.counts.keys()
        if untouched and self.world.strikes("record-skipped"):
            self.over.add(min(untouched))
        return replaced

    def is_done(self) -> bool:
        """Whether there is nothing more to give."""
        for offset in range(len(self.values)):
            self._holder(offset)
        return self.over | self.forgettable >= set(range(len(self.values)))

    def _is_free(self, offset: int) -> bool:
        holder = self._holder(offset)
        if offset in self.over or offset in self.forgettable:
            return False
        return holder is None or self.world.strikes("lock-ignored")

    def _holder(self, offset: int) -> str | None:
        holder, until = self.locks.get(offset, (None, 0))
        if holder is not None and until <= self.world.now:
            self._free(offset)
            return None
        return holder

    def _free(self, offset: int) -> None:
        self.locks.pop(offset, None)
        if self.counts.get(offset, 0) >= DELIVERIES_MAX:
            self.over.add(offset)
