"""Worlds of registers with troubled reigns: what is added, and to which."""

from collections import Counter

from splitbrain.contracts.scenario import Scenario
from splitbrain.harness.campaign.sweep.options import SimOptions
from splitbrain.harness.campaign.sweep.swarm import draw_scenario
from splitbrain.harness.campaign.sweep.trial import draw
from splitbrain.harness.folder.scenario_rules import check_values
from splitbrain.simulation.kraft.system import KraftSimulation

SEEDS = range(90)
PLAIN = SimOptions(system="kraft")


def before(seed: int) -> Scenario:
    """Return the world of a seed as the swarm draws it."""
    system = KraftSimulation()
    return draw_scenario(seed, system="kraft", happenings=system.happenings, hints=system)


def test_a_third_of_the_worlds_stay_as_the_swarm_draws_them() -> None:
    same = sum(draw(seed, PLAIN) == before(seed) for seed in SEEDS)
    assert len(SEEDS) // 5 < same < len(SEEDS) // 2


def test_a_troubled_world_is_one_that_can_be_and_leaves_a_successor_its_time() -> None:
    kinds: Counter[str] = Counter()
    undisturbed = 0
    for seed in SEEDS:
        drawn, world = before(seed), draw(seed, PLAIN)
        if world == drawn:
            continue
        check_values(world)
        assert world == draw(seed, PLAIN)
        assert world.load.workload == "register"
        assert world.load.readers == 3 * world.nodes
        assert world.load.clients - world.load.readers >= 2 * world.nodes
        old = world.faults[: len(drawn.faults)] == drawn.faults
        undisturbed += not old
        added = world.faults[len(drawn.faults) if old else 0 :]
        kinds.update(fault.kind for fault in added)
        assert len({fault.index for fault in world.faults}) == len(world.faults)
        fetch_us = 1_000 * int(world.settings["fetch_timeout_ms"])
        assert fetch_us >= 48 * world.disk.latency_us_max
        # A leader that hears nobody for longer resigns; unheard, it goes on until another leads.
        cuts = [fault for fault in added if fault.kind != "one-way-out"]
        assert all(fault.duration_us <= fetch_us * 3 // 2 for fault in cuts)
        assert {fault.options["until"] for fault in added if fault not in cuts} <= {"leads"}
    assert undisturbed > len(SEEDS) // 5
    blows = {"kill", "power", "terminate"}
    assert set(kinds) == blows | {"one-way-in", "one-way-out", "partition", "pause"}
