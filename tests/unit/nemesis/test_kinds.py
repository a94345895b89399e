"""Fault kinds: whom they hit, what they do when, and what they expect to be seen."""

import re
from typing import Any, get_args

import msgspec
import pytest

from splitbrain.contracts.errors import CapabilityError, UsageError
from splitbrain.contracts.fault import (
    PINNED_NODES,
    TRAITS_OF_OLD,
    ActualFault,
    Fault,
    FaultTraits,
    Link,
)
from splitbrain.contracts.names import NodeName
from splitbrain.contracts.runtime import EXACT_CAPABILITIES, Capability
from splitbrain.nemesis import acts
from splitbrain.nemesis.expectations import LinkIs, NodeAnswers, NodeIs, NodeIsSilent, PeersStall
from splitbrain.nemesis.fault_kind import Course
from splitbrain.nemesis.kinds import fault_kind, kind_names, machine_kind_names, silent_kind_names
from splitbrain.nemesis.plan import refuse_what_cannot_be_had
from splitbrain.nemesis.targets import ClusterView

N1, N2, N3, N4, N5 = FIVE = tuple(NodeName(f"n{number}") for number in range(1, 6))
NODES = (N1, N2, N3)
VIEW = ClusterView(NODES, leader=N2)
WIDE = ClusterView(FIVE, leader=N2)


def settled(
    kind: str, target: str = "leader", view: ClusterView = VIEW, draw: int = 0, **options: Any
) -> tuple[ActualFault, Course]:
    scheduled = Fault(4, kind, target, 0, 6_000_000, draw, options)
    actual = fault_kind(kind).actual(scheduled, view)
    assert actual is not None
    return actual, fault_kind(kind).course_of(actual, 6_000_000, view.nodes)


def reaches(actual: ActualFault, nodes: tuple[NodeName, ...], node: NodeName) -> set[NodeName]:
    cut = set(actual.links)
    return {
        other for other in nodes if not {Link(node, other), Link(other, node)} & cut
    }  # fmt: skip


def acts_of(course: Course) -> list[Any]:
    return [act for step in course.steps for act in step.acts]


def test_a_partition_cuts_both_directions_and_only_those_of_its_target() -> None:
    actual, course = settled("partition")
    links = (Link(N1, N2), Link(N2, N1), Link(N2, N3), Link(N3, N2))
    assert (actual.index, actual.nodes, actual.leader, actual.links) == (4, (N2,), N2, links)
    assert [type(act).__name__ for act in acts_of(course)] == ["Cut"]
    assert course.heal == (acts.Restore(links),)


def test_a_partition_expects_cut_links_cut_others_open_and_the_leaders_traffic_stalled() -> None:
    actual, course = settled("partition")
    seen = course.steps[0].seen
    links = {(item.link, item.open) for item in seen if isinstance(item, LinkIs)}
    assert links == {(link, False) for link in actual.links} | {
        (Link(N1, N3), True),
        (Link(N3, N1), True),
    }
    assert [item for item in seen if isinstance(item, PeersStall)] == [
        PeersStall(N1),
        PeersStall(N3),
    ]
    assert course.healed == tuple(LinkIs(link, True) for link in actual.links)


def test_a_group_takes_drawn_nodes_to_the_targets_side_and_leaves_one() -> None:
    actual, _ = settled("partition", view=WIDE, beside=1)
    assert len(actual.nodes) == 2
    assert N2 in actual.nodes
    assert len(settled("partition", beside=8)[0].nodes) == 2


@pytest.mark.parametrize("draw", range(0, 200, 7))
def test_on_a_ring_every_node_reaches_a_majority_and_no_two_the_same(draw: int) -> None:
    for count in (4, 5, 6, 7, 9):
        nodes = tuple(NodeName(f"n{number}") for number in range(1, count + 1))
        actual, _ = settled("majorities-ring", "all", ClusterView(nodes, leader=N2), draw)
        seen = [frozenset(reaches(actual, nodes, node)) for node in nodes]
        assert all(2 * len(majority) > count for majority in seen)
        if count in (5, 7):
            assert len(set(seen)) == count


def test_a_bridge_is_the_only_one_that_reaches_both_halves() -> None:
    actual, _ = settled("bridge", view=WIDE)
    assert reaches(actual, FIVE, N2) == set(FIVE)
    assert [len(reaches(actual, FIVE, node)) for node in (N1, N3, N4, N5)] == [3, 3, 3, 3]


@pytest.mark.parametrize(("count", "size"), [(3, 1), (5, 1), (7, 2), (9, 2)])
def test_a_minority_third_is_fewer_than_a_third(count: int, size: int) -> None:
    nodes = tuple(NodeName(f"n{number}") for number in range(1, count + 1))
    actual, _ = settled("minority-third", view=ClusterView(nodes, leader=N2))
    assert len(actual.nodes) == size
    assert N2 in actual.nodes


