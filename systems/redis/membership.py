"""Who is who: nodes, the addresses by which they know each other, and where they are reached.

Redis and Sentinel speak of ``host port``; clients of the harness reach the same servers through
other addresses, so every address that a node tells must be translated. Pure.
"""

from collections.abc import Callable
from typing import Final

import msgspec

from splitbrain.contracts.names import NodeName
from splitbrain.contracts.runtime import Address
from splitbrain.contracts.system import CLIENT_PORT, PEER_PORT

#: Where a node's named port is reached now.
Endpoint = Callable[[NodeName, str], Address]

#: The server's port, which clients and replicas use.
SERVER_PORT: Final = CLIENT_PORT
#: Sentinel's port, which clients and the other Sentinels use.
SENTINEL_PORT: Final = PEER_PORT
#: Sentinel's name for the group of servers.
MASTER_NAME: Final = "splitbrain"


class Member(msgspec.Struct, frozen=True):
    """One node, as the other nodes know it."""

    node: NodeName
    host: str
    server_port: int
    sentinel_port: int
    #: Sentinel's identity, 40 hexadecimal digits.
    sentinel_id: str


class Membership(msgspec.Struct, frozen=True):
    """All nodes of a cluster, in their order; the first is the first primary."""

    members: tuple[Member, ...]

    def node_at(self, host: str, port: str) -> NodeName | None:
        """The node whose server the others know by this address."""
        for member in self.members:
            if (member.host, str(member.server_port)) == (host, port):
                return member.node
        return None
