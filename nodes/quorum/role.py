"""Base of all six roles: the context they work with, and the default for each event.

A role handles events; it never changes itself into another one: it asks ``RoleChanges`` (the
replica) and must return right after, for it is over then. The defaults here are those of a node
that does not lead.
"""

from dataclasses import dataclass, field
from typing import ClassVar, Protocol

from splitbrain.nodes.quorum.admission import fetch_refusal, snapshot_refusal
from splitbrain.nodes.quorum.durable_state import DurableState
from splitbrain.nodes.quorum.effects import (
    AdvanceHighWatermark,
    RejectProposal,
    RejectRead,
    ReportKind,
    ReportState,
    SendAnswer,
)
from splitbrain.nodes.quorum.election_timing import ElectionTiming
from splitbrain.nodes.quorum.events import ReadId, RecordsProposed, RequestReceived, SnapshotFrozen
from splitbrain.nodes.quorum.identifiers import (
    UNKNOWN_OFFSET,
    ConnectionId,
    Epoch,
    Microseconds,
    NodeId,
    Offset,
)
from splitbrain.nodes.quorum.log_positions import LogPositions
from splitbrain.nodes.quorum.messages import (
    Answer,
    BeginQuorumEpochAnswer,
    DescribeQuorumAnswer,
    EndQuorumEpochAnswer,
    EndQuorumEpochRequest,
    ErrorCode,
    FetchAnswer,
    FetchRequest,
    FetchSnapshotAnswer,
    FetchSnapshotRequest,
    VoteAnswer,
    VoteRequest,
)
from splitbrain.nodes.quorum.outbox import Outbox
from splitbrain.nodes.quorum.request_ledger import Outstanding, RequestLedger
from splitbrain.nodes.quorum.settings import QuorumSettings
from splitbrain.nodes.quorum.transitions import RoleName
from splitbrain.nodes.quorum.voters import ReplicaKey, VoterSet


class RoleChanges(Protocol):
    """Transitions that a role may ask of the replica; the caller's role is over afterwards."""

    def become_unattached(self, epoch: Epoch, reason: str) -> None:
        """No leader of this epoch is known."""

    def become_follower(self, epoch: Epoch, leader_id: NodeId, reason: str) -> None:
        """Note that this leader of this epoch is known."""

    def become_prospective(self, reason: str) -> None:
        """No leader is heard: pre-votes."""

    def become_candidate(self, reason: str) -> None:
        """A majority of pre-votes: the next epoch."""

    def become_leader(self, granting_voters: tuple[NodeId, ...], reason: str) -> None:
        """A majority of votes."""

    def become_resigned(self, preferred: tuple[ReplicaKey, ...], reason: str) -> None:
        """No leader any more; ``preferred`` successors, best first."""


@dataclass(kw_only=True)
class RoleContext:
    """Everything that outlives a role within one life of the replica."""

    settings: QuorumSettings
    voters: VoterSet
    cluster_id: str
    log: LogPositions
    durable: DurableState
    outbox: Outbox
    requests: RequestLedger
    timing: ElectionTiming
    #: Time of the event being handled.
    now: Microseconds
    #: Number of the event being handled.
    cause: int = 0
    #: Whom a role asks for its successor; set by that owner itself.
    roles: RoleChanges = field(init=False)
    #: This node on this disk.
    me: ReplicaKey = field(init=False)

    def __post_init__(self) -> None:
        """Note once what is read at each message."""
        self.me = self.voters.me

    def after(self, wait_ms: int) -> Microseconds:
        """Return the moment so many milliseconds from now."""
        return Microseconds(self.now + wait_ms * 1000)

    def moment(self, wait: Microseconds) -> Microseconds:
        """Return the moment so many microseconds from now."""
        return Microseconds(self.now + wait)


def earliest(*moments: Microseconds | None) -> Microseconds | None:
    """Return the first of several moments; None stands for never."""
    return min([moment for moment in moments if moment is not None], default=None)


