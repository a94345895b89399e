"""The worlds whose cost is measured are what is said of them, and the arithmetic is right."""

import json
from itertools import pairwise

import pytest

from bench.simulation import Growth, Measured, growth, main
from bench.simulation_worlds import UnhashedSimulation, fixed_world
from splitbrain.harness.run.world.simulate import simulate
from splitbrain.simulation.kraft.system import KraftSimulation


def test_the_fixed_world_has_three_voters_and_a_fault_every_two_or_three_seconds() -> None:
    world = fixed_world(rate=10)
    moments = [fault.at_us for fault in world.faults]
    pauses = {later - sooner for sooner, later in pairwise(moments)}
    assert (world.nodes, world.load.clients, world.load_us) == (3, 5, 30_000_000)
    assert pauses == {2_000_000, 3_000_000}
    assert {fault.kind for fault in world.faults} == {"kill", "partition", "power", "pause"}


def test_the_fixed_world_of_metadata_has_brokers_and_topics() -> None:
    world = fixed_world(rate=10, load_s=3, brokers=2)
    assert (world.state_machine, world.observers, world.load.workload) == ("metadata", 2, "topics")
    assert world.faults == fixed_world(rate=10, load_s=3).faults
    outcome = simulate(world, KraftSimulation())
    assert outcome.violation is None
    assert outcome.figures["acknowledged"] > 0


def test_without_the_trace_hash_the_run_is_the_same() -> None:
    world = fixed_world(rate=5, load_s=3)
    hashed, unhashed = (
        simulate(world, system) for system in (KraftSimulation(), UnhashedSimulation())
    )
    assert hashed.trace_hash != unhashed.trace_hash
    assert (hashed.steps, hashed.events) == (unhashed.steps, unhashed.events)


def test_what_grows_linearly_has_the_ratio_one() -> None:
    worlds = [
        Measured(name="", scenario=fixed_world(rate=1, clients=size), cpu_s=[cost_s])
        for size, cost_s in ((5, 0.15), (10, 0.2), (20, 0.3))
    ]
    assert growth(worlds, lambda world: world.scenario.load.clients) == Growth(10.0, 10.0)
    assert Growth(10.0, 10.0).ratio == 1.0


def test_a_growth_that_drowns_in_noise_has_no_ratio() -> None:
    assert Growth(0.0, 10.0).ratio is None


@pytest.mark.slow
def test_the_last_line_says_what_was_measured(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--smoke", "--seeds", "1", "--repeats", "1"]) == 0
    facts = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert facts["is_smoke"]
    assert list(facts["fixed"]) == ["rate", "metadata", "share", "time", "clients"]
    assert all(row["operations_per_s"] > 0 for row in facts["fixed"]["rate"])
    assert [row["seeds"] for row in facts["swarm"].values()] == [1, 1]
