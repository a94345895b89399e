"""Messages between the run's process and its worker processes, pickled, one frame each.

Both ends are the same program on the same machine.
"""

from typing import Any, Protocol

import msgspec

from splitbrain.contracts.errors import HarnessError
from splitbrain.contracts.names import NodeName
from splitbrain.contracts.operations import Client, Operation
from splitbrain.contracts.system import Route
from splitbrain.harness.run.clients import Load
from splitbrain.harness.run.traffic import TrafficShare
from splitbrain.workloads.workload import Workload


class ClientOpener(Protocol):
    """Opens clients in a worker process; must pickle."""

    def __call__(self, route: Route) -> Client:
        """Return a fresh client; connects at its first operation."""
        ...


class Assignment(msgspec.Struct, frozen=True):
    """First frame to a worker process: all that it needs."""

    slots: tuple[int, ...]
    nodes: tuple[NodeName, ...]
    load: Load
    #: A ``Workload``, as it was when the load began.
    workload: Any
    #: A ``ClientOpener``.
    open_client: Any
    #: Start of the run's clock.
    clock_start_ns: int
    observers: tuple[NodeName, ...] = ()


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


class Failure(msgspec.Struct, frozen=True):
    """A ``HarnessError`` on its way between processes."""

    action: str
    target: str
    problem: str
    next_step: str

    @classmethod
    def of(cls, error: HarnessError) -> "Failure":
        """Picklable form of an error."""
        return cls(error.action, error.target, error.problem, error.next_step)

    def error(self) -> HarnessError:
        """Return the error again."""
        return HarnessError(self.action, self.target, self.problem, self.next_step)


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
    #: Error; None where there was none.
    failure: Failure | None


def final_reads_of(workload: Workload, others: list[tuple[Operation, ...]]) -> list[Operation]:
    """Reads that the workload and its copies want, each once, in the order of first use.

    Copies name the same keys in nearly the same order, so that the longest list leads.
    """
    lists = sorted([workload.final_reads(), *others], key=len, reverse=True)
    return list({(read.f, read.key): read for reads in lists for read in reads}.values())
