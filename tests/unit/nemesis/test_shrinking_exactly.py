"""The search for the smallest failing scenario, with oracles that say what a run would."""

from collections.abc import Callable

import msgspec
import pytest

from splitbrain.contracts.fault import Awaited, Fault
from splitbrain.contracts.scenario import (
    DiskOptions,
    LoadOptions,
    NetworkOptions,
    Scenario,
)
from splitbrain.nemesis.exact_steps import calm
from splitbrain.nemesis.search import Happened, Pair, SearchBudget
from splitbrain.nemesis.shrinking import Smallest, shrink

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


class Exact:
    """An oracle that has seen its plan fail, and remembers of which others it was asked."""

    def __init__(
        self,
        fails: Fails,
        *,
        is_early: bool = True,
        replays_max: int = 100_000,
        scenario: Scenario = SCENARIO,
    ) -> None:
        self._fails, self._is_early, self._scenario = fails, is_early, scenario
        self.budget = SearchBudget(replays_max, 60.0, lambda: 0.0, called="replays")
        self.asked: dict[bytes, bool] = {msgspec.json.encode(scenario): True}
        self.happened = self._happened(scenario)

    def fails(self, candidate: Scenario, _step: str) -> bool:
        """Each is asked about once; it performs what it keeps."""
        digest = msgspec.json.encode(candidate)
        if digest not in self.asked:
            self.budget.tries += 1
            self.asked[digest] = self._fails(candidate)
        if self.asked[digest]:
            self.happened = self._happened(candidate)
        return self.asked[digest]

    def _happened(self, scenario: Scenario) -> Happened:
        return Happened(
            struck=frozenset(indexes(scenario) - {7}),
            performed=kept(scenario),
            failed_us=min(FAILED_US, scenario.load_us) if self._is_early else None,
        )

    def shrunk(self, other_seeds: int = 0) -> Smallest:
        """Return the rest of the plan."""
        return shrink(self._scenario, self, self.budget, other_seeds)


def shrunk(fails: Fails, other_seeds: int = 0, *, is_early: bool = True) -> Smallest:
    return Exact(fails, is_early=is_early).shrunk(other_seeds)


def test_only_what_it_takes_is_left() -> None:
    def fails(scenario: Scenario) -> bool:
        return {3, 9} <= indexes(scenario) and {(1, 4), (4, 20)} <= set(kept(scenario))

    done = shrunk(lambda scenario: fails(scenario) and scenario.load.clients == 5)
    assert [fault.index for fault in done.plan.faults] == [3, 9]
    assert done.plan.load.kept == ((1, 4), (4, 20))
    assert done.is_minimal


def test_a_world_that_needs_nothing_becomes_the_default_world() -> None:
    done = shrunk(lambda _: True)
    scenario = done.plan
    assert scenario == calm(scenario)
    assert (scenario.faults, scenario.load.kept, scenario.bugs) == ((), (), ())
    assert (scenario.nodes, scenario.observers, scenario.load.clients) == (3, 0, 1)
    assert scenario.load_us == 1_235_000, "the load ends with the failure"
    assert scenario.seed == SCENARIO.seed


def test_a_failure_after_the_heal_leaves_a_short_load() -> None:
    done = shrunk(lambda scenario: scenario.load_us >= 100_000, is_early=False)
    assert done.plan.load_us == 100_000


def test_moments_and_durations_become_as_simple_as_they_may() -> None:
    def fails(scenario: Scenario) -> bool:
        by_index = {fault.index: fault for fault in scenario.faults}
        return (
            {2, 9} <= set(by_index)
            and by_index[2].at_us >= 250_000
            and by_index[2].duration_us >= 60_000
            and (by_index[9].when or NEVER).count >= 3
        )

    timed, waiting = shrunk(fails).plan.faults
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
    scenario = shrunk(fails).plan
    plain = calm(scenario)
    assert {name for name in left if getattr(scenario, name) != getattr(plain, name)} == left
    assert (
        msgspec.structs.replace(scenario, **{name: getattr(plain, name) for name in left}) == plain
    )
    assert scenario.network.slow_chance == 0
    assert "timeout_ms" not in scenario.settings


