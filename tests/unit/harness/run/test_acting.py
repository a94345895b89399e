"""Acts as calls of a runtime."""

from typing import Any

import pytest

from splitbrain.contracts.errors import CapabilityError, HarnessError
from splitbrain.harness.run import acting
from splitbrain.harness.run.acting import perform
from splitbrain.nemesis.acts import Kill, RemoveMember, ReplaceMember
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


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(acting, "_MEMBER_PATIENCE_S", 0.01)


def test_only_a_removed_member_is_killed_emptied_and_taken_in_again() -> None:
    world: Any = ArmedWorld()
    removed, member = NODES[:2]
    perform(world, RemoveMember((removed,)), members=world)
    done = perform(world, ReplaceMember((removed, member)), members=world)
    assert world.calls == ["remove", "kill", "wipe", "add"]
    assert (world.states[removed], world.states[member]) == ("exited", "running")
    assert (world.files[removed], world.files[member]) == (b"", b"kept")
    assert done.said == f"{removed}: 4 bytes"


@pytest.mark.usefixtures("impatient")
def test_one_of_which_nobody_tells_whether_it_is_a_member_keeps_its_disk() -> None:
    world: Any = ArmedWorld()
    perform(world, RemoveMember(NODES[:1]), members=world)
    world.is_mute = True
    done = perform(world, ReplaceMember(NODES[:1]), members=world)
    assert world.calls == ["remove"]
    assert done.said == f"{NODES[0]}: nobody tells whether it is one"


@pytest.mark.usefixtures("impatient")
def test_a_refusal_is_told_and_the_others_are_asked_about_all_the_same() -> None:
    world: Any = ArmedWorld()
    remove = world.remove

    def refuse_first(node: str) -> None:
        if node == NODES[0]:
            raise HarnessError("remove", node, "no quorum", "Wait.")
        remove(node)

    world.remove = refuse_first
    done = perform(world, RemoveMember(NODES[:2]), members=world)
    assert done.said == f"{NODES[0]}: no quorum"
    assert world.calls == ["remove"]


def test_a_system_without_the_means_is_told_so() -> None:
    world: Any = ArmedWorld()
    with pytest.raises(CapabilityError, match="remove from the membership n1"):
        perform(world, RemoveMember(NODES[:1]))
