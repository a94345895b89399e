"""The course of a simulated run: load, heal, recovery, final reads, and how it can end."""

import re
from typing import Any

import msgspec
import pytest

from splitbrain.contracts.errors import UsageError
from splitbrain.contracts.fault import Awaited, Fault
from splitbrain.contracts.scenario import LoadOptions, RecoveryOptions
from splitbrain.harness.run.world.simulate import simulate
from tests.unit.harness.fake_cluster import (
    COMMITS_NOTHING_AFTER_HEAL,
    EPOCHS_RISE,
    NEVER_ALIKE,
    RAISES,
    SILENT_AFTER_HEAL,
    FakeSystem,
    scenario,
)


def test_a_run_without_faults_serves_converges_and_reads_finally() -> None:
    system = FakeSystem()
    outcome = simulate(scenario(), system)
    assert outcome.violation is None
    assert [phase.phase for phase in outcome.phases] == [
        "deployed", "load-started", "healed", "load-ended", "converged", "final-reads-ended",
        "stopped",
    ]  # fmt: skip
    assert system.cluster_made.is_finished
    assert system.cluster_made.healed_nodes == ("n1", "n2", "n3")
    assert any(event.final and event.type == "ok" for event in outcome.events)
    assert outcome.figures["acknowledged"] > 0


@pytest.mark.parametrize("scope", ["all", "majority"])
def test_all_that_was_touched_is_read_from_who_leads_and_from_each_node_that_is_healed(
    scope: Any,
) -> None:
    system = FakeSystem()
    outcome = simulate(scenario(recovery=RecoveryOptions(scope=scope)), system)
    healed = system.cluster_made.healed_nodes
    assert healed is not None
    assert len(healed) == (3 if scope == "all" else 2)
    finals = [event for event in outcome.events if event.final and event.type == "invoke"]
    keys = {event.key for event in finals}
    assert len(keys) > 1
    # The one that follows the leader names no node.
    asked = {(event.node, event.key) for event in finals}
    assert asked == {(node, key) for node in (None, *healed) for key in keys}


def test_the_history_is_indexed_in_order_and_in_nanoseconds() -> None:
    events = simulate(scenario(), FakeSystem()).events
    assert [event.index for event in events] == list(range(len(events)))
    times = [event.time for event in events]
    assert times == sorted(times)
    assert all(time % 1_000 == 0 for time in times)


@pytest.mark.parametrize(
    ("bug", "invariant"),
    [
        (SILENT_AFTER_HEAL, "INV-40"),
        (COMMITS_NOTHING_AFTER_HEAL, "INV-40"),
        (EPOCHS_RISE, "INV-41"),
        (NEVER_ALIKE, "INV-42"),
        (RAISES, "INV-31"),
    ],
)
def test_each_demand_finds_its_bug(bug: str, invariant: str) -> None:
    outcome = simulate(scenario(bugs=(bug,)), FakeSystem())
    assert outcome.violation is not None
    assert outcome.violation.invariant == invariant
    assert outcome.events
    assert outcome.state_events


def test_a_defect_is_told_without_a_path_and_is_of_the_kind_of_what_was_raised_and_where() -> None:
    violation = simulate(scenario(bugs=(RAISES,)), FakeSystem()).violation
    assert violation is not None
    assert violation.problem.startswith("ZeroDivisionError: a defect of the node (tests.")
    assert "/" not in violation.problem
    assert violation.kind is not None
    assert re.fullmatch(r"ZeroDivisionError in tests\.[\w.]+", violation.kind)


@pytest.mark.parametrize(
    ("muted", "said"),
    [
        ("INV-4O", "there is no invariant 'INV-4O' that could be muted. Did you mean 'INV-4"),
        ("INV-31", "there is no invariant 'INV-31' that could be muted"),
    ],
)
def test_what_does_not_watch_cannot_be_muted(muted: str, said: str) -> None:
    with pytest.raises(UsageError) as caught:
        simulate(scenario(), FakeSystem(), muted=frozenset({muted, "INV-41"}))
    assert str(caught.value).startswith(said)


def test_nodes_need_not_agree_where_only_a_majority_heals() -> None:
    recovery = RecoveryOptions(scope="majority", patience_us=1_000_000, settle_us=200_000)
    outcome = simulate(scenario(bugs=(NEVER_ALIKE,), recovery=recovery), FakeSystem())
    assert outcome.violation is None


