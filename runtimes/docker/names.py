"""Labels and names of everything made in the engine: the one place that knows them. Pure.

Labels decide what is ours; names are for people. Whoever removes something asks the labels.
"""

import re
from pathlib import Path
from typing import Literal

from contracts.names import NodeName, RunId

#: Run that made it; whatever lacks it is foreign.
RUN_LABEL = "splitbrain.run"
#: Absolute path of the run folder's lock file; the run lives while somebody holds its flock.
LOCK_LABEL = "splitbrain.lock"
#: Node that it belongs to.
NODE_LABEL = "splitbrain.node"
#: ``pod`` (pause container) or ``node`` (the system's own).
ROLE_LABEL = "splitbrain.role"
#: Where the node keeps its data, inside.
DATA_LABEL = "splitbrain.data"

Role = Literal["pod", "node"]

_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_.-]+")


def readable(run_id: RunId) -> str:
    """The run's id with what engines refuse in names replaced."""
    return _NOT_IN_NAMES.sub("-", run_id)


def network_name(run_id: RunId) -> str:
    """Name of the run's network."""
    return f"splitbrain-{readable(run_id)}"


def pod_name(run_id: RunId, node: NodeName) -> str:
    """Name of a node's pause container."""
    return f"splitbrain-{readable(run_id)}-{node}-pod"


def node_name(run_id: RunId, node: NodeName) -> str:
    """Name of a node's own container."""
    return f"splitbrain-{readable(run_id)}-{node}"


def volume_name(run_id: RunId, node: NodeName) -> str:
    """Name of the volume with a node's data."""
    return f"splitbrain-{readable(run_id)}-{node}-data"


def run_labels(run_id: RunId, lock: Path) -> dict[str, str]:
    """Labels of everything that a run makes."""
    return {RUN_LABEL: run_id, LOCK_LABEL: str(lock.resolve())}


def node_labels(
    run_id: RunId, lock: Path, node: NodeName, role: Role, data_path: str
) -> dict[str, str]:
    """Labels of what belongs to one node."""
    return {
        **run_labels(run_id, lock),
        NODE_LABEL: node,
        ROLE_LABEL: role,
        DATA_LABEL: data_path,
    }
