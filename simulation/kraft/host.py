"""One simulated machine: a disk that outlives processes, and the real node, life after life.

The node is ``nodes.server.host.node.Node`` with all that it is made of; only its surroundings
are simulated. A life ends by a kill, by a power cut, as it was asked to, or by itself; nothing of
an ended life happens any more. A frozen node takes nothing; what comes for it waits, in order. Must
never let the oracle or a fault change what the node does, but for ending its life.
"""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from splitbrain.contracts.names import NodeName
from splitbrain.contracts.scenario import NodeCrashed
from splitbrain.history.timeline_records import LifeEvent, TimelineLife
from splitbrain.nodes.quorum.effects import Effect
from splitbrain.nodes.quorum.errors import StorageMismatch, UnreadableRecordError
from splitbrain.nodes.quorum.events import Event
from splitbrain.nodes.quorum.identifiers import ConnectionId, NodeId
from splitbrain.nodes.quorum.persistent import Voter
from splitbrain.nodes.quorum.replica import Replica
from splitbrain.nodes.quorum.settings import QuorumSettings
from splitbrain.nodes.quorum.voters import ReplicaKey
from splitbrain.nodes.server.host import exit_codes
from splitbrain.nodes.server.host.incarnation import IncarnationError
from splitbrain.nodes.server.host.node import Node
from splitbrain.nodes.server.start.assembling import NodeMaterials, begin_life
from splitbrain.nodes.server.start.formatting import format_if_empty
from splitbrain.nodes.storage.errors import StorageError, StorageInUseError
from splitbrain.nodes.storage.identity import StorageIdentity
from splitbrain.nodes.transport.client_protocol import ClientAnswer, ClientRequest
from splitbrain.nodes.wire.calls import ReceivedCall
from splitbrain.simulation.disk.file_system import MemoryFileSystem
from splitbrain.simulation.kraft.calls import StrayRequests
from splitbrain.simulation.kraft.disk_jobs import DiskSpeed
from splitbrain.simulation.kraft.happenings import NAMES
from splitbrain.simulation.kraft.layers import LayerMaker
from splitbrain.simulation.kraft.life import Life, make_life
from splitbrain.simulation.kraft.messages import Greeting, Knock, PeerRequest
from splitbrain.simulation.kraft.timers import NodeClock
from splitbrain.simulation.kraft.voice import LogLines, StateEvents
from splitbrain.simulation.world.streams import DrawnStream
from splitbrain.simulation.world.world import SimulatedWorld

if TYPE_CHECKING:
    from splitbrain.simulation.kraft.oracle import Oracle

CLUSTER_ID: Final = "simulated-cluster-id00"
#: How long a process takes from its start to its listeners, recovery included.
_START_US_MIN: Final = 1_000
_START_US_MAX: Final = 20_000
_ENCODER: Final = msgspec.msgpack.Encoder()


