"""Carries out a schedule of faults against a running cluster, on threads of its own.

For each fault: wait for its time and for what it waits for, settle what its target means now, do
its course step by step, see from outside that it bit, heal it, see that it is gone, and see that
the system's own traffic flows again. Each step is a line of ``faults.jsonl``. Faults are carried
out side by side where the plan says so, and only there: one whose window begins after another's end
waits until that is over, however long its heal takes. Whatever happens, everything is healed when
this ends.
"""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor

from contracts.errors import HarnessError
from contracts.fault import ActualFault, Fault, FaultEvent, FaultPhase
from contracts.names import NodeName
from contracts.runtime import Runtime
from contracts.system import LeaderView
from harness.acting import perform, perform_where_it_can_be
from harness.defects import failure
from harness.down_nodes import DownNodes
from harness.evidence import Evidence, Observer
from harness.fault_aim import Aim, Patience
from harness.fault_gate import FaultGate, SparedError
from harness.fault_in_force import InForce, RecordWriter, in_short
from harness.holds import Holds
from harness.last_words import KILLED
from harness.progress import Progress
from harness.record_hits import RecordAt, records_hit
from harness.run_clock import RunClock
from harness.state_watch import StateWatch
from harness.stop import Stop
from harness.undisturbed import undisturbed
from nemesis.acts import Act, Start, ended_by, forgets, started_by
from nemesis.courses import Step
from nemesis.expectations import Expectation
from nemesis.fault_kind import FaultKind
from nemesis.kinds import fault_kind

_NS_PER_US = 1_000
_NEVER_US = float("inf")
#: Faults that may wait or be in force at once.
_SIDE_BY_SIDE_MAX = 32


