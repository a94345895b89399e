"""Symbolic targets and what they mean in a given cluster."""

from collections import Counter

import pytest

from splitbrain.contracts.errors import UsageError
from splitbrain.contracts.fault import PINNED_NODES, Fault
from splitbrain.contracts.names import NodeName
from splitbrain.nemesis.kinds import fault_kind
from splitbrain.nemesis.targets import (
    ClusterView,
    check_target,
    nodes_hit,
    resolve,
    shuffled,
)

N1, N2, N3 = NODES = tuple(NodeName(f"n{number}") for number in (1, 2, 3))
VIEW = ClusterView(NODES, leader=N2, last_leader=N3, controller=N1)
LEADERLESS = ClusterView(NODES)


@pytest.mark.parametrize(
    ("target", "nodes"),
    [
        *(("leader", (N2,)), ("last-leader", (N3,)), ("controller", (N1,))),
        *(("all", NODES), ("n1", (N1,)), ("n9", None)),
    ],
)
def test_names_mean_what_they_say(target: str, nodes: tuple[NodeName, ...] | None) -> None:
    assert resolve(target, 0, VIEW) == nodes


@pytest.mark.parametrize("target", ["leader", "follower", "last-leader", "controller"])
def test_a_role_that_nobody_has_is_no_target(target: str) -> None:
    assert resolve(target, 5, LEADERLESS) is None


def test_followers_are_drawn_and_never_the_leader() -> None:
    drawn = {resolve("follower", number, VIEW) for number in range(20)}
    assert drawn == {(N1,), (N3,)}


def test_a_lone_leader_has_no_follower() -> None:
    assert resolve("follower", 0, ClusterView((N1,), leader=N1)) is None


@pytest.mark.parametrize("count", [1, 2, 3])
def test_random_hits_so_many_nodes_in_their_order(count: int) -> None:
    for number in range(30):
        nodes = resolve(f"random:{count}", number, LEADERLESS)
        assert nodes is not None
        assert len(nodes) == count
        assert list(nodes) == sorted(nodes)


def test_halves_names_the_smaller_half() -> None:
    five = tuple(NodeName(f"n{number}") for number in range(1, 6))
    assert {len(resolve("halves", number, ClusterView(five)) or ()) for number in range(20)} == {2}


def test_every_order_is_drawn_equally_often() -> None:
    orders = Counter(shuffled(NODES, number) for number in range(600))
    assert len(orders) == 6
    assert set(orders.values()) == {100}


def test_pinned_nodes_win_over_the_symbolic_target() -> None:
    fault = Fault(0, "kill", "leader", 0, 1, 0, options={PINNED_NODES: ["n3", "n1"]})
    assert nodes_hit(fault, LEADERLESS) == (N3, N1)


def test_the_laggard_is_the_node_whose_log_ends_first_and_never_the_leader() -> None:
    view = ClusterView(NODES, leader=N2, ends={N1: 7, N2: 3, N3: 5})
    assert resolve("laggard", 0, view) == (N3,)
    assert resolve("laggard", 0, VIEW) is None
    even = ClusterView(NODES, leader=N2, ends={N1: 7, N2: 3, N3: 7})
    assert {resolve("laggard", number, even) for number in range(9)} == {(N1,), (N3,)}


def test_there_is_where_something_has_happened() -> None:
    assert resolve("there", 0, ClusterView(NODES, there=N3)) == (N3,)
    assert resolve("there", 0, VIEW) is None


# --- nodes that do not vote -------------------------------------------------------------------

BROKER = NodeName("n4")
WITH_BROKER = ClusterView(NODES, leader=N2, observers=(BROKER,))


@pytest.mark.parametrize("target", ["follower", "all", "halves", "random:3"])
def test_only_a_name_means_a_node_that_does_not_vote(target: str) -> None:
    for draw in range(50):
        assert BROKER not in (resolve(target, draw, WITH_BROKER) or ())
    assert resolve("n4", 0, WITH_BROKER) == (BROKER,)


def test_a_node_that_does_not_vote_may_be_named_and_is_no_other_side() -> None:
    check_target("n4", NODES, leave_one=True, observers=(BROKER,))
    with pytest.raises(UsageError, match="in a cluster of n1, n2, n3, n4"):
        check_target("n5", NODES, leave_one=False, observers=(BROKER,))
    with pytest.raises(UsageError, match="Ask for at most 2"):
        check_target("random:3", NODES, leave_one=True, observers=(BROKER,))


def test_a_partition_cuts_its_target_off_from_those_that_do_not_vote_too() -> None:
    fault = Fault(index=0, kind="partition", target="leader", at_us=0, duration_us=1, draw=0)
    actual = fault_kind("partition").actual(fault, WITH_BROKER)
    assert actual is not None
    assert actual.nodes == (N2,)
    assert {link.destination for link in actual.links if link.source == N2} == {N1, N3, BROKER}


def cut_off(kind: str, target: str, draw: int = 0, **options: int) -> tuple[NodeName, ...]:
    """The nodes of one side, and nothing but links between the sides is cut."""
    view = ClusterView(NODES, leader=N2, observers=(BROKER, NodeName("n5")))
    fault = Fault(
        index=0, kind=kind, target=target, at_us=0, duration_us=1, draw=draw, options=options
    )
    actual = fault_kind(kind).actual(fault, view)
    assert actual is not None
    for link in actual.links:
        assert (link.source in actual.nodes) != (link.destination in actual.nodes)
    inside, outside = len(actual.nodes), len(view.everyone) - len(actual.nodes)
    assert len(actual.links) == 2 * inside * outside
    return actual.nodes


def test_a_node_that_does_not_vote_is_cut_off_by_its_name() -> None:
    assert cut_off("partition", "n4") == (BROKER,)
    assert cut_off("minority-third", "n4") == (BROKER,)
    assert {cut_off("partition", "n4", draw, beside=1) for draw in range(20)} == {
        (node, BROKER) for node in NODES
    }


def test_nodes_that_do_not_vote_are_beside_the_target_where_that_is_asked_for() -> None:
    assert {cut_off("partition", "leader", draw, observers=1) for draw in range(20)} == {
        (N2, BROKER),
        (N2, NodeName("n5")),
    }
    assert cut_off("partition", "n5", observers=2) == (NodeName("n5"), BROKER)
    assert {
        cut_off("partition", "leader", draw, observers=8, beside=1)[:2] for draw in range(20)
    } == {(N1, N2), (N2, N3)}


def test_a_ring_of_majorities_is_made_of_those_that_vote() -> None:
    five = tuple(NodeName(f"n{number}") for number in range(1, 6))
    view = ClusterView(five, observers=(NodeName("n6"),))
    fault = Fault(index=0, kind="majorities-ring", target="all", at_us=0, duration_us=1, draw=0)
    actual = fault_kind("majorities-ring").actual(fault, view)
    assert actual is not None
    assert {link.source for link in actual.links} == set(five)
