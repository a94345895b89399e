"""One fault as a machine of effects: awaited, aimed, let in, struck, seen, healed, seen gone.

Whoever drives it (``harness.run.nemesis_driver``, ``harness.run.world.fault_driver``) carries out
one effect after the other and tells the answer; several machines of one ``Nemesis`` may be on their
way at once, entered one at a time. All that is decided of a fault, and all that is said of it apart
from what a look shows, is here. Must never act, wait, or look by itself.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final

import msgspec

from splitbrain.contracts.errors import HarnessError
from splitbrain.contracts.fault import ActualFault, Fault, FaultPhase, Microseconds
from splitbrain.contracts.names import NodeName
from splitbrain.contracts.runtime import KILLED_CODE
from splitbrain.contracts.words import counted
from splitbrain.nemesis.acts import Act, forgets, started_by
from splitbrain.nemesis.aim import Patience, await_moment, settle
from splitbrain.nemesis.effects import (
    Acknowledged,
    AreBack,
    AskAcknowledged,
    AskExits,
    AwaitService,
    Begin,
    Do,
    Doing,
    Done,
    Effect,
    Evidence,
    Look,
    Present,
    Record,
    StayInForce,
    TellExits,
)
from splitbrain.nemesis.expectations import Expectation, NodeIs
from splitbrain.nemesis.fault_kind import Course, FaultKind, Step
from splitbrain.nemesis.gate import FaultGate, Promise, SparedError
from splitbrain.nemesis.holds import Ended, Holds, undisturbed
from splitbrain.nemesis.kinds import fault_kind

#: Of many strokes so many are told one by one.
_SENTENCES_MAX: Final = 10


class Nemesis:
    """All faults of one run together."""

    def __init__(
        self,
        nodes: Sequence[NodeName],
        voters: Sequence[NodeName],
        promise: Promise,
        patience: Patience,
        *,
        is_exact: bool = False,
        is_down: Callable[[NodeName], bool] | None = None,
    ) -> None:
        """The faults of one run, none of which has begun.

        ``is_exact``: what is done is known, so a look says how things stand, and nothing keeps
        anything from being seen. ``is_down``: as in ``FaultGate``.
        """
        self.nodes = tuple(nodes)
        self.is_exact = is_exact
        self.patience = patience
        self.holds = Holds()
        self.gate = FaultGate(self.holds, voters, promise, is_down)
        #: Heals of each fault that has begun and is not seen gone, in their order.
        self.in_force: dict[int, tuple[Act, ...]] = {}


class FaultMachine:
    """One fault, from when its time has come; one use."""

    def __init__(
        self, nemesis: Nemesis, fault: Fault, at_us: Microseconds, load_end_us: Microseconds
    ) -> None:
        """Args beyond whose it is.

        Args:
            nemesis: that of all faults of the run.
            fault: as it was planned.
            at_us: when its time came.
            load_end_us: when clients stop working.
        """
        self._nemesis = nemesis
        self._fault = fault
        self._at_us = at_us
        self._load_end_us = load_end_us
        self._present = Present()
        self._strike: _Strike | None = None
        self._doing = self._whole()

    @property
    def is_through(self) -> bool:
        """Whether all its steps are done, so that it only stays in force."""
        return self._strike is not None and self._strike.is_through

    def step(self, answer: Any, now_us: Microseconds, *, is_ending: bool) -> Effect | None:
        """Go on with the answer to the effect before, None at first; None: all is over.

        Raises:
            HarnessError: the fault would not be healed.
            UsageError: an option of the fault cannot be.
        """
        self._present.now_us, self._present.is_ending = now_us, is_ending
        try:
            return self._doing.send(answer)
        except StopIteration:
            return None

    def close(self) -> None:
        """Give it up, since an effect failed; what it has done is left to who heals everything."""
        self._doing.close()

    def _whole(self) -> Doing[None]:
        fault, nemesis, present = self._fault, self._nemesis, self._present
        moment = yield from await_moment(fault, self._at_us, self._load_end_us, present)
        if moment.reason is not None:
            yield _not_applicable(None, moment.reason)
        if not moment.has_come:
            return
        kind = fault_kind(fault.kind)
        until_us, patience = self._load_end_us, nemesis.patience
        actual = yield from settle(kind, fault, moment.there, until_us, patience, present)
        if not isinstance(actual, ActualFault):
            if actual is not None:
                yield _not_applicable(None, actual)
            return
        reason = yield from nemesis.gate.enter(kind, fault, actual)
        if reason is not None:
            yield _not_applicable(actual, reason)
            return
        duration_us = 0 if kind.is_instant else fault.duration_us
        try:
            course = kind.course_of(actual, duration_us, nemesis.nodes, nemesis.patience.probe_us)
            self._strike = _Strike(nemesis, fault, kind, actual, course, present)
            yield from self._strike.whole(self._at_us, duration_us)
        finally:
            nemesis.gate.leave(fault.index)


class _Strike:
    """The whole course of a fault that has been let in."""

    def __init__(
        self,
        nemesis: Nemesis,
        fault: Fault,
        kind: FaultKind,
        actual: ActualFault,
        course: Course,
        present: Present,
    ) -> None:
        self._nemesis, self._holds, self._patience = nemesis, nemesis.holds, nemesis.patience
        self._fault, self._kind, self._actual, self._course = fault, kind, actual, course
        self._present = present
        #: Reports of its acts, in words.
        self._said: list[str] = []
        #: Nodes that its steps have started.
        self._up: set[NodeName] = set()
        #: Whether it is to be healed before its time.
        self._is_over = False
        self.is_through = False

    def whole(self, at_us: Microseconds, duration_us: Microseconds) -> Doing[None]:
        """From its beginning to the last look."""
        fault, actual, present = self._fault, self._actual, self._present
        looked_for = [item for step in self._course.steps for item in step.seen]
        yield Begin(actual, (*looked_for, *self._course.healed, *self._course.resumed))
        before: Acknowledged = yield AskAcknowledged()
        others = self._holds.others(fault.index)
        beside = f"beside fault {', '.join(map(str, others))}" if others else None
        yield self._recorded("invoked", beside)
        self._nemesis.in_force[fault.index] = self._course.heal
        invoked_us = present.now_us
        try:
            sentences = yield from self._go_through(invoked_us)
        except SparedError as spared:
            # Ended for a moment and not harmed: what it was meant to meet it has not met.
            yield self._recorded("not-applicable", str(spared))
            yield from self._heal("its nodes are started again")
            return
        # A fault that began late, for want of a leader, still lasts as long as planned.
        self.is_through = True
        if not self._is_over:
            yield StayInForce(max(at_us, invoked_us) + duration_us)
        after: Acknowledged = yield AskAcknowledged()
        inside = sum(
            after.by_node.get(node, 0) - before.by_node.get(node, 0) for node in actual.nodes
        )
        served = (
            f"{counted(after.total - before.total, 'operation')} acknowledged from the call to "
            f"inject until the healing, {inside} by its nodes"
        )
        yield from self._heal(_joined(served, *sentences))

    def _go_through(self, invoked_us: Microseconds) -> Doing[list[str]]:
        """Do the steps at their times and look; what the later ones showed."""
        sentences: list[str] = []
        is_recorded = False
        for step in self._course.steps:
            if step.after_us:
                self._is_over = bool((yield StayInForce(invoked_us + step.after_us)))
                if self._is_over or self._present.is_ending:
                    break
            seen = yield from self._take(step)
            if seen is None:
                continue
            if not is_recorded:
                is_recorded = True
                phase = "verified" if seen.seen else "not-bitten"
                yield self._recorded(phase, _joined(seen.sentence, *self._said))
            elif not seen.seen:
                yield self._recorded("not-bitten", seen.sentence)
            elif seen.sentence:
                sentences.append(seen.sentence)
        return _in_short(sentences)

    def _take(self, step: Step) -> Doing[Evidence | None]:
        """Do one step; None where nothing is to be seen of it."""
        started = [node for act in step.acts for node in started_by(act)]
        ended: list[NodeName] = []
        for act in step.acts:
            if forgets(act):
                gate = self._nemesis.gate
                yield from gate.before_forgetting(
                    self._kind, self._fault, self._actual, self._present
                )
            ended += (yield from self._do(act)).ended
        is_first = step is self._course.steps[0]
        is_looked_at = step.seen or (self._nemesis.is_exact and is_first)
        seen = (yield from self._bite(step, ended)) if is_looked_at else None
        self._up.update(started)
        yield from self._are_back(started)
        return seen

    def _do(self, act: Act) -> Doing[Done]:
        done: Done = yield Do(act)
        self._said += done.said
        # From now on they may be down, so that nobody else tells of it. One that was killed and
        # that an earlier step has not started is the runtime's failure.
        ended = done.ended.items()
        own = {node: code for node, code in ended if node not in self._up or code != KILLED_CODE}
        if own:
            yield TellExits(own)
        return done

    def _bite(self, step: Step, ended: Sequence[NodeName]) -> Doing[Evidence]:
        """Look for what is to be seen of a step; the end of who had ended before is none of it."""
        gone = [NodeIs(node, "exited") for node in ended]
        wanted = tuple(item for item in step.seen if item not in gone)
        earlier = f"{', '.join(ended)} had ended before"
        if ended and not wanted:
            return Evidence(False, earlier)
        patience = self._patience
        patience_us = patience.started_us if step.awaits_start else patience.bitten_us
        look = Look(wanted, self._present.now_us, patience_us, may_be_cut_short=True)
        seen = yield from self._look(look)
        if not ended:
            return seen
        return msgspec.structs.replace(seen, sentence=f"{seen.sentence}; {earlier}")

    def _heal(self, served: str) -> Doing[None]:
        """Heal the fault and see it gone.

        Raises:
            HarnessError: it would not go.
        """
        fault, actual, course = self._fault, self._actual, self._course
        if course.settled:
            yield from self._see_healed(course.settled)
        yield self._recorded("healing", served)
        self._said.clear()
        for act in course.heal:
            yield from self._do(act)
        # A heal is waited for even when the run is to end.
        gone = yield from self._see_healed(course.healed)
        if not gone.seen:
            yield self._recorded("not-healed", gone.sentence)
            yield from self._tell_exits()
            raise HarnessError(
                f"heal the fault {fault.index} ({fault.kind}:{fault.target})",
                ", ".join(actual.nodes),
                gone.sentence,
                "The run was stopped; look at the nodes' logs in the run folder.",
            )
        yield from self._are_back(actual.nodes)
        yield from self._tell_exits()
        self._nemesis.in_force.pop(fault.index, None)
        self._nemesis.gate.leave(fault.index)
        yield self._recorded("removed", _joined(gone.sentence, *dict.fromkeys(self._said)))
        if not self._present.is_ending:
            yield from self._see_resumed(self._present.now_us)

    def _see_healed(self, expectations: Sequence[Expectation]) -> Doing[Evidence]:
        now_us, patience_us = self._present.now_us, self._patience.healed_us
        look = Look(tuple(expectations), now_us, patience_us, may_be_cut_short=False)
        return self._look(look, ended=self._ended)

    def _look(self, look: Look, ended: Ended | None = None) -> Doing[Evidence]:
        if self._nemesis.is_exact:
            return (yield look)
        return (yield from undisturbed(self._holds, self._fault.index, look, ended=ended))

    def _ended(self, nodes: Sequence[NodeName]) -> Doing[list[NodeName]]:
        """Tell which nodes have ended by themselves, which no heal undoes."""
        free = tuple(node for node in nodes if not self._holds.is_down(node))
        if not free:
            return []
        exits: dict[NodeName, int | None] = yield AskExits(free)
        # One that was killed and that the heal has not started is the runtime's failure.
        started = {node for act in self._course.heal for node in started_by(act)}
        return [node for node, code in exits.items() if node not in started or code != KILLED_CODE]

    def _see_resumed(self, removed_us: Microseconds) -> Doing[None]:
        """Wait until clients are served, and the nodes' own traffic flows, once more."""
        index, patience_us = self._fault.index, self._patience.resumed_us
        while True:
            others = self._holds.others(index)
            served: Evidence = yield AwaitService(removed_us, patience_us)
            # A node that another fault still keeps down says nothing about this one.
            is_alone = not (others or self._holds.others(index))
            if served.seen or self._present.is_ending or is_alone:
                break
        resumed = self._course.resumed
        flows = served
        if served.seen and resumed:
            look = Look(resumed, removed_us, patience_us, may_be_cut_short=True)
            flows = yield from self._look(look, ended=self._ended)
        sentence = served.sentence if flows is served else _joined(served.sentence, flows.sentence)
        if served.seen and (flows.seen or flows.is_dark):
            yield self._recorded("resumed", sentence)
        elif not self._present.is_ending:
            # The rule is gone, so this is the system's own doing: the run goes on and is judged.
            yield self._recorded("not-healed", sentence)

    def _are_back(self, nodes: Sequence[NodeName]) -> Doing[None]:
        """Nodes that nothing holds down any more may not be down from now on."""
        back = tuple(node for node in nodes if not self._holds.is_down(node))
        if back:
            yield AreBack(back)

    def _tell_exits(self) -> Doing[None]:
        """Nodes that were started again and ended by themselves: that is the system's own doing."""
        if self._kind.traits.ends_process is not None:
            free = (node for node in sorted(self._actual.nodes) if not self._holds.is_down(node))
            exits: dict[NodeName, int | None] = yield AskExits(tuple(free))
            detail = f"it did not stay up after the {self._actual.kind} was healed"
            if exits:
                yield TellExits(exits, detail)

    def _recorded(self, phase: FaultPhase, evidence: str | None) -> Record:
        traits = self._kind.traits if phase == "invoked" else None
        return Record(self._actual, phase, evidence, traits)


def _not_applicable(actual: ActualFault | None, reason: str) -> Record:
    return Record(actual, "not-applicable", reason)


def _joined(*sentences: str) -> str:
    return "; ".join(sentence for sentence in sentences if sentence)


def _in_short(sentences: Sequence[str]) -> list[str]:
    """Shorten what was seen of the later steps: the first and last ones of many, and a count."""
    if len(sentences) <= _SENTENCES_MAX:
        return list(sentences)
    half = _SENTENCES_MAX // 2
    left_out = len(sentences) - 2 * half
    return [*sentences[:half], f"{left_out} more steps seen", *sentences[-half:]]
