"""One fault's machine, asked and answered without any driver, alone and beside others."""

from collections.abc import Callable, Sequence
from contextlib import closing
from typing import Any

import msgspec
import pytest

from splitbrain.contracts.errors import HarnessError
from splitbrain.contracts.fault import PINNED_NODES, Awaited, Fault, Link
from splitbrain.contracts.names import NodeName
from splitbrain.nemesis import effects
from splitbrain.nemesis.acts import Act, Kill, Pause, Resume, Start
from splitbrain.nemesis.aim import Aim, Patience
from splitbrain.nemesis.effects import Doing, Evidence, Look
from splitbrain.nemesis.expectations import Expectation, LinkIs, NodeIs
from splitbrain.nemesis.fault_machine import FaultMachine, Nemesis
from splitbrain.nemesis.fault_options import BEYOND_PROMISE
from splitbrain.nemesis.gate import ReportedPromise
from splitbrain.nemesis.holds import Holds, undisturbed
from splitbrain.nemesis.kinds import fault_kind, kind_names
from splitbrain.nemesis.promise import VoterReport

NODES = tuple(NodeName(f"n{number}") for number in range(1, 6))
LOAD_END_US = 60_000_000
WHOLE = ["invoked", "verified", "healing", "removed", "resumed"]


class World:
    """Answers each effect at once, in the same call, and keeps what it was asked."""

    def __init__(self) -> None:
        promise = ReportedPromise(NODES, Patience(held_us=0))
        self.nemesis = Nemesis(NODES, NODES, promise, Patience())
        self.now_us = 0
        self.effects: list[effects.Effect] = []
        self.done: list[Act] = []
        self._aim = Aim(NODES)
        self._looks = 0
        #: Answers otherwise than usual; None: as usual.
        self.answers_otherwise: Callable[[effects.Effect], Any] = lambda _effect: None

    def carry_out(self, fault: Fault, ends_at: int | None = None) -> list[str]:
        """Phases that were recorded; ``ends_at``: the step from which on the run is to end."""
        machine = FaultMachine(self.nemesis, fault, self.now_us, LOAD_END_US)
        answer: Any = None
        with closing(machine):
            while True:
                is_ending = ends_at is not None and len(self.effects) >= ends_at
                effect = machine.step(answer, self.now_us, is_ending=is_ending)
                if effect is None:
                    return self.phases()
                self.effects.append(effect)
                answer = self._answer(fault, effect, is_ending=is_ending)

    def phases(self) -> list[str]:
        return [one.phase for one in self.effects if isinstance(one, effects.Record)]

    def _answer(self, fault: Fault, effect: effects.Effect, *, is_ending: bool) -> Any:
        otherwise = self.answers_otherwise(effect)
        if otherwise is not None:
            return otherwise
        answer: Any = None
        match effect:
            case effects.Wait(until_us) | effects.StayInForce(until_us):
                if not is_ending:
                    self.now_us = max(self.now_us, until_us)
            case effects.AwaitHappening():
                answer = NODES[3]
            case effects.AskView():
                answer = self._aim.view(NODES[0], {})
            case effects.AskReports():
                self._looks += 2
                told = VoterReport(epoch=1, end=5, committed=5, held=5, held_epoch=1)
                answer = effects.Reports(dict.fromkeys(NODES, told), self._looks)
            case effects.AskAcknowledged():
                answer = effects.Acknowledged(0, {})
            case effects.AskExits():
                answer = {}
            case effects.Do(act):
                self.done += self.nemesis.holds.admit(fault.index, act)
                self.nemesis.holds.done(fault.index, act)
                answer = effects.Done()
            case effects.Look() | effects.AwaitService():
                answer = effects.Evidence(True, "seen")
            case _:
                pass
        return answer


def planned(kind: str, target: str = "leader", **more: Any) -> Fault:
    lies = fault_kind(kind).rule == "lies"
    fields: dict[str, Any] = {"options": {BEYOND_PROMISE: True} if lies else {}}
    return Fault(0, kind, target, 0, 3_000_000, 7, **(fields | more))


def test_a_fault_goes_through_its_whole_course_within_the_calls_that_ask() -> None:
    world = World()
    assert world.carry_out(planned("pause")) == WHOLE
    assert world.done == [Pause((NODES[0],)), Resume((NODES[0],))]
    assert world.now_us == 3_000_000
    assert world.nemesis.in_force == {}


@pytest.mark.parametrize("kind", kind_names())
def test_wherever_the_run_is_stopped_what_was_done_is_healed(kind: str) -> None:
    whole = World()
    assert whole.carry_out(planned(kind))[-1] == "resumed"
    for ends_at in range(len(whole.effects)):
        world = World()
        phases = world.carry_out(planned(kind), ends_at)
        assert world.nemesis.holds.others(-1) == ()
        assert world.nemesis.in_force == {}
        assert bool(world.done) == ("invoked" in phases) == ("removed" in phases)
        # The gate is open for the next one.
        world.effects.clear()
        again = msgspec.structs.replace(planned(kind), index=1)
        assert world.carry_out(again) == whole.phases()


