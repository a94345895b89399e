"""Carries out a schedule of faults against a running cluster, on threads of its own.

Everything about a fault is decided by its machine (``nemesis.fault_machine``); here its effects are
carried out. Faults are carried out side by side where the plan says so, and only there: one whose
window begins after another's end waits until that is over, however long its heal takes. Whatever
happens, everything is healed when this ends.
"""

import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import msgspec

from splitbrain.contracts.arms import MemberArm
from splitbrain.contracts.errors import HarnessError
from splitbrain.contracts.fault import Fault, FaultEvent
from splitbrain.contracts.names import NodeName
from splitbrain.contracts.runtime import Runtime
from splitbrain.contracts.system import LeaderView
from splitbrain.harness.console.stop import Stop
from splitbrain.harness.run.acting import Record as ActRecord
from splitbrain.harness.run.acting import RecordAt, perform, perform_where_it_can_be, records_hit
from splitbrain.harness.run.attempts import failure
from splitbrain.harness.run.convergence import await_recovered
from splitbrain.harness.run.down_nodes import DownNodes
from splitbrain.harness.run.evidence import Baseline, Observer
from splitbrain.harness.run.progress import Progress
from splitbrain.harness.run.run_clock import RunClock
from splitbrain.harness.run.state_watch import StateWatch
from splitbrain.history.writer import LineWriter
from splitbrain.nemesis import effects
from splitbrain.nemesis.acts import Act, Start, ended_by
from splitbrain.nemesis.aim import Aim, Patience
from splitbrain.nemesis.effects import Acknowledged, Done, Effect, Evidence, Reports
from splitbrain.nemesis.fault_machine import FaultMachine, Nemesis
from splitbrain.nemesis.gate import ReportedPromise
from splitbrain.nemesis.targets import ClusterView

_NS_PER_US = 1_000
_US_PER_S = 1_000_000
_NEVER_US = float("inf")
#: When the load of a run without a timetable ends: in a century.
_FOREVER_US = 100 * 366 * 24 * 3600 * _US_PER_S
#: Faults that may wait or be in force at once.
_SIDE_BY_SIDE_MAX = 32


class Order(msgspec.Struct, frozen=True):
    """The side of a fault's caller, where no schedule says how long it lasts."""

    #: Set when it is to be healed.
    over: threading.Event
    #: Told each phase of it, on the thread that carries it out.
    told: Callable[[FaultEvent], None]


class _Carried(msgspec.Struct):
    """Notes on a fault that is carried out."""

    fault: Fault
    machine: FaultMachine
    baseline: Baseline = Baseline()
    #: Reports of the runtime on its acts.
    records: list[ActRecord] = []
    order: Order | None = None


