"""Labels and names of everything made in the engine: the one place that knows them. Pure.

Labels decide what is ours; names are for people. Whoever removes something asks the labels. A run
is known by its lock file, not by its id alone: two runs of one seed that start in the same second
in different folders have the same id.
"""

import hashlib
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import msgspec

from splitbrain.contracts.names import NodeName, RunId

#: Run that made it; whatever lacks it is foreign.
RUN_LABEL = "splitbrain.run"
#: Absolute path of the run folder's lock file; the run lives while somebody holds its flock.
LOCK_LABEL = "splitbrain.lock"
#: Process that made it, for the case that the lock file is gone.
OWNER_LABEL = "splitbrain.owner"
#: Node that it belongs to.
NODE_LABEL = "splitbrain.node"
#: ``pod`` (pause container), ``node`` (the system's own) or ``disks`` (holds the nodes' disks).
ROLE_LABEL = "splitbrain.role"
#: Where the node keeps its data, inside.
DATA_LABEL = "splitbrain.data"

Role = Literal["pod", "node", "disks"]

_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_.-]+")
_DIGEST_LENGTH = 6


class RunMark(msgspec.Struct, frozen=True, order=True):
    """How one run's things are known in the engine."""

    run_id: RunId
    #: Absolute path of the run folder's lock file.
    lock: str
    #: Word of the process that made them (``runtimes.owners``); empty: unknown.
    owner: str = ""

    def labels(self) -> dict[str, str]:
        """Of everything that the run makes."""
        return {RUN_LABEL: self.run_id, LOCK_LABEL: self.lock, OWNER_LABEL: self.owner}

    def node_labels(self, node: NodeName, role: Role, data_path: str) -> dict[str, str]:
        """Of what belongs to one node."""
        return {**self.labels(), NODE_LABEL: node, ROLE_LABEL: role, DATA_LABEL: data_path}

    def filters(self, *labels: str) -> dict[str, list[str]]:
        """Return the engine's filter for what is this run's and carries further labels as well."""
        return {"label": [f"{RUN_LABEL}={self.run_id}", f"{LOCK_LABEL}={self.lock}", *labels]}

    def network(self) -> str:
        """Name of the run's network."""
        digest = hashlib.sha256(self.lock.encode()).hexdigest()[:_DIGEST_LENGTH]
        return f"splitbrain-{_NOT_IN_NAMES.sub('-', self.run_id)}-{digest}"

    def name(self, node: NodeName, part: Literal["pod", "data", "clock"] | None = None) -> str:
        """Name of a node's own container; or of its pause container, or of a volume of its."""
        return "-".join(filter(None, (self.network(), node, part)))

    def disks(self) -> str:
        """Name of the container that holds the nodes' disks, and of the volume with their images.

        No node's can be the same.
        """
        return f"{self.network()}_disks"


def mark_of_labels(labels: Mapping[str, str]) -> RunMark:
    """The run that something with these labels belongs to; a run whose lock is unknown is dead.

    Raises:
        KeyError: it is not ours.
    """
    return RunMark(
        RunId(labels[RUN_LABEL]),
        labels.get(LOCK_LABEL, "/nonexistent/lock"),
        labels.get(OWNER_LABEL, ""),
    )


def mark_of_run(run_id: RunId, lock: Path, owner: str = "") -> RunMark:
    """Return the mark of a run by its lock file, which need not be absolute."""
    return RunMark(run_id, str(lock.resolve()), owner)
