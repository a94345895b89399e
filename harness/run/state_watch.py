"""Watch on the nodes' state events while a run goes on, for the nemesis and its evidence.

Fed by the thread that follows the events, asked by others: where each log ends, when it last grew
and in which epoch, and whether something has happened that a fault waits for. Times are those of
arrival, at most one poll late.
"""

import threading
from collections.abc import Mapping
from typing import Final

from splitbrain.contracts.fault import Awaited
from splitbrain.contracts.names import NodeName
from splitbrain.contracts.state_event import StateEvent
from splitbrain.harness.console.stop import Stop
from splitbrain.nemesis.awaiting import Count, HappeningDetector
from splitbrain.nemesis.promise import NEVER, VoterReport

#: How often a wait looks whether the run is to end; what is waited for wakes it at once.
_LOOK_S = 0.05
_NEVER = -1
#: Key of ``StateEvent.detail`` that says what the node has on its disk for good.
_FLUSHED: Final = "flushed"


class Await:
    """One fault's wait."""

    def __init__(self, when: Awaited) -> None:
        self.count = Count(when)
        self.happened = threading.Event()

    def wait(self, timeout_s: float, stop: Stop) -> NodeName | None:
        """Where the last of what was waited for was; None if it did not come before the end."""
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
        self._detector = HappeningDetector()
        self._awaits: list[Await] = []
        self._ends: dict[NodeName, int] = {}
        #: Node to epoch to when its log last grew in it.
        self._grown: dict[NodeName, dict[int, int]] = {}
        self._epoch = 0
        self._reports: dict[NodeName, VoterReport] = {}
        #: Looks at all nodes' files that are over.
        self._looks = 0

    def heard(self, event: StateEvent) -> None:
        """Take in an event that is stamped with the run's time."""
        node = NodeName(event.node)
        with self._lock:
            self._epoch = max(self._epoch, event.epoch)
            self._reports[node] = _extended(self._reports.get(node, VoterReport()), event)
            if event.kind in ("append", "truncate") and event.offset is not None:
                self._ends[node] = event.offset
            if event.kind == "append" and event.time is not None:
                self._grown.setdefault(node, {})[event.epoch] = event.time
            happening = self._detector.detect(event)
            if happening is None:
                return
            for waiting in [each for each in self._awaits if each.count.heard(happening)]:
                self._awaits.remove(waiting)
                waiting.happened.set()

    def looked(self) -> None:
        """All that the nodes had written when this look began has been heard."""
        with self._lock:
            self._looks += 1

    def looks(self) -> int:
        """How many looks are over; two more, and all is heard that was written before."""
        with self._lock:
            return self._looks

    def reports(self) -> Mapping[NodeName, VoterReport]:
        """Return each node's reports of its log; nodes without any are missing."""
        with self._lock:
            return dict(self._reports)

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
        """Return the highest epoch that any node was in."""
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


def _extended(before: VoterReport, event: StateEvent) -> VoterReport:
    end, committed, held, held_epoch = before.end, before.committed, before.held, before.held_epoch
    offset, flushed = event.offset, event.detail.get(_FLUSHED, NEVER)
    if offset is not None:
        if event.kind in ("started", "append", "truncate"):
            end = offset
        if event.kind in ("started", "truncate"):
            held = min(held, offset)
        if event.kind in ("commit", "high-watermark"):
            committed = max(committed, offset)
            end = max(end, offset)
            if flushed != NEVER:
                held_epoch = max(held_epoch, event.epoch)
    if flushed != NEVER and held_epoch == event.epoch:
        # Of what it had not heard to be committed in this epoch nothing is known.
        held = max(held, min(committed, flushed))
    return VoterReport(max(before.epoch, event.epoch), end, committed, held, held_epoch)
