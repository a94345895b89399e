"""Carries out the faults of a scenario against a simulated world.

The twin of ``harness.nemesis_driver`` in virtual time, with two differences: faults may overlap and
may wait for a happening, and what they did is known exactly instead of being probed. Same phases,
same records. Before a fault that makes a voter forget, the cluster's ghost state is asked whether
what Raft promises still holds; a fault that goes beyond it is recorded as not applicable, unless
the scenario says that it may.

Must never swallow ``NodeCrashed``: a fault at a happening may end the step that called it.
"""

from typing import Final

import msgspec

from contracts.errors import UsageError
from contracts.fault import ActualFault, Fault, FaultEvent, FaultPhase
from contracts.names import NodeName
from contracts.simulation import Timer
from harness.simulation.acting import Doing, words_of_time
from harness.simulation.early_heals import EarlyHeals
from harness.simulation.fault_reach import Reach
from harness.simulation.load import VirtualHistory
from harness.simulation.log_ends import ends_of
from harness.simulation.triggers import Triggers
from harness.simulation.world_kinds import kind_in_worlds
from history.timeline_records import TimelineFault
from nemesis.aim import Aim
from nemesis.awaiting import sentence
from nemesis.courses import Course
from nemesis.fault_kind import FaultKind
from nemesis.promise import reason_against
from nemesis.targets import LAGGARD, THERE, ClusterView, canonical, check_target
from simulation.world.world import SimulatedWorld

#: How long a fault waits for its target to exist, and how often it looks.
TARGET_PATIENCE_US: Final = 5_000_000
_LOOK_AGAIN_US: Final = 20_000
_NS_PER_US: Final = 1_000
#: What the heal of one fault ends for all others of the same node.
_ENDED_FOR_ALL: Final = ("failing", "full")


class _InForce(msgspec.Struct):
    """A fault that has struck and is not healed yet."""

    fault: Fault
    actual: ActualFault
    course: Course
    doing: Doing
    struck_us: int
    ok_before: int
    ok_by_node_before: dict[str, int]
    story_number: int
    #: Heals it when its time is over.
    timer: Timer | None = None


