"""Puts a node together from its configuration and its data folder, and runs it to its end.

Must never open a listener before recovery is done.
"""

import asyncio
import contextlib
import random
import signal
import traceback
from pathlib import Path
from typing import Any, Final

from nodes.quorum.errors import StorageMismatch
from nodes.quorum.identifiers import Epoch, Incarnation, NodeId
from nodes.quorum.persistent import QuorumState
from nodes.quorum.replica import Replica
from nodes.quorum.settings import QuorumSettings
from nodes.quorum.voters import ReplicaKey
from nodes.registers.machine import RegisterMachine
from nodes.server import exit_codes
from nodes.server.applier import Applier
from nodes.server.client_service import ClientService
from nodes.server.configuration import NodeConfiguration
from nodes.server.disk import Disk
from nodes.server.filesystems import open_filesystem
from nodes.server.incarnation import next_incarnation
from nodes.server.log_lines import LogLines
from nodes.server.node import Node, NodeParts, monotonic_now
from nodes.server.state_events import StateEventFile, last_incarnation
from nodes.storage.errors import StorageError
from nodes.storage.identity import load_identity
from nodes.storage.log import LogStore
from nodes.storage.quorum_state import QuorumStateFile
from nodes.transport.client_listener import ClientListener
from nodes.transport.client_protocol import PROTOCOL_VERSION, Hello, NodeState
from nodes.transport.kafka_codec import KafkaCodec

#: Longest time that a stopping leader takes to tell its successors.
RESIGNATION_S_MAX: Final = 0.5
_EMPTY_STATE: Final = QuorumState(Epoch(0), None, None, None)


def build_parts(configuration: NodeConfiguration, settings: QuorumSettings) -> NodeParts:
    """Recover the data folder and make the parts; on the loop that will run them.

    Raises:
        StorageError: the folder is missing, foreign, in use or corrupt.
        StorageMismatch: its log and its quorum state cannot belong together.
        IncarnationError: the incarnation's counter is unreadable.
        OSError: a file cannot be opened.
    """
    folder = Path(configuration.data_folder)
    filesystem, lengths = open_filesystem(configuration)
    identity = load_identity(
        filesystem,
        folder,
        cluster_id=configuration.cluster_id,
        node_id=NodeId(configuration.node_id),
    )
    events_path = None
    if configuration.state_event_file is not None:
        events_path = Path(configuration.state_event_file)
    # A wiped disk has no counter, and the node's earlier lives are in its state events.
    last = None if events_path is None else last_incarnation(events_path)
    incarnation = Incarnation(next_incarnation(folder, 0 if last is None else last + 1))
    state_events = StateEventFile(events_path, configuration.name, incarnation)
    quorum_state = QuorumStateFile(filesystem, folder)
    state = _EMPTY_STATE
    try:
        state = quorum_state.read() or _EMPTY_STATE
        log, shape = LogStore.open(filesystem, folder)
        replica = Replica(
            settings=settings,
            voters=identity.voters,
            me=ReplicaKey(identity.node_id, identity.directory_id),
            cluster_id=identity.cluster_id,
            incarnation=incarnation,
            state=state,
            log=shape,
            random=random.SystemRandom(),
            now=monotonic_now(),
        )
    except (StorageError, StorageMismatch) as error:
        state_events.write("fatal", state.epoch, reason=str(error))
        raise
    disk = Disk(
        asyncio.get_running_loop(),
        log,
        quorum_state,
        lengths,
        is_lazy=settings.bugs.ack_before_fsync,
    )
    return NodeParts(
        node_id=identity.node_id,
        directory_id=identity.directory_id,
        incarnation=incarnation,
        voters=identity.voters,
        replica=replica,
        disk=disk,
        applier=Applier(disk, RegisterMachine(), shape.start_offset),
        codec=KafkaCodec(identity.node_id, identity.voters),
        state_events=state_events,
        log_lines=LogLines(configuration.name, incarnation),
    )


class Server:
    """A node with its listeners, from the opening of the folder to the exit code."""

    def __init__(self, configuration: NodeConfiguration, settings: QuorumSettings) -> None:
        """Recover the data folder; see ``build_parts`` for what it raises."""
        self._configuration = configuration
        self._parts = build_parts(configuration, settings)
        self._bugs = settings.bugs
        self.service: ClientService | None = None
        self.node = Node(self._parts, self._make_service)
        hello = Hello(PROTOCOL_VERSION, self._parts.node_id, self._parts.incarnation)
        assert self.service is not None
        self._clients = ClientListener(hello, self.service.handle, self._refused)
        self._stopping: asyncio.Task[None] | None = None

    async def listen(self) -> None:
        """Open both listeners and begin; raises OSError where a port cannot be had."""
        peers, clients = self._configuration.quorum_listener, self._configuration.client_listener
        await self.node.peers.listen(peers.host, peers.port)
        self.node.start()
        await self._clients.listen(clients.host, clients.port)

    def stop(self) -> None:
        """Hand leadership over and end; may be called from a signal handler of the loop."""
        if self._stopping is None:
            self._stopping = asyncio.get_running_loop().create_task(self._stop())

    async def finished(self) -> int:
        """Wait for the end, drop all connections and close the files; the exit code."""
        try:
            return await self.node.finished()
        finally:
            if self.service is not None:
                self.service.stop()
            await self._clients.close()
            await self.node.close()

    def state(self) -> NodeState:
        """What the node says of itself."""
        replica, machine = self._parts.replica, self._parts.applier.machine
        return NodeState(
            node_id=self._parts.node_id,
            incarnation=self._parts.incarnation,
            role=replica.role,
            epoch=replica.epoch,
            leader_id=replica.leader_id,
            high_watermark=replica.high_watermark,
            log_end_offset=replica.log_end_offset,
            applied_offset=machine.end_offset,
            digest=machine.digest(),
        )

    def _make_service(self, node: Node) -> ClientService:
        self.service = ClientService(
            feed=node.feed,
            state=self.state,
            now=monotonic_now,
            machine=self._parts.applier.machine,
            bugs=self._bugs,
        )
        return self.service

    async def _stop(self) -> None:
        self.node.resign()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self.node.links_idle(), RESIGNATION_S_MAX)
        if self.service is not None:
            self.service.stop()
        self.node.end(exit_codes.STOPPED, "asked to stop")

    def _refused(self, reason: str) -> None:
        self._parts.log_lines.write("warning", "client refused", reason=reason)


async def serve(configuration: NodeConfiguration, settings: QuorumSettings) -> int:
    """Run a node until it ends; its exit code.

    Raises:
        StorageError, StorageMismatch, IncarnationError, OSError: its folder cannot be used.
    """
    loop = asyncio.get_running_loop()
    server = Server(configuration, settings)

    def defect(_: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """An exception that nobody expected ends the node: its state can no longer be trusted."""
        error = context.get("exception")
        if isinstance(error, BaseException):
            traceback.print_exception(error)
        server.node.end(exit_codes.DEFECT, f"defect: {context.get('message')}: {error!r}")

    loop.set_exception_handler(defect)
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, server.stop)
    try:
        await server.listen()
    except OSError as error:
        server.node.end(exit_codes.UNUSABLE, f"cannot listen: {error}")
    return await server.finished()
