"""Carries out the faults of a scenario against a simulated world.

As ``harness.run.nemesis_driver`` does on machines: all about a fault is decided by its machine
(``nemesis.fault_machine``). The outcome is known instead of being looked for, and so is whether the
cluster can bear that a voter forgets: its ghost state is asked. Faults may begin in the midst of a
node's step, which ``NodeCrashed`` may then end, and may wait for one another.
"""

from collections.abc import Callable, Collection
from functools import partial
from typing import Any, Final

import msgspec

from splitbrain.contracts.arms import FileChanged
from splitbrain.contracts.errors import UsageError
from splitbrain.contracts.fault import ActualFault, Awaited, Fault, FaultEvent
from splitbrain.contracts.names import NodeName
from splitbrain.harness.run.world.acting import Arms, words_of_time
from splitbrain.harness.run.world.load import VirtualHistory
from splitbrain.harness.run.world.moments import Happenings, RecoveryLook, log_ends
from splitbrain.history.timeline_records import TimelineFault
from splitbrain.nemesis import effects
from splitbrain.nemesis.acts import Act, Resume, at
from splitbrain.nemesis.aim import Aim, Patience
from splitbrain.nemesis.awaiting import ANYWHERE, AT_LEADER
from splitbrain.nemesis.effects import Acknowledged, Doing, Done, Effect, Evidence, Present, Reports
from splitbrain.nemesis.expectations import NodeIs
from splitbrain.nemesis.fault_machine import FaultMachine, Nemesis
from splitbrain.nemesis.fault_options import (
    AFTER,
    BEYOND_PROMISE,
    PLACE,
    SAME,
    UNTIL,
    UNTIL_COUNT,
    UNTIL_DELAY_US,
)
from splitbrain.nemesis.kinds import fault_kind
from splitbrain.nemesis.targets import LAGGARD, THERE, ClusterView, canonical, check_target
from splitbrain.simulation.world.world import Pending, SimulatedWorld

_NS_PER_US: Final = 1_000
#: Nobody probes a world, and looking costs nothing.
_PATIENCE: Final = Patience(look_again_us=20_000, probe_us=0)
#: Nobody has to be heard where everything is known.
_KNOWN: Final = Reports({}, 0)


class _Carried(msgspec.Struct):
    """A fault that is carried out."""

    fault: Fault
    machine: FaultMachine
    #: Condition that it waits for.
    effect: Effect | None = None
    #: Ends the wait when its time is over.
    timer: Pending | None = None
    #: Its settled form; None before its target is settled.
    actual: ActualFault | None = None
    has_struck: bool = False
    changed: dict[NodeName, FileChanged] = {}
    story_number: int = -1


