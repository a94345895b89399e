"""The search for the smallest failing scenario, with oracles that say what a run would."""

from collections.abc import Callable

import msgspec
import pytest

from contracts.fault import Awaited, Fault
from contracts.scenario import (
    DiskOptions,
    LoadOptions,
    NetworkOptions,
    Scenario,
)
from harness.simulation.shrink_oracle import Finding, Replay
from harness.simulation.shrink_steps import Happened, Pair, calm
from harness.simulation.shrinking import Progress, Shrinking, shrink
from nemesis.search import SearchBudget

Fails = Callable[[Scenario], bool]
ALL_OPERATIONS = tuple((slot, n) for n in range(30) for slot in range(5))
FAILED_US = 1_234_567
NEVER = Awaited("never", count=0)


def fault(index: int, on: str | None = None) -> Fault:
    at_us = 100_003 * (index + 1) if on is None else 0
    when = None if on is None else Awaited(on, count=12, delay_us=777)
    return Fault(index, "kill", "leader", at_us, 300_001, draw=index, when=when)


SCENARIO = Scenario(
    system="any",
    seed=17,
    nodes=5,
    observers=1,
    bugs=("first-bug", "second-bug"),
    settings={"timeout_ms": "60", "retry_ms": "5"},
    through_codec=True,
    drift_ppm=(100, -100, 3, 4, 5, 6),
    segment_bytes=300,
    network=NetworkOptions(slow_chance=0.05, reset_chance=0.02),
    disk=DiskOptions(slow_chance=0.05),
    load=LoadOptions(timeout_us=100_000, workload_options={"values": "small"}, rate=100.0),
    faults=(*(fault(index) for index in range(9)), fault(9, "leads"), fault(10, "persists")),
    load_us=3_000_000,
)


def kept(scenario: Scenario) -> tuple[Pair, ...]:
    return ALL_OPERATIONS if scenario.load.kept is None else scenario.load.kept


def indexes(scenario: Scenario) -> set[int]:
    return {fault.index for fault in scenario.faults}


def replay_of(fails: Fails, ran: list[Scenario] | None = None, *, is_early: bool = True) -> Replay:
    """A run that fails where this says so, and performs what it keeps."""

    def replay(scenario: Scenario) -> Finding | None:
        if ran is not None:
            ran.append(scenario)
        if not fails(scenario):
            return None
        performed = kept(scenario)
        return Finding(
            failed_by=("INV-01",),
            sentence="two lead",
            happened=Happened(
                struck=frozenset(indexes(scenario) - {7}),
                performed=performed,
                failed_us=min(FAILED_US, scenario.load_us) if is_early else None,
            ),
            operations=len(performed),
            trace_hash="",
        )

    return replay


def budget(replays_max: int = 100_000) -> SearchBudget:
    return SearchBudget(replays_max, 60.0, lambda: 0.0, called="replays")


def shrunk(
    fails: Fails, replays_max: int = 100_000, other_seeds: int = 0, *, is_early: bool = True
) -> Shrinking:
    replay = replay_of(fails, is_early=is_early)
    finding = replay(SCENARIO)
    assert finding is not None
    return shrink(SCENARIO, finding, replay, budget(replays_max), other_seeds=other_seeds)


def test_only_what_it_takes_is_left() -> None:
    def fails(scenario: Scenario) -> bool:
        return {3, 9} <= indexes(scenario) and {(1, 4), (4, 20)} <= set(kept(scenario))

    done = shrunk(lambda scenario: fails(scenario) and scenario.load.clients == 5)
    assert [fault.index for fault in done.scenario.faults] == [3, 9]
    assert done.scenario.load.kept == ((1, 4), (4, 20))
    assert (done.before.faults, done.after.faults) == (11, 2)
    assert (done.before.operations, done.after.operations) == (150, 2)
    assert done.is_minimal
    assert done.cut_short is None


def test_a_world_that_needs_nothing_becomes_the_default_world() -> None:
    done = shrunk(lambda _: True)
    scenario = done.scenario
    assert scenario == calm(scenario)
    assert (scenario.faults, scenario.load.kept, scenario.bugs) == ((), (), ())
    assert (scenario.nodes, scenario.observers, scenario.load.clients) == (3, 0, 1)
    assert scenario.load_us == 1_235_000, "the load ends with the failure"
    assert scenario.seed == SCENARIO.seed


def test_a_failure_after_the_heal_leaves_a_short_load() -> None:
    done = shrunk(lambda scenario: scenario.load_us >= 100_000, is_early=False)
    assert done.scenario.load_us == 100_000


def test_moments_and_durations_become_as_simple_as_they_may() -> None:
    def fails(scenario: Scenario) -> bool:
        by_index = {fault.index: fault for fault in scenario.faults}
        return (
            {2, 9} <= set(by_index)
            and by_index[2].at_us >= 250_000
            and by_index[2].duration_us >= 60_000
            and (by_index[9].when or NEVER).count >= 3
        )

    timed, waiting = shrunk(fails).scenario.faults
    assert timed.at_us == 300_000
    assert timed.duration_us == 70_000
    assert waiting.when == Awaited("leads", count=3)
    assert waiting.duration_us < 2_000


