"""Where the parts of a deployed node are: addresses and paths, as the node itself sees them.

The default is the pod of a container runtime, where every node has its own network and its own
file system. A runtime without either gives another layout to the adapter; nothing else differs.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Final

import msgspec

from contracts.names import NodeName

#: Port of the client listener in a pod.
POD_CLIENT_PORT: Final = 9190
#: Port of the quorum listener in a pod.
POD_PEER_PORT: Final = 9193


class Placement(msgspec.Struct, frozen=True):
    """One node's place."""

    #: Address that its listeners bind to.
    listen_host: str
    #: Address by which the other nodes reach it.
    peer_host: str
    client_port: int
    peer_port: int
    #: Folders as the node sees them: configuration (read-only), state events, data.
    config_path: str
    state_path: str
    data_path: str
    #: Interpreter that runs the node.
    python: str = "python3"


#: Gives each node its place; asked once per node and deployment, with the node's host folder.
Layout = Callable[[NodeName, Path], Placement]


def pod_layout(node: NodeName, host_folder: Path) -> Placement:
    """A pod: fixed ports and paths, reached by its name; the host folder is mounted into it."""
    del host_folder
    return Placement(
        listen_host="0.0.0.0",  # noqa: S104 - all of the pod's own network, nothing else
        peer_host=node,
        client_port=POD_CLIENT_PORT,
        peer_port=POD_PEER_PORT,
        config_path="/config",
        state_path="/state",
        data_path="/data",
    )