def test_one_way_cuts_go_one_way() -> None:
    assert settled("one-way-in")[0].links == (Link(N1, N2), Link(N3, N2))
    assert settled("one-way-out")[0].links == (Link(N2, N1), Link(N2, N3))


def test_a_partial_partition_lets_a_third_node_reach_both() -> None:
    actual, _ = settled("partial")
    assert len(actual.nodes) == 2
    assert len(actual.links) == 2
    (third,) = set(NODES) - set(actual.nodes)
    assert reaches(actual, NODES, third) == set(NODES)


def test_pinned_nodes_are_the_whole_group() -> None:
    pinned: dict[str, Any] = {PINNED_NODES: ["n1", "n3"]}
    actual, _ = settled("partial", **pinned)
    assert (actual.nodes, set(actual.links)) == ((N1, N3), {Link(N1, N3), Link(N3, N1)})


def test_a_pause_freezes_and_thaws_and_expects_silence() -> None:
    _, course = settled("pause", "all")
    assert (acts_of(course), course.heal) == ([acts.Pause(NODES)], (acts.Resume(NODES),))
    assert course.steps[0].seen == (
        *(NodeIs(node, "paused") for node in NODES),
        *(NodeIsSilent(node) for node in NODES),
        *(NodeAnswers(node, answers=False) for node in NODES),
    )
    assert course.healed == tuple(NodeIs(node, "running") for node in NODES)


def test_a_kill_ends_and_restarts() -> None:
    _, course = settled("kill")
    assert (acts_of(course), course.heal) == ([acts.Kill((N2,))], (acts.Start((N2,)),))
    assert course.steps[0].seen == (NodeIs(N2, "exited"),)
    assert course.healed == (NodeIs(N2, "running"),)


def test_a_power_cut_hits_all_of_its_nodes_by_one_act() -> None:
    _, course = settled("power", "all", draw=7)
    assert acts_of(course) == [acts.PowerOff(NODES, 7)]


def test_a_rolling_restart_ends_with_the_leader_and_never_has_two_down() -> None:
    _, course = settled("rolling-restart", "all")
    order = [act.nodes for act in acts_of(course) if isinstance(act, acts.Terminate)]
    assert order == [(N1,), (N3,), (N2,)]
    kinds = [type(act) for act in acts_of(course)]
    assert kinds == [acts.Terminate, acts.Start] * 3


def test_a_cut_node_is_killed_while_it_is_cut_off() -> None:
    _, course = settled("cut-then-kill", kill_after_ms=1000)
    assert [step.after_us for step in course.steps] == [0, 1_000_000]
    assert [type(act).__name__ for act in course.heal] == ["Restore", "Start"]


def test_a_flap_cuts_as_often_as_it_is_told() -> None:
    _, course = settled("flap", count=3)
    names = [type(act).__name__ for act in acts_of(course)]
    assert names == ["Cut", "Restore", "Cut", "Restore", "Cut"]


@pytest.mark.parametrize("kind", kind_names())
def test_a_missing_target_gives_no_fault(kind: str) -> None:
    scheduled = Fault(0, kind, "last-leader", 0, 1, 0)
    assert fault_kind(kind).actual(scheduled, ClusterView(FIVE)) is None


@pytest.mark.parametrize("kind", kind_names())
def test_a_kind_needs_what_its_acts_need(kind: str) -> None:
    _, course = settled(kind, fault_kind(kind).first_target, WIDE)
    used = frozenset[Any]().union(*(acts.needed(act) for act in (*acts_of(course), *course.heal)))
    # The undoing of a shape needs what made it.
    assert used - {"loss"} <= fault_kind(kind).needs
    assert fault_kind(kind).needs <= used


@pytest.mark.parametrize("kind", kind_names())
def test_a_course_begins_at_once_goes_on_in_order_and_says_what_to_see(kind: str) -> None:
    _, course = settled(kind, fault_kind(kind).first_target, WIDE)
    times = [step.after_us for step in course.steps]
    assert times[0] == 0
    assert times == sorted(times)
    if kind in machine_kind_names():
        assert any(step.seen for step in course.steps)
        assert course.heal
        assert course.healed
    for item in (*course.healed, *course.resumed, *(i for step in course.steps for i in step.seen)):
        assert item.sentence()
    for act in (*acts_of(course), *course.heal):
        assert act.sentence()


@pytest.mark.parametrize("kind", kind_names())
def test_every_hold_is_released_by_the_heal(kind: str) -> None:
    _, course = settled(kind, fault_kind(kind).first_target, WIDE)
    held = {act.holds for act in (*acts_of(course), *course.heal) if act.holds is not None}
    assert held <= {act.releases for act in course.heal}