@pytest.mark.parametrize("kind", kind_names())
def test_wherever_an_effect_fails_what_heals_is_known_and_the_gate_left(kind: str) -> None:
    whole = World()
    whole.carry_out(planned(kind))
    for failing in range(len(whole.effects)):
        world = World()

        def fail(_effect: effects.Effect, world: World = world, failing: int = failing) -> None:
            if len(world.effects) > failing:
                raise HarnessError("act", "the runtime", "it would not", "Look at it.")

        world.answers_otherwise = fail
        with pytest.raises(HarnessError):
            world.carry_out(planned(kind))
        if world.done and "removed" not in world.phases():
            assert world.nemesis.in_force.keys() == {0}
        world.nemesis.in_force.clear()
        world.nemesis.holds.clear()
        world.answers_otherwise = lambda _effect: None
        world.effects.clear()
        again = msgspec.structs.replace(planned(kind), index=1)
        assert world.carry_out(again) == whole.phases()


def test_a_fault_waits_for_a_happening_and_strikes_there() -> None:
    world = World()
    when = Awaited("commits", delay_us=250_000)
    assert world.carry_out(planned("kill", "there", when=when)) == WHOLE
    assert world.effects[:3] == [
        effects.AskReports(), effects.AwaitHappening(when, LOAD_END_US), effects.Wait(250_000)
    ]  # fmt: skip
    assert world.done == [Kill((NODES[3],)), Start((NODES[3],))]


def test_a_fault_waits_for_the_recovery_of_all_nodes_and_asks_none_of_them() -> None:
    world = World()
    assert world.carry_out(planned("kill", when=Awaited("recovered", delay_us=250_000))) == WHOLE
    assert world.effects[:2] == [effects.AwaitRecovery(LOAD_END_US), effects.Wait(250_000)]
    assert world.done == [Kill((NODES[0],)), Start((NODES[0],))]


def test_no_delay_lasts_longer_than_the_load() -> None:
    world = World()
    when = Awaited("recovered", delay_us=10 * LOAD_END_US)
    assert world.carry_out(planned("kill", when=when)) == ["not-applicable"]
    assert world.now_us == LOAD_END_US


def test_a_fault_before_whose_time_not_all_nodes_recover_does_not_strike() -> None:
    world = World()
    world.answers_otherwise = lambda effect: (
        "n4 does not run" if isinstance(effect, effects.AwaitRecovery) else None
    )
    when = Awaited("recovered", timeout_us=2_000_000)
    assert world.carry_out(planned("kill", when=when)) == ["not-applicable"]
    (said,) = [effect.evidence for effect in world.effects if isinstance(effect, effects.Record)]
    assert said == "the recovery of all nodes did not happen within 2 s: n4 does not run"
    assert world.done == []


def test_a_fault_that_something_else_heals_early_does_not_wait_for_its_time() -> None:
    world = World()
    # Answered at once: nothing says that its time is over.
    world.answers_otherwise = lambda effect: () if isinstance(effect, effects.StayInForce) else None
    assert world.carry_out(planned("pause")) == WHOLE
    assert world.now_us == 0


@pytest.mark.parametrize(
    ("seen", "phases"),
    [
        ([False, True, True, True], ["invoked", "not-bitten", "healing", "removed", "resumed"]),
        ([True, True, False], ["invoked", "verified", "healing", "removed", "not-healed"]),
    ],
)
def test_what_a_look_does_not_see_is_on_record(seen: list[bool], phases: list[str]) -> None:
    world, shown = World(), iter(seen)
    world.answers_otherwise = lambda effect: (
        effects.Evidence(next(shown), "looked")
        if isinstance(effect, effects.Look | effects.AwaitService)
        else None
    )
    assert world.carry_out(planned("pause")) == phases


def test_a_fault_that_is_not_seen_gone_fails_the_run() -> None:
    world = World()
    world.answers_otherwise = lambda effect: (
        effects.Evidence(effect.may_be_cut_short, "looked")
        if isinstance(effect, effects.Look)
        else None
    )
    with pytest.raises(HarnessError, match=r"heal the fault 0 \(pause:leader\)"):
        world.carry_out(planned("pause"))
    assert world.phases() == ["invoked", "verified", "healing", "not-healed"]
    assert world.nemesis.in_force == {0: (Resume((NODES[0],)),)}


def test_a_node_that_a_heal_is_about_to_start_has_not_ended_by_itself() -> None:
    world, n4 = World(), NODES[3]
    asked: list[NodeName] = []

    def amid_the_start(effect: effects.Effect) -> None:
        if isinstance(effect, effects.AskExits):
            asked.extend(effect.nodes)
        if isinstance(effect, effects.Do) and isinstance(effect.act, Start):
            # The runtime is at it, while another fault is healed and seen gone.
            world.nemesis.holds.admit(0, effect.act)
            partition = msgspec.structs.replace(planned("partition", "n5"), index=1)
            assert world.carry_out(partition)[-1] == "resumed"
            assert NODES[0] in asked
            assert n4 not in asked

    world.answers_otherwise = amid_the_start
    world.carry_out(planned("kill", "n4"))
    assert n4 in asked


