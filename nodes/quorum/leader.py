"""Leader: appends, lets the others fetch, commits, answers reads, resigns when it is alone.

Its first record is a LeaderChange of its own epoch; until that is committed the high watermark is
answered as -1 and reads wait: earlier epochs are committed only under a record of its own (INV-09;
Raft paper 5.4.2). The high watermark is the majority of *flushed* offsets (INV-07). Without fetches
from a majority for 1.5 fetch timeouts it resigns. Voters that do not fetch are told of its epoch,
again and again. Sources: KIP-595, KIP-996, design section 8.
"""
# ruff: noqa: D102 - the handlers are documented once, in Role

import msgspec

from splitbrain.nodes.quorum.effects import (
    AcceptProposal,
    AnswerFetchSnapshot,
    AnswerRead,
    AppendLeaderChange,
    AppendRecords,
    RejectRead,
)
from splitbrain.nodes.quorum.errors import InvariantViolation
from splitbrain.nodes.quorum.events import ReadId, RecordsProposed, RequestReceived
from splitbrain.nodes.quorum.fetch_desk import FetchDesk, divergence, needed_snapshot
from splitbrain.nodes.quorum.identifiers import (
    UNKNOWN_OFFSET,
    ConnectionId,
    Epoch,
    Microseconds,
    NodeId,
    Offset,
)
from splitbrain.nodes.quorum.linearizable_reads import LinearizableReads
from splitbrain.nodes.quorum.messages import (
    BeginQuorumEpochAnswer,
    BeginQuorumEpochRequest,
    DescribeQuorumAnswer,
    ErrorCode,
    FetchRequest,
    FetchSnapshotRequest,
    ReplicaProgress,
)
from splitbrain.nodes.quorum.peer_progress import PeerTable
from splitbrain.nodes.quorum.persistent import EpochStart, SnapshotId
from splitbrain.nodes.quorum.request_ledger import Outstanding
from splitbrain.nodes.quorum.role import Role, RoleContext, earliest
from splitbrain.nodes.quorum.transitions import RoleName
from splitbrain.nodes.quorum.voters import ReplicaKey