class NemesisDriver:
    """One schedule, one cluster, one use."""

    def __init__(
        self,
        *,
        schedule: Sequence[Fault],
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
        watch: StateWatch | None = None,
        record_at: RecordAt | None = None,
        observers: Sequence[NodeName] = (),
    ) -> None:
        """``observers``: those of the runtime's nodes that do not vote."""
        self._schedule = schedule
        self._runtime = runtime
        self._nodes = tuple(runtime.nodes())
        self._observer = observer
        self._clock = clock
        self._faults = faults
        self._schedule_file = schedule_file
        self._down = down
        self._progress = progress
        self._stop = stop
        self._patience = patience or Patience()
        voters = tuple(node for node in self._nodes if node not in observers)
        self._aim = Aim(
            nodes=voters,
            observers=tuple(observers),
            leader=leader,
            clock=clock,
            progress=progress,
            stop=stop,
            patience=self._patience,
            watch=watch,
        )
        self._record_at = record_at
        self._holds = Holds()
        self._gate = FaultGate(self._holds, voters, watch, self._patience.held_s)
        #: One act at a time, so that what is held and what is in force never differ.
        self._acting = threading.Lock()
        self._recording = threading.Lock()
        self._in_force: dict[int, InForce] = {}

    def run(self, load_start: int, load_end: int) -> None:
        """Carry out the schedule; ``load_start`` and ``load_end`` are ns since the run's start.

        Raises:
            HarnessError: the runtime failed, or a fault could not be healed.
        """
        workers = max(1, min(len(self._schedule), _SIDE_BY_SIDE_MAX))
        under_way: list[tuple[float, Future[None]]] = []
        try:
            with ThreadPoolExecutor(workers, thread_name_prefix="fault") as pool:
                for fault in self._schedule:
                    at = load_start + fault.at_us * _NS_PER_US
                    if self._stop.wait((at - self._clock.now()) / 1e9):
                        break
                    # Only what the plan lets overlap overlaps.
                    for end_us, before in under_way:
                        if end_us <= fault.at_us:
                            before.result()
                    under_way = [one for one in under_way if not one[1].done()]
                    if self._stop.is_set():
                        break
                    future = pool.submit(self._tried, fault, at, load_end)
                    under_way.append((_planned_end_us(fault), future))
                for _, before in under_way:
                    before.result()
        finally:
            self.heal_everything()

    def heal_everything(self) -> None:
        """Undo what is still in force, remove every rule, resume every node and start the others.

        Raises:
            HarnessError: the runtime failed.
        """
        failed: list[HarnessError] = []

        def tried(act: Callable[[], object]) -> None:
            # What fails keeps no other node from being healed.
            try:
                act()
            except HarnessError as error:
                failed.append(error)

        for one in list(self._in_force.values()):
            for act in one.course.heal:
                tried(lambda one=one, act=act: self._do(one, act))
        self._holds.clear()
        tried(self._runtime.heal_all)
        for node in self._down.all():
            tried(lambda node=node: self._start(node))
        if failed:
            raise failed[0]

    def _start(self, node: NodeName) -> None:
        """Start a node that a fault ended; one that does not start stays excused."""
        perform(self._runtime, Start((node,)))
        self._down.back([node])

    def _tried(self, fault: Fault, at: int, load_end: int) -> None:
        """Carry out one fault; its failure ends the run at once, side by side with others or not.

        Raises:
            HarnessError: the runtime failed, or the fault could not be healed.
        """
        try:
            self._carry_out(fault, at, load_end)
        except Exception as error:
            self._stop.fail(failure(error))
            raise

    def _carry_out(self, fault: Fault, at: int, load_end: int) -> None:
        moment = self._aim.await_moment(fault, at, load_end)
        if moment.reason is not None:
            self._record(fault, None, "not-applicable", moment.reason)
        if not moment.has_come:
            return
        kind = fault_kind(fault.kind)
        actual = self._aim.settle(kind, fault, moment.there, load_end)
        if not isinstance(actual, ActualFault):
            if actual is not None:
                self._record(fault, None, "not-applicable", actual)
            return
        reason = self._gate.enter(kind, fault, actual)
        if reason is not None:
            self._record(fault, actual, "not-applicable", reason)
            return
        try:
            self._strike(kind, fault, actual, at)
        finally:
            self._gate.leave(fault.index)

    def _strike(self, kind: FaultKind, fault: Fault, actual: ActualFault, at: int) -> None:
        """The whole course of one fault."""
        course = kind.course_of(actual, fault.duration_us, self._nodes)
        looked_for = [item for step in course.steps for item in step.seen]
        looked_for += [*course.healed, *course.resumed]
        baseline = self._observer.before(looked_for)
        with self._recording:
            self._schedule_file.append(actual)
        before = self._progress.traffic.counts()
        others = self._holds.others(fault.index)
        beside = f"beside fault {', '.join(map(str, others))}" if others else None
        self._record(fault, actual, "invoked", beside)
        one = InForce(kind, fault, actual, course, baseline, [], [])
        self._in_force[fault.index] = one
        invoked = self._clock.now()
        try:
            told = self._go_through(one, invoked)
        except SparedError as spared:
            # Ended for a moment and not harmed: what it was meant to meet it has not met.
            self._record(fault, actual, "not-applicable", str(spared))
            self._heal(one, "its nodes are started again")
            return
        # A fault that began late, for want of a leader, still lasts as long as planned.
        end = max(at, invoked) + fault.duration_us * _NS_PER_US
        self._stop.wait((end - self._clock.now()) / 1e9)
        after = self._progress.traffic.counts()
        ok, ok_before = after.ok_by_node, before.ok_by_node
        inside = sum(ok.get(node, 0) - ok_before.get(node, 0) for node in actual.nodes)
        served = (
            f"{after.ok - before.ok} operations acknowledged from the call to inject until the "
            f"healing, {inside} by its nodes"
        )
        self._heal(one, "; ".join([served, *told]))

    def _go_through(self, one: InForce, invoked: int) -> list[str]:
        """Do the steps at their times and look; what the later ones showed."""
        told: list[str] = []
        is_told = False
        for step in one.course.steps:
            due = invoked + step.after_us * _NS_PER_US
            if step.after_us and self._stop.wait((due - self._clock.now()) / 1e9):
                break
            seen = self._take(one, step)
            if seen is None:
                continue
            if not is_told:
                is_told = True
                phase = "verified" if seen.seen else "not-bitten"
                self._record(one.fault, one.actual, phase, "; ".join([seen.sentence, *one.said]))
            elif not seen.seen:
                self._record(one.fault, one.actual, "not-bitten", seen.sentence)
            else:
                told.append(seen.sentence)
        return in_short(told)

    def _take(self, one: InForce, step: Step) -> Evidence | None:
        """Do one step; None where nothing is to be seen of it."""
        started = [node for act in step.acts for node in started_by(act)]
        for act in step.acts:
            if forgets(act):
                self._gate.before_forgetting(one.kind, one.fault, one.actual, self._stop)
            self._do(one, act)
        done = self._clock.now()
        seen: Evidence | None = None
        if step.seen:
            patience = self._patience
            patience_s = patience.started_s if step.awaits_start else patience.bitten_s
            seen = self._look(one, step.seen, done, patience_s, self._stop)
        self._are_back(started)
        return seen

    def _look(
        self,
        one: InForce,
        expectations: Sequence[Expectation],
        since: int,
        patience_s: float,
        stop: Stop,
        *,
        is_healed: bool = False,
    ) -> Evidence:
        """Look for what other faults in force let be seen."""
        return undisturbed(
            self._holds,
            one.fault.index,
            expectations,
            lambda wanted: self._observer.await_all(
                wanted, since, patience_s, stop, baseline=one.baseline, records=one.records
            ),
            is_healed=is_healed,
            has_ended=lambda node: is_healed and self._has_ended(node, one),
        )

    def _has_ended(self, node: NodeName, one: InForce) -> bool:
        """Whether the node has ended by itself, which no heal undoes."""
        if self._holds.is_down(node) or self._runtime.status(node) != "exited":
            return False
        # One that was killed and that the heal has not started is the runtime's failure.
        is_started = any(node in started_by(act) for act in one.course.heal)
        return not is_started or self._runtime.exit_code(node) != KILLED

    def _heal(self, one: InForce, served: str) -> None:
        """Heal one fault and see it gone.

        Raises:
            HarnessError: it would not go.
        """
        fault, actual = one.fault, one.actual
        if one.course.settled:
            now, patience_s = self._clock.now(), self._patience.healed_s
            self._look(one, one.course.settled, now, patience_s, Stop(), is_healed=True)
        self._record(fault, actual, "healing", served)
        for act in one.course.heal:
            self._do(one, act)
        healed = self._clock.now()
        # A heal is waited for even when the run is to end.
        gone = self._look(
            one, one.course.healed, healed, self._patience.healed_s, Stop(), is_healed=True
        )
        if not gone.seen:
            self._record(fault, actual, "not-healed", gone.sentence)
            self._tell_exits(one)
            raise HarnessError(
                f"heal the fault {fault.index} ({fault.kind}:{fault.target})",
                ", ".join(actual.nodes),
                gone.sentence,
                "The run was stopped; look at the nodes' logs in the run folder.",
            )
        self._are_back(actual.nodes)
        self._tell_exits(one)
        self._in_force.pop(fault.index, None)
        self._record(fault, actual, "removed", gone.sentence)
        if not self._stop.is_set():
            self._see_resumed(one, self._clock.now())

    def _see_resumed(self, one: InForce, removed: int) -> None:
        """Wait until clients are served, and the nodes' own traffic flows, once more."""
        index, patience_s = one.fault.index, self._patience.resumed_s
        while True:
            others = self._holds.others(index)
            served = self._observer.await_acknowledgement(removed, patience_s, self._stop)
            # What another fault still keeps down says nothing about this one.
            if served.seen or self._stop.is_set() or not (others or self._holds.others(index)):
                break
        flows = served
        if served.seen and one.course.resumed:
            flows = self._look(
                one, one.course.resumed, removed, patience_s, self._stop, is_healed=True
            )
        told = served.sentence if flows is served else f"{served.sentence}; {flows.sentence}"
        if served.seen and (flows.seen or flows.sentence.startswith("nobody can look")):
            self._record(one.fault, one.actual, "resumed", told)
        elif not self._stop.is_set():
            # The rule is gone, so this is the system's own doing: the run goes on and is judged.
            self._record(one.fault, one.actual, "not-healed", told)

    def _do(self, one: InForce, act: Act) -> None:
        """Do the part of an act that the other faults leave to it."""
        index = one.fault.index
        with self._acting:
            self._down.expect(ended_by(act))
            for part in self._holds.admit(index, act):
                done = perform_where_it_can_be(self._runtime, part, one.records)
                one.records.extend(done.records)
                if done.said:
                    one.said.append(done.said)
                if self._record_at is not None:
                    one.said.extend(records_hit(self._runtime, self._record_at, done.records))

    def _are_back(self, nodes: Sequence[NodeName]) -> None:
        """Nodes that nothing holds down any more may not be down from now on."""
        self._down.back([node for node in nodes if not self._holds.is_down(node)])

    def _tell_exits(self, one: InForce) -> None:
        """Nodes that were started again and ended by themselves: that is the system's own doing."""
        for node in sorted(one.actual.nodes):
            is_told = node in self._progress.exited or self._holds.is_down(node)
            if one.kind.ends_processes and not is_told and self._runtime.status(node) == "exited":
                self._progress.reached(
                    "node-exited",
                    node=node,
                    exit_code=self._runtime.exit_code(node),
                    detail=f"it did not stay up after the {one.actual.kind} was healed",
                )

    def _record(
        self,
        fault: Fault,
        actual: ActualFault | None,
        phase: FaultPhase,
        evidence: str | None = None,
    ) -> None:
        with self._recording:
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


def _planned_end_us(fault: Fault) -> float:
    """When the fault is over by the plan; nobody waits for one that waits itself."""
    return fault.at_us + fault.duration_us if fault.when is None else _NEVER_US