class FaultDriver:
    """The faults of one world, one use."""

    def __init__(self, world: SimulatedWorld, history: VirtualHistory) -> None:
        """Refuses what cannot be meant before anything happens.

        Raises:
            UsageError: a fault's kind or target does not exist.
        """
        self._world = world
        self._cluster = world.cluster
        self._history = history
        self.reach = Reach(world)
        self._triggers = Triggers(world, self._strike_there)
        self._early_heals = EarlyHeals(world, self._heal_early)
        self._aim = Aim(self._cluster.nodes)
        self._is_over = False
        #: Waiting for their time or their target, by index.
        self._waiting: dict[int, Fault] = {}
        #: In force, by index, in the order in which they struck.
        self._in_force: dict[int, _InForce] = {}
        #: Healed, and no client was served since: time and fault.
        self._not_resumed: list[tuple[int, Fault, ActualFault]] = []
        self.events: list[FaultEvent] = []
        self.struck: list[ActualFault] = []
        history.listeners.append(self._acknowledged)
        for fault in world.scenario.faults:
            kind_in_worlds(fault.kind)
            if fault.target != THERE:
                check_target(canonical(fault.target), self._cluster.nodes, leave_one=False)
            elif fault.when is None:
                raise UsageError(
                    f"fault {fault.index} strikes {THERE!r}, and waits for no happening",
                    "Say in its moment what it waits for, or name another target",
                )

    def begin(self) -> None:
        """Wait for every fault's moment."""
        for fault in self._world.scenario.faults:
            when = fault.when
            if when is not None:
                self._triggers.wait(fault, when)
            else:
                self._waiting[fault.index] = fault
                in_us = fault.at_us - self._world.now
                self._world.after(in_us, lambda fault=fault: self._strike_waiting(fault))

    def end(self) -> None:
        """No fault strikes any more; those that did not are on record."""
        self._is_over = True
        for fault in self._triggers.end():
            assert fault.when is not None
            reason = f"{sentence(fault.when)} did not happen before the load was over"
            self._record(fault, None, "not-applicable", reason)
        for fault in list(self._waiting.values()):
            self._record(fault, None, "not-applicable", "the load was over")
        self._waiting.clear()

    def heal_all(self) -> None:
        """Heal every fault that is in force, in the order in which they struck."""
        for index in list(self._in_force):
            self._heal(index)

    def _strike_waiting(self, fault: Fault) -> None:
        if fault.index in self._waiting:
            self._settle(fault, None, self._world.now + TARGET_PATIENCE_US)

    def _strike_there(self, fault: Fault, there: NodeName) -> None:
        if self._is_over:
            self._record(fault, None, "not-applicable", "the load was over")
            return
        self._waiting[fault.index] = fault
        self._settle(fault, there, self._world.now + TARGET_PATIENCE_US)

    def _settle(self, fault: Fault, there: NodeName | None, until_us: int) -> None:
        """Strike as soon as the target exists."""
        if fault.index not in self._waiting:
            return
        kind = kind_in_worlds(fault.kind)
        actual = self._resolve(kind, fault, there)
        if actual is None:
            if self._world.now >= until_us:
                del self._waiting[fault.index]
                reason = f"no {fault.target} for {TARGET_PATIENCE_US // 1_000_000} s"
                self._record(fault, None, "not-applicable", reason)
            else:
                self._world.after(_LOOK_AGAIN_US, lambda: self._settle(fault, there, until_us))
            return
        del self._waiting[fault.index]
        duration_us = 0 if kind.is_instant else fault.duration_us
        course = kind.course_of(actual, duration_us, self._cluster.nodes)
        reason = self._reason_against(kind, actual, course)
        if reason is not None:
            self._record(fault, None, "not-applicable", reason)
            return
        self._strike(course, fault, actual, duration_us)

    def _resolve(self, kind: FaultKind, fault: Fault, there: NodeName | None) -> ActualFault | None:
        """What the fault means now; None while its target does not exist."""
        target = canonical(fault.target)
        if target == THERE:
            assert there is not None
            target = str(there)
        aimed = msgspec.structs.replace(fault, target=target)
        actual = kind.actual(aimed, self._view(target))
        if actual is None or not actual.nodes:
            return None
        return msgspec.structs.replace(actual, target=fault.target, draw=fault.draw)

    def _view(self, target: str) -> ClusterView:
        ends = ends_of(self._cluster) if target == LAGGARD else {}
        return self._aim.view(self._cluster.leader().leader, ends)

    def _reason_against(self, kind: FaultKind, actual: ActualFault, course: Course) -> str | None:
        """Why the fault does not strike, None if it does."""
        if kind.needs_up and not any(self._cluster.is_up(node) for node in actual.nodes):
            return f"{', '.join(actual.nodes)} down already"
        if _is_exclusive(course):
            for other in self._in_force.values():
                shared = [node for node in other.actual.nodes if node in actual.nodes]
                if shared and _is_exclusive(other.course):
                    return f"another fault of the disk of {', '.join(shared)} is in force"
        if kind.rule == "keeps" or self._world.scenario.beyond_promise:
            return None
        voters = self._cluster.nodes[: self._world.scenario.nodes]
        reason = reason_against(kind, actual, voters, self.reach.forgot)
        if reason is not None:
            return reason
        for node in actual.nodes:
            if kind.hides_rot and self.reach.forgot.get(node) == "rotten":
                return f"beyond the promise: it would hide what has rotted at {node} before"
            if not self._cluster.may_forget(node):
                return f"beyond the promise: {node} holds what others could elect without"
        return None

    def _strike(self, course: Course, fault: Fault, actual: ActualFault, duration_us: int) -> None:
        """Do it; where it ends the step that called, that passes last.

        Raises:
            NodeCrashed: the present step was the node's own.
        """
        world, history = self._world, self._history
        self.struck.append(actual)
        self._record(fault, actual, "invoked")
        self.reach.draw = fault.draw
        doing = Doing(self.reach, course, actual)
        doing.begin()
        self._record(fault, actual, "verified", doing.evidence)
        number = -1
        if world.is_recording:
            number = world.record(self._band(fault, actual, doing, world.now, None))
        in_force = self._in_force[fault.index] = _InForce(
            *(fault, actual, course, doing, world.now),
            *(history.ok_count, dict(history.ok_by_node), number),
        )
        in_force.timer = world.after(duration_us, lambda: self._heal(fault.index))
        if duration_us:
            self._early_heals.wait(fault, actual.nodes)
        self._triggers.struck(fault.index, actual.nodes)
        crash = self.reach.take_crash()
        if crash is not None:
            raise crash

    def _heal_early(self, index: int) -> None:
        if index in self._in_force:
            self._heal(index)

    def _heal(self, index: int) -> None:
        in_force = self._in_force.pop(index)
        if in_force.timer is not None:
            in_force.timer.cancel()
        fault, actual = in_force.fault, in_force.actual
        history, world = self._history, self._world
        before = in_force.ok_by_node_before
        inside = sum(history.ok_by_node.get(node, 0) - before.get(node, 0) for node in actual.nodes)
        self._record(
            fault, actual, "healing",
            f"{history.ok_count - in_force.ok_before} operations acknowledged meanwhile, "
            f"{inside} by its nodes",
        )  # fmt: skip
        self.reach.draw = fault.draw
        evidence = in_force.doing.heal()
        self._record(fault, actual, "removed", evidence)
        if in_force.story_number >= 0:
            band = self._band(fault, actual, in_force.doing, in_force.struck_us, world.now)
            world.amend(in_force.story_number, band)
        self._not_resumed.append((world.now, fault, actual))

    def _acknowledged(self, invoked_us: int) -> None:
        """An operation that began then was acknowledged: it shows the heals before it."""
        if not self._not_resumed or invoked_us < self._not_resumed[0][0]:
            return
        left: list[tuple[int, Fault, ActualFault]] = []
        for healed_us, fault, actual in self._not_resumed:
            if invoked_us < healed_us:
                left.append((healed_us, fault, actual))
                continue
            took = words_of_time(self._world.now - healed_us)
            self._record(fault, actual, "resumed", f"an operation acknowledged after {took}")
        self._not_resumed = left

    def _band(
        self,
        fault: Fault,
        actual: ActualFault,
        doing: Doing,
        since_us: int,
        until_us: int | None,
    ) -> TimelineFault:
        return TimelineFault(
            time=since_us,
            name=fault.kind,
            nodes=tuple(map(str, actual.nodes)),
            until=until_us,
            detail=f"{fault.target}: {doing.evidence}",
        )

    def _record(
        self,
        fault: Fault,
        actual: ActualFault | None,
        phase: FaultPhase,
        evidence: str | None = None,
    ) -> None:
        self.events.append(
            FaultEvent(
                time=self._world.now * _NS_PER_US,
                index=fault.index,
                kind=fault.kind,
                phase=phase,
                target=fault.target,
                nodes=() if actual is None else actual.nodes,
                links=() if actual is None else actual.links,
                leader=None if actual is None else actual.leader,
                evidence=evidence,
            )
        )


def _is_exclusive(course: Course) -> bool:
    """Whether a node can have but one such fault at a time."""
    return any(act.holds in _ENDED_FOR_ALL for step in course.steps for act in step.acts)
