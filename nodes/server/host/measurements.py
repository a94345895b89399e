"""Measurements that a node makes of itself while it works, for the keeper of its figures.

Durations are of the node's own monotonic clock. Must never change what the node does.
"""

from splitbrain.nodes.quorum.identifiers import Microseconds


class Measurements:
    """Gets each measurement once and drops it; a keeper overrides, and never raises."""

    def leader_known(self, duration_us: int) -> None:
        """Note that a leader is known again; for so long none was."""

    def snapshot_written(self, duration_us: int) -> None:
        """Note that a snapshot of the node's own is durable; it took so long."""

    def event_handled(self, waited_us: int, worked_us: int) -> None:
        """The controller's queue handled an event that had waited so long."""

    def metadata_error(self) -> None:
        """A record could not be made, or could not be applied."""


class LeaderlessTime:
    """How long a node has known no leader."""

    def __init__(self, now: Microseconds) -> None:
        """None is known to a node that has just started."""
        self._since: Microseconds | None = now

    def measure(self, now: Microseconds, *, leader_known: bool) -> int | None:
        """Take what the node knows now; how long none was known, where that has just ended."""
        since = self._since
        if not leader_known:
            if since is None:
                self._since = now
            return None
        self._since = None
        return None if since is None else now - since
