"""A driver, as the adapter of compose files sees it."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

from splitbrain.contracts.names import NodeName
from splitbrain.contracts.operations import Client, Operation
from splitbrain.contracts.runtime import Address
from splitbrain.contracts.system import AllowedAnomaly, LeaderView, ReadsSpeakFor, Tempo
from splitbrain.systems.servers import ServerClient


class Driver(ABC):
    """Opens clients of one protocol; one instance per run, and it pickles."""

    name: str
    #: Settings by name, each with what it is.
    settings: Mapping[str, str] = {}
    #: Workloads that it can carry out, the usual one first.
    workloads: Sequence[str] = ("register",)
    #: Whether registers have compare-and-set.
    has_compare_and_set: bool = True
    #: By default whichever target is asked speaks for all.
    reads_speak_for: ReadsSpeakFor = "cluster"
    #: Anomalies that whoever speaks the protocol documents.
    allowed: Sequence[AllowedAnomaly] = ()
    tempo: Tempo = Tempo()
    #: Addresses of all targets, by node; known once they are started.
    targets: Mapping[NodeName, Address] = {}

    def __init__(
        self, options: Mapping[str, str], environment: Mapping[str, str], workload: str
    ) -> None:
        """Raise UsageError for an option that has no such value.

        ``environment`` is that of the service that is asked: its passwords are often there.
        """
        self.options, self.environment, self.workload = options, environment, workload

    async def prepare(self, there: Address) -> None:
        """Make what the operations need; raise an exception that says what is missing."""
        return

    @property
    def names_leaders(self) -> bool:
        """Whether ``leader`` can say who leads."""
        return False

    async def leader(self, timeout_s: float) -> LeaderView:
        """Return which target leads, where there is one such; see ``System.leader``."""
        return LeaderView(None, None)

    async def converged(self) -> None:
        """Return when the targets agree once all is healed, else raise with what is missing."""
        return

    @abstractmethod
    def open_client(self, node: NodeName, there: Address) -> Client:
        """Return a fresh client of the node, which connects at its first operation."""
        ...


class AskingDriver(Driver):
    """Driver of a protocol of one connection, on which one operation is asked after the other."""

    def open_client(self, node: NodeName, there: Address) -> Client:
        """Return a client that asks by ``ask``."""
        return ServerClient(self.ask, node, there)

    @abstractmethod
    async def ask(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, operation: Operation, /
    ) -> Any:
        """Perform one operation; see ``ServerSystem.ask``."""
        ...
