"""Numbers logical processes: one per worker slot at a time, never used again once retired.

A process's number modulo the number of slots is its slot, so that a history shows which slot an
operation came from.
"""


class Processes:
    """Hands out process numbers."""

    def __init__(self, slots: int) -> None:
        self._slots = slots
        self._next = list(range(slots))

    def fresh(self, slot: int) -> int:
        """A process for the slot that no operation ran in before."""
        place = slot % self._slots
        process = self._next[place]
        self._next[place] += self._slots
        return process
