"""Symbolic targets and what they mean in a given cluster."""

from collections import Counter

import pytest

from contracts.fault import ScheduledFault
from contracts.names import NodeName
from nemesis.targets import PINNED_NODES, ClusterView, nodes_hit, resolve, shuffled

N1, N2, N3 = NODES = tuple(NodeName(f"n{number}") for number in (1, 2, 3))
VIEW = ClusterView(NODES, leader=N2, last_leader=N3)
LEADERLESS = ClusterView(NODES)


@pytest.mark.parametrize(
    ("target", "nodes"),
    [("leader", (N2,)), ("last-leader", (N3,)), ("all", NODES), ("n1", (N1,)), ("n9", None)],
)
def test_names_mean_what_they_say(target: str, nodes: tuple[NodeName, ...] | None) -> None:
    assert resolve(target, 0, VIEW) == nodes


@pytest.mark.parametrize("target", ["leader", "follower", "last-leader"])
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
    fault = ScheduledFault(0, "kill", "leader", 0, 1, 0, options={PINNED_NODES: ["n3", "n1"]})
    assert nodes_hit(fault, LEADERLESS) == (N1, N3)


def test_the_laggard_is_the_node_whose_log_ends_first_and_never_the_leader() -> None:
    view = ClusterView(NODES, leader=N2, ends={N1: 7, N2: 3, N3: 5})
    assert resolve("laggard", 0, view) == (N3,)
    assert resolve("laggard", 0, VIEW) is None
    even = ClusterView(NODES, leader=N2, ends={N1: 7, N2: 3, N3: 7})
    assert {resolve("laggard", number, even) for number in range(9)} == {(N1,), (N3,)}


def test_there_is_where_something_has_happened() -> None:
    assert resolve("there", 0, ClusterView(NODES, there=N3)) == (N3,)
    assert resolve("there", 0, VIEW) is None
