"""A fault that names a happening heals soon after it, but only where it did not strike."""

from collections.abc import Callable
from typing import Any, cast

from contracts.fault import Fault
from contracts.names import NodeName
from harness.simulation.early_heals import UNTIL, UNTIL_COUNT, UNTIL_DELAY_US, EarlyHeals
from simulation.world.world import SimulatedWorld

HIT, OTHER = NodeName("n1"), NodeName("n2")


class _World:
    def __init__(self) -> None:
        self.watchers: list[Callable[[NodeName, str], None]] = []
        self.later: list[tuple[int, Callable[[], None]]] = []

    def watch(self, name: str, watcher: Callable[[NodeName, str], None]) -> None:
        assert name == "leads"
        self.watchers.append(watcher)

    def after(self, delay_us: int, action: Callable[[], None]) -> None:
        self.later.append((delay_us, action))

    def leads(self, node: NodeName) -> None:
        for watcher in self.watchers:
            watcher(node, "leads")


def _waiting(**options: Any) -> tuple[_World, list[int]]:
    world, healed = _World(), list[int]()
    heals = EarlyHeals(cast("SimulatedWorld", world), healed.append)
    fault = Fault(7, "partition", "leader", 0, 1_000, 1, options)
    heals.wait(fault, (HIT,))
    return world, healed


def test_it_heals_after_the_happening_in_a_turn_of_its_own() -> None:
    world, healed = _waiting(**{UNTIL: "leads", UNTIL_DELAY_US: 30})
    world.leads(OTHER)
    assert healed == []
    ((delay_us, heal),) = world.later
    heal()
    assert (delay_us, healed) == (30, [7])


def test_what_happens_at_a_node_that_was_hit_does_not_count() -> None:
    world, _ = _waiting(**{UNTIL: "leads"})
    world.leads(HIT)
    assert world.later == []


def test_it_waits_for_the_happening_that_was_named_by_number_and_for_one_only() -> None:
    world, _ = _waiting(**{UNTIL: "leads", UNTIL_COUNT: 2})
    world.leads(OTHER)
    assert world.later == []
    world.leads(OTHER)
    world.leads(OTHER)
    assert len(world.later) == 1


def test_a_fault_without_the_option_waits_for_nothing() -> None:
    world, _ = _waiting()
    assert world.watchers == []
