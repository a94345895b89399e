"""A fault strikes at the happening that it waits for; a sequel waits once its first part struck."""

from collections.abc import Callable
from typing import Any, cast

from contracts.fault import Awaited, Fault
from contracts.names import NodeName
from harness.simulation.triggers import Triggers
from nemesis.fault_options import AFTER, OTHER, PLACE, SAME
from simulation.world.world import SimulatedWorld

HIT, ELSEWHERE = NodeName("n1"), NodeName("n2")
FIRST = Fault(1, "kill", "leader", 0, 1_000, 1)


def sequel(count: int = 1, **options: Any) -> Fault:
    return Fault(2, "kill", "there", 0, 1_000, 1, options, Awaited("leads", count=count))


class _Scenario:
    def __init__(self, faults: tuple[Fault, ...]) -> None:
        self.faults = faults


class _World:
    now = 0

    def __init__(self, *faults: Fault) -> None:
        self.scenario = _Scenario(faults)
        self.watchers: list[Callable[[NodeName, str], None]] = []
        self.cluster = None

    def watch(self, name: str, watcher: Callable[[NodeName, str], None]) -> None:
        assert name == "leads"
        self.watchers.append(watcher)

    def leads(self, node: NodeName) -> None:
        for watcher in self.watchers:
            watcher(node, "leads")


def _waiting(fault: Fault, *others: Fault) -> tuple[_World, Triggers, list[NodeName]]:
    world, struck = _World(fault, *others), list[NodeName]()
    triggers = Triggers(cast("SimulatedWorld", world), lambda _, node: struck.append(node))
    assert fault.when is not None
    triggers.wait(fault, fault.when)
    return world, triggers, struck


def test_a_sequel_counts_only_what_happens_after_its_first_part_has_struck() -> None:
    world, triggers, struck = _waiting(sequel(count=2, **{AFTER: 1}), FIRST)
    world.leads(ELSEWHERE)
    triggers.struck(1, (HIT,))
    world.leads(ELSEWHERE)
    assert struck == []
    world.leads(HIT)
    assert struck == [HIT]


def test_another_fault_that_strikes_does_not_begin_it() -> None:
    world, triggers, struck = _waiting(sequel(**{AFTER: 1}), FIRST)
    triggers.struck(7, (HIT,))
    world.leads(HIT)
    assert struck == []


def test_a_sequel_may_wait_for_the_nodes_that_were_hit() -> None:
    world, triggers, struck = _waiting(sequel(**{AFTER: 1, PLACE: SAME}), FIRST)
    triggers.struck(1, (HIT,))
    world.leads(ELSEWHERE)
    assert struck == []
    world.leads(HIT)
    assert struck == [HIT]


def test_a_sequel_may_wait_for_the_others() -> None:
    world, triggers, struck = _waiting(sequel(**{AFTER: 1, PLACE: OTHER}), FIRST)
    triggers.struck(1, (HIT,))
    world.leads(HIT)
    assert struck == []
    world.leads(ELSEWHERE)
    assert struck == [ELSEWHERE]


def test_a_sequel_without_its_first_part_waits_like_any_other_fault() -> None:
    world, _, struck = _waiting(sequel(**{AFTER: 1, PLACE: SAME}))
    world.leads(ELSEWHERE)
    assert struck == [ELSEWHERE]


def test_a_sequel_whose_first_part_never_struck_is_left_in_the_end() -> None:
    _, triggers, _ = _waiting(fault := sequel(**{AFTER: 1}), FIRST)
    assert triggers.end() == (fault,)
    assert triggers.end() == ()
