"""Planted bugs by name: those of the quorum and those of what stands above it are one list.

Must never take a name for granted: a typing error would run a test of the correct code.
"""

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from splitbrain.nodes.broker.bugs import BrokerBugs
from splitbrain.nodes.controller.basis.bugs import ControllerBugs
from splitbrain.nodes.quorum.bugs import PlantedBugs
from splitbrain.nodes.server.host.state_machine import StateMachineName


class Bugs(NamedTuple):
    """Which bugs are on, by room."""

    quorum: PlantedBugs
    controller: ControllerBugs
    broker: BrokerBugs


#: Kebab-case name to the room and to the field there, in the order of declaration.
_PLACES: Final[Mapping[str, tuple[str, str]]] = MappingProxyType(
    {
        field.replace("_", "-"): (room, field)
        for room, bugs in (
            ("quorum", PlantedBugs),
            ("controller", ControllerBugs),
            ("broker", BrokerBugs),
        )
        for field in bugs.__struct_fields__
    }
)
#: All names.
BUG_NAMES: Final = tuple(_PLACES)
#: Names of bugs that only a node with Kafka's metadata can have.
METADATA_BUG_NAMES: Final = frozenset(
    name for name, (room, _) in _PLACES.items() if room != "quorum"
)


def bugs_named(names: Iterable[str], state_machine: StateMachineName) -> Bugs:
    """Switches on the bugs named in kebab case, as on the command line.

    Raises:
        ValueError: a name is unknown, and the message lists the known ones; or the bug is of a
            state machine that the node does not have.
    """
    chosen: dict[str, dict[str, bool]] = {"quorum": {}, "controller": {}, "broker": {}}
    for name in names:
        if name not in _PLACES:
            raise ValueError(f"unknown bug {name!r}; known are {', '.join(sorted(_PLACES))}")
        if name in METADATA_BUG_NAMES and state_machine != "metadata":
            raise ValueError(
                f"bug {name!r} is one of the state machine metadata; the state machine is "
                f"{state_machine}"
            )
        room, field = _PLACES[name]
        chosen[room][field] = True
    return Bugs(
        PlantedBugs(**chosen["quorum"]),
        ControllerBugs(**chosen["controller"]),
        BrokerBugs(**chosen["broker"]),
    )
