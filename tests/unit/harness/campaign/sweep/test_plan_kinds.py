"""Every fault kind of plans in a simulated world: carried out there, or refused with the reason."""

import msgspec
import pytest

from splitbrain.contracts.errors import CapabilityError
from splitbrain.contracts.fault import Awaited, Fault
from splitbrain.contracts.runtime import SIMULATED, SIMULATED_LACKS
from splitbrain.harness.campaign.sweep.planned import check_plan, scenario_of
from splitbrain.harness.folder.scenario_file import decode_scenario, encode_scenario
from splitbrain.harness.run.options import PlannedTest, plan_test
from splitbrain.harness.run.world.simulate import simulate
from splitbrain.nemesis.fault_options import BEYOND_PROMISE
from splitbrain.nemesis.kinds import fault_kind, kind_names, machine_kind_names, world_kind_names
from splitbrain.nemesis.sorts import SORTS
from splitbrain.simulation.kraft.system import KraftSimulation
from splitbrain.systems.registry import system
from tests.plans import options_with
from tests.unit.harness.fake_cluster import FakeSystem, scenario

WHOLE = ["invoked", "verified", "healing", "removed", "resumed"]
CARRIED_OUT = world_kind_names()


def planned(*schedule: Fault) -> PlannedTest:
    options = options_with(
        runtime=SIMULATED, nodes=5, time_limit_s=10.0, schedule=schedule, nemesis="kill"
    )
    return plan_test(options, system("kraft"))


def fault(kind: str, **more: object) -> Fault:
    target = fault_kind(kind).first_target
    return Fault(0, kind, target, 1_000_000, 600_000, 5, **more)  # type: ignore[arg-type]


def test_what_no_world_can_do_is_what_needs_a_real_network_or_machine() -> None:
    assert set(kind_names()) - set(CARRIED_OUT) == {
        "loss", "reorder", "duplicate", "rate", "black-hole", "cpu", "memory", "truncate",
        "clock-drift", "remove-member",
    }  # fmt: skip
    assert set(kind_names()) == {*CARRIED_OUT, *machine_kind_names()}


@pytest.mark.parametrize("kind", CARRIED_OUT)
def test_a_kind_of_plans_strikes_and_heals_in_a_simulated_world(kind: str) -> None:
    check_plan(planned(fault(kind)))
    struck = msgspec.structs.replace(fault(kind), at_us=200_000, duration_us=300_000)
    made = scenario(faults=(struck,), nodes=5, beyond_promise=True, load_us=2_000_000)
    world = FakeSystem()
    outcome = simulate(made, world)
    assert [event.phase for event in outcome.faults] == WHOLE
    assert {event.kind for event in outcome.faults} == {kind}
    assert all(world.cluster_made.is_up(node) for node in world.cluster_made.nodes)


@pytest.mark.parametrize("kind", CARRIED_OUT)
def test_the_scenario_of_a_plan_of_any_kind_can_be_replayed(kind: str) -> None:
    made = scenario_of(planned(fault(kind)))
    assert decode_scenario(encode_scenario(made)) == made


def test_an_option_that_a_kind_of_plans_has_not_is_refused() -> None:
    wrong = msgspec.structs.replace(fault("delay"), options={"dellay_ms": 3})
    made = scenario_of(planned(wrong))
    with pytest.raises(ValueError, match="has no option 'dellay_ms'"):
        decode_scenario(encode_scenario(made))


@pytest.mark.parametrize("kind", sorted(set(kind_names()) - set(CARRIED_OUT)))
def test_a_kind_that_no_world_has_is_refused_before_the_run_with_the_reason(kind: str) -> None:
    reasons = [SIMULATED_LACKS[one] for one in fault_kind(kind).needs & SIMULATED_LACKS.keys()]
    with pytest.raises(CapabilityError, match=f"plan the fault {kind} .*simulated.*{reasons[0]}"):
        check_plan(planned(fault(kind)))


def test_what_sweeps_draw_can_be_carried_out_at_the_targets_that_they_draw() -> None:
    for name, sort in SORTS.items():
        for kind in sort.kinds:
            assert kind in CARRIED_OUT
            assert not [target for target in sort.targets if fault_kind(kind).refuses(target)], name


def test_a_fault_of_a_plan_is_the_same_in_the_world() -> None:
    when = Awaited("commits", "leader", 5, 3, delay_us=2000, timeout_us=4_000_000)
    waiting = fault("kill", when=when)
    assert scenario_of(planned(waiting)).faults == (waiting,)


def test_what_no_simulated_node_tells_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(KraftSimulation, "happenings", ("leads",))
    check_plan(planned(fault("kill", when=Awaited("leads"))))
    with pytest.raises(CapabilityError, match="wait for starts"):
        check_plan(planned(fault("kill", when=Awaited("starts"))))


def test_a_plan_that_goes_beyond_the_promise_may_do_so_there_too() -> None:
    assert scenario_of(planned(fault("restore", options={BEYOND_PROMISE: True}))).beyond_promise
    assert not scenario_of(planned(fault("restore"))).beyond_promise


def test_a_trigger_counts_at_the_leader_in_its_time_alone() -> None:
    def struck(when: Awaited, at_us: int = 0) -> list[str]:
        faults = (Fault(0, "pause", "there", at_us, 50_000, 5, when=when),)
        outcome = simulate(scenario(faults=faults), FakeSystem())
        return [f"{event.phase} {','.join(event.nodes)}" for event in outcome.faults][:1]

    assert struck(Awaited("ticks", "leader", count=3)) == ["invoked n1"]
    assert struck(Awaited("ticks", epoch=9)) == ["not-applicable "]
    assert struck(Awaited("ticks", timeout_us=5_000)) == ["not-applicable "]
    assert struck(Awaited("ticks"), 500_000) == ["invoked n1"]