class Host:
    """A machine and the node on it."""

    def __init__(
        self,
        world: SimulatedWorld,
        oracle: "Oracle",
        key: ReplicaKey,
        voters: tuple[Voter, ...],
        settings: QuorumSettings,
        layer: LayerMaker | None = None,
    ) -> None:
        """A machine that is on, its disk formatted, without a process; no ``layer``: registers."""
        self._layer = layer
        self.world = world
        self.oracle = oracle
        self.node_id: NodeId = key.node_id
        self.name = NodeName(f"n{key.node_id}")
        self.settings = settings
        self.voters = voters
        drifts = world.scenario.drift_ppm
        self.clock = NodeClock(world, dict(enumerate(drifts, 1)).get(int(key.node_id), 0))
        self.disk = MemoryFileSystem(journals=False, in_use=StorageInUseError)
        self.disk_speed = DiskSpeed(world)
        self.folder = Path(f"/{self.name}")
        self._identity = StorageIdentity(CLUSTER_ID, key.node_id, key.directory_id, voters)
        self.state_events = StateEvents(world, self.name, self.clock)
        self.log_lines = LogLines(world)
        self.incarnation = -1
        #: Why the last life ended by itself, or could not begin; None else.
        self.ended: str | None = None
        #: When it did, microseconds, and where its core had its log end then.
        self.ended_at = (-1, -1)
        #: Whether its disk was wiped after a life: what that had promised is gone.
        self.has_forgotten = False
        #: Directory ids that this machine's disk has had, newest last.
        self.directory_ids = [key.directory_id]
        self._life: Life | None = None
        #: Number of the present life; grows also where a life could not begin.
        self._life_number = 0
        self._is_booting = False
        self._is_paused = False
        #: Whether the present life was asked to end.
        self.is_asked_to_end = False
        self._is_running = 0
        is_broker = layer is not None and all(key.node_id != each.node_id for each in voters)
        places = {voter.node_id: f"n{voter.node_id}" for voter in voters}
        self._stray_requests = StrayRequests(world, key.node_id, places) if is_broker else None
        #: Calls that wait for a frozen node.
        self._backlog: list[Callable[[], None]] = []
        self.disk.make_folder(self.folder)
        self._format()

    @property
    def is_up(self) -> bool:
        """Whether there is a process, booting, frozen or at work."""
        return self._life is not None

    @property
    def is_paused(self) -> bool:
        """Whether the process is frozen."""
        return self._is_paused

    @property
    def node(self) -> Node:
        """The node of the present life; there must be one."""
        assert self._life is not None
        return self._life.node

    @property
    def serves(self) -> bool:
        """Whether the node is at work."""
        life = self._life
        if life is None or self._is_booting or self._is_paused:
            return False
        return not life.node.has_ended

    # Calls of faults and of the world's course.

    def start(self) -> None:
        """Begin a life with what the disk holds; nothing happens if there is one."""
        if self._life is not None:
            return
        self._life_number += 1
        self.ended = None
        self._is_paused = self.is_asked_to_end = False
        self.disk.begin_job()
        try:
            self._life = self._recover(self._life_number)
        except (
            StorageError, StorageMismatch, UnreadableRecordError, IncarnationError, OSError,
        ) as error:  # fmt: skip
            self.ended = f"could not start: {error}"
            self._tell_life("stopped", self.ended)
            self.oracle.ended(self)
            return
        finally:
            self.disk.end_job()
            if self._life is None:
                self.disk.complete_job()
                self.disk.kill()
        self._is_booting = True
        number = self._life_number
        delay_us = self.world.between(f"start {self.name}", _START_US_MIN, _START_US_MAX)
        self.world.after(delay_us, lambda: self._enter(number, self._begin))

    def end_life(self, *, lose_unsynced: bool, draw: int) -> str:
        """End the process at once; what the disk lost, in words. The caller raises NodeCrashed.

        ``draw`` settles what of the unsynced bytes survives a power cut, ``lose_unsynced``; else
        the page cache stays.
        """
        stream = DrawnStream(draw)
        if self._life is None:
            # A process that was killed earlier left its page cache to the machine.
            return f"it was down, {self._lose_unsynced(stream)}" if lose_unsynced else "it was down"
        if lose_unsynced:
            lost = self._lose_unsynced(stream)
        else:
            self.disk.kill(stream)
            lost = "page cache kept"
        self._forget_life()
        self._tell_life("crashed", lost)
        self.oracle.ended(self)
        return lost

    def terminate(self, draw: int) -> None:
        """Ask the process to end, as SIGTERM does; ``draw`` as for ``end_life``.

        Before the listeners open nobody handles the signal, and it ends the process as a kill does.
        A frozen process takes it when it goes on.
        """
        number = self._life_number

        def take() -> None:
            assert self._life is not None
            self.is_asked_to_end = True
            if self._is_booting:
                self.end_life(lose_unsynced=False, draw=draw)
            else:
                self._life.node.stop()

        # In a turn of its own, as a loop hands signals on.
        self.world.after(0, lambda: self._enter(number, take))

    def _lose_unsynced(self, stream: DrawnStream) -> str:
        torn = stream.random() < self.world.scenario.disk.torn_chance
        self.disk.crash(stream if torn else None)
        return "unsynced bytes lost in part" if torn else "all unsynced bytes lost"

    @property
    def is_running(self) -> bool:
        """Whether the present call comes from within the node's own step."""
        return self._is_running > 0

    def pause(self) -> None:
        """Freeze the process, if there is one."""
        if self._life is not None and not self._is_paused:
            self._is_paused = True
            self._tell_life("paused")

    def resume(self) -> None:
        """Let it go on with what has come for it."""
        if not self._is_paused:
            return
        self._is_paused = False
        self._tell_life("resumed")
        backlog, self._backlog = self._backlog, []
        number = self._life_number
        for action in backlog:
            self._enter(number, action)

    # Calls of the network; implements ``contracts.simulation.ServerEnd``.

    def requested(self, connection: int, source: str, message: Any) -> None:
        """Note that a peer or a client sent something."""
        number = self._life_number
        if isinstance(message, PeerRequest):
            self._enter(number, lambda: self._take_peer(ConnectionId(connection), message))
        elif isinstance(message, ClientRequest):
            self._enter(number, lambda: self._take_client(connection, message))
        elif isinstance(message, Knock):
            self._enter(
                number, lambda: self.world.network.answer(self.name, connection, Greeting())
            )

    def disconnected(self, connection: int) -> None:
        """Note that the other end is gone."""
        number = self._life_number

        def tell() -> None:
            assert self._life is not None
            self._life.peers.forget(ConnectionId(connection))
            self._life.node.disconnected(ConnectionId(connection))

        self._enter(number, tell)

    def happen(self, done: Effect | Event, replica: Replica) -> None:
        """Tell the world what the node has just done, where a fault may wait for it."""
        naming = NAMES.get(type(done))
        if naming is not None:
            name = naming(done, replica)
            if name is not None:
                self.world.happened(self.name, name)

    # Messages between its node and controllers.

    def calls(self, peer: NodeId, message: msgspec.Struct) -> None:
        """Note that the node is about to call a controller."""
        self.oracle.calls(self, message)
        if self._stray_requests is not None:
            self._stray_requests.sent(peer, message)

    def called(self, call: ReceivedCall) -> object:
        """Return a call reached the node; what is returned comes back with its answer."""
        return self.oracle.called(self, call)

    def answered(self, call: ReceivedCall, answer: msgspec.Struct, token: object) -> None:
        """Note that the node answered it."""
        self.oracle.answered(self, call, answer, token)

    # How a life goes.

    def _recover(self, number: int) -> Life:
        """Recover the disk and make the node.

        Raises:
            StorageError, StorageMismatch, IncarnationError, OSError: the disk refused, or is not
                what the node can live on.
        """
        world, layer = self.world, self._layer
        self._format()
        materials = NodeMaterials(
            filesystem=self.disk,
            data_folder=self.folder,
            cluster_id=CLUSTER_ID,
            node_id=self.node_id,
            settings=self.settings,
            random=world.stream(f"replica {self.name}"),
            incarnation_min=self.incarnation + 1,
            make_layer=None if layer is None else lambda: layer(self.disk, self.folder),
            segment_bytes=world.scenario.segment_bytes,
        )
        begun = begin_life(materials)
        self.incarnation = int(begun.incarnation)
        self.state_events.begin(self.incarnation)

        enter = partial(self._enter, number)
        return make_life(
            self, materials, begun, enter, ended=self._end_by_itself, is_alone=layer is None
        )

    def _begin(self) -> None:
        """Note that the listeners open, and the node begins."""
        assert self._life is not None
        self._is_booting = False
        self.disk.complete_job()
        self.world.network.listen(self.name, self)
        self._tell_life("started", f"incarnation {self.incarnation}")
        self.oracle.started(self)
        self._life.node.start()

    def _enter(self, number: int, action: Callable[[], None]) -> None:
        """Run an action as the node: in its life only, now or when it is no longer frozen."""
        if self._life is None or number != self._life_number:
            return
        if self._is_paused:
            self._backlog.append(action)
            return
        self._is_running += 1
        try:
            action()
        except NodeCrashed:
            # Its own: whoever kills a node raises only where that node's own step is under way.
            pass
        finally:
            self._is_running -= 1

    def _take_peer(self, connection: ConnectionId, message: PeerRequest) -> None:
        assert self._life is not None
        self._life.peers.take(connection, message, self._life.node)

    def _take_client(self, connection: int, request: ClientRequest) -> None:
        life = self._life
        assert life is not None
        token = self.oracle.asked(self, request)

        def reply(answer: ClientAnswer) -> None:
            self.world.absorb(_ENCODER.encode((self.node_id, answer)))
            self.oracle.replied(self, request, answer, token)
            self.world.network.answer(self.name, connection, answer)

        life.node.handle(request, reply)

    def _end_by_itself(self, exit_code: int, reason: str) -> None:
        """Note that the node has ended; its process winds up in a turn of its own."""
        if exit_code != exit_codes.STOPPED or not self.is_asked_to_end:
            self.ended = f"exit code {exit_code}: {reason}"
            self.ended_at = (self.world.now, int(self.node.replica.log_end_offset))
        number = self._life_number
        self.world.after(0, lambda: self._enter(number, lambda: self._wind_up(reason)))

    def _wind_up(self, reason: str) -> None:
        """Do what a process does whose node has ended, and exit."""
        assert self._life is not None

        def exit_now() -> None:
            self.disk.kill()
            self._forget_life()
            self._tell_life("stopped", reason)
            self.oracle.ended(self)

        self._life.wind_up(self.world.network, self.name, exit_now)

    def _forget_life(self) -> None:
        if self._life is not None:
            self._life.jobs.stop()
        self._life = None
        self._life_number += 1
        self._is_booting = self._is_paused = False
        self._backlog.clear()
        self.world.network.crash(self.name)

    def _format(self) -> None:
        """Format an empty disk; one that had a life before gets a fresh directory id."""
        stream = self.world.stream(f"directory {self.name}")

        def token_hex(size_bytes: int) -> str:
            return "".join(f"{int(stream.random() * 256):02x}" for _ in range(size_bytes))

        has_lived = self.incarnation >= 0
        given = format_if_empty(
            self.disk, self.folder, self._identity, has_lived=has_lived, token_hex=token_hex
        )
        if given is not None and given != self.directory_ids[-1]:
            self.directory_ids.append(given)

    def _tell_life(self, event: LifeEvent, detail: str = "") -> None:
        self.world.absorb(_ENCODER.encode((self.node_id, event, detail)))
        if self.world.is_recording:
            self.world.record(
                TimelineLife(time=self.world.now, node=self.name, event=event, detail=detail)
            )
