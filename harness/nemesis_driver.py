"""Carries out a schedule of faults against a running cluster, on a thread of its own.

For each fault: settle what its target means now, inject it, see from outside that it bit, wait,
heal it, see that it is gone, and see that clients are served again. Each step is a line of
``faults.jsonl``. Whatever happens, everything is healed when this ends.
"""

from collections.abc import Callable, Sequence
from typing import Protocol

import msgspec

from contracts.errors import HarnessError
from contracts.fault import ActualFault, FaultEvent, FaultPhase, ScheduledFault
from contracts.names import NodeName
from contracts.runtime import Runtime
from contracts.system import LeaderView
from harness.down_nodes import DownNodes
from harness.evidence import Observer
from harness.progress import Progress
from harness.run_clock import RunClock
from harness.stop import NotYetError, Stop, patiently
from nemesis.kinds import FaultKind, fault_kind
from nemesis.targets import ClusterView


class Patience(msgspec.Struct, frozen=True):
    """How long the driver waits for what, in seconds."""

    #: For a target to exist; then the fault is not applicable.
    target_s: float = 5.0
    bitten_s: float = 3.0
    healed_s: float = 15.0
    #: For clients to be served again after a heal.
    resumed_s: float = 15.0
    leader_query_s: float = 1.0


class RecordWriter(Protocol):
    """Appends records to a file."""

    def append(self, record: object) -> None:
        """Write one record."""
        ...


