"""Draws of a seed: everything is met, nothing shifts, and no float becomes a time."""

from collections import Counter

import msgspec

from splitbrain.contracts.fault import UNTIL
from splitbrain.contracts.scenario import Scenario
from splitbrain.harness.campaign.sweep.swarm import draw_scenario
from splitbrain.nemesis.fault_options import AFTER, OTHER, PLACE, SAME
from splitbrain.nemesis.sorts import drawn_kinds
from splitbrain.nemesis.swarm import SwarmLimits
from tests.unit.harness.fake_cluster import FakeSystem

SEEDS = range(300)


def drawn(seed: int, **options: object) -> Scenario:
    system = FakeSystem()
    return draw_scenario(seed, system="fake", happenings=system.happenings, hints=system, **options)  # pyright: ignore[reportArgumentType]


def test_a_seed_draws_the_same_world_every_time() -> None:
    assert drawn(17) == drawn(17)
    assert drawn(17) != drawn(18)


def test_a_scenario_survives_json_and_every_time_in_it_is_an_integer() -> None:
    for seed in SEEDS:
        scenario = drawn(seed)
        assert msgspec.json.decode(msgspec.json.encode(scenario), type=Scenario) == scenario
        leaves = _leaves(msgspec.to_builtins(scenario), "")
        floats = [path for path, value in leaves if isinstance(value, float)]
        assert all(path.endswith(("_chance", ".rate")) for path in floats)


def test_every_choice_is_met_within_a_few_hundred_seeds() -> None:
    worlds = [drawn(seed) for seed in SEEDS]
    assert {world.nodes for world in worlds} == {3, 5}
    assert {world.observers for world in worlds} == {0, 1}
    assert {world.through_codec for world in worlds} == {False, True}
    assert {world.recovery.scope for world in worlds} == {"all", "majority"}
    assert {world.load.workload for world in worlds} == {"register", "set"}
    assert {world.load.clients for world in worlds} >= {2, 3, 4, 5, 6}
    assert any(world.load.clients > 2 * (world.nodes + world.observers) for world in worlds)
    assert min(world.segment_bytes for world in worlds) < 1_000
    assert max(world.network.delay_us_max for world in worlds) > 10_000
    assert max(world.network.slow_us_max for world in worlds) > 500_000
    assert min(world.network.delay_us_min for world in worlds) <= 200
    kinds = {fault.kind for world in worlds for fault in world.faults}
    assert kinds == set(drawn_kinds(beyond_promise=False))
    assert any(not world.faults for world in worlds)


def test_faults_wait_for_happenings_and_for_times() -> None:
    faults = [fault for seed in SEEDS for fault in drawn(seed).faults]
    waiting = [fault for fault in faults if fault.when is not None]
    assert 0.25 < len(waiting) / len(faults) < 0.75
    assert any(
        fault.when.delay_us == 0 and fault.target == "there" for fault in waiting if fault.when
    )
    assert all(fault.at_us == 0 for fault in waiting)


def test_sequels_name_an_earlier_fault_and_wait_for_a_turning_point() -> None:
    turning = {name for name in FakeSystem.happenings if FakeSystem.happenings.count(name) > 1}
    places = Counter[object]()
    for seed in SEEDS:
        world = drawn(seed)
        for fault in world.faults:
            if AFTER not in fault.options:
                continue
            places[fault.options.get(PLACE)] += 1
            assert fault.options[AFTER] < fault.index
            assert fault.when is not None
            assert fault.when.on in (turning or FakeSystem.happenings)
    assert set(places) == {SAME, OTHER, None}


def test_a_fault_that_heals_once_others_get_on_has_the_time_for_it() -> None:
    met = 0
    for seed in SEEDS:
        world = drawn(seed)
        for fault in world.faults:
            if UNTIL in fault.options:
                met += 1
                assert fault.duration_us >= FakeSystem().failover_us(world.settings)
    assert met > 0


def test_in_most_seeds_the_leader_is_hit_most() -> None:
    shares = [
        sum(fault.target == "leader" for fault in timed) / len(timed)
        for timed in (
            [f for f in drawn(seed).faults if f.when is None and f.at_us] for seed in SEEDS
        )
        if len(timed) > 3
    ]
    assert sum(share > 0.5 for share in shares) > len(shares) // 3


def test_only_the_promise_decides_whether_a_disk_lies() -> None:
    kinds = {fault.kind for seed in SEEDS for fault in drawn(seed, beyond_promise=True).faults}
    assert {"roll-back", "rot-state"} <= kinds


def test_a_planted_bug_changes_nothing_else_of_the_world() -> None:
    with_bug = drawn(5, bugs=("some-bug",))
    assert msgspec.structs.replace(with_bug, bugs=()) == drawn(5)


def test_limits_are_kept() -> None:
    limits = SwarmLimits(
        nodes=(3, 3), clients_max=2, crowd_spread=0, timed_faults_max=1, triggered_faults_max=0,
        sequels_max=0, kinds=("kill",),
    )  # fmt: skip
    for seed in SEEDS:
        world = drawn(seed, base=limits)
        assert world.nodes == 3
        assert world.load.clients == 2
        assert len(world.faults) <= 1
        assert all(fault.kind == "kill" for fault in world.faults)


def _leaves(value: object, path: str) -> list[tuple[str, object]]:
    if isinstance(value, dict):
        return [leaf for name, part in value.items() for leaf in _leaves(part, f"{path}.{name}")]
    if isinstance(value, list | tuple):
        return [leaf for part in value for leaf in _leaves(part, path)]
    return [(path, value)]