class Leader(Role):
    """The one writer of its epoch."""

    name = RoleName.LEADER

    def __init__(self, context: RoleContext, granting_voters: tuple[NodeId, ...]) -> None:
        super().__init__(context)
        self._granting_voters = granting_voters
        #: Offset of the LeaderChange record.
        self._epoch_start = context.log.end_offset
        self._peers = PeerTable(context.voters, context.now)
        self._reads = LinearizableReads(context.voters)
        self._desk = FetchDesk(context, self._reads)

    @property
    def leader_id(self) -> NodeId | None:
        return self.context.me.node_id

    @property
    def grants_pre_votes(self) -> bool:
        return False

    @property
    def has_committed_in_epoch(self) -> bool:
        """Whether a record of its own epoch is committed."""
        return self.context.log.high_watermark > self._epoch_start

    @property
    def high_watermark_announced(self) -> Offset:
        """High watermark for answers: UNKNOWN_OFFSET before the first commit in the own epoch."""
        if self.has_committed_in_epoch:
            return self.context.log.high_watermark
        return UNKNOWN_OFFSET

    def enter(self) -> None:
        context = self.context
        start = EpochStart(context.durable.epoch, self._epoch_start)
        end = Offset(self._epoch_start + 1)
        submission = context.log.append(end, (start,))
        context.outbox.emit(
            AppendLeaderChange(
                submission=submission,
                base_offset=self._epoch_start,
                epoch=start.epoch,
                leader_id=context.me.node_id,
                voters=context.voters.ids,
                granting_voters=self._granting_voters,
                epoch_start=start,
            )
        )
        self.report("append", offset=end, base_offset=self._epoch_start)
        self._go_on()

    def leave(self) -> None:
        # The refusals name no leader: who comes next is not known here yet.
        epoch = self.context.durable.epoch
        for read in self._reads.take_all():
            self.context.outbox.emit(RejectRead(read.read_id, None, epoch))
        refusal = msgspec.structs.replace(
            self.fetch_refusal(ErrorCode.NOT_LEADER_OR_FOLLOWER), leader_id=None
        )
        for event in self._desk.take_all():
            self.answer(event, refusal)

    def timer_elapsed(self) -> None:
        lost_at = self._quorum_lost_at()
        if lost_at is not None and self.context.now >= lost_at:
            self.context.roles.become_resigned(
                self._peers.successors(), "no fetches from a majority"
            )
            return
        self._go_on()

    def state_persisted(self) -> None:
        self._go_on()

    def log_flushed(self) -> None:
        self._go_on()

    def connection_closed(self, connection: ConnectionId) -> None:
        self._desk.closed(connection)
        self._reads.closed(connection)

    def records_proposed(self, event: RecordsProposed) -> None:
        context = self.context
        base = context.log.end_offset
        end = Offset(base + len(event.payloads))
        submission = context.log.append(end, ())
        epoch = context.durable.epoch
        context.outbox.emit(AppendRecords(submission, base, epoch, event.payloads))
        context.outbox.emit(AcceptProposal(event.proposal_id, base, Offset(end - 1), epoch))
        self.report("append", offset=end, base_offset=base)
        self._go_on()

    def read_requested(self, read_id: ReadId) -> None:
        log = self.context.log
        known = log.high_watermark if self.has_committed_in_epoch else UNKNOWN_OFFSET
        self._reads.ask(read_id, known)
        self._go_on()

    def resign_requested(self) -> None:
        self.context.roles.become_resigned(self._peers.successors(), "asked to resign")

    def fetch_requested(self, event: RequestReceived, request: FetchRequest) -> None:
        context = self.context
        log = context.log
        key = ReplicaKey(request.replica_id, request.replica_directory_id)
        peer = self._peers.heard_from(key, context.now)
        if context.voters.is_voter(key.node_id, key.directory_id):
            self._reads.fetched(key.node_id, event.connection)
        if (snapshot_id := needed_snapshot(log, request)) is not None:
            self._answer_without_records(event, snapshot_id=snapshot_id)
        elif (diverging := divergence(log, request)) is not None:
            self._answer_without_records(event, diverging=diverging)
        else:
            peer.reached(request.fetch_offset, log.end_offset, context.now)
            self._commit()
            self._desk.accept(event, request, self.high_watermark_announced)
        self._go_on()

    def snapshot_requested(self, event: RequestReceived, request: FetchSnapshotRequest) -> None:
        context = self.context
        if request.snapshot_id not in context.log.snapshots:
            self.answer(event, self.snapshot_refusal(ErrorCode.SNAPSHOT_NOT_FOUND))
        elif request.position < 0:
            self.answer(event, self.snapshot_refusal(ErrorCode.POSITION_OUT_OF_RANGE))
        else:
            key = ReplicaKey(request.replica_id, request.replica_directory_id)
            self._peers.contacted(key, context.now)
            context.outbox.send(
                AnswerFetchSnapshot(
                    connection=event.connection,
                    correlation=event.correlation,
                    answer=msgspec.structs.replace(
                        self.snapshot_refusal(ErrorCode.NONE),
                        snapshot_id=request.snapshot_id,
                        position=request.position,
                    ),
                    snapshot_id=request.snapshot_id,
                    position=request.position,
                    max_bytes=min(
                        max(request.max_bytes, 1), context.settings.fetch_snapshot_max_bytes
                    ),
                )
            )
        self._go_on()

    def begin_answered(self, peer: NodeId, answer: BeginQuorumEpochAnswer) -> None:
        # Told is not fetched: say it again if no fetch comes of it for half a fetch timeout.
        wait = self.context.settings.fetch_timeout_ms * 500
        duration = wait if answer.error is ErrorCode.NONE else None
        self.context.requests.back_off(peer, self.context.now, duration)
        self._go_on()

    def request_failed(self, peer: NodeId, outstanding: Outstanding, *, refused: bool) -> None:
        super().request_failed(peer, outstanding, refused=refused)
        self._go_on()

    def describe_requested(self, event: RequestReceived) -> None:
        context = self.context
        now_ms = context.now // 1000
        my_id = context.me.node_id
        # As the quorum knows it: static voters of Kafka have no directories.
        directory_id = context.voters.directory_of(my_id)
        others = (peer.describe() for peer in self._peers.others.values())
        me = ReplicaProgress(my_id, directory_id, context.log.end_offset, now_ms, now_ms)
        answer = DescribeQuorumAnswer(
            error=ErrorCode.NONE,
            leader_id=my_id,
            epoch=context.durable.epoch,
            high_watermark=self.high_watermark_announced,
            # In the order of their ids, whoever leads.
            voters=tuple(sorted((me, *others), key=lambda voter: voter.node_id)),
            observers=tuple(peer.describe() for peer in self._peers.observers),
        )
        self.answer(event, answer)

    def validate(self) -> None:
        durable = self.context.durable
        if durable.leader_id != self.context.me.node_id or durable.voted != self.context.me:
            raise InvariantViolation("INV-23", f"leads with the quorum state {durable.state}")
        first = max(self._epoch_start, self.context.log.start_offset)
        if self.context.log.epochs.start_of(durable.epoch) != first:
            raise InvariantViolation("INV-23", f"leads {durable.epoch} without its first record")

    def _answer_without_records(
        self,
        event: RequestReceived,
        *,
        diverging: tuple[Epoch, Offset] | None = None,
        snapshot_id: SnapshotId | None = None,
    ) -> None:
        answer = msgspec.structs.replace(
            self.fetch_refusal(ErrorCode.NONE),
            high_watermark=self.high_watermark_announced,
            diverging=diverging,
            snapshot_id=snapshot_id,
        )
        self.answer(event, answer)
        self._reads.answered(event.connection)

    def _go_on(self) -> None:
        """Commit, answer and announce what it can by now, and set the next deadline."""
        self._commit()
        for read in self._reads.take_ready():
            self.context.outbox.emit(
                AnswerRead(read.read_id, read.offset, self.context.durable.epoch)
            )
        self._desk.wake(self.high_watermark_announced)
        self.deadline = earliest(self._quorum_lost_at(), self._desk.next_expiry, self._announce())

    def _commit(self) -> None:
        """Advances the high watermark to what a majority has flushed, if that is allowed."""
        log = self.context.log
        offset = self._peers.majority_offset(log.flushed_end_offset)
        if offset <= max(log.high_watermark, self._epoch_start):
            return
        self.advance_high_watermark(offset)
        self._reads.first_commit(offset)

    def _quorum_lost_at(self) -> Microseconds | None:
        heard = self._peers.majority_heard()
        if heard is None:
            return None
        return Microseconds(heard + self.context.settings.check_quorum_timeout_ms * 1000)

    def _announce(self) -> Microseconds | None:
        """Send BeginQuorumEpoch to silent voters; return when the next one is due."""
        requests = self.context.requests
        silence = self.context.settings.fetch_timeout_ms * 1000
        moments: list[Microseconds | None] = []
        for node_id, peer in self._peers.others.items():
            last = peer.last_contact
            silent_at = Microseconds(0 if last is None else last + silence)
            attempt = requests.next_attempt(node_id)
            due_at = None if attempt is None else max(attempt, silent_at)
            if due_at is not None and due_at <= self.context.now:
                requests.send(node_id, self._begin_request(node_id))
            else:
                moments.append(due_at)
        return earliest(*moments)

    def _begin_request(self, peer: NodeId) -> BeginQuorumEpochRequest:
        return BeginQuorumEpochRequest(
            cluster_id=self.context.cluster_id,
            voter_id=peer,
            voter_directory_id=self.context.voters.directory_of(peer),
            leader_id=self.context.me.node_id,
            epoch=self.context.durable.epoch,
        )
