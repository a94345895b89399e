"""What the clients' own traffic shows while a run goes on: counts, and since when it flows.

Written by the event loop, read by the nemesis, the display and the evidence checks, so each
method takes a lock for a moment. It is evidence of faults and of recovery; verdicts come from the
history alone.
"""

import threading
from collections import Counter

import msgspec

from contracts.operations import Outcome


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


class Traffic:
    """Completed operations of all worker slots."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._outcomes: Counter[str] = Counter()
        self._ok_by_node: Counter[str] = Counter()
        #: Latest invocation time among acknowledged operations, by node and over all.
        self._acknowledged_by_node: dict[str, int] = {}
        self._acknowledged = -1

    def completed(self, outcome: Outcome, node: str | None, invoked: int) -> None:
        """An operation that was invoked at ``invoked`` (ns since the run's start) has ended."""
        with self._lock:
            self._outcomes[outcome] += 1
            if outcome != "ok":
                return
            self._acknowledged = max(self._acknowledged, invoked)
            if node is not None:
                self._ok_by_node[node] += 1
                before = self._acknowledged_by_node.get(node, -1)
                self._acknowledged_by_node[node] = max(before, invoked)

    def acknowledged_since(self, since: int, node: str | None = None) -> bool:
        """Whether an operation invoked after ``since`` was acknowledged, by ``node`` or at all."""
        with self._lock:
            if node is None:
                return self._acknowledged > since
            return self._acknowledged_by_node.get(node, -1) > since

    def counts(self) -> Counts:
        """Figures up to now."""
        with self._lock:
            return Counts(
                ok=self._outcomes["ok"],
                fail=self._outcomes["fail"],
                info=self._outcomes["info"],
                ok_by_node=dict(self._ok_by_node),
            )
