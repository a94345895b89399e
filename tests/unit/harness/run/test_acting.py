"""Acts as calls of a runtime."""

from typing import Any

from splitbrain.harness.run.acting import perform
from splitbrain.nemesis.acts import Kill
from tests.unit.harness.run.armed_world import NODES, ArmedWorld


def test_several_nodes_are_frozen_before_the_first_of_them_is_killed() -> None:
    world: Any = ArmedWorld()
    world.states[NODES[1]] = "exited"
    perform(world, Kill(NODES))
    up = len(NODES) - 1
    assert world.calls == ["pause"] * up + ["kill"] * len(NODES)
    assert set(world.states.values()) == {"exited"}


def test_one_node_alone_is_killed_as_it_is() -> None:
    world: Any = ArmedWorld()
    perform(world, Kill(NODES[:1]))
    assert world.calls == ["kill"]
