"""Numbers logical processes: one per worker slot at a time, never used again once retired.

A process's number modulo the number of slots is its slot, so that a history shows which slot an
operation came from, and so that worker processes that share out the slots never use one number
twice.
"""

from collections.abc import Iterable


class Processes:
    """Hands out process numbers."""

    def __init__(self, slots: int) -> None:
        self._slots = slots
        self._next = list(range(slots))

    def fresh(self, slot: int) -> int:
        """Return a process for the slot that no operation ran in before."""
        place = slot % self._slots
        process = self._next[place]
        self._next[place] += self._slots
        return process

    def upcoming(self, slots: Iterable[int]) -> tuple[int, ...]:
        """Return the process that ``fresh`` would hand out next, for each of these slots."""
        return tuple(self._next[slot % self._slots] for slot in slots)

    def skip_to(self, process: int) -> None:
        """Hand out nothing before ``process`` in its slot: the others were used elsewhere."""
        place = process % self._slots
        self._next[place] = max(self._next[place], process)
