"""What stands above the logs of a world's nodes: registers, or Kafka's metadata.

Must never draw from a stream that a world of registers draws from.
"""

from collections.abc import Callable, Mapping
from typing import Final, cast

from contracts.errors import UsageError
from contracts.names import NodeName
from contracts.scenario import Scenario
from contracts.simulation import World
from nodes.controller.active import Identity
from nodes.server.controller_service import metadata_layer
from nodes.server.controller_settings import CONTROLLER_SETTING_NAMES, controller_settings
from nodes.server.layer import Layer
from nodes.server.planted import Bugs, StateMachineName

STATE_MACHINES: Final[tuple[StateMachineName, ...]] = ("registers", "metadata")


def state_machine_of(scenario: Scenario) -> StateMachineName:
    """The state machine that a scenario names.

    Raises:
        UsageError: there is none of that name.
    """
    if scenario.state_machine not in STATE_MACHINES:
        raise UsageError(
            f"there is no state machine {scenario.state_machine!r} here",
            f"Take one of {', '.join(STATE_MACHINES)}",
        )
    return cast(StateMachineName, scenario.state_machine)


def quorum_s_part(scenario: Scenario) -> Mapping[str, str]:
    """The settings of a scenario that are the quorum's, or nobody's."""
    if state_machine_of(scenario) == "registers":
        return scenario.settings
    return {
        name: text
        for name, text in scenario.settings.items()
        if name not in CONTROLLER_SETTING_NAMES
    }


def layer_maker(
    world: World, name: NodeName, cluster_id: str, bugs: Bugs
) -> Callable[[], Layer] | None:
    """What makes the layer of each of a machine's lives; None for registers.

    Raises:
        ValueError: a setting is none.
    """
    scenario = world.scenario
    if state_machine_of(scenario) == "registers":
        return None
    identity = Identity(
        cluster_id=cluster_id,
        settings=controller_settings(scenario.settings, bugs.controller),
        random=world.stream(f"controller {name}"),
    )
    return lambda: metadata_layer(identity, bugs.quorum)