def test_a_kill_of_a_node_that_had_ended_by_itself_bites_those_that_still_ran() -> None:
    n1, n2 = NODES[:2]
    for ended, phase, told in (
        ({n1: 1, n2: 0}, "not-bitten", "n1, n2 had ended before"),
        ({n1: 137}, "verified", "seen; n1 had ended before"),
    ):
        world = World()
        world.answers_otherwise = lambda effect, ended=ended: (
            effects.Done(ended=ended)
            if isinstance(effect, effects.Do) and isinstance(effect.act, Kill)
            else None
        )
        world.carry_out(planned("kill", "leader", options={PINNED_NODES: [n1, n2]}))
        assert world.phases()[1] == phase
        (bite,) = [
            one for one in world.effects if isinstance(one, effects.Record) and one.phase == phase
        ]
        assert bite.evidence == told
        looks = [one.expectations for one in world.effects if isinstance(one, effects.Look)]
        assert ((NodeIs(n2, "exited"),) in looks) == (n2 not in ended)
        assert effects.TellExits(ended) in world.effects


N1, N2, N3 = NodeName("n1"), NodeName("n2"), NodeName("n3")
CUT, OPEN = LinkIs(Link(N1, N3), open=False), LinkIs(Link(N1, N2), open=True)


def seen_of(
    holds: Holds,
    expectations: Sequence[Expectation],
    look: Callable[[Sequence[Expectation]], Evidence],
    *,
    is_healed: bool = False,
) -> Evidence:
    """Return the findings on the first fault where each look shows what ``look`` says."""

    def ended(_nodes: Sequence[NodeName]) -> Doing[Sequence[NodeName]]:
        yield from ()
        return ()

    wanted = Look(tuple(expectations), 0, 1_000_000, may_be_cut_short=True)
    doing = undisturbed(holds, 0, wanted, ended=ended if is_healed else None)
    answer: Evidence | None = None
    try:
        while True:
            effect = doing.send(answer)
            assert isinstance(effect, Look)
            answer = look(effect.expectations)
    except StopIteration as over:
        return over.value


def test_what_another_fault_keeps_from_being_seen_is_left_out_and_told() -> None:
    holds = Holds()
    holds.admit(1, Kill((N2,)))
    looks: list[Sequence[Expectation]] = []

    def look(wanted: Sequence[Expectation]) -> Evidence:
        looks.append(wanted)
        return Evidence(True, "seen")

    seen = seen_of(holds, [CUT, OPEN], look)
    assert (seen.seen, seen.sentence) == (True, "seen; 1 not looked for beside other faults")
    assert looks == [(CUT,)]


def test_where_all_is_kept_from_being_seen_a_heal_passes_and_a_bite_does_not() -> None:
    holds = Holds()
    holds.admit(1, Kill((N2,)))

    def look(_: Sequence[Expectation]) -> Evidence:
        raise AssertionError

    for is_healed in (False, True):
        assert seen_of(holds, [OPEN], look, is_healed=is_healed).seen is is_healed


def test_a_fault_that_begins_amid_a_look_makes_no_bite_a_miss() -> None:
    holds = Holds()
    looks: list[Sequence[Expectation]] = []

    def look(wanted: Sequence[Expectation]) -> Evidence:
        looks.append(wanted)
        if len(looks) == 1:
            holds.admit(1, Kill((N2,)))
        return Evidence(OPEN not in wanted, "looked")

    assert seen_of(holds, [CUT, OPEN], look).seen
    assert looks == [(CUT, OPEN), (CUT,)]


def test_a_fault_that_comes_and_goes_amid_a_look_is_looked_past() -> None:
    holds = Holds()
    looks: list[Sequence[Expectation]] = []

    def look(wanted: Sequence[Expectation]) -> Evidence:
        looks.append(wanted)
        if len(looks) == 1:
            holds.admit(1, Kill((N2,)))
            holds.admit(1, Start((N2,)))
            holds.done(1, Start((N2,)))
        return Evidence(len(looks) > 1, "looked")

    assert seen_of(holds, [CUT, OPEN], look).seen
    assert looks == [(CUT, OPEN), (CUT, OPEN)]


def test_what_is_not_seen_though_nobody_disturbs_is_a_miss_after_one_look() -> None:
    looks: list[Sequence[Expectation]] = []

    def look(wanted: Sequence[Expectation]) -> Evidence:
        looks.append(wanted)
        return Evidence(False, "not seen")

    assert not seen_of(Holds(), [CUT], look).seen
    assert len(looks) == 1
