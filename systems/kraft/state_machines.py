"""State machines above the log of our nodes, and the meaning of options for each; pure.

With ``metadata`` the nodes that vote are controllers, and brokers follow them: nodes with the
numbers behind theirs, as many as the setting ``brokers`` says.
"""

from collections.abc import Mapping
from typing import Final

from splitbrain.contracts.errors import UsageError
from splitbrain.contracts.experiment import Experiment
from splitbrain.contracts.names import NodeName
from splitbrain.contracts.scenario import NODES_MAX
from splitbrain.nodes.server.host.state_machine import StateMachineName
from splitbrain.nodes.server.start.metadata_settings import controller_settings, quorums_part
from splitbrain.nodes.server.start.quorum_settings import quorum_settings
from splitbrain.systems.kraft.planted_bugs import patches_of

#: Each with the workloads that it serves; the usual ones first.
WORKLOADS: Final[Mapping[StateMachineName, tuple[str, ...]]] = {
    "registers": ("register", "set"),
    "metadata": ("topics",),
}
#: Setting of the deployment, unknown to the nodes.
BROKERS: Final = "brokers"
BROKERS_DEFAULT: Final = 2
#: Replicas of a topic whose creator does not say, where there are to be so many brokers.
REPLICAS_MAX: Final = 3
_CORRECT: Final = "Correct the bug or the setting"
#: Kafka's name of the setting, and the nodes' own.
_REPLICAS: Final = ("default.replication.factor", "default_replication_factor")


def node_name(node_id: int) -> NodeName:
    """Name of the node with this id, ``n1`` for 1."""
    return NodeName(f"n{node_id}")


def state_machine_of(options: Experiment) -> StateMachineName:
    """Return the state machine chosen, or the usual one."""
    return "metadata" if options.state_machine == "metadata" else "registers"


def broker_ids(options: Experiment) -> range:
    """Node ids of the brokers; UsageError: there cannot be so many."""
    if state_machine_of(options) != "metadata":
        return range(0)
    text = options.settings.get(BROKERS, str(BROKERS_DEFAULT))
    most = NODES_MAX - options.nodes
    if not text.isdecimal() or not 1 <= int(text) <= most:
        raise UsageError(
            f"the setting {BROKERS!r} is {text!r} beside {options.nodes} nodes that vote",
            f"Choose between 1 and {most} brokers"
            if most > 0
            else f"Choose at most {NODES_MAX - 1} nodes that vote",
        )
    return range(options.nodes + 1, options.nodes + int(text) + 1)


def node_settings(options: Experiment) -> dict[str, str]:
    """Return the settings that are the nodes' own."""
    if state_machine_of(options) != "metadata":
        return dict(options.settings)
    settings = {name: text for name, text in options.settings.items() if name != BROKERS}
    return with_replicas(settings, len(broker_ids(options)))


def with_replicas(settings: Mapping[str, str], brokers: int) -> dict[str, str]:
    """Settings with the number of replicas of a topic whose creator does not say.

    It follows from the cluster as it is meant to be, not from the brokers of a moment: before they
    have all registered a topic is refused, as Kafka does it, instead of getting fewer for ever.
    """
    if any(name in settings for name in _REPLICAS):
        return dict(settings)
    return {**settings, _REPLICAS[0]: str(max(1, min(REPLICAS_MAX, brokers)))}


def session_ms(options: Experiment) -> int | None:
    """Return how long a broker may be silent, milliseconds; None: there are no brokers."""
    if state_machine_of(options) != "metadata":
        return None
    return controller_settings(node_settings(options)).broker_session_timeout_ms


def check_options(options: Experiment) -> None:
    """Refuse what the nodes would refuse, before anything is made.

    Raises:
        UsageError: the number of nodes, a bug or a setting is unknown.
    """
    if not 1 <= options.nodes <= NODES_MAX:
        raise UsageError(
            f"{options.nodes} nodes were asked for", f"Choose between 1 and {NODES_MAX}"
        )
    broker_ids(options)
    machine, settings = state_machine_of(options), node_settings(options)
    try:
        patches_of(options.bugs, machine)
        if machine == "metadata":
            brokers = len(broker_ids(options))
            replicas = controller_settings(settings).default_replication_factor
            if replicas > brokers:
                problem = f"{_REPLICAS[0]} {replicas} cannot be met by {brokers} brokers"
                raise UsageError(problem, _CORRECT)
            settings = quorums_part(settings)
        quorum_settings(settings)
    except ValueError as error:
        raise UsageError(str(error), _CORRECT) from error
