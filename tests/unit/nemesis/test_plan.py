"""Schedules drawn from a seed."""

import random
from collections import Counter

import pytest

from contracts.errors import CapabilityError, UsageError
from contracts.fault import ScheduledFault
from contracts.names import NodeName
from nemesis.plan import Pace, WantedFault, needs, parse, refuse_what_cannot_be_had, schedule

NODES = tuple(NodeName(f"n{number}") for number in (1, 2, 3))
ALL = parse("partition,pause,kill")


def draw(
    seed: int, wanted: tuple[WantedFault, ...] = ALL, time_limit_ms: int = 60_000
) -> tuple[ScheduledFault, ...]:
    return schedule(wanted, NODES, random.Random(seed), time_limit_ms)


def test_same_seed_gives_same_schedule_and_others_differ() -> None:
    assert draw(7) == draw(7)
    assert len({str(draw(seed)) for seed in range(50)}) == 50


@pytest.mark.parametrize("seed", range(0, 200, 7))
def test_windows_are_calm_apart_and_end_before_the_load_does(seed: int) -> None:
    faults = draw(seed)
    pace = Pace()
    end_ms = 0
    for index, fault in enumerate(faults):
        assert fault.index == index
        assert pace.fault_min_ms <= fault.duration_ms <= pace.fault_max_ms
        assert pace.calm_min_ms <= fault.at_ms - end_ms <= pace.calm_max_ms
        end_ms = fault.at_ms + fault.duration_ms
    assert end_ms <= 60_000 - pace.calm_end_ms


def test_each_kind_comes_at_least_twice_in_a_minute() -> None:
    for seed in range(200):
        counts = Counter(fault.kind for fault in draw(seed))
        assert min(counts[kind] for kind in ("partition", "pause", "kill")) >= 2, seed


def test_each_kind_comes_once_where_time_allows_no_more() -> None:
    for seed in range(100):
        kinds = {fault.kind for fault in draw(seed, time_limit_ms=16_500)}
        assert kinds == {"partition", "pause", "kill"}


def test_the_first_fault_of_each_kind_aims_at_the_leader() -> None:
    for seed in range(100):
        first: dict[str, str] = {}
        for fault in draw(seed):
            first.setdefault(fault.kind, fault.target)
        assert set(first.values()) == {"leader"}


def test_other_targets_are_drawn_too() -> None:
    targets = {fault.target for seed in range(50) for fault in draw(seed)}
    assert targets == {"leader", "follower", "random:1", "halves"}


def test_a_target_that_the_user_names_is_kept() -> None:
    faults = draw(3, parse("partition:follower,kill:n2,pause:random:2"))
    assert {(fault.kind, fault.target) for fault in faults} == {
        ("partition", "follower"),
        ("kill", "n2"),
        ("pause", "random:2"),
    }


def test_random_alone_means_one_node() -> None:
    assert parse("kill:random") == (WantedFault("kill", "random:1"),)


@pytest.mark.parametrize("text", ["none", " none "])
def test_none_gives_no_fault(text: str) -> None:
    assert parse(text) == ()
    assert schedule((), NODES, random.Random(1), 60_000) == ()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("partitoin", "Did you mean 'partition'?"),
        ("kill,puase:leader", "Did you mean 'pause'?"),
        ("earthquake", "The faults are: kill, partition, pause"),
        ("partition:all", "cannot have the target 'all'"),
        ("kill:halves", "cannot have the target 'halves'"),
    ],
)
def test_what_does_not_exist_is_refused_with_the_nearest(text: str, says: str) -> None:
    with pytest.raises(UsageError, match=says.replace("?", r"\?")):
        parse(text)


@pytest.mark.parametrize("text", ["kill:n4", "kill:leadr", "partition:random:3", "pause:random:4"])
def test_targets_that_the_cluster_cannot_have_are_refused(text: str) -> None:
    with pytest.raises(UsageError):
        draw(1, parse(text))


def test_all_nodes_may_be_killed_but_not_all_partitioned() -> None:
    assert draw(1, parse("kill:random:3"))
    with pytest.raises(UsageError, match="at most 2"):
        draw(1, parse("partition:random:3"))


def test_a_time_limit_without_room_for_any_fault_is_refused() -> None:
    with pytest.raises(UsageError, match="time limit of 7 s"):
        draw(1, time_limit_ms=7_000)


def test_a_plan_that_the_runtime_cannot_carry_out_is_refused_by_name() -> None:
    faults = draw(1)
    assert needs(faults) == {"partition", "pause", "kill"}
    refuse_what_cannot_be_had(faults, frozenset({"partition", "pause", "kill"}), "docker")
    with pytest.raises(
        CapabilityError, match=r"fault partition .*runtime local.*cannot do partition"
    ):
        refuse_what_cannot_be_had(faults, frozenset({"pause", "kill"}), "local")
