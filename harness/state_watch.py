"""What the nodes' state events show while a run goes on, for the nemesis and its evidence.

Fed by the thread that follows the events, asked by others: where each log ends, when it last grew
and in which epoch, and whether something has happened that a fault waits for. Times are those of
arrival, at most one poll late. Decides nothing.
"""

import threading
from collections.abc import Mapping

from contracts.fault import Awaited
from contracts.names import NodeName
from contracts.state_event import StateEvent
from harness.stop import Stop
from nemesis.awaiting import Count, Tale

#: How often a wait looks whether the run is to end; what is waited for wakes it at once.
_LOOK_S = 0.05
_NEVER = -1


class Await:
    """One fault's wait."""

    def __init__(self, when: Awaited) -> None:
        self.count = Count(when)
        self.happened = threading.Event()

    def wait(self, timeout_s: float, stop: Stop) -> NodeName | None:
        """Where the last of what was waited for was; None where it did not come, or the run ends.

        Args:
            timeout_s: from now on.
            stop: ends the wait early.
        """
        left_s = max(0.0, timeout_s)
        while not self.happened.wait(min(_LOOK_S, left_s)):
            left_s -= _LOOK_S
            if stop.is_set() or left_s <= 0:
                return None
        return self.count.there


class StateWatch:
    """The state events of all nodes of one run, as they arrive."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._tale = Tale()
        self._awaits: list[Await] = []
        self._ends: dict[NodeName, int] = {}
        #: Node to epoch to when its log last grew in it.
        self._grown: dict[NodeName, dict[int, int]] = {}
        self._epoch = 0

    def heard(self, event: StateEvent) -> None:
        """Take in an event that is stamped with the run's time."""
        node = NodeName(event.node)
        with self._lock:
            self._epoch = max(self._epoch, event.epoch)
            if event.kind in ("append", "truncate") and event.offset is not None:
                self._ends[node] = event.offset
            if event.kind == "append" and event.time is not None:
                self._grown.setdefault(node, {})[event.epoch] = event.time
            told = self._tale.told(event)
            if told is None:
                return
            for one in [waiting for waiting in self._awaits if waiting.count.heard(told)]:
                self._awaits.remove(one)
                one.happened.set()

    def begin(self, when: Awaited) -> Await:
        """Begin to count what a fault waits for; from now on alone."""
        waiting = Await(when)
        with self._lock:
            self._awaits.append(waiting)
        return waiting

    def ends(self) -> Mapping[NodeName, int]:
        """End offset of each node's log, as far as told."""
        with self._lock:
            return dict(self._ends)

    def epoch(self) -> int:
        """The highest epoch that any node was in."""
        with self._lock:
            return self._epoch

    def tells_of(self, node: NodeName) -> bool:
        """Whether the node has ever told that its log grew."""
        with self._lock:
            return node in self._grown

    def grown_at(self, node: NodeName, epoch_max: int | None = None) -> int:
        """When the node's log last grew, in this epoch or an earlier one; -1: never."""
        with self._lock:
            times = self._grown.get(node, {})
            return max(
                (time for epoch, time in times.items() if epoch_max is None or epoch <= epoch_max),
                default=_NEVER,
            )
