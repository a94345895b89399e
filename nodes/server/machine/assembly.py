"""Runs a node on an event loop: its surroundings on this machine, from its folder to its exit code.

Must never open a listener before recovery is done.
"""

import asyncio
import random
import resource
import signal
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from splitbrain.nodes.quorum.identifiers import NodeId
from splitbrain.nodes.quorum.settings import QuorumSettings
from splitbrain.nodes.server.host import exit_codes
from splitbrain.nodes.server.host.layer import Layer
from splitbrain.nodes.server.host.node import Node
from splitbrain.nodes.server.host.surroundings import Surroundings
from splitbrain.nodes.server.machine.configuration import NodeConfiguration
from splitbrain.nodes.server.machine.data_folder import open_filesystem
from splitbrain.nodes.server.machine.event_loop import DiskThread, LoopTimers
from splitbrain.nodes.server.machine.log_lines import BoundedLog, LogLines
from splitbrain.nodes.server.machine.peers import Peers
from splitbrain.nodes.server.machine.prometheus import CONTENT_TYPE, PrometheusMeasurements
from splitbrain.nodes.server.machine.state_events import StateEventFile, last_incarnation
from splitbrain.nodes.server.start.assembling import Life, NodeMaterials, assemble, begin_life
from splitbrain.nodes.storage.filesystem import FileSystem
from splitbrain.nodes.transport.client_listener import ClientListener
from splitbrain.nodes.transport.client_protocol import PROTOCOL_VERSION, Hello, NodeState
from splitbrain.nodes.transport.control_links import ControlLinks
from splitbrain.nodes.transport.doorkeeper import CONNECTIONS_COUNT_MAX
from splitbrain.nodes.transport.metrics_listener import MetricsListener
from splitbrain.nodes.transport.peer_listener import InboundCodec

#: Kept for the data folder, the node's own links and what the interpreter needs.
_KEPT_COUNT: Final = 128
#: Ports, and the links that a broker has to controllers on behalf of its clients, share the rest.
_SHARES_COUNT: Final = 4
#: Below this many a port is of no use; the node says so by what it refuses.
_CONNECTIONS_COUNT_MIN: Final = 8


class Server:
    """A node with its listeners, from the opening of the folder to the exit code."""

    def __init__(self, configuration: NodeConfiguration, settings: QuorumSettings) -> None:
        """Recover the data folder; on the loop that will run the node.

        Raises:
            StorageError: the folder is missing, foreign, in use or corrupt.
            StorageMismatch: its log and its quorum state cannot belong together.
            IncarnationError: the incarnation's counter is unreadable.
            OSError: a file cannot be opened.
        """
        self._configuration = configuration
        events_path = None
        if configuration.state_event_file is not None:
            events_path = Path(configuration.state_event_file)
        # A wiped disk has no counter, and the node's earlier lives are in its state events.
        last = None if events_path is None else last_incarnation(events_path)
        filesystem, self._lengths = open_filesystem(configuration)
        materials = NodeMaterials(
            filesystem=filesystem,
            data_folder=Path(configuration.data_folder),
            cluster_id=configuration.cluster_id,
            node_id=NodeId(configuration.node_id),
            settings=settings,
            random=random.SystemRandom(),
            make_layer=_layer_maker(configuration, filesystem),
            incarnation_min=0 if last is None else last + 1,
        )
        life = begin_life(materials)
        loop = asyncio.get_running_loop()
        self._timers = LoopTimers(loop)
        lines = LogLines(configuration.name, life.incarnation)
        self._log_lines = BoundedLog(lines, self._timers)
        state_events = StateEventFile(events_path, configuration.name, life.incarnation)
        self._finished: asyncio.Future[int] = loop.create_future()
        connections_count_max = connections_per_port()
        self._peers = Peers(life.identity, self._peer_refused, connections_count_max)
        self._control_links: ControlLinks | None = None
        if configuration.state_machine == "metadata":
            self._control_links = ControlLinks(life.identity.node_id, life.identity.voters)
        self._measurements = PrometheusMeasurements()
        self.node = self._assemble(materials, life, state_events)
        self._measurements.watch(
            self.node.replica,
            lambda: self.node.parts.applier.machine.end_offset,
            self.node.service.figures,
        )
        self._metrics = MetricsListener(self._measurements.text, CONTENT_TYPE)
        self._peers.attach(self.node, _codec_of(configuration, self.node))
        hello = Hello(PROTOCOL_VERSION, life.identity.node_id, life.incarnation)
        self._clients = ClientListener(
            hello, self.node.handle, self._client_refused, connections_count_max
        )

    async def listen(self) -> None:
        """Open the listeners and begin; raises OSError where a port cannot be had."""
        peers, clients = self._configuration.quorum_listener, self._configuration.client_listener
        await self._peers.listen(peers.host, peers.port)
        self.node.start()
        await self._clients.listen(clients.host, clients.port)
        metrics = self._configuration.metrics_listener
        if metrics is not None:
            await self._metrics.listen(metrics.host, metrics.port)

    def stop(self) -> None:
        """Hand leadership over and end; may be called from a signal handler of the loop."""
        self.node.stop()

    async def finished(self) -> int:
        """Wait for the end, drop all connections and close the files; the exit code."""
        try:
            return await asyncio.shield(self._finished)
        finally:
            self.node.service.stop()
            await self._clients.close()
            await self._metrics.close()
            self._peers.close()
            if self._control_links is not None:
                self._control_links.close()
            await self._peers.stop_listening()
            self.node.close()
            self._log_lines.sum_up()
            if self._lengths is not None:
                self._lengths.close()

    def state(self) -> NodeState:
        """Return the node's state."""
        return self.node.state()

    def _assemble(self, materials: NodeMaterials, life: Life, state_events: StateEventFile) -> Node:
        loop = asyncio.get_running_loop()
        thread, links = DiskThread(loop, "disk"), self._control_links
        surroundings = Surroundings(
            timers=self._timers,
            disk_jobs=thread,
            peer_links=self._peers,
            peer_answers=self._peers,
            reply_to_call=self._peers.reply,
            call_peer=None if links is None else links.call,
            versions_of_peer=(lambda _: None) if links is None else links.versions_of,
            state_events=state_events,
            log_lines=self._log_lines,
            measurements=self._measurements,
            ended=self._ended,
            defect=traceback.print_exception,
        )
        try:
            return assemble(materials, life, surroundings)
        except BaseException:
            thread.stop()
            raise

    def _ended(self, exit_code: int, _: str) -> None:
        if not self._finished.done():
            self._finished.set_result(exit_code)

    def _peer_refused(self, reason: str) -> None:
        self._log_lines.write("warning", "connection refused", reason=reason)

    def _client_refused(self, reason: str) -> None:
        self._log_lines.write("warning", "client refused", reason=reason)


