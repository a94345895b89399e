"""Planted bugs are one list of names, and a node has only those of what it runs."""

import pytest

from splitbrain.nodes.broker.bugs import BrokerBugs
from splitbrain.nodes.controller.basis.bugs import ControllerBugs
from splitbrain.nodes.quorum.bugs import PlantedBugs
from splitbrain.nodes.server.start.planted import BUG_NAMES, METADATA_BUG_NAMES, bugs_named


def test_no_two_rooms_share_a_name() -> None:
    fields = [
        *PlantedBugs.__struct_fields__,
        *ControllerBugs.__struct_fields__,
        *BrokerBugs.__struct_fields__,
    ]
    assert tuple(field.replace("_", "-") for field in fields) == BUG_NAMES
    assert len(set(BUG_NAMES)) == len(BUG_NAMES)


@pytest.mark.parametrize("name", BUG_NAMES)
def test_each_name_switches_on_one_bug(name: str) -> None:
    field = name.replace("-", "_")
    on = [
        each
        for bugs in bugs_named([name], "metadata")
        for each in bugs.__struct_fields__
        if getattr(bugs, each)
    ]
    assert on == [field]


def test_nothing_is_on_by_default() -> None:
    assert bugs_named([], "registers") == (PlantedBugs(), ControllerBugs(), BrokerBugs())


@pytest.mark.parametrize("state_machine", ["registers", "metadata"])
def test_an_unknown_name_is_refused_with_the_known_ones(state_machine: str) -> None:
    with pytest.raises(ValueError, match=r"unknown bug 'x'.*ack-before-fsync.*unfenced-too-early"):
        bugs_named(["x"], state_machine)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", sorted(METADATA_BUG_NAMES))
def test_registers_refuse_the_bugs_of_a_controller(name: str) -> None:
    with pytest.raises(ValueError, match=f"bug '{name}' is one of the state machine metadata"):
        bugs_named([name], "registers")
