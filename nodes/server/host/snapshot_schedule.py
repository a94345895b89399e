"""When a node writes a snapshot of its state: after so many new bytes, or after so long a time.

Asked whenever records were applied: a log in which nothing happens needs no snapshot. Source:
Kafka's SnapshotGenerator. Must never look at a clock of its own.
"""

from splitbrain.nodes.quorum.identifiers import Microseconds
from splitbrain.nodes.quorum.settings import QuorumSettings


class SnapshotSchedule:
    """The triggers of one life."""

    def __init__(self, settings: QuorumSettings, now: Microseconds) -> None:
        self._new_bytes_max = settings.snapshot_max_new_record_bytes
        self._interval_us = settings.snapshot_max_interval_ms * 1_000
        self._since = now

    def began(self, now: Microseconds) -> None:
        """Note that a snapshot was begun, or the state was loaded from one."""
        self._since = now

    def is_due(self, new_bytes: int, now: Microseconds) -> bool:
        """Whether one is due, so many bytes after the last one; an interval of 0 is never over."""
        if not new_bytes:
            return False
        is_old = 0 < self._interval_us <= now - self._since
        return new_bytes >= self._new_bytes_max or is_old
