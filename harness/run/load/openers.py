"""Opens a system's clients where the run's runtime cannot be had: in a worker process.

A runtime holds sockets, locks and engines' handles. A client needs of it only where the nodes are
reached, and that outlives kill and start, so it is asked once and sent along. Must never start,
stop or cut anything: what is sent along cannot.
"""

from collections.abc import Iterable, Sequence
from typing import cast

import msgspec

from splitbrain.contracts.errors import HarnessError
from splitbrain.contracts.names import NodeName
from splitbrain.contracts.operations import Client
from splitbrain.contracts.runtime import Address, NodeSpec, Runtime
from splitbrain.contracts.system import Route, System


class FixedEndpoints(msgspec.Struct, frozen=True):
    """Where the nodes are reached; of a runtime it has ``name``, ``nodes`` and ``endpoint``."""

    name: str
    node_names: tuple[NodeName, ...]
    #: By ``node/port``; ports that cannot be reached from this machine are missing.
    addresses: dict[str, Address]

    def nodes(self) -> Sequence[NodeName]:
        """Names of the deployed nodes, in the order of the deployment."""
        return self.node_names

    def endpoint(self, node: NodeName, port: str) -> Address:
        """Where a client on this machine reaches the named port.

        Raises:
            HarnessError: the runtime had no address for it when the load began.
        """
        address = self.addresses.get(f"{node}/{port}")
        if address is None:
            raise HarnessError(
                f"reach the port {port!r} from a worker process",
                f"node {node}",
                "the runtime published no such port when the load began",
                "Choose a lower --rate, which one process carries.",
            )
        return address


def fixed_endpoints(runtime: Runtime, nodes: Iterable[NodeSpec]) -> FixedEndpoints:
    """Ask the runtime where each port of each node is reached."""
    addresses: dict[str, Address] = {}
    for node in nodes:
        for port in node.ports:
            try:
                addresses[f"{node.name}/{port}"] = runtime.endpoint(node.name, port)
            except (HarnessError, KeyError):
                continue  # not published; a client that asks for it is told
    return FixedEndpoints(runtime.name, tuple(runtime.nodes()), addresses)


class SystemClients(msgspec.Struct, frozen=True):
    """Opens clients of a system; pickles if the system's adapter does."""

    system: System
    endpoints: FixedEndpoints

    def __call__(self, route: Route) -> Client:
        """Return a fresh client; connects at its first operation."""
        # Clients ask a runtime for nothing but addresses; the protocol has no narrower name yet.
        return self.system.open_client(cast("Runtime", self.endpoints), route)