def test_a_majority_heals_and_the_rest_stays_broken() -> None:
    ways: dict[str, None] = {}
    for seed in range(12):
        system = FakeSystem()
        recovery = RecoveryOptions(scope="majority", patience_us=1_000_000, settle_us=200_000)
        outcome = simulate(scenario(seed=seed, recovery=recovery), system)
        assert outcome.violation is None
        cluster = system.cluster_made
        assert cluster.healed_nodes is not None
        assert len(cluster.healed_nodes) == 2
        network: Any = cluster.world.network
        (left,) = [node for node in cluster.nodes if node not in cluster.healed_nodes]
        deaf = all(network.is_cut(node, left) for node in cluster.healed_nodes)
        dumb = all(network.is_cut(left, node) for node in cluster.healed_nodes)
        ways["dead" if not cluster.is_up(left) else "deaf" if deaf else "dumb"] = None
        assert not cluster.is_up(left) or deaf != dumb
    assert sorted(ways) == ["dead", "deaf", "dumb"]


def test_the_same_scenario_runs_the_same_recorded_or_watched_or_not() -> None:
    kill = Fault(0, "kill", "leader", 300_000, 200_000, 1)
    chosen = scenario(faults=(kill,))
    steps: list[int] = []
    plain = simulate(chosen, FakeSystem())
    recorded = simulate(chosen, FakeSystem(), is_recording=True)
    watched = simulate(chosen, FakeSystem(), watch=lambda world: steps.append(world.step))
    assert plain == watched
    assert msgspec.structs.replace(recorded, story=()) == plain
    assert steps == list(range(1, plain.steps + 1))


def test_a_run_stops_after_the_step_that_it_was_to_stop_at() -> None:
    whole = simulate(scenario(), FakeSystem())
    part = simulate(scenario(), FakeSystem(), stop_at_step=100)
    assert part.steps == 100
    assert part.violation is None
    assert part.events == whole.events[: len(part.events)]


def test_only_kept_operations_are_invoked_and_none_is_moved_by_that() -> None:
    every = FakeSystem()
    simulate(scenario(), every)
    kept = ((0, 3), (1, 7), (0, 11))
    few = FakeSystem()
    load = LoadOptions(clients=2, rate=50.0, timeout_us=50_000, kept=kept)
    simulate(scenario(load=load), few)
    while_loaded = [entry for entry in few.cluster_made.invoked if entry[0] < 1_000_000]
    assert len(while_loaded) == len(kept)
    assert all(entry in every.cluster_made.invoked for entry in while_loaded)


def test_progress_is_demanded_even_where_no_operation_is_kept() -> None:
    load = LoadOptions(clients=2, rate=50.0, timeout_us=50_000, kept=())
    system = FakeSystem()
    assert simulate(scenario(load=load), system).violation is None
    assert all(time >= 1_000_000 for time, _ in system.cluster_made.invoked)
    silent = simulate(scenario(load=load, bugs=(SILENT_AFTER_HEAL,)), FakeSystem())
    assert silent.violation is not None
    assert silent.violation.invariant == "INV-40"


def test_a_slot_ends_after_its_number_of_operations() -> None:
    load = LoadOptions(clients=2, rate=50.0, timeout_us=50_000, operations_per_slot=3)
    system = FakeSystem()
    simulate(scenario(load=load), system)
    assert len([1 for time, _ in system.cluster_made.invoked if time < 1_000_000]) == 6


@pytest.mark.parametrize(
    ("fault", "problem"),
    [
        (Fault(0, "kilt", "leader", 1, 1, 1), "no fault called 'kilt'"),
        (Fault(0, "kill", "n9", 1, 1, 1), "no target 'n9'"),
        (Fault(0, "kill", "there", 0, 1, 1, when=Awaited("tick")), "waits for 'tick'"),
        (Fault(0, "kill", "there", 1, 1, 1), "waits for nothing at any node"),
    ],
)
def test_what_does_not_exist_is_refused_before_the_run(fault: Fault, problem: str) -> None:
    with pytest.raises(UsageError, match=problem):
        simulate(scenario(faults=(fault,)), FakeSystem())
