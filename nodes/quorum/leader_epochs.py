"""The leader-epoch list of a log: at which offset each epoch begins.

It answers the one question of log comparison: where does an epoch end here? Pure positions; the
checkpoint file is the host's. Sources: KIP-101, KIP-279, KIP-595.
"""

from nodes.quorum.errors import InvariantViolation
from nodes.quorum.identifiers import NO_EPOCH, Epoch, Offset
from nodes.quorum.persistent import EpochStart


class LeaderEpochs:
    """Ascending list of epoch starts, changed only at its end."""

    def __init__(self, starts: tuple[EpochStart, ...]) -> None:
        """Raises InvariantViolation (INV-22) if the list is not strictly ascending."""
        self._starts: list[EpochStart] = []
        for start in starts:
            self.begin(start)

    @property
    def starts(self) -> tuple[EpochStart, ...]:
        """A copy of the list, oldest first."""
        return tuple(self._starts)

    @property
    def last(self) -> Epoch:
        """Epoch of the last record, NO_EPOCH for an empty log."""
        return self._starts[-1].epoch if self._starts else NO_EPOCH

    def begin(self, start: EpochStart) -> None:
        """Adds an epoch that begins at the log's end. Raises InvariantViolation (INV-22)."""
        if self._starts and (
            start.epoch <= self._starts[-1].epoch
            or start.start_offset <= self._starts[-1].start_offset
        ):
            raise InvariantViolation(
                "INV-22", f"epoch start {start} does not come after {self._starts[-1]}"
            )
        self._starts.append(start)

    def truncate(self, end_offset: Offset) -> None:
        """Drops the epochs that begin at or above ``end_offset``."""
        while self._starts and self._starts[-1].start_offset >= end_offset:
            self._starts.pop()

    def end_of(self, epoch: Epoch, log_start: Offset, log_end: Offset) -> tuple[Epoch, Offset]:
        """Largest epoch here that is not above ``epoch``, and the offset where it ends.

        ``(NO_EPOCH, log_start)`` if every record here is of a later epoch.
        """
        end = log_end
        for start in reversed(self._starts):
            if start.epoch <= epoch:
                return start.epoch, end
            end = start.start_offset
        return NO_EPOCH, log_start

    def start_of(self, epoch: Epoch) -> Offset | None:
        """First offset of exactly this epoch, None if no record here has it."""
        for start in reversed(self._starts):
            if start.epoch == epoch:
                return start.start_offset
        return None
