"""Messages between the run's process and its worker processes, pickled, one frame each.

Both ends are the same program on the same machine. A runtime is not sent, for it holds sockets,
locks and engines' handles. A client needs of it only where the nodes are reached, and that outlives
kill and start, so the runtime is asked once and its addresses are sent.
"""

from collections.abc import Iterable, Sequence
from typing import Any, cast

import msgspec

from splitbrain.contracts.errors import HarnessError
from splitbrain.contracts.names import NodeName
from splitbrain.contracts.operations import Client, Operation
from splitbrain.contracts.runtime import Address, NodeSpec, Runtime
from splitbrain.contracts.system import Route, System
from splitbrain.harness.run.clients import LoadSetup
from splitbrain.harness.run.traffic import TrafficShare
from splitbrain.workloads.workload import Workload


class Assignment(msgspec.Struct, frozen=True):
    """First frame to a worker process: all that it needs."""

    slots: tuple[int, ...]
    setup: LoadSetup
    #: Opens a client of a route; pickles.
    open_client: Any
    #: Start of the run's clock.
    clock_start_ns: int


class Begin(msgspec.Struct, frozen=True):
    """All worker processes are ready: load the system from this moment of the monotonic clock."""

    start_s: float


class Unsettled(msgspec.Struct, frozen=True):
    """Operations of other worker processes that ended as ``info``: keys are given up after some."""

    operations: tuple[Operation, ...]


class End(msgspec.Struct, frozen=True):
    """Let every open operation end, begin no other, hand over the rest."""


class Ready(msgspec.Struct, frozen=True):
    """First frame of a worker process: it can begin."""


class Shipment(msgspec.Struct, frozen=True):
    """Events of a worker process since the last one; comes also when there were none."""

    #: No event older than this will follow, ns since the run's start.
    watermark: int
    #: Times of the events, and their lines as ``history.writer.stamped_line`` makes them.
    times: list[int]
    lines: list[bytes]
    traffic: TrafficShare
    #: Operations that ended as ``info``.
    unsettled: tuple[Operation, ...]


class Ended(msgspec.Struct, frozen=True):
    """Last frame of a worker process: no operation is open."""

    #: For each of its slots, the process that would have come next.
    upcoming: tuple[int, ...]
    final_reads: tuple[Operation, ...]
    #: Fields of a ``HarnessError``; None where there was none.
    failure: tuple[str, str, str, str] | None


def final_reads_of(workload: Workload, others: list[tuple[Operation, ...]]) -> list[Operation]:
    """Reads that the workload and its copies want, each once, in the order of first use.

    Copies name the same keys in nearly the same order, so that the longest list leads.
    """
    lists = sorted([workload.final_reads(), *others], key=len, reverse=True)
    # Transactions have no key of their own; their parts have.
    each = {
        (read.f, read.key, msgspec.json.encode(read.value)): read
        for reads in lists
        for read in reads
    }
    return list(each.values())


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
