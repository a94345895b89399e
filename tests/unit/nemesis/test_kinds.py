"""Fault kinds: what they tell the runtime, and what they expect to be seen."""

from collections.abc import Sequence
from typing import Any

import pytest

from contracts.fault import ActualFault, Link, ScheduledFault
from contracts.names import NodeName
from nemesis.expectations import LinkIs, NodeIs, NodeIsSilent
from nemesis.kinds import fault_kind, kind_names
from nemesis.targets import ClusterView

N1, N2, N3 = NODES = tuple(NodeName(f"n{number}") for number in (1, 2, 3))
VIEW = ClusterView(NODES, leader=N2)


class RecordingRuntime:
    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []

    def __getattr__(self, name: str) -> Any:
        return lambda *arguments: self.calls.append((name, *arguments))


def act(kind: str, target: str) -> tuple[ActualFault, list[Any]]:
    actual = fault_kind(kind).actual(ScheduledFault(4, kind, target, 0, 1, 0), VIEW)
    assert actual is not None
    runtime = RecordingRuntime()
    fault_kind(kind).inject(runtime, actual)  # type: ignore[arg-type]
    fault_kind(kind).heal(runtime, actual)  # type: ignore[arg-type]
    return actual, runtime.calls


def test_a_partition_cuts_both_directions_and_only_those_of_its_target() -> None:
    actual, calls = act("partition", "leader")
    links = (Link(N1, N2), Link(N2, N1), Link(N2, N3), Link(N3, N2))
    assert (actual.index, actual.nodes, actual.leader, actual.links) == (4, (N2,), N2, links)
    assert calls == [("cut", links), ("restore", links)]


def test_a_partition_expects_cut_links_cut_and_others_open() -> None:
    actual, _ = act("partition", "leader")
    kind = fault_kind("partition")
    bitten = {(item.link, item.open) for item in kind.when_bitten(actual, NODES)}  # type: ignore[union-attr]
    assert bitten == {(link, False) for link in actual.links} | {
        (Link(N1, N3), True),
        (Link(N3, N1), True),
    }
    assert kind.when_healed(actual, NODES) == tuple(LinkIs(link, True) for link in actual.links)
    assert kind.downs(actual) == frozenset()


def test_a_pause_freezes_and_thaws_and_expects_silence() -> None:
    actual, calls = act("pause", "all")
    assert calls == [("pause", node) for node in NODES] + [("resume", node) for node in NODES]
    kind = fault_kind("pause")
    expected = [NodeIs(node, "paused") for node in NODES] + [NodeIsSilent(node) for node in NODES]
    assert list(kind.when_bitten(actual, NODES)) == expected
    assert kind.when_healed(actual, NODES) == tuple(NodeIs(node, "running") for node in NODES)
    assert kind.downs(actual) == frozenset()


def test_a_kill_ends_and_restarts_and_excuses_the_exit() -> None:
    actual, calls = act("kill", "leader")
    assert calls == [("kill", N2), ("start", N2)]
    kind = fault_kind("kill")
    assert kind.when_bitten(actual, NODES) == (NodeIs(N2, "exited"),)
    assert kind.when_healed(actual, NODES) == (NodeIs(N2, "running"),)
    assert kind.downs(actual) == {N2}


def test_a_power_cut_hits_all_of_its_nodes_by_one_act() -> None:
    actual, calls = act("power", "all")
    assert calls == [("power_off", NODES, 0), *(("start", node) for node in NODES)]
    kind = fault_kind("power")
    assert kind.when_bitten(actual, NODES) == tuple(NodeIs(node, "exited") for node in NODES)
    assert kind.downs(actual) == frozenset(NODES)


def test_a_power_cut_says_what_each_node_lost() -> None:
    class Losing(RecordingRuntime):
        def power_off(self, nodes: Sequence[NodeName], draw: int) -> str:
            return f"{', '.join(nodes)} lost {draw}"

    actual = fault_kind("power").actual(ScheduledFault(0, "power", "all", 0, 1, 7), VIEW)
    assert actual is not None
    said = fault_kind("power").inject(Losing(), actual)  # type: ignore[arg-type]
    assert said == "n1, n2, n3 lost 7"


@pytest.mark.parametrize("kind", kind_names())
def test_a_missing_target_gives_no_fault(kind: str) -> None:
    scheduled = ScheduledFault(0, kind, "leader", 0, 1, 0)
    assert fault_kind(kind).actual(scheduled, ClusterView(NODES)) is None


@pytest.mark.parametrize("kind", kind_names())
def test_every_kind_expects_something_when_bitten_and_when_healed(kind: str) -> None:
    actual, _ = act(kind, "leader")
    for expectation in (
        *fault_kind(kind).when_bitten(actual, NODES),
        *fault_kind(kind).when_healed(actual, NODES),
    ):
        assert expectation.sentence()
    assert fault_kind(kind).when_bitten(actual, NODES)
    assert fault_kind(kind).when_healed(actual, NODES)
