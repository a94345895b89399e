"""When a scheduled fault strikes, and what: its moment awaited, its symbolic target settled.

Never acts, and never strikes where the moment or the target does not come. Safe for several
threads.
"""

import contextlib
import threading
from collections.abc import Callable

import msgspec

from contracts.fault import ActualFault, Fault
from contracts.names import NodeName
from contracts.system import LeaderView
from harness.progress import Progress
from harness.run_clock import RunClock
from harness.state_watch import StateWatch
from harness.stop import NotYetError, Stop
from nemesis.awaiting import sentence
from nemesis.fault_kind import FaultKind
from nemesis.targets import ClusterView

_NS_PER_US = 1_000


class Patience(msgspec.Struct, frozen=True):
    """How long the driver waits for what, in seconds."""

    #: For a target to exist; then the fault is not applicable.
    target_s: float = 5.0
    bitten_s: float = 3.0
    #: For the others to hold what a node is about to forget, an election included.
    held_s: float = 3.0
    #: For what a node must start for, and read its files.
    started_s: float = 15.0
    healed_s: float = 15.0
    #: For clients to be served again after a heal, and for the nodes' own traffic.
    resumed_s: float = 15.0
    leader_query_s: float = 1.0


class Moment(msgspec.Struct, frozen=True):
    """What came of the wait for a fault's moment."""

    has_come: bool
    #: Where what was waited for has happened; None where nothing was.
    there: NodeName | None = None
    #: Why it will not come; None where it has, or where the run ends.
    reason: str | None = None


class Aim:
    """The moments and targets of one run's faults."""

    def __init__(
        self,
        *,
        nodes: tuple[NodeName, ...],
        leader: Callable[[float], LeaderView],
        clock: RunClock,
        progress: Progress,
        stop: Stop,
        patience: Patience,
        watch: StateWatch | None,
        observers: tuple[NodeName, ...] = (),
    ) -> None:
        self._nodes = nodes
        self._observers = observers
        self._ask_leader = leader
        self._clock = clock
        self._progress = progress
        self._stop = stop
        self._patience = patience
        self._watch = watch
        #: Who leads is asked by one thread at a time, so that the last leader is not lost.
        self._looking = threading.Lock()
        self._leader: NodeName | None = None
        self._last_leader: NodeName | None = None

    def await_moment(self, fault: Fault, at: int, load_end: int) -> Moment:
        """Wait for what a fault waits for, counted from now on.

        Args:
            fault: whose time has come.
            at: when it came, ns since the run's start.
            load_end: when clients stop working, ns since the run's start.
        """
        when = fault.when
        if when is None:
            return Moment(True)
        if self._watch is None:
            return Moment(False, reason="the nodes tell nothing to wait for")
        end = load_end if when.timeout_us is None else at + when.timeout_us * _NS_PER_US
        there = self._watch.begin(when).wait((end - self._clock.now()) / 1e9, self._stop)
        if self._stop.is_set():
            return Moment(False)
        if there is None:
            seconds = (end - at) / 1e9
            return Moment(False, reason=f"{sentence(when)} did not happen within {seconds:g} s")
        if self._stop.wait(when.delay_us / 1e6):
            return Moment(False)
        return Moment(True, there)

    def settle(
        self, kind: FaultKind, fault: Fault, there: NodeName | None, load_end: int
    ) -> ActualFault | str | None:
        """Settle what the fault means now, waiting a while for its target to exist.

        Where it is not to strike: why, or None where the run ends.
        """

        def look() -> ActualFault:
            actual = kind.actual(fault, self._view(there))
            if actual is None:
                raise NotYetError(f"no {fault.target}")
            return actual

        actual: ActualFault | None = None
        if self._clock.now() < load_end:
            with contextlib.suppress(NotYetError):
                actual = self._stop.retrying(self._patience.target_s, 0.05, NotYetError)(look)
            if actual is None and self._stop.is_set():
                return None
        if self._clock.now() >= load_end:
            return "the load was over"
        return actual or f"no {fault.target} for {self._patience.target_s:g} s"

    def _view(self, there: NodeName | None) -> ClusterView:
        with self._looking:
            view = self._ask_leader(self._patience.leader_query_s)
            self._progress.led_by(view.leader, view.epoch)
            if self._leader is not None and view.leader != self._leader:
                self._last_leader = self._leader
            self._leader = view.leader
            return ClusterView(
                nodes=self._nodes,
                leader=self._leader,
                last_leader=self._last_leader,
                ends={} if self._watch is None else self._watch.ends(),
                there=there,
                observers=self._observers,
            )
