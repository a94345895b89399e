"""One simulated node: a replica, its disk, its connections, its registers, its clients' requests.

The smallest host that keeps the contract of ``nodes.quorum.effects``: effects in order, storage
completes later, one request at a time per connection. A crash may fall between two effects.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from nodes.quorum.effects import (
    AbandonRequest,
    AcceptProposal,
    AdvanceHighWatermark,
    AnswerFetch,
    AnswerRead,
    AppendBatches,
    AppendLeaderChange,
    AppendRecords,
    Effect,
    Halt,
    PersistQuorumState,
    RejectProposal,
    RejectRead,
    ReportState,
    SendAnswer,
    SendRequest,
    TruncateLog,
)
from nodes.quorum.events import (
    AnswerReceived,
    ConnectionClosed,
    Event,
    LogFlushed,
    ProposalId,
    QuorumStatePersisted,
    ReadId,
    ReadRequested,
    RecordsProposed,
    RequestFailed,
    RequestReceived,
    Started,
    TimerElapsed,
)
from nodes.quorum.identifiers import (
    ConnectionId,
    CorrelationId,
    Incarnation,
    Microseconds,
    NodeId,
    Offset,
)
from nodes.quorum.messages import Answer, Request
from nodes.quorum.replica import Replica
from nodes.quorum.trace import describe
from nodes.quorum.voters import ReplicaKey
from tests.simulation.batches import decode_batches, fill
from tests.simulation.disk import Disk, Entry
from tests.simulation.registers import Registers

if TYPE_CHECKING:
    from tests.simulation.clients import Operation
    from tests.simulation.network import Connection
    from tests.simulation.world import World


class Host:
    """A node across its lives."""

    replica: Replica

    def __init__(self, world: World, key: ReplicaKey, disk: Disk) -> None:
        self.world = world
        self.key = key
        self.node_id: NodeId = key.node_id
        self.disk = disk
        self.incarnation = Incarnation(0)
        self.is_up = False
        self.registers = Registers()
        self._paused = False
        #: What happened to a paused node, in order.
        self._backlog: list[Callable[[], None]] = []
        self._timer_at: int | None = None
        self._outbound: dict[NodeId, tuple[Connection, CorrelationId] | None] = {}
        self._idle: dict[NodeId, Connection] = {}
        #: Proposals accepted here and not decided: (last offset, epoch, operation).
        self._writes: list[tuple[Offset, int, Operation]] = []
        self._proposals: dict[ProposalId, Operation] = {}
        self._reads: dict[ReadId, Operation] = {}
        self._request_count = 0

    @property
    def leads(self) -> bool:
        return self.is_up and not self._paused and self.replica.role == "leader"

    @property
    def is_paused(self) -> bool:
        return self._paused

    def start(self) -> None:
        """Begins a life with what the disk holds."""
        self.incarnation = Incarnation(self.incarnation + 1)
        self.is_up = True
        self.registers = Registers()
        self.replica = Replica(
            settings=self.world.settings,
            voters=self.world.voters,
            me=self.key,
            cluster_id="simulated-cluster-id",
            incarnation=self.incarnation,
            state=self.disk.durable_state,
            log=self.disk.shape(),
            random=self.world.stream(f"replica {self.node_id}"),
            now=Microseconds(self.world.now),
        )
        self.world.oracle.started(self)
        self.step(Started())

    def crash(self) -> None:
        """Ends this life at once; unsynced work is lost."""
        if not self.is_up:
            return
        self.world.note(f"n{self.node_id} crashes")
        self.is_up = False
        self._paused = False
        self._backlog.clear()
        self._timer_at = None
        self._outbound.clear()
        self._idle.clear()
        self.disk.crash()
        self.world.network.crash(self)
        for _, _, operation in self._writes:
            operation.unknown()
        for operation in (*self._proposals.values(), *self._reads.values()):
            operation.unknown()
        self._writes.clear()
        self._proposals.clear()
        self._reads.clear()

    def pause(self) -> None:
        self._paused = True

    def resume(self) -> None:
        if not self._paused:
            return
        self._paused = False
        backlog, self._backlog = self._backlog, []
        for action in backlog:
            self._guard(action)()

    def step(self, event: Event) -> None:
        """One step of the replica, its effects, its oracle, its next timer."""
        world = self.world
        if world.trace is not None:
            world.note(f"n{self.node_id} {describe(event)}")
        life = self.incarnation
        effects = self.replica.step(Microseconds(world.now), event)
        self.replica.validate()
        for effect in effects:
            if world.trace is not None:
                world.note(f"n{self.node_id}     {describe(effect)}")
            world.oracle.before(self, effect)
            self._perform(effect)
            world.oracle.after(self, effect)
            world.faults.triggered(self, effect)
            if not self.is_up or self.incarnation != life:
                return
        self._settle_writes()
        self._set_timer()

    def receive_request(
        self, connection: Connection, correlation: CorrelationId, request: Request
    ) -> None:
        event = RequestReceived(connection.number, correlation, request)
        self.world.oracle.asked(event)
        self._later(lambda: self.step(event))

    def receive_answer(
        self, connection: Connection, correlation: CorrelationId, answer: Answer
    ) -> None:
        peer = connection.server.node_id

        def take() -> None:
            if self._outbound.get(peer) == (connection, correlation):
                self._outbound[peer] = None
                self._idle[peer] = connection
            self.step(AnswerReceived(peer, correlation, self.incarnation, answer))

        self._later(take)

    def lose_connection(self, connection: Connection, *, refused: bool) -> None:
        """The client's end of a connection was reset, or nobody took it in the first place."""

        def take() -> None:
            peer = connection.server.node_id
            connection.client_open = False
            if self._idle.get(peer) is connection:
                del self._idle[peer]
            busy = self._outbound.get(peer)
            if busy is not None and busy[0] is connection:
                self._outbound[peer] = None
                reason = "refused" if refused else "reset"
                failed = RequestFailed(peer, busy[1], self.incarnation, reason, refused=refused)
                self.step(failed)

        self._later(take)

    def hear_of_close(self, number: ConnectionId) -> None:
        self._later(lambda: self.step(ConnectionClosed(number)))

    def submit(self, operation: Operation) -> None:
        """A client's operation arrives."""
        if not self.is_up:
            operation.failed()
            return

        def take() -> None:
            self._request_count += 1
            if operation.is_read:
                self._reads[ReadId(self._request_count)] = operation
                self.step(ReadRequested(ReadId(self._request_count)))
            else:
                self._proposals[ProposalId(self._request_count)] = operation
                payload = operation.payload
                self.step(RecordsProposed(ProposalId(self._request_count), (payload,)))

        self._later(take)

    def _perform(self, effect: Effect) -> None:
        match effect:
            case PersistQuorumState():
                self.disk.submit_state(
                    effect.version,
                    effect.state,
                    self._completion(QuorumStatePersisted),
                )
            case AppendLeaderChange():
                self._append(
                    effect.submission, effect.base_offset, (Entry(effect.epoch, None, True),)
                )
            case AppendRecords():
                entries = tuple(
                    Entry(effect.epoch, payload, index == 0)
                    for index, payload in enumerate(effect.payloads)
                )
                self._append(effect.submission, effect.base_offset, entries)
            case AppendBatches():
                entries = decode_batches(effect.batches, effect.records)
                self._append(effect.submission, effect.base_offset, entries)
            case TruncateLog():
                self._append(effect.submission, effect.end_offset, ())
            case SendRequest():
                self._send_request(effect)
            case AbandonRequest():
                self._close(effect.peer)
            case SendAnswer():
                self.world.network.send_answer(effect.connection, effect.correlation, effect.answer)
            case AnswerFetch():
                self.world.network.send_answer(
                    effect.connection,
                    effect.correlation,
                    fill(effect, self.disk.log, self.world.swarm.fetch_batches_max),
                )
            case AdvanceHighWatermark():
                self.registers.apply(self.disk.log, effect.offset)
            case AcceptProposal():
                operation = self._proposals.pop(effect.proposal_id)
                self._writes.append((effect.last_offset, effect.epoch, operation))
            case RejectProposal():
                self._proposals.pop(effect.proposal_id).failed(effect.leader_id)
            case AnswerRead():
                self._answer_read(effect)
            case RejectRead():
                self._reads.pop(effect.read_id).failed(effect.leader_id)
            case ReportState() | Halt():
                pass

    def _append(self, submission: int, offset: Offset, entries: tuple[Entry, ...]) -> None:
        done = self._completion(LogFlushed)
        self.disk.submit_log(submission, offset, entries, done)

    def _answer_read(self, effect: AnswerRead) -> None:
        # A planted bug may answer a read before the machine has applied so far.
        self.registers.apply(self.disk.log, effect.offset)
        operation = self._reads.pop(effect.read_id)
        operation.answered(self.registers.read(operation.key))

    def _settle_writes(self) -> None:
        """Acknowledges what is committed while this node leads, gives up the rest."""
        if not self._writes:
            return
        leads = self.replica.role == "leader"
        kept: list[tuple[Offset, int, Operation]] = []
        for last_offset, epoch, operation in self._writes:
            if not leads or epoch != self.replica.epoch:
                operation.unknown()
            elif self.registers.applied > last_offset:
                operation.acknowledged(last_offset)
            else:
                kept.append((last_offset, epoch, operation))
        self._writes = kept

    def _send_request(self, effect: SendRequest) -> None:
        peer = effect.peer
        self._close(peer, only_busy=True)
        connection = self._idle.pop(peer, None)
        if connection is None:
            connection = self.world.network.connect(self, self.world.hosts[peer])
        self._outbound[peer] = (connection, effect.correlation)
        self.world.network.send_request(connection, effect.correlation, effect.request)

        def time_out() -> None:
            if self._outbound.get(peer) == (connection, effect.correlation):
                self._close(peer)
                failed = RequestFailed(peer, effect.correlation, self.incarnation, "timeout")
                self.step(failed)

        life = self.incarnation
        self.world.after(
            effect.timeout_ms * 1000,
            lambda: self._later(time_out) if life == self.incarnation else None,
        )

    def _close(self, peer: NodeId, *, only_busy: bool = False) -> None:
        busy = self._outbound.get(peer)
        if busy is not None:
            self._outbound[peer] = None
            self.world.network.close_client(busy[0])
        elif not only_busy and peer in self._idle:
            self.world.network.close_client(self._idle.pop(peer))

    def _completion(self, make: Callable[[int], Event]) -> Callable[[int], None]:
        """What the disk calls when it is done; worth nothing to a later life."""
        life = self.incarnation

        def done(number: int) -> None:
            if life == self.incarnation:
                self._later(lambda: self.step(make(number)))

        return done

    def _later(self, action: Callable[[], None]) -> None:
        """Runs now, or when the node is no longer paused, and only in this life."""
        if not self.is_up:
            return
        if self._paused:
            self._backlog.append(self._guard(action))
        else:
            action()

    def _guard(self, action: Callable[[], None]) -> Callable[[], None]:
        life = self.incarnation

        def run() -> None:
            if self.is_up and self.incarnation == life:
                self._later(action)

        return run

    def _set_timer(self) -> None:
        deadline = self.replica.deadline
        if deadline is None or (self._timer_at is not None and self._timer_at <= deadline):
            return
        self._timer_at = deadline
        life = self.incarnation

        def ring() -> None:
            if self.is_up and self.incarnation == life and self._timer_at == deadline:
                self._later(elapse)

        def elapse() -> None:
            self._timer_at = None
            wanted = self.replica.deadline
            if wanted is not None and wanted <= self.world.now:
                self.step(TimerElapsed())
            else:
                self._set_timer()

        self.world.after(max(deadline - self.world.now, 0), ring)