def connections_per_port() -> int:
    """Let this process open as many files as the kernel allows; how many each port may have.

    Never so many that the disk lacks a file.
    """
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard == resource.RLIM_INFINITY:
        return CONNECTIONS_COUNT_MAX
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    share = (hard - _KEPT_COUNT) // _SHARES_COUNT
    return max(_CONNECTIONS_COUNT_MIN, min(share, CONNECTIONS_COUNT_MAX))


def _layer_maker(
    configuration: NodeConfiguration, filesystem: FileSystem
) -> Callable[[], Layer] | None:
    """Return the maker of the layer above the log; None for registers."""
    if configuration.state_machine == "registers":
        return None
    if configuration.is_broker:
        return _broker_maker(configuration, filesystem)
    # A node of registers shall not pay for what it never runs.
    from splitbrain.nodes.controller.roles.active import Identity
    from splitbrain.nodes.server.controller.controller_service import metadata_layer
    from splitbrain.nodes.server.start.metadata_settings import controller_settings

    identity = Identity(
        cluster_id=configuration.cluster_id,
        node_id=NodeId(configuration.node_id),
        settings=controller_settings(configuration.settings),
        random=random.SystemRandom(),
    )
    return lambda: metadata_layer(identity)


def _broker_maker(configuration: NodeConfiguration, filesystem: FileSystem) -> Callable[[], Layer]:
    from splitbrain.nodes.server.broker.broker_service import BrokerMaterials, broker_layer
    from splitbrain.nodes.server.broker.clean_stop import CleanStop
    from splitbrain.nodes.server.start.metadata_settings import broker_settings

    where = configuration.advertised_listener or configuration.quorum_listener
    materials = BrokerMaterials(
        settings=broker_settings(configuration.settings),
        host=where.host,
        port=where.port,
        random=random.SystemRandom(),
        clean_stop=CleanStop(filesystem, Path(configuration.data_folder)),
    )
    return lambda: broker_layer(materials)


def _codec_of(configuration: NodeConfiguration, node: Node) -> InboundCodec | None:
    """Return the codec of the quorum's listener; None for requests of the quorum's nodes."""
    if not configuration.is_broker:
        return None
    from splitbrain.nodes.transport.broker_codec import BrokerCodec

    return BrokerCodec(node.service.versions)


async def serve(configuration: NodeConfiguration, settings: QuorumSettings) -> int:
    """Run a node until it ends; its exit code. Raises as ``Server`` does."""
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