def test_five_nodes_and_an_observer_stay_where_they_matter() -> None:
    done = shrunk(lambda scenario: scenario.nodes >= 4 and scenario.observers == 1)
    assert (done.plan.nodes, done.plan.observers) == (4, 1)


def test_clients_without_operations_go_and_the_timetable_of_the_others_stays() -> None:
    def fails(scenario: Scenario) -> bool:
        ours = [n for _, n in kept(scenario) if n == 12]
        return bool(ours)

    done = shrunk(fails)
    load = done.plan.load
    assert (load.clients, load.kept) == (1, ((0, 12),))
    assert load.rate / load.clients == SCENARIO.load.rate / SCENARIO.load.clients


def test_clients_that_only_read_stay_the_last_and_only_read() -> None:
    """Slots 3 and 4 only read; it takes operation 12 of one of them, and of another slot."""
    load = msgspec.structs.replace(SCENARIO.load, readers=2, readers_timeout_us=7_000)
    scenario = msgspec.structs.replace(SCENARIO, load=load)

    def fails(candidate: Scenario) -> bool:
        first_reader = candidate.load.clients - candidate.load.readers
        found = {(slot >= first_reader, n) for slot, n in kept(candidate)}
        return {(False, 12), (True, 12)} <= found

    smallest = Exact(fails, scenario=scenario).shrunk().plan.load
    assert (smallest.clients, smallest.readers, smallest.kept) == (2, 1, ((0, 12), (1, 12)))
    assert smallest.readers_timeout_us is None


def test_a_used_up_budget_leaves_the_best_so_far() -> None:
    def fails(scenario: Scenario) -> bool:
        return {3, 9} <= indexes(scenario)

    for replays_max in (0, 1, 5, 20):
        oracle = Exact(fails, replays_max=replays_max)
        done = oracle.shrunk()
        assert fails(done.plan)
        assert not done.is_minimal
        assert oracle.budget.tries == replays_max
        made = "1 replay was" if replays_max == 1 else f"{replays_max} replays were"
        assert oracle.budget.exhausted() == f"{made} made"


def test_time_and_interruption_end_the_search() -> None:
    times = iter([0.0, 1.0, 2.0, 61.0])
    assert SearchBudget(9, 60.0, lambda: next(times)).exhausted() is None
    late = iter([0.0, 61.0])
    assert SearchBudget(9, 60.0, lambda: next(late)).exhausted() == "60 s are over"
    assert SearchBudget(9, 60.0, lambda: 0.0, lambda: True).exhausted() == "interrupted"


def test_a_failure_that_hides_in_its_seed_is_found_in_another() -> None:
    def fails(scenario: Scenario) -> bool:
        # In its own seed it takes four faults, in every third one a single one.
        needed = {5} if scenario.seed % 3 == 0 else {1, 3, 5, 9}
        return needed <= indexes(scenario)

    assert len(shrunk(fails).plan.faults) == 4
    done = shrunk(fails, other_seeds=4)
    assert [fault.index for fault in done.plan.faults] == [5]
    assert done.plan.seed == 3
    assert done.is_minimal


def test_many_operations_are_halved_in_other_seeds_before_they_are_tried_one_by_one() -> None:
    def fails(scenario: Scenario) -> bool:
        # Its own seed takes nearly all of them, every third one a single one.
        operations = kept(scenario)
        return (4, 7) in operations and (scenario.seed % 3 == 0 or len(operations) > 140)

    oracle = Exact(fails)
    done = oracle.shrunk(other_seeds=4)
    assert len(kept(done.plan)) == 1
    assert done.is_minimal
    assert oracle.budget.tries < 200


def test_a_run_that_differs_once_its_operations_are_spelt_out_keeps_them_all() -> None:
    done = shrunk(lambda scenario: scenario.load.kept is None and 3 in indexes(scenario))
    assert done.plan.load.kept is None
    assert indexes(done.plan) == {3}
    assert not done.is_minimal