class FaultDriver:
    """The faults of one world, one use."""

    def __init__(self, world: SimulatedWorld, history: VirtualHistory) -> None:
        """Refuse a fault whose kind or target does not exist, by ``UsageError``."""
        self._world = world
        self._cluster = world.cluster
        self._history = history
        self._happenings = Happenings(world)
        self._aim = Aim(self._cluster.nodes)
        voters = self._cluster.nodes[: world.scenario.nodes]
        promise = _GhostPromise(self)
        self._nemesis = Nemesis(
            *(self._cluster.nodes, voters, promise, _PATIENCE),
            is_exact=True,
            is_down=lambda node: not self._cluster.is_up(node),
        )
        self.arms = Arms(world, self._nemesis.holds)
        #: All faults, in their order.
        self._carried: dict[int, _Carried] = {}
        #: Sequels whose first part has not struck, by its index.
        self._sequels: dict[int, list[_Carried]] = {}
        #: Those that wait for an acknowledged operation, by index.
        self._unserved: dict[int, _Carried] = {}
        self.events: list[FaultEvent] = []
        self.struck: list[ActualFault] = []
        history.listeners.append(self._acknowledged)
        for fault in world.scenario.faults:
            fault_kind(fault.kind)
            if fault.target != THERE:
                check_target(canonical(fault.target), self._cluster.nodes, leave_one=False)
            elif not fault.waits_for_node:
                raise UsageError(
                    f"fault {fault.index} strikes {THERE!r}, and waits for nothing at any node",
                    "Have it wait for what a node does, or name another target",
                )

    def begin(self) -> None:
        """Begin each fault at its time."""
        scenario = self._world.scenario
        more = {BEYOND_PROMISE: True} if scenario.beyond_promise else {}
        for planned in scenario.faults:
            fault = msgspec.structs.replace(planned, options={**planned.options, **more})
            machine = FaultMachine(self._nemesis, fault, fault.at_us, scenario.load_us)
            carried = self._carried[fault.index] = _Carried(fault, machine)
            self._go_on_after(carried, fault.at_us - self._world.now)

    def end(self) -> None:
        """No fault strikes any more; those that did not are on record, and the others healed."""
        for carried in self._carried.values():
            if carried.actual is None:
                self._go_on(carried)
        for index in list(self._nemesis.in_force):
            self._go_on(self._carried[index], True)

    def _go_on_after(self, carried: _Carried, delay_us: int) -> None:
        carried.timer = self._world.after(delay_us, lambda: self._go_on(carried))

    def _go_on(self, carried: _Carried, answer: object = None) -> None:
        """Carry out effects until one takes time.

        ``answer`` is to the effect that it waits for; None where its time is over.

        Raises:
            NodeCrashed: the present step was the node's own.
        """
        if carried.timer is not None:
            carried.timer.cancel()
            carried.timer = None
        carried.effect = None
        self._unserved.pop(carried.fault.index, None)
        now_us = self._world.now
        while (effect := carried.machine.step(answer, now_us, is_ending=False)) is not None:
            if self._takes_time(carried, effect):
                carried.effect = effect
                break
            answer = self._answer(carried, effect)
        crash = self.arms.take_crash()
        if crash is not None:
            raise crash

    def _takes_time(self, carried: _Carried, effect: Effect) -> bool:
        """Whether an effect is to be answered later; then that is prepared."""
        now_us, load_us = self._world.now, self._world.scenario.load_us
        match effect:
            case effects.Wait(until_us):
                # A fault that waits for a happening strikes in its step.
                if until_us > now_us:
                    self._go_on_after(carried, until_us - now_us)
                return until_us > now_us
            case effects.StayInForce(until_us):
                self._go_on_after(carried, until_us - now_us)
            case effects.AwaitHappening(when, until_us):
                if until_us < load_us:
                    self._go_on_after(carried, until_us - now_us)
                self._await(carried, when)
            case effects.AwaitRecovery():
                self._await_recovery(carried, effect, RecoveryLook(self._cluster))
            case effects.AwaitService():
                self._unserved[carried.fault.index] = carried
            case _:
                return False
        return True

    def _answer(self, carried: _Carried, effect: Effect) -> Any:
        """Carry out an effect that takes no time; the answer that it names."""
        answer: Any = None
        match effect:
            case effects.AskView():
                answer = self._view(carried.fault)
            case effects.AskReports():
                answer = _KNOWN
            case effects.AskAcknowledged():
                counts = self._history.traffic.counts()
                answer = Acknowledged(counts.ok, counts.ok_by_node)
            case effects.AskExits():
                # Whether a node had a reason to end is the invariants' to say.
                answer = {}
            case effects.Look(expectations):
                answer = Evidence(True, self._seen(carried, expectations))
            case effects.Begin(actual):
                carried.actual = actual
                self.struck.append(actual)
            case effects.Do(act):
                answer = self._do(carried, act)
            case effects.Record():
                self._record(carried, effect)
            case _:
                pass
        return answer

    def _view(self, fault: Fault) -> ClusterView:
        ends = log_ends(self._cluster) if canonical(fault.target) == LAGGARD else {}
        return self._aim.view(self._cluster.leader().leader, ends)

    def _await(self, carried: _Carried, when: Awaited) -> None:
        """Go on when it has happened; a sequel counts only once its first part has struck."""
        first = self._carried.get(carried.fault.options.get(AFTER, -1))
        if first is not None and not first.has_struck:
            self._sequels.setdefault(first.fault.index, []).append(carried)
            return
        hit = () if first is None or first.actual is None else first.actual.nodes
        place = carried.fault.options.get(PLACE) if hit else None

        def fits(node: NodeName) -> bool:
            return (
                isinstance(carried.effect, effects.AwaitHappening)
                and when.node in (ANYWHERE, AT_LEADER, node)
                and (place is None or (node in hit) == (place == SAME))
                and (when.epoch is None or self._cluster.epoch(node) == when.epoch)
                and (when.node != AT_LEADER or self._cluster.leader().leader == node)
            )

        self._happenings.wait(when.on, when.count, fits, partial(self._go_on, carried))

    def _await_recovery(
        self, carried: _Carried, effect: effects.AwaitRecovery, look: RecoveryLook, wait_us: int = 0
    ) -> None:
        """Look again and again, until all nodes take part or the time is over."""

        def again() -> None:
            now_us = self._world.now
            missing = "another fault is in force" if self._nemesis.in_force else look.missing()
            if missing is None or now_us >= effect.until_us:
                self._go_on(carried, missing)
            else:
                next_us = min(_PATIENCE.look_again_us, effect.until_us - now_us)
                self._await_recovery(carried, effect, look, next_us)

        carried.timer = self._world.after(wait_us, again)

    def _seen(self, carried: _Carried, expectations: Collection[object]) -> str:
        """Say what the nodes hit are doing now, where that is asked for."""
        assert carried.actual is not None
        if expectations and not any(isinstance(item, NodeIs) for item in expectations):
            return ""
        return ", ".join(f"{node} {self._state(node)}" for node in carried.actual.nodes)

    def _state(self, node: NodeName) -> str:
        if not self._cluster.is_up(node):
            return "exited"
        return "paused" if self._cluster.is_paused(node) else "runs"

    def _do(self, carried: _Carried, act: Act) -> Done:
        """Do the part of an act that the other faults leave to it."""
        fault, holds = carried.fault, self._nemesis.holds
        said: list[str] = []
        # A thawed node goes on within the call, and what happens then may bring another fault,
        # which may hold a node that has its turn later.
        each = [at(act, (node,)) for node in act.nodes] if isinstance(act, Resume) else [act]
        for piece in each:
            parts = holds.admit(fault.index, piece)
            reports = (self.arms.perform(part, fault.draw, carried.changed) for part in parts)
            said.extend(report for report in reports if report)
            holds.done(fault.index, piece)
        if not carried.has_struck:
            self._has_struck(carried)
        return Done(tuple(said))

    def _has_struck(self, carried: _Carried) -> None:
        """Begin what waits for it: its sequels, and its own early heal."""
        carried.has_struck = True
        fault, actual = carried.fault, carried.actual
        assert actual is not None
        for sequel in self._sequels.pop(fault.index, ()):
            if isinstance(sequel.effect, effects.AwaitHappening):
                self._await(sequel, sequel.effect.when)
        happening = fault.options.get(UNTIL)
        if happening is not None and not fault_kind(fault.kind).is_instant:
            delay_us = max(0, int(fault.options.get(UNTIL_DELAY_US, 0)))
            self._happenings.wait(
                happening,
                int(fault.options.get(UNTIL_COUNT, 1)),
                lambda node: node not in actual.nodes,
                # In a turn of its own, for the present one may be a node's.
                lambda _: self._heal_after(carried, delay_us),
            )

    def _heal_after(self, carried: _Carried, delay_us: int) -> None:
        def heal() -> None:
            if isinstance(carried.effect, effects.StayInForce):
                self._go_on(carried, True)

        self._world.after(delay_us, heal)

    def _acknowledged(self, invoked_us: int) -> None:
        """An operation that began then was acknowledged: it shows the heals before it."""
        for index in sorted(self._unserved):
            carried = self._unserved[index]
            effect = carried.effect
            if isinstance(effect, effects.AwaitService) and effect.since_us <= invoked_us:
                took = words_of_time(self._world.now - effect.since_us)
                self._go_on(carried, Evidence(True, f"an operation acknowledged after {took}"))

    def _record(self, carried: _Carried, phase: effects.Record) -> None:
        fault, actual, world = carried.fault, phase.actual, self._world
        self.events.append(phase.event(fault, world.now * _NS_PER_US))
        if not world.is_recording or actual is None:
            return
        detail = ": ".join(filter(None, (fault.target, phase.evidence)))
        match phase.phase:
            case "invoked":
                nodes = tuple(map(str, actual.nodes))
                begun = TimelineFault(time=world.now, name=fault.kind, nodes=nodes, detail=detail)
                carried.story_number = world.record(begun)
            case "verified":
                self._amend(carried, detail=detail)
            case "removed":
                self._amend(carried, until=world.now)
            case _:
                pass

    def _amend(self, carried: _Carried, **changed: Any) -> None:
        begun = self._world.story[carried.story_number]
        assert isinstance(begun, TimelineFault)
        self._world.amend(carried.story_number, msgspec.structs.replace(begun, **changed))


class _GhostPromise:
    """The promise by a world's ghost state; see ``nemesis.gate.Promise``."""

    def __init__(self, driver: FaultDriver) -> None:
        self._driver = driver

    def has_forgotten(self, node: NodeName) -> bool:
        """Whether its disk lacks what it held: a fault may have found nothing to harm."""
        return node in self._driver.arms.forgot

    def reason_before(self, actual: ActualFault) -> Doing[str | None]:
        """Why the fault must not strike."""
        yield from ()
        arms = self._driver.arms
        for node in actual.nodes:
            if fault_kind(actual.kind).hides_rot and arms.forgot.get(node) == "rotten":
                return f"beyond the promise: it would hide what has rotted at {node} before"
            if not arms.cluster.may_forget(node):
                return f"beyond the promise: a majority without {node} could lack records or votes"
        return None

    def reason_once_down(
        self, actual: ActualFault, forgetful: Callable[[], Collection[NodeName]], present: Present
    ) -> Doing[str | None]:
        """Why the nodes must not forget: time may have passed since they were asked about."""
        del forgetful, present
        return self.reason_before(actual)