class Role:
    """One role for as long as it lasts."""

    name: ClassVar[RoleName]

    def __init__(self, context: RoleContext) -> None:
        self.context = context
        #: When this role next wants ``timer_elapsed``, None for never.
        self.deadline: Microseconds | None = None

    @property
    def leader_id(self) -> NodeId | None:
        """Whom this role names as the leader of the present epoch."""
        return None

    @property
    def grants_pre_votes(self) -> bool:
        """Whether an up-to-date peer gets a pre-vote; not while a leader is known to be alive."""
        return True

    def may_grant(self, request: VoteRequest) -> bool:
        """Whether the candidate's log is at least as up to date, and the vote is free.

        Last epoch first, then end offset. A pre-vote needs no free vote, but a role that hears no
        live leader; a vote needs an epoch in which no leader is known and nobody else has the vote.
        Sources: Raft paper 5.4.1, KIP-996.
        """
        log, durable = self.context.log, self.context.durable
        theirs = (request.last_epoch, request.end_offset)
        mine = (log.last_epoch, log.end_offset)
        if theirs < mine:
            return False
        if request.pre_vote:
            return self.grants_pre_votes
        candidate = ReplicaKey(request.candidate_id, request.candidate_directory_id)
        is_free = durable.voted in (None, candidate)
        return durable.leader_id is None and is_free

    def enter(self) -> None:
        """Begins; the epoch and the leader are already submitted to the disk."""

    def leave(self) -> None:
        """End; another role begins right after."""

    def timer_elapsed(self) -> None:
        """Time has passed, maybe up to ``deadline``."""

    def state_persisted(self) -> None:
        """A quorum state became durable."""

    def log_flushed(self) -> None:
        """More of the log became durable."""

    def snapshot_frozen(self, event: SnapshotFrozen) -> None:
        """A snapshot that was fetched is durable, or of no use; maybe one of an earlier role."""

    def connection_closed(self, connection: ConnectionId) -> None:
        """Note that an inbound connection is gone."""

    def vote_granted(self) -> None:
        """Note that this node has just voted, in the present epoch, for somebody else."""

    def pre_vote_requested(self, request: VoteRequest, *, granted: bool) -> None:
        """Note that a peer of this epoch asked whether it would be elected, and was answered."""

    def epoch_begun(self) -> None:
        """The leader that this role names has announced itself."""

    def epoch_ended(self, request: EndQuorumEpochRequest) -> None:
        """Note that the leader of the present epoch resigns."""

    def fetch_requested(self, event: RequestReceived, request: FetchRequest) -> None:
        """Note that a replica fetches; its epoch is the present one."""
        self.answer(event, self.fetch_refusal(ErrorCode.NOT_LEADER_OR_FOLLOWER))

    def snapshot_requested(self, event: RequestReceived, request: FetchSnapshotRequest) -> None:
        """Note that a replica fetches a snapshot; its epoch is the present one."""
        self.answer(event, self.snapshot_refusal(ErrorCode.NOT_LEADER_OR_FOLLOWER))

    def describe_requested(self, event: RequestReceived) -> None:
        """Note that an administrator asks for the state of the quorum."""
        epoch = self.context.durable.epoch
        error = ErrorCode.NOT_LEADER_OR_FOLLOWER
        answer = DescribeQuorumAnswer(error, self.leader_id, epoch, UNKNOWN_OFFSET, (), ())
        self.answer(event, answer)

    def vote_answered(self, peer: NodeId, answer: VoteAnswer) -> None:
        """Note that a vote request of this role is answered, in the present epoch."""

    def begin_answered(self, peer: NodeId, answer: BeginQuorumEpochAnswer) -> None:
        """Note that a BeginQuorumEpoch of this role is answered, in the present epoch."""

    def end_answered(self, peer: NodeId, answer: EndQuorumEpochAnswer) -> None:
        """Note that an EndQuorumEpoch of this role is answered, in the present epoch."""

    def fetch_answered(self, peer: NodeId, answer: FetchAnswer, request: FetchRequest) -> None:
        """Note that a fetch of this role is answered, in the present epoch."""

    def snapshot_answered(
        self, peer: NodeId, answer: FetchSnapshotAnswer, request: FetchSnapshotRequest
    ) -> None:
        """Note that a fetch of a snapshot of this role is answered, in the present epoch."""

    def request_failed(self, peer: NodeId, outstanding: Outstanding, *, refused: bool) -> None:
        """Note that a request of this role will not be answered; refused: the peer does not run."""
        self.context.requests.back_off(peer, self.context.now)

    def records_proposed(self, event: RecordsProposed) -> None:
        """Note that the layer above wants to append."""
        self.context.outbox.emit(
            RejectProposal(event.proposal_id, self.leader_id, self.context.durable.epoch)
        )

    def read_requested(self, read_id: ReadId) -> None:
        """Note that the layer above wants to read linearizably."""
        self.context.outbox.emit(RejectRead(read_id, self.leader_id, self.context.durable.epoch))

    def resign_requested(self) -> None:
        """Note that the layer above wants to stop."""

    def validate(self) -> None:
        """Raise InvariantViolation if the role contradicts itself."""

    def answer(self, event: RequestReceived, answer: Answer) -> None:
        """Answers a request once the present quorum state is durable."""
        self.context.outbox.send(SendAnswer(event.connection, event.correlation, answer))

    def fetch_refusal(self, error: ErrorCode) -> FetchAnswer:
        """Return a fetch answer without records that says who leads."""
        context = self.context
        return fetch_refusal(error, self.leader_id, context.durable.epoch, context.log.start_offset)

    def snapshot_refusal(self, error: ErrorCode) -> FetchSnapshotAnswer:
        """Return an answer without bytes that says who leads."""
        return snapshot_refusal(error, self.leader_id, self.context.durable.epoch)

    def report(
        self,
        kind: ReportKind,
        *,
        offset: Offset | None = None,
        base_offset: Offset | None = None,
        reason: str | None = None,
    ) -> None:
        """Emit material for a state event."""
        context = self.context
        context.outbox.emit(
            ReportState(
                kind=kind,
                epoch=context.durable.epoch,
                cause=context.cause,
                role=self.name.value,
                leader_id=self.leader_id,
                offset=offset,
                base_offset=base_offset,
                reason=reason,
            )
        )

    def advance_high_watermark(self, offset: Offset) -> None:
        """Move the high watermark up, never down, and say so."""
        log = self.context.log
        before = max(log.high_watermark, log.start_offset)
        if offset <= before:
            return
        log.advance_high_watermark(offset)
        self.context.outbox.emit(AdvanceHighWatermark(offset))
        if self.name is RoleName.LEADER:
            self.report("commit", offset=offset, base_offset=before)
        else:
            self.report("high-watermark", offset=offset)
