"""The limit of a node's connections: never so many that its disk lacks a file."""

import resource
from typing import Final

from splitbrain.nodes.transport.doorkeeper import CONNECTIONS_COUNT_MAX

#: Kept for the data folder, the node's own links and what the interpreter needs.
_KEPT_COUNT: Final = 128
#: Ports, and the links that a broker has to controllers on behalf of its clients, share the rest.
_SHARES_COUNT: Final = 4
#: Below this many a port is of no use; the node says so by what it refuses.
_CONNECTIONS_COUNT_MIN: Final = 8


def connections_per_port() -> int:
    """Let this process open as many files as the kernel allows; how many each port may have."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard == resource.RLIM_INFINITY:
        return CONNECTIONS_COUNT_MAX
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    share = (hard - _KEPT_COUNT) // _SHARES_COUNT
    return max(_CONNECTIONS_COUNT_MIN, min(share, CONNECTIONS_COUNT_MAX))
