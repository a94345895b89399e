"""The leader-epoch list of a log: at which offset each epoch begins.

It answers the one question of log comparison: where does an epoch end here? Pure positions; the
checkpoint file is the host's. Sources: KIP-101, KIP-279, KIP-595, KIP-630 (a log without its
beginning).
"""

from splitbrain.nodes.quorum.errors import InvariantViolation
from splitbrain.nodes.quorum.identifiers import NO_EPOCH, Epoch, Offset
from splitbrain.nodes.quorum.persistent import EpochStart


class LeaderEpochs:
    """Ascending list of epoch starts, changed at its end, and cut at its beginning with the log."""

    def __init__(self, starts: tuple[EpochStart, ...], before: Epoch = NO_EPOCH) -> None:
        """``before``: epoch of the record before the log's start, NO_EPOCH at 0. INV-22."""
        self._before = before
        self._starts: list[EpochStart] = []
        #: Where the list was last cut: an epoch that begins there may have no record yet.
        self._cut_at: Offset | None = None
        for start in starts:
            self.begin(start)

    @property
    def starts(self) -> tuple[EpochStart, ...]:
        """A copy of the list, oldest first."""
        return tuple(self._starts)

    @property
    def is_empty(self) -> bool:
        """Whether the next record begins an epoch of the list, whatever its epoch is."""
        return not self._starts

    @property
    def last(self) -> Epoch:
        """Epoch of the last record, also of one below the log's start; NO_EPOCH for none at all."""
        return self._starts[-1].epoch if self._starts else self._before

    def begin(self, start: EpochStart) -> None:
        """Add an epoch that begins at the log's end. Raises InvariantViolation (INV-22)."""
        if self._starts and self._starts[-1].start_offset == start.start_offset == self._cut_at:
            # All records of that epoch are below the log's start.
            self._starts.pop()
        if start.epoch < self._before or (
            self._starts
            and (
                start.epoch <= self._starts[-1].epoch
                or start.start_offset <= self._starts[-1].start_offset
            )
        ):
            last = self._starts[-1] if self._starts else f"epoch {self._before}"
            raise InvariantViolation("INV-22", f"epoch start {start} does not come after {last}")
        self._starts.append(start)

    def truncate(self, end_offset: Offset) -> None:
        """Drop the epochs that begin at or above ``end_offset``."""
        while self._starts and self._starts[-1].start_offset >= end_offset:
            self._starts.pop()

    def cut_start(self, start_offset: Offset, before: Epoch) -> None:
        """Note that the log starts here now; ``before`` is the epoch of the record before that."""
        self._starts = list(starts_from(self.starts, start_offset))
        self._before = before
        self._cut_at = start_offset

    def restart(self, before: Epoch) -> None:
        """Note that the log is empty, and what it continues ends in this epoch."""
        self._starts.clear()
        self._before = before
        self._cut_at = None

    def end_of(self, epoch: Epoch, log_start: Offset, log_end: Offset) -> tuple[Epoch, Offset]:
        """Largest epoch here that is not above ``epoch``, and the offset where it ends.

        ``(NO_EPOCH, log_start)`` if every record here is of a later epoch, and so is the one before
        the log's start.
        """
        end = log_end
        for start in reversed(self._starts):
            if start.epoch <= epoch:
                return start.epoch, end
            end = start.start_offset
        if NO_EPOCH < self._before <= epoch:
            return self._before, log_start
        return NO_EPOCH, log_start

    def start_of(self, epoch: Epoch) -> Offset | None:
        """First offset of exactly this epoch, None if no record here has it."""
        for start in reversed(self._starts):
            if start.epoch == epoch:
                return start.start_offset
        return None


def starts_from(starts: tuple[EpochStart, ...], offset: Offset) -> tuple[EpochStart, ...]:
    """Return the list of a log that begins at this offset: the epoch in force there begins there.

    That epoch stays even where the log has no record from there on.
    """
    later = tuple(start for start in starts if start.start_offset > offset)
    earlier = starts[: len(starts) - len(later)]
    return (EpochStart(earlier[-1].epoch, offset), *later) if earlier else later
