"""One replica of the quorum: the only owner of role changes, the only public mutator.

Step ``Started`` first, once, then each event; perform the effects in order, and step
``TimerElapsed`` at ``deadline``. An empty data folder starts with ``EMPTY_STATE`` and
``LogShape(0, 0, ())``. The module is longer than 400 lines because the order of all steps stands in
one place. Sources: KIP-595, KIP-853, KIP-996, design section 8.
"""

from typing import Final

from splitbrain.nodes.quorum.admission import QuorumRequest, error_of, refusal
from splitbrain.nodes.quorum.durable_state import DurableState
from splitbrain.nodes.quorum.effects import CutLogStart, Effect, Halt, Warn
from splitbrain.nodes.quorum.election_timing import ElectionTiming
from splitbrain.nodes.quorum.epoch_limit import highest_from
from splitbrain.nodes.quorum.errors import HaltRequested, InvariantViolation, StorageMismatch
from splitbrain.nodes.quorum.events import (
    AnswerReceived,
    ConnectionClosed,
    Event,
    LogFlushed,
    QuorumStatePersisted,
    ReadRequested,
    RecordsProposed,
    RequestFailed,
    RequestReceived,
    ResignRequested,
    SnapshotFrozen,
    SnapshotWritten,
    Started,
    TimerElapsed,
)
from splitbrain.nodes.quorum.identifiers import (
    UNKNOWN_OFFSET,
    Epoch,
    Incarnation,
    Microseconds,
    NodeId,
    Offset,
)
from splitbrain.nodes.quorum.log_positions import LogPositions
from splitbrain.nodes.quorum.messages import (
    Answer,
    BeginQuorumEpochAnswer,
    BeginQuorumEpochRequest,
    DescribeQuorumAnswer,
    DescribeQuorumRequest,
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
from splitbrain.nodes.quorum.persistent import LogShape, QuorumState, SnapshotId, Voter
from splitbrain.nodes.quorum.random_source import RandomSource
from splitbrain.nodes.quorum.request_ledger import RequestLedger
from splitbrain.nodes.quorum.role import Role, RoleContext
from splitbrain.nodes.quorum.role_changes import RoleOwner
from splitbrain.nodes.quorum.settings import QuorumSettings
from splitbrain.nodes.quorum.trace import Story, describe
from splitbrain.nodes.quorum.transitions import RoleName
from splitbrain.nodes.quorum.voters import ReplicaKey, VoterSet

#: Errors whose epoch and leader are to be believed; the others come from strangers.
_TELLING: Final = (
    ErrorCode.NONE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.FENCED_LEADER_EPOCH,
    ErrorCode.UNKNOWN_LEADER_EPOCH,
    ErrorCode.OFFSET_OUT_OF_RANGE,
    ErrorCode.SNAPSHOT_NOT_FOUND,
    ErrorCode.POSITION_OUT_OF_RANGE,
)


class Replica:
    """A voter, or an observer where ``me`` is not in ``voters``."""

    def __init__(
        self,
        *,
        settings: QuorumSettings,
        voters: tuple[Voter, ...],
        me: ReplicaKey,
        cluster_id: str,
        incarnation: Incarnation,
        state: QuorumState,
        log: LogShape,
        random: RandomSource,
        now: Microseconds,
        high_watermark_hint: Offset = UNKNOWN_OFFSET,
    ) -> None:
        """Take what recovery found on disk; send nothing before ``Started``.

        Raises StorageMismatch for a log of a later epoch than the state: its vote is lost.
        """
        members = VoterSet(voters, me)
        positions = LogPositions(log, high_watermark_hint)
        if positions.last_epoch > state.epoch:
            raise StorageMismatch(
                f"the log has records of epoch {positions.last_epoch}, the quorum state knows only"
                f" epoch {state.epoch}"
            )
        outbox = Outbox()
        requests = RequestLedger(outbox, incarnation, settings)
        self._context = RoleContext(
            settings=settings,
            voters=members,
            cluster_id=cluster_id,
            log=positions,
            durable=DurableState(state, outbox),
            outbox=outbox,
            requests=requests,
            timing=ElectionTiming(settings, random),
            now=now,
        )
        self._owner = RoleOwner(self._context)
        self._story = Story()
        self._started = False
        self._halted = False

    @property
    def role(self) -> str:
        """``unattached follower prospective candidate leader resigned``."""
        return self._owner.role.name

    @property
    def epoch(self) -> Epoch:
        """The present epoch."""
        return self._context.durable.epoch

    @property
    def leader_id(self) -> NodeId | None:
        """Return the leader of the present epoch as far as this node knows; itself if it leads."""
        return self._owner.role.leader_id

    @property
    def quorum_state(self) -> QuorumState:
        """The quorum state in memory; maybe not durable yet."""
        return self._context.durable.state

    @property
    def high_watermark(self) -> Offset:
        """End of what is known to be committed; UNKNOWN_OFFSET before that is known."""
        return self._context.log.high_watermark

    @property
    def log_start_offset(self) -> Offset:
        """Offset of the first record that the log still has."""
        return self._context.log.start_offset

    @property
    def newest_snapshot(self) -> SnapshotId | None:
        """Return the snapshot to load the state machine from, without the log above it."""
        return self._context.log.newest_snapshot

    @property
    def log_end_offset(self) -> Offset:
        """One past the last record, durable or not."""
        return self._context.log.end_offset

    @property
    def flushed_end_offset(self) -> Offset:
        """Everything below is durable here."""
        return self._context.log.flushed_end_offset

    @property
    def is_voter(self) -> bool:
        """False for an observer."""
        return self._context.voters.includes_me

    @property
    def halted(self) -> bool:
        """Whether ``Halt`` was returned: every further event is ignored."""
        return self._halted

    @property
    def deadline(self) -> Microseconds | None:
        """When the next TimerElapsed is wanted; read it after every step."""
        return None if self._halted else self._owner.role.deadline

    def step(self, now: Microseconds, event: Event) -> tuple[Effect, ...]:
        """Handles one event and returns what is to be done, in order.

        ``now``: microseconds of a monotonic clock; a step back is taken for a standstill. Raises
        InvariantViolation for a bug of ours, with the events that led to it: do not go on.
        """
        if self._halted:
            return ()
        context = self._context
        context.now = max(now, context.now)
        context.cause += 1
        try:
            self._handle(event)
        except HaltRequested as request:
            self._halted = True
            context.outbox.emit(Halt(request.reason))
        except InvariantViolation as violation:
            self._story.add(context.cause, context.now, event, context.outbox.drain())
            violation.story = self._story.lines()
            raise
        effects = context.outbox.drain()
        self._story.add(context.cause, context.now, event, effects)
        return effects

    def validate(self) -> None:
        """Raise InvariantViolation with its story where the replica contradicts itself."""
        try:
            self._context.log.validate()
            self._owner.validate()
        except InvariantViolation as violation:
            violation.story = self._story.lines()
            raise

    @property
    def _role(self) -> Role:
        return self._owner.role

    def _handle(self, event: Event) -> None:
        match event:
            case Started():
                self._start()
            case TimerElapsed():
                self._role.timer_elapsed()
            case RequestReceived():
                self._handle_request(event)
            case AnswerReceived():
                self._handle_answer(event)
            case LogFlushed() | QuorumStatePersisted() | SnapshotWritten() | SnapshotFrozen():
                self._handle_completion(event)
            case RecordsProposed():
                self._role.records_proposed(event)
            case ReadRequested():
                self._role.read_requested(event.read_id)
            case RequestFailed():
                self._handle_failure(event)
            case ConnectionClosed():
                self._context.outbox.drop_answers(event.connection)
                self._role.connection_closed(event.connection)
            case ResignRequested():
                self._role.resign_requested()

    def _handle_completion(
        self, event: LogFlushed | QuorumStatePersisted | SnapshotWritten | SnapshotFrozen
    ) -> None:
        """Note that the disk is done with something."""
        match event:
            case LogFlushed():
                self._context.log.flushed(event.submission)
                self._role.log_flushed()
            case QuorumStatePersisted():
                self._handle_persisted(event.version)
            case SnapshotWritten():
                self._handle_snapshot(event)
            case SnapshotFrozen():
                self._role.snapshot_frozen(event)

    def _start(self) -> None:
        if self._started:
            raise InvariantViolation("INV-24", "started twice")
        self._started = True
        self._owner.start()

    def _handle_persisted(self, version: int) -> None:
        outbox = self._context.outbox
        if version > outbox.submitted_version:
            problem = f"persisted version {version} of {outbox.submitted_version}"
            raise InvariantViolation("INV-24", problem)
        outbox.persisted_version = max(outbox.persisted_version, version)
        outbox.release()
        self._role.state_persisted()

    def _handle_snapshot(self, event: SnapshotWritten) -> None:
        context = self._context
        newest = context.log.newest_snapshot
        if newest is not None and event.snapshot_id.end_offset <= newest.end_offset:
            return  # one that was fetched has overtaken it
        context.log.add_snapshot(event.snapshot_id)
        first = context.log.cut_start(context.settings.snapshots_retained_count)
        if first is not None:
            context.outbox.emit(CutLogStart(first))

    def _handle_request(self, event: RequestReceived) -> None:
        request = event.request
        if isinstance(request, DescribeQuorumRequest):
            self._role.describe_requested(event)
            return
        context = self._context
        error = error_of(request, context.voters, context.cluster_id, self.epoch)
        if error is ErrorCode.NONE and self._refuses_epoch(request):
            error = ErrorCode.INVALID_REQUEST
        if error is not ErrorCode.NONE:
            self._role.answer(event, refusal(request, error, self.leader_id, self.epoch))
            return
        match request:
            case FetchRequest():
                self._role.fetch_requested(event, request)
            case FetchSnapshotRequest():
                self._role.snapshot_requested(event, request)
            case VoteRequest():
                self._handle_vote(event, request)
            case BeginQuorumEpochRequest():
                self._handle_begin(event, request)
            case EndQuorumEpochRequest():
                self._handle_end(event, request)

    def _refuses_epoch(self, message: QuorumRequest | Answer, peer: NodeId | None = None) -> bool:
        """Whether a message names an epoch that may not be entered; the operator is told."""
        highest = highest_from(self.epoch)
        if message.epoch <= highest:
            return False
        source = describe(message) if peer is None else f"{type(message).__name__} of {peer}"
        reason = (
            f"no epoch above {highest} is entered from {self.epoch}: {source} names {message.epoch}"
        )
        self._context.outbox.emit(Warn("epoch refused", reason))
        return True

    def _handle_vote(self, event: RequestReceived, request: VoteRequest) -> None:
        if request.epoch > self.epoch:
            reason = f"asked for a vote by {request.candidate_id}"
            self._owner.become_unattached(request.epoch, reason)
        granted = self._role.may_grant(request)
        if granted and not request.pre_vote:
            candidate = ReplicaKey(request.candidate_id, request.candidate_directory_id)
            self._context.durable.vote(candidate)
        answer = VoteAnswer(ErrorCode.NONE, self.leader_id, self.epoch, granted=granted)
        self._role.answer(event, answer)
        if request.pre_vote:
            self._role.pre_vote_requested(request, granted=granted)
        elif granted:
            self._role.vote_granted()

    def _handle_begin(self, event: RequestReceived, request: BeginQuorumEpochRequest) -> None:
        self._learn_leader(request.epoch, request.leader_id, "BeginQuorumEpoch")
        self._role.epoch_begun()
        self._role.answer(event, BeginQuorumEpochAnswer(ErrorCode.NONE, self.leader_id, self.epoch))

    def _handle_end(self, event: RequestReceived, request: EndQuorumEpochRequest) -> None:
        self._learn_leader(request.epoch, request.leader_id, "EndQuorumEpoch")
        self._role.answer(event, EndQuorumEpochAnswer(ErrorCode.NONE, self.leader_id, self.epoch))
        self._role.epoch_ended(request)

    def _learn_leader(self, epoch: Epoch, leader_id: NodeId, source: str) -> None:
        """Take the leader's own word; raises HaltRequested if another one led this epoch."""
        if epoch == self.epoch:
            known = self._context.durable.leader_id
            if known is not None and known != leader_id:
                self._context.durable.set_leader(leader_id)
            if self.leader_id == leader_id:
                return
        self._owner.become_follower(epoch, leader_id, f"{source} from {leader_id}")

    def _handle_answer(self, event: AnswerReceived) -> None:
        context = self._context
        outstanding = context.requests.settle(event.peer, event.correlation, event.incarnation)
        if outstanding is None:
            return
        answer = event.answer
        role = self._role
        if self._refuses_epoch(answer, event.peer):
            if not outstanding.orphaned:
                role.request_failed(event.peer, outstanding, refused=False)
            return
        if answer.error in _TELLING:
            self._learn_from_answer(event.peer, answer)
        if outstanding.orphaned or self._role is not role:
            return
        match answer, outstanding.request:
            case VoteAnswer(), VoteRequest():
                role.vote_answered(event.peer, answer)
            case FetchAnswer(), FetchRequest() as request:
                role.fetch_answered(event.peer, answer, request)
            case FetchSnapshotAnswer(), FetchSnapshotRequest() as request:
                role.snapshot_answered(event.peer, answer, request)
            case BeginQuorumEpochAnswer(), BeginQuorumEpochRequest():
                role.begin_answered(event.peer, answer)
            case EndQuorumEpochAnswer(), EndQuorumEpochRequest():
                role.end_answered(event.peer, answer)
            case _:
                # An answer to something else than we asked: as good as none.
                role.request_failed(event.peer, outstanding, refused=False)

    def _learn_from_answer(self, peer: NodeId, answer: Answer) -> None:
        """Take a higher epoch, or a leader that was not known, from an answer.

        A *granted* vote may name a leader that is dead, and so may any answer name this node,
        which no longer leads: neither is followed.
        """
        if answer.epoch < self.epoch or isinstance(answer, DescribeQuorumAnswer):
            return
        context = self._context
        leader_id = answer.leader_id
        granted = isinstance(answer, VoteAnswer) and answer.granted
        can_follow = (
            leader_id != context.me.node_id and leader_id in context.voters.ids and not granted
        )
        if answer.epoch > self.epoch:
            if leader_id is not None and can_follow:
                self._owner.become_follower(answer.epoch, leader_id, f"told by {peer}")
            else:
                self._owner.become_unattached(answer.epoch, f"told by {peer}")
        elif leader_id is not None and can_follow and self._seeks_leader:
            self._owner.become_follower(answer.epoch, leader_id, f"told by {peer}")

    @property
    def _seeks_leader(self) -> bool:
        """Whether a leader of the present epoch is news: none was known, or an observer lost it."""
        unattached = self._role.name is RoleName.UNATTACHED
        return unattached or self._context.durable.leader_id is None

    def _handle_failure(self, event: RequestFailed) -> None:
        requests = self._context.requests
        outstanding = requests.settle(event.peer, event.correlation, event.incarnation)
        if outstanding is not None and not outstanding.orphaned:
            self._role.request_failed(event.peer, outstanding, refused=event.refused)
