"""A place of a node as a runtime with pods has it, for tests of deployments."""

from collections.abc import Mapping
from pathlib import Path

from splitbrain.contracts.names import NodeName
from splitbrain.contracts.runtime import Placement


def pod_place(node: NodeName, host_folder: Path, ports: Mapping[str, int]) -> Placement:
    return Placement("0.0.0.0", node, dict(ports), "/config", "/state", "/data")
