"""Drawn worlds of controllers and brokers: what they add to a world, and that they are sound."""

import random
from collections import Counter

import msgspec
import pytest

from splitbrain.harness.campaign.sweep.trial import Trial, draw, run
from splitbrain.harness.judge.simulated_outcomes import judged
from splitbrain.simulation.kraft.system import KraftSimulation

#: An image is larger than registers, and a broker has to catch up with it.
SNAPSHOTS = ("snapshot_max_new_record_bytes", "fetch_snapshot_max_bytes")
TRIAL = Trial(system="kraft", state_machine="metadata")


def test_the_usual_state_machine_leaves_a_world_as_it_was() -> None:
    for seed in range(20):
        named = draw(seed, Trial(system="kraft", state_machine="registers"))
        assert named == draw(seed, Trial(system="kraft"))


def test_a_world_with_metadata_is_the_same_world_but_for_what_that_needs() -> None:
    for seed in range(20):
        plain, dressed = draw(seed, Trial(system="kraft")), draw(seed, TRIAL)
        assert 1 <= dressed.observers <= 3
        assert dressed.load.workload == "topics"
        others = {name: text for name, text in plain.settings.items() if name not in SNAPSHOTS}
        assert others.items() <= dressed.settings.items()
        back = msgspec.structs.replace(
            dressed,
            state_machine=plain.state_machine,
            observers=plain.observers,
            faults=dressed.faults[: len(plain.faults)],
            settings=plain.settings,
            load=plain.load,
            recovery=plain.recovery,
        )
        assert back == plain
        load = msgspec.structs.replace(
            dressed.load,
            workload=plain.load.workload,
            workload_options=plain.load.workload_options,
        )
        assert load == plain.load


def test_a_session_is_several_heartbeats_long() -> None:
    simulation, stream = KraftSimulation(), random.Random(1)
    brokers: Counter[int] = Counter()
    for seed in range(60):
        world = simulation.dressed(draw(seed, Trial(system="kraft")), "metadata", stream)
        brokers[world.observers] += 1
        session_ms = int(world.settings["broker_session_timeout_ms"])
        assert session_ms // int(world.settings["heartbeat_interval_ms"]) >= 3
    assert set(brokers) == {1, 2, 3}


def test_brokers_end_in_order_and_crash_besides_what_befalls_any_node() -> None:
    kinds: Counter[str] = Counter()
    for seed in range(40):
        plain, dressed = draw(seed, Trial(system="kraft")), draw(seed, TRIAL)
        added = dressed.faults[len(plain.faults) :]
        brokers = {f"n{dressed.nodes + 1 + place}" for place in range(dressed.observers)}
        assert {fault.target for fault in added} <= brokers
        assert len({fault.index for fault in dressed.faults}) == len(dressed.faults)
        kinds.update(fault.kind for fault in added)
    assert set(kinds) == {"terminate", "kill", "pause"}


@pytest.mark.parametrize("seed", [2, 3])
def test_a_drawn_world_with_metadata_raises_no_alarm_and_does_work(seed: int) -> None:
    seen = judged(run(draw(seed, TRIAL)))
    assert seen.failed_by == ()
    assert seen.outcome.violation is None
    done = Counter(event.f for event in seen.outcome.events if event.type == "ok")
    assert {"create", "delete", "describe", "view"} <= set(done)
    assert seen.outcome.figures["commits"] > 50
    logs = seen.outcome.committed_logs
    assert all(any(record.f == "create" for record in log.records) for log in logs.values() if log)


def test_a_seed_is_run_alike_twice() -> None:
    scenario = draw(2, TRIAL)
    assert run(scenario).trace_hash == run(scenario).trace_hash