@pytest.mark.parametrize(
    ("fails", "left"),
    [
        (lambda scenario: scenario.network.reset_chance > 0, {"network"}),
        (lambda scenario: scenario.disk.slow_chance > 0, {"disk"}),
        (lambda scenario: scenario.through_codec, {"through_codec"}),
        (lambda scenario: scenario.segment_bytes == 300, {"segment_bytes"}),
        (lambda scenario: "retry_ms" in scenario.settings, {"settings"}),
        (lambda scenario: bool(scenario.drift_ppm), {"drift_ppm"}),
    ],
)
def test_weather_that_matters_stays_alone(fails: Fails, left: set[str]) -> None:
    scenario = shrunk(fails).scenario
    plain = calm(scenario)
    assert {name for name in left if getattr(scenario, name) != getattr(plain, name)} == left
    assert (
        msgspec.structs.replace(scenario, **{name: getattr(plain, name) for name in left}) == plain
    )
    assert scenario.network.slow_chance == 0
    assert "timeout_ms" not in scenario.settings


def test_five_nodes_and_an_observer_stay_where_they_matter() -> None:
    done = shrunk(lambda scenario: scenario.nodes >= 4 and scenario.observers == 1)
    assert (done.scenario.nodes, done.scenario.observers) == (4, 1)


def test_clients_without_operations_go_and_the_timetable_of_the_others_stays() -> None:
    def fails(scenario: Scenario) -> bool:
        ours = [n for _, n in kept(scenario) if n == 12]
        return bool(ours)

    done = shrunk(fails)
    load = done.scenario.load
    assert (load.clients, load.kept) == (1, ((0, 12),))
    assert load.rate / load.clients == SCENARIO.load.rate / SCENARIO.load.clients


def test_no_scenario_is_run_twice() -> None:
    ran: list[Scenario] = []
    replay = replay_of(lambda scenario: {3, 9} <= indexes(scenario), ran)
    finding = replay(SCENARIO)
    assert finding is not None
    spent = budget()
    shrink(SCENARIO, finding, replay, spent, other_seeds=3)
    encoded = [msgspec.json.encode(scenario) for scenario in ran]
    assert len(set(encoded)) == len(encoded)
    assert spent.tries == len(ran) - 1


def test_a_used_up_budget_leaves_the_best_so_far_and_says_so() -> None:
    def fails(scenario: Scenario) -> bool:
        return {3, 9} <= indexes(scenario)

    for replays_max in (0, 1, 5, 20):
        done = shrunk(fails, replays_max)
        assert fails(done.scenario)
        assert not done.is_minimal
        assert done.replays == replays_max
        assert done.cut_short == f"{replays_max} replays were made"


def test_time_and_interruption_end_the_search() -> None:
    times = iter([0.0, 1.0, 2.0, 61.0])
    assert SearchBudget(9, 60.0, lambda: next(times)).exhausted() is None
    assert budget().exhausted() is None
    late = iter([0.0, 61.0])
    assert SearchBudget(9, 60.0, lambda: next(late)).exhausted() == "60 s are over"
    assert SearchBudget(9, 60.0, lambda: 0.0, lambda: True).exhausted() == "interrupted"


def test_a_failure_that_hides_in_its_seed_is_found_in_another() -> None:
    def fails(scenario: Scenario) -> bool:
        # In its own seed it takes four faults, in every third one a single one.
        needed = {5} if scenario.seed % 3 == 0 else {1, 3, 5, 9}
        return needed <= indexes(scenario)

    assert len(shrunk(fails).scenario.faults) == 4
    done = shrunk(fails, other_seeds=4)
    assert [fault.index for fault in done.scenario.faults] == [5]
    assert done.scenario.seed == 3
    assert done.is_minimal


def test_many_operations_are_halved_in_other_seeds_before_they_are_tried_one_by_one() -> None:
    def fails(scenario: Scenario) -> bool:
        # Its own seed takes nearly all of them, every third one a single one.
        operations = kept(scenario)
        return (4, 7) in operations and (scenario.seed % 3 == 0 or len(operations) > 140)

    done = shrunk(fails, other_seeds=4)
    assert done.after.operations == 1
    assert done.is_minimal
    assert done.replays < 200


def test_a_run_that_differs_once_its_operations_are_spelt_out_keeps_them_all() -> None:
    done = shrunk(lambda scenario: scenario.load.kept is None and 3 in indexes(scenario))
    assert done.scenario.load.kept is None
    assert indexes(done.scenario) == {3}
    assert not done.is_minimal


def test_progress_is_told_before_each_replay() -> None:
    told: list[Progress] = []
    replay = replay_of(lambda scenario: {3, 9} <= indexes(scenario))
    finding = replay(SCENARIO)
    assert finding is not None
    done = shrink(SCENARIO, finding, replay, budget(), told.append)
    assert [progress.replays for progress in told] == list(range(done.replays))
    assert told[0].now == told[0].before == done.before
    assert told[-1].now.faults == 2