class NemesisDriver:
    """One schedule, one cluster, one use."""

    def __init__(
        self,
        *,
        schedule: Sequence[Fault],
        runtime: Runtime,
        leader: Callable[[float], LeaderView],
        observer: Observer,
        recovered: Callable[[], None],
        clock: RunClock,
        faults: LineWriter,
        schedule_file: LineWriter,
        down: DownNodes,
        progress: Progress,
        stop: Stop,
        patience: Patience | None = None,
        watch: StateWatch | None = None,
        record_at: RecordAt | None = None,
        members: MemberArm | None = None,
        observers: Sequence[NodeName] = (),
    ) -> None:
        """``recovered``: as ``System.recovered``; ``observers``: nodes that do not vote."""
        self._members = members
        self._schedule, self._runtime, self._ask_leader = schedule, runtime, leader
        self._observer, self._watch, self._record_at = observer, watch, record_at
        self._recovered = recovered
        self._faults, self._schedule_file = faults, schedule_file
        self._clock, self._down, self._progress, self._stop = clock, down, progress, stop
        self._patience = patience = patience or Patience()
        nodes = tuple(runtime.nodes())
        voters = tuple(node for node in nodes if node not in observers)
        self._aim = Aim(voters, observers)
        promise = ReportedPromise(voters, patience)
        self._nemesis = Nemesis(nodes, voters, promise, patience)
        self._carried: dict[int, _Carried] = {}
        #: One thread at a time is in the machines, and in what they have in common.
        self._deciding = threading.Lock()
        #: The leader is asked for by one thread at a time, so that the last leader is not lost.
        self._looking = threading.Lock()
        #: One act at a time, so that what is held and what is in force never differ.
        self._acting = threading.Lock()
        self._recording = threading.Lock()

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
                    under_way = [
                        (end_us, before) for end_us, before in under_way if not before.done()
                    ]
                    if self._stop.is_set():
                        break
                    future = pool.submit(self._carry_out, fault, at, load_end)
                    under_way.append((_planned_end_us(fault), future))
                for _, before in under_way:
                    before.result()
        finally:
            if not self._stop.frozen.is_set():
                self.heal_everything()

    def strike(self, fault: Fault, order: Order) -> None:
        """Carry out one fault from now on, healed once ``order`` says so.

        Its duration is that of its steps, of a kind with several strokes. Returns when it is seen
        gone and clients are served; several may be carried out at a time, each on a thread of its
        own. ``heal_everything`` belongs to the caller.

        Raises:
            HarnessError: the runtime failed, or the fault could not be healed.
        """
        self._carry_out(fault, self._clock.now(), _FOREVER_US * _NS_PER_US, order)

    def heal_everything(self) -> None:
        """Undo what is still in force, remove every rule, resume every node and start the others.

        Raises:
            HarnessError: the runtime failed.
        """
        failed: list[HarnessError] = []

        def tried(act: Callable[[], object]) -> None:
            # A failure keeps no other node from being healed.
            try:
                act()
            except HarnessError as error:
                failed.append(error)

        for index, heal in list(self._nemesis.in_force.items()):
            for act in heal:
                tried(lambda index=index, act=act: self._do(self._carried[index], act))
        self._nemesis.holds.clear()
        tried(self._runtime.heal_all)
        for node in self._down.all():
            tried(lambda node=node: self._start(node))
        if failed:
            raise failed[0]

    def _start(self, node: NodeName) -> None:
        """Start a node that a fault ended; one that does not start stays excused."""
        perform(self._runtime, Start((node,)))
        self._down.back([node])

    def _carry_out(self, fault: Fault, at: int, load_end: int, order: Order | None = None) -> None:
        """Carry out one fault; its failure ends the run at once, beside others or not."""
        machine = FaultMachine(self._nemesis, fault, _in_us(at), _in_us(load_end))
        carried = self._carried[fault.index] = _Carried(fault, machine, order=order)
        answer: object = None
        try:
            while (effect := self._step(machine, carried, answer)) is not None:
                if self._stop.frozen.is_set():
                    # The next step would heal, and so change what is to be looked at.
                    break
                answer = self._answer(carried, effect)
        except Exception as error:
            self._stop.fail(failure(error))
            raise
        finally:
            with self._deciding:
                machine.close()

    def _step(self, machine: FaultMachine, carried: _Carried, answer: object) -> Effect | None:
        with self._deciding:
            now_us, is_ending = _in_us(self._clock.now()), self._stop.is_set()
            effect = machine.step(answer, now_us, is_ending=is_ending)
            while isinstance(effect, effects.AreBack):
                # At once: another fault may be about to hold one of them down.
                self._tell(carried, effect)
                effect = machine.step(None, now_us, is_ending=is_ending)
            return effect

    def _answer(self, carried: _Carried, effect: Effect) -> Any:
        """Carry out an effect; the answer that it names."""
        answer: Any = None
        match effect:
            case effects.StayInForce(until_us) if carried.order is not None:
                # Its duration is for the times of its steps alone.
                left_s = None if carried.machine.is_through else max(0.0, self._left_s(until_us))
                answer = carried.order.over.wait(left_s)
            case effects.Wait(until_us) | effects.StayInForce(until_us):
                self._stop.wait(self._left_s(until_us))
            case effects.AwaitHappening(when, until_us):
                if self._watch is not None:
                    answer = self._watch.begin(when).wait(self._left_s(until_us), self._stop)
            case effects.AwaitRecovery(until_us):
                answer = await_recovered(self._look, self._left_s(until_us), self._stop)
            case effects.AskView():
                answer = self._view()
            case effects.AskReports():
                watch = self._watch
                answer = None if watch is None else Reports(watch.reports(), watch.looks())
            case effects.AskAcknowledged():
                counts = self._progress.traffic.counts()
                answer = Acknowledged(counts.ok, counts.ok_by_node)
            case effects.AskExits(nodes):
                answer = self._ended(nodes)
            case effects.Do(act):
                answer = self._do(carried, act)
            case effects.Look() | effects.AwaitService():
                answer = self._see(carried, effect)
            case _:
                self._tell(carried, effect)
        return answer

    def _look(self) -> None:
        if self._nemesis.in_force:
            raise HarnessError("wait for all nodes", "nemesis", "another fault is in force", "Wait")
        self._recovered()

    def _see(self, carried: _Carried, look: effects.Look | effects.AwaitService) -> Evidence:
        since, patience_s = look.since_us * _NS_PER_US, look.patience_us / _US_PER_S
        if isinstance(look, effects.AwaitService):
            return self._observer.await_acknowledgement(since, patience_s, self._stop)
        return self._observer.await_all(
            look.expectations,
            since,
            patience_s,
            self._stop if look.may_be_cut_short else Stop(),
            baseline=carried.baseline,
            records=carried.records,
        )

    def _tell(
        self,
        carried: _Carried,
        effect: effects.Begin | effects.Record | effects.AreBack | effects.TellExits,
    ) -> None:
        match effect:
            case effects.Begin(actual, expectations):
                carried.baseline = self._observer.before(expectations)
                with self._recording:
                    self._schedule_file.append(actual)
            case effects.Record():
                self._record(carried, effect)
            case effects.AreBack(nodes):
                self._down.back(nodes)
            case effects.TellExits(exits, detail):
                for node, code in exits.items():
                    if node in self._progress.exited:
                        continue
                    self._progress.reached("node-exited", node=node, exit_code=code, detail=detail)

    def _left_s(self, until_us: int) -> float:
        return (until_us * _NS_PER_US - self._clock.now()) / 1e9

    def _view(self) -> ClusterView:
        with self._looking:
            view = self._ask_leader(self._patience.leader_query_us / _US_PER_S)
            self._progress.led_by(view.leader, view.epoch)
            ends: Mapping[NodeName, int] = {} if self._watch is None else self._watch.ends()
            return self._aim.view(view.leader, ends, view.controller)

    def _do(self, carried: _Carried, act: Act) -> Done:
        """Do the part of an act that the other faults leave to it."""
        said: list[str] = []
        holds = self._nemesis.holds
        with self._acting:
            with self._deciding:
                free = [node for node in ended_by(act) if not holds.is_down(node)]
            ended = self._ended(free)
            with self._deciding:
                self._down.expect(ended_by(act))
                parts = holds.admit(carried.fault.index, act, ended)
            for part in parts:
                done = perform_where_it_can_be(self._runtime, part, carried.records, self._members)
                carried.records.extend(done.records)
                if done.said:
                    said.append(done.said)
                if self._record_at is not None:
                    said.extend(records_hit(self._runtime, self._record_at, done.records))
            with self._deciding:
                holds.done(carried.fault.index, act)
        return Done(tuple(said), ended)

    def _ended(self, nodes: Sequence[NodeName]) -> dict[NodeName, int | None]:
        runtime = self._runtime
        ended = [node for node in nodes if runtime.status(node) == "exited"]
        return {node: runtime.exit_code(node) for node in ended}

    def _record(self, carried: _Carried, phase: effects.Record) -> None:
        with self._recording:
            event = phase.event(carried.fault, self._clock.now())
            self._faults.append(event)
            self._progress.fault_event(event)
        if carried.order is not None:
            carried.order.told(event)


def _planned_end_us(fault: Fault) -> float:
    """When the fault is over by the plan; nobody waits for one that waits for a node."""
    return _NEVER_US if fault.waits_for_node else fault.at_us + fault.duration_us


def _in_us(time: int) -> int:
    """A time of the run's clock, rounded up: what came before it must not count as after it."""
    return -(-time // _NS_PER_US)
