"""Watch on the clients' own traffic while a run goes on: counts, and since when it flows.

Written by the event loop, read by the nemesis, the display and the evidence checks. Worker
processes keep one each and hand over what is new in it as a ``TrafficShare``. It is evidence of
faults and of recovery; verdicts come from the history alone. Nothing is held for each operation.
"""

import threading

import msgspec

from splitbrain.history.records import Event

_NEVER = -1


class Counts(msgspec.Struct, frozen=True):
    """Outcomes so far."""

    ok: int
    fail: int
    info: int
    #: Acknowledged by each node that said so.
    ok_by_node: dict[str, int]

    @property
    def total(self) -> int:
        """All completed operations."""
        return self.ok + self.fail + self.info


class TrafficShare(msgspec.Struct, frozen=True):
    """Counts of one worker process since its last share."""

    counts: Counts
    #: Latest invocation time among acknowledged operations, ns since the run's start; -1: none.
    acknowledged: int
    #: The same by node.
    acknowledged_by_node: dict[str, int]


class Traffic:
    """Completed operations of all worker slots."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._clear()

    def _clear(self) -> None:
        self._outcomes: dict[str, int] = {"ok": 0, "fail": 0, "info": 0}
        self._ok_by_node: dict[str, int] = {}
        self._acknowledged_by_node: dict[str, int] = {}
        self._acknowledged = _NEVER

    def completed(self, event: Event, invoked: int) -> None:
        """An operation that was invoked at ``invoked`` (ns since the run's start) ended so."""
        node = event.node
        with self._lock:
            self._outcomes[event.type] += 1
            if event.type != "ok":
                return
            self._acknowledged = max(self._acknowledged, invoked)
            if node is not None:
                self._ok_by_node[node] = self._ok_by_node.get(node, 0) + 1
                if invoked > self._acknowledged_by_node.get(node, _NEVER):
                    self._acknowledged_by_node[node] = invoked

    def acknowledged_since(self, since: int, node: str | None = None) -> bool:
        """Whether an operation invoked after ``since`` was acknowledged, by ``node`` or at all."""
        with self._lock:
            if node is None:
                return self._acknowledged > since
            return self._acknowledged_by_node.get(node, _NEVER) > since

    def counts(self) -> Counts:
        """Figures up to now."""
        with self._lock:
            return Counts(**self._outcomes, ok_by_node=dict(self._ok_by_node))

    def take(self) -> TrafficShare:
        """Return the counts since the last call, and forget them here."""
        with self._lock:
            counts = Counts(**self._outcomes, ok_by_node=self._ok_by_node)
            share = TrafficShare(counts, self._acknowledged, self._acknowledged_by_node)
            self._clear()
            return share

    def add(self, share: TrafficShare) -> None:
        """Count what another process saw."""
        with self._lock:
            for outcome in self._outcomes:
                self._outcomes[outcome] += getattr(share.counts, outcome)
            for node, count in share.counts.ok_by_node.items():
                self._ok_by_node[node] = self._ok_by_node.get(node, 0) + count
            self._acknowledged = max(self._acknowledged, share.acknowledged)
            for node, invoked in share.acknowledged_by_node.items():
                before = self._acknowledged_by_node.get(node, _NEVER)
                self._acknowledged_by_node[node] = max(before, invoked)
