"""Schedules drawn from a seed."""

import random
from collections import Counter

import msgspec
import pytest

from splitbrain.contracts.errors import CapabilityError, UsageError
from splitbrain.contracts.fault import Awaited, Fault
from splitbrain.contracts.names import NodeName
from splitbrain.nemesis.plan import (
    Pace,
    Quiet,
    WantedFault,
    check_pace,
    needs,
    parse,
    refuse_what_cannot_be_had,
    schedule,
)

NODES = tuple(NodeName(f"n{number}") for number in (1, 2, 3))
ALL = parse("partition,pause,kill")


def draw(
    seed: int, wanted: tuple[WantedFault, ...] = ALL, time_limit_ms: int = 60_000
) -> tuple[Fault, ...]:
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
        assert pace.fault_min_ms <= fault.duration_us // 1000 <= pace.fault_max_ms
        assert pace.calm_min_ms <= fault.at_us // 1000 - end_ms <= pace.calm_max_ms
        end_ms = fault.at_us // 1000 + fault.duration_us // 1000
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
        ("earthquake", "The faults are: black-hole, bridge, "),
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


def drawn(text: str, seed: int, **pace: object) -> tuple[Fault, ...]:
    chosen = Pace(**pace)  # type: ignore[arg-type]
    return schedule(parse(text), NODES, random.Random(seed), 120_000, chosen)


def test_schedules_of_seeds_are_those_of_every_version() -> None:
    first, second, *_ = draw(7)
    assert (first.kind, first.target, first.at_us, first.duration_us, first.draw) == (
        *("kill", "leader", 2_971_000, 2_603_000, 1243862413),
    )
    assert (second.kind, second.at_us, second.draw) == ("partition", 9_527_000, 1324919345)


def test_faults_that_wait_for_recovery_are_drawn_as_they_are_without() -> None:
    waiting = drawn("partition,kill", 7, recovered=True)
    assert {fault.when for fault in waiting} == {Awaited("recovered")}
    assert tuple(msgspec.structs.replace(fault, when=None) for fault in waiting) == drawn(
        "partition,kill", 7
    )


def test_faults_overlap_where_the_pace_lets_them_and_never_more() -> None:
    for seed in range(30):
        faults = drawn("partition,kill", seed, overlap=2)
        assert [fault.index for fault in faults] == list(range(len(faults)))
        in_force = [
            sum(one.at_us <= fault.at_us < one.at_us + one.duration_us for one in faults)
            for fault in faults
        ]
        assert max(in_force) == 2


def test_nothing_is_in_force_in_warm_up_and_quiet_phases() -> None:
    quiet = Quiet(30_000, 50_000)
    for seed in range(30):
        faults = drawn("partition,kill", seed, warm_up_ms=9000, quiet=(quiet,))
        assert min(fault.at_us // 1000 for fault in faults) >= 11_000
        for fault in faults:
            end_ms = fault.at_us // 1000 + fault.duration_us // 1000
            assert end_ms <= quiet.from_ms or fault.at_us // 1000 >= quiet.to_ms


@pytest.mark.parametrize("seed", range(20))
def test_every_other_fault_is_a_long_one_where_it_fits(seed: int) -> None:
    faults = drawn("partition,pause", seed, long_ms=30_000, fault_max_ms=40_000)
    durations = [fault.duration_us // 1000 for fault in faults]
    assert min(durations[0], durations[2]) >= 30_000
    assert max(durations) <= 40_000
    # None fits, and the usual ones are drawn.
    assert len(drawn("partition,pause", seed, long_ms=120_000, fault_max_ms=120_000)) >= 4


def test_a_kind_of_threefold_weight_is_drawn_three_times_as_often() -> None:
    counts: Counter[str] = Counter()
    for seed in range(40):
        counts.update(fault.kind for fault in drawn("kill,pause", seed, weights={"kill": 3}))
    assert 2.5 < counts["kill"] / counts["pause"] < 3.5


@pytest.mark.parametrize(
    ("pace", "says"),
    [
        ({"calm_min_ms": 500, "fault_min_ms": 1000}, "shorter than an operation's timeout and a"),
        ({"fault_min_ms": 9000}, "fault_max_ms = 6000"),
        ({"long_ms": 9000}, "long_ms = 9000 and fault_max_ms = 6000"),
        ({"long_ms": -1}, "long_ms = -1"),
        ({"overlap": 0}, "overlap = 0"),
        ({"weights": {"pause": 2}}, "weighs 'pause', which the plan does not draw"),
        ({"weights": {"kill": 0}}, "weight 0"),
        ({"quiet": (Quiet(9, 5),)}, "quiet phase from 9 to 5"),
        ({"warm_up_ms": -1}, "warm_up_ms = -1"),
        ({"recovered": True, "overlap": 2}, "overlap = 2, and faults that wait for 'recovered'"),
    ],
)
def test_a_pace_that_cannot_be_is_refused(pace: dict[str, object], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        check_pace(Pace(**pace), ["kill"], 1000, 1500)  # type: ignore[arg-type]
    check_pace(Pace(), ["kill"], 1000, 1500)


def test_kinds_that_need_more_nodes_are_refused() -> None:
    with pytest.raises(UsageError, match="needs at least 4 nodes"):
        draw(1, parse("majorities-ring"))