class NemesisDriver:
    """One schedule, one cluster, one use."""

    def __init__(
        self,
        *,
        schedule: Sequence[ScheduledFault],
        runtime: Runtime,
        leader: Callable[[float], LeaderView],
        observer: Observer,
        clock: RunClock,
        faults: RecordWriter,
        schedule_file: RecordWriter,
        down: DownNodes,
        progress: Progress,
        stop: Stop,
        patience: Patience | None = None,
    ) -> None:
        self._schedule = schedule
        self._runtime = runtime
        self._nodes = tuple(runtime.nodes())
        self._ask_leader = leader
        self._observer = observer
        self._clock = clock
        self._faults = faults
        self._schedule_file = schedule_file
        self._down = down
        self._progress = progress
        self._stop = stop
        self._patience = patience or Patience()
        self._leader: NodeName | None = None
        self._last_leader: NodeName | None = None

    def run(self, load_start: int, load_end: int) -> None:
        """Carry out the schedule; ``load_start`` and ``load_end`` are ns since the run's start.

        Raises:
            HarnessError: the runtime failed, or a fault could not be healed.
        """
        try:
            for fault in self._schedule:
                at = load_start + fault.at_ms * 1_000_000
                if self._stop.wait((at - self._clock.now()) / 1e9):
                    return
                if self._clock.now() >= load_end:
                    self._record(fault, None, "not-applicable", "the load was over")
                    continue
                self._carry_out(fault, at)
        finally:
            self.heal_everything()

    def heal_everything(self) -> None:
        """Remove every rule, resume every node and start those that faults have killed.

        Raises:
            HarnessError: the runtime failed.
        """
        self._runtime.heal_all()
        killed = self._down.all()
        for node in killed:
            patiently(lambda node=node: self._runtime.start(node), 10.0, 0.5, HarnessError)
        self._down.back(killed)

    def _carry_out(self, fault: ScheduledFault, at: int) -> None:
        kind = fault_kind(fault.kind)
        actual = self._settle(kind, fault)
        if actual is None:
            if not self._stop.is_set():
                reason = f"no {fault.target} for {self._patience.target_s:g} s"
                self._record(fault, None, "not-applicable", reason)
            return
        self._schedule_file.append(actual)
        before = self._progress.traffic.counts()
        self._record(fault, actual, "invoked")
        self._down.expect(kind.downs(actual))
        invoked = self._clock.now()
        said = kind.inject(self._runtime, actual)
        injected = self._clock.now()
        seen = self._observer.await_all(
            kind.when_bitten(actual, self._nodes), injected, self._patience.bitten_s, self._stop
        )
        evidence = seen.sentence if said is None else f"{seen.sentence}; {said}"
        self._record(fault, actual, "verified" if seen.seen else "not-bitten", evidence)
        # A fault that began late, for want of a leader, still lasts as long as planned.
        end = max(at, invoked) + fault.duration_ms * 1_000_000
        self._stop.wait((end - self._clock.now()) / 1e9)
        after = self._progress.traffic.counts()
        inside = sum(
            after.ok_by_node.get(node, 0) - before.ok_by_node.get(node, 0) for node in actual.nodes
        )
        served = (
            f"{after.ok - before.ok} operations acknowledged from the call to inject until the "
            f"healing, {inside} by its nodes"
        )
        self._heal(kind, fault, actual, served)

    def _heal(
        self, kind: FaultKind, fault: ScheduledFault, actual: ActualFault, served: str
    ) -> None:
        """Heal one fault and see it gone.

        Raises:
            HarnessError: it would not go.
        """
        self._record(fault, actual, "healing", served)
        kind.heal(self._runtime, actual)
        healed = self._clock.now()
        # A heal is waited for even when the run is to end.
        gone = self._observer.await_all(
            kind.when_healed(actual, self._nodes), healed, self._patience.healed_s, Stop()
        )
        if not gone.seen:
            self._record(fault, actual, "not-healed", gone.sentence)
            self._tell_exits(kind, actual)
            raise HarnessError(
                f"heal the fault {fault.index} ({fault.kind}:{fault.target})",
                ", ".join(actual.nodes),
                gone.sentence,
                "The run was stopped; look at the nodes' logs in the run folder.",
            )
        self._down.back(kind.downs(actual))
        removed = self._clock.now()
        self._record(fault, actual, "removed", gone.sentence)
        if self._stop.is_set():
            return
        served_again = self._observer.await_acknowledgement(
            removed, self._patience.resumed_s, self._stop
        )
        if served_again.seen:
            self._record(fault, actual, "resumed", served_again.sentence)
        elif not self._stop.is_set():
            # The rule is gone, so this is the system's own doing: the run goes on and is judged.
            self._record(fault, actual, "not-healed", served_again.sentence)

    def _tell_exits(self, kind: FaultKind, actual: ActualFault) -> None:
        """Nodes that were started again and ended by themselves: that is the system's own doing."""
        for node in sorted(kind.downs(actual)):
            if self._runtime.status(node) == "exited":
                self._progress.reached(
                    "node-exited",
                    node=node,
                    exit_code=self._runtime.exit_code(node),
                    detail=f"it did not stay up after the {actual.kind} was healed",
                )

    def _settle(self, kind: FaultKind, fault: ScheduledFault) -> ActualFault | None:
        """What the fault means now, waiting a while for its target to exist."""

        def look() -> ActualFault:
            self._update_leader()
            view = ClusterView(self._nodes, self._leader, self._last_leader)
            actual = kind.actual(fault, view)
            if actual is None:
                raise NotYetError(f"no {fault.target}")
            return actual

        try:
            return self._stop.retrying(self._patience.target_s, 0.05, NotYetError)(look)
        except NotYetError:
            return None

    def _update_leader(self) -> None:
        view = self._ask_leader(self._patience.leader_query_s)
        self._progress.led_by(view.leader, view.epoch)
        if self._leader is not None and view.leader != self._leader:
            self._last_leader = self._leader
        self._leader = view.leader

    def _record(
        self,
        fault: ScheduledFault,
        actual: ActualFault | None,
        phase: FaultPhase,
        evidence: str | None = None,
    ) -> None:
        event = FaultEvent(
            time=self._clock.now(),
            index=fault.index,
            kind=fault.kind,
            phase=phase,
            target=fault.target,
            nodes=() if actual is None else actual.nodes,
            links=() if actual is None else actual.links,
            leader=None if actual is None else actual.leader,
            evidence=evidence,
        )
        self._faults.append(event)
        self._progress.fault_event(event)
