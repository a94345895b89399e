"""Layers above the logs of a world's nodes: registers, or Kafka's metadata.

Voters are controllers then, and observers brokers. Must never draw from a stream that a world of
registers draws from.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from splitbrain.contracts.errors import UsageError
from splitbrain.contracts.scenario import Scenario
from splitbrain.nodes.controller.roles.active import Identity
from splitbrain.nodes.quorum.identifiers import NodeId
from splitbrain.nodes.server.broker.broker_service import BrokerMaterials, broker_layer
from splitbrain.nodes.server.broker.clean_stop import CleanStop
from splitbrain.nodes.server.controller.controller_service import metadata_layer
from splitbrain.nodes.server.host.layer import Layer
from splitbrain.nodes.server.host.state_machine import StateMachineName
from splitbrain.nodes.server.start.metadata_settings import (
    broker_settings,
    controller_settings,
    quorums_part,
)
from splitbrain.nodes.storage.filesystem import FileSystem
from splitbrain.simulation.world.world import SimulatedWorld
from splitbrain.systems.kraft.state_machines import BROKERS, WORKLOADS, with_replicas

STATE_MACHINES: Final = tuple(WORKLOADS)
_CLIENT_PORT: Final = 9092
#: Makes the layer of one life on a machine's disk, in its data folder.
LayerMaker = Callable[[FileSystem, Path], Layer]


def state_machine_of(scenario: Scenario) -> StateMachineName:
    """Return the state machine that a scenario names.

    Raises:
        UsageError: there is none of that name.
    """
    if scenario.state_machine not in STATE_MACHINES:
        raise UsageError(
            f"there is no state machine {scenario.state_machine!r} here",
            f"Take one of {', '.join(STATE_MACHINES)}",
        )
    return scenario.state_machine


def quorum_s_part(scenario: Scenario) -> Mapping[str, str]:
    """Return the settings of a scenario that are the quorum's, or nobody's.

    Raises:
        ValueError: a setting of controllers or brokers is none.
    """
    if state_machine_of(scenario) == "registers":
        return scenario.settings
    # How many brokers a world has is the scenario's to say.
    nodes_own = {name: text for name, text in scenario.settings.items() if name != BROKERS}
    return quorums_part(nodes_own)


def layer_maker(world: SimulatedWorld, node_id: NodeId, cluster_id: str) -> LayerMaker | None:
    """Return the maker of the layer of each of a machine's lives; None for registers.

    Raises:
        ValueError: a setting is none.
    """
    scenario = world.scenario
    if state_machine_of(scenario) == "registers":
        return None
    if node_id > scenario.nodes:
        return _broker_maker(world, node_id)
    identity = Identity(
        cluster_id=cluster_id,
        node_id=node_id,
        settings=controller_settings(with_replicas(scenario.settings, scenario.observers)),
        random=world.stream(f"controller n{node_id}"),
    )
    return lambda _, __: metadata_layer(identity)


def _broker_maker(world: SimulatedWorld, node_id: NodeId) -> LayerMaker:
    settings = broker_settings(world.scenario.settings)

    def make(filesystem: FileSystem, folder: Path) -> Layer:
        materials = BrokerMaterials(
            settings=settings,
            host=f"n{node_id}",
            port=_CLIENT_PORT,
            random=world.stream(f"broker n{node_id}"),
            clean_stop=CleanStop(filesystem, folder),
        )
        return broker_layer(materials)

    return make