def test_every_act_is_used_by_a_kind() -> None:
    used: set[type] = set()
    told = {"write-fails": {"restart": 1}}
    for kind in kind_names():
        _, course = settled(kind, fault_kind(kind).first_target, WIDE, **told.get(kind, {}))
        used |= {type(act) for act in (*acts_of(course), *course.heal)}
    assert used == set(get_args(acts.Act))


def test_options_have_defaults_and_wrong_ones_are_named_with_the_nearest() -> None:
    actual, _ = settled("delay", delay_ms=300)
    assert actual.options == {"delay_us": 300_000, "jitter_us": 75_000, "direction": "both"}
    with pytest.raises(UsageError, match=r"a delay of 5 ms cannot vary by 7\.5 ms"):
        settled("delay", delay_ms=5, jitter_ms=7.5)
    with pytest.raises(UsageError, match=r"no option 'delay'\. Did you mean 'delay_ms'"):
        settled("delay", delay=300)
    with pytest.raises(UsageError, match="cannot be 0"):
        settled("loss", loss=0)
    with pytest.raises(UsageError, match="one of: both, in, out"):
        settled("loss", direction="up")
    with pytest.raises(UsageError, match="There is only 'nodes'"):
        settled("kill", hard=True)


def test_a_direction_shapes_half_of_the_links() -> None:
    assert settled("loss", direction="in")[0].links == (Link(N1, N2), Link(N3, N2))
    assert settled("loss", direction="out")[0].links == (Link(N2, N1), Link(N2, N3))


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (1.5, 1_500),
        (0.001, 1),
        (0, "cannot be 0. It is a number of at least 0.001"),
        (99_999, "cannot be 99999. It is a number of at most 60000"),
        ("soon", "cannot be 'soon'. It is a number"),
        (float("nan"), "cannot be nan. It is a number"),
        (float("inf"), "cannot be inf. It is a number"),
        (True, "cannot be True. It is a number"),
    ],
)
def test_a_time_told_in_milliseconds_may_have_a_fraction(value: object, expected: object) -> None:
    if isinstance(expected, int):
        actual, _ = settled("delay", delay_ms=value, jitter_ms=0)
        assert actual.options["delay_us"] == expected
        return
    with pytest.raises(UsageError, match=re.escape(str(expected))):
        settled("delay", delay_ms=value)


def test_a_time_is_told_once() -> None:
    with pytest.raises(UsageError, match="has its option 'delay_us' twice"):
        settled("delay", delay_ms=5, delay_us=3)


def test_what_only_a_world_can_do_is_refused_with_the_runtime_that_can() -> None:
    full = Fault(0, "full-disk", "leader", 0, 1, 0, {"spare_bytes": 9})
    machine = frozenset(get_args(Capability)) - EXACT_CAPABILITIES
    for fault in (Fault(0, "rot-log", "leader", 0, 1, 0), full):
        refusal = "only simulated worlds can do exact-disk.*choose --runtime simulated"
        with pytest.raises(CapabilityError, match=refusal):
            refuse_what_cannot_be_had([fault], machine, "local")
    refuse_what_cannot_be_had([msgspec.structs.replace(full, options={})], machine, "local")


# --- traits ----------------------------------------------------------------------------------


#: Kinds that no folder of then can have.
NEWER_KINDS = ("remove-member",)


def test_kinds_are_in_the_table_for_folders_that_recorded_no_traits() -> None:
    told = {name: fault_kind(name).traits for name in kind_names() if name not in NEWER_KINDS}
    told |= {"stop": told["terminate"], "disk-full": told["full-disk"]}
    plain = FaultTraits()
    assert {name: traits for name, traits in told.items() if traits != plain} == TRAITS_OF_OLD


@pytest.mark.parametrize("name", kind_names())
def test_a_kind_says_when_its_course_ends_processes(name: str) -> None:
    kind = fault_kind(name)
    actual, course = settled(name, kind.first_target, WIDE)
    first = [node for act in course.steps[0].acts for node in acts.ended_by(act)]
    later = [act for step in course.steps[1:] for act in step.acts if acts.ended_by(act)]
    later += [act for act in course.heal if acts.ended_by(act)]
    if kind.traits.ends_process == "perhaps":
        # Its node may end by itself.
        return
    all_at_once = set(first) == set(actual.nodes)
    expected = "at-once" if all_at_once else "later" if first or later else None
    assert kind.traits.ends_process == expected


def test_kinds_that_cut_or_freeze_are_noticed_by_waiting_alone() -> None:
    # A flap lets its target back before anybody has waited for long.
    cuts = {kind for kind in kind_names() if fault_kind(kind).needs & {"partition", "pause"}}
    assert set(silent_kind_names()) == cuts - {"flap"}
