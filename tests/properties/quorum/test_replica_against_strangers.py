"""One replica, and a world that says anything: it may halt, it never breaks a promise.

Promises checked here: no exception, no second vote in an epoch, no falling epoch or high watermark,
nothing said in an epoch that is not on disk, no truncation below the high watermark.
"""

import random
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from splitbrain.nodes.quorum.effects import (
    AdvanceHighWatermark,
    AppendBatches,
    AppendLeaderChange,
    AppendRecords,
    Effect,
    PersistQuorumState,
    SendAnswer,
    SendRequest,
    TruncateLog,
)
from splitbrain.nodes.quorum.events import (
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
    ResignRequested,
    Started,
    TimerElapsed,
)
from splitbrain.nodes.quorum.identifiers import (
    ConnectionId,
    CorrelationId,
    DirectoryId,
    Epoch,
    Incarnation,
    Microseconds,
    NodeId,
    Offset,
)
from splitbrain.nodes.quorum.messages import ErrorCode, VoteAnswer, VoteRequest
from splitbrain.nodes.quorum.persistent import LogShape, QuorumState, Voter
from splitbrain.nodes.quorum.replica import Replica
from splitbrain.nodes.quorum.settings import QuorumSettings
from splitbrain.nodes.quorum.voters import ReplicaKey
from tests.transcripts import message_defaults

PEERS = st.sampled_from([2, 3, 8])
EPOCHS = st.integers(0, 6)
OFFSETS = st.integers(0, 6)
ERRORS = st.sampled_from([error.name for error in ErrorCode])
LEADERS = st.sampled_from([None, 1, 2, 3, 8])


class ReplicaAgainstStrangers(RuleBasedStateMachine):
    """The host keeps its contract; the peers keep none."""

    @initialize(seed=st.integers(0, 99))
    def start(self, seed: int) -> None:
        self.now = 0
        self.versions: list[PersistQuorumState] = []
        self.durable = QuorumState(Epoch(0), None, None, None)
        self.submission = 0
        self.votes: dict[int, int] = {}
        self.asked: dict[int, VoteRequest] = {}
        self.outstanding: dict[int, tuple[CorrelationId, Any]] = {}
        self.high_watermark = -1
        self.epoch = 0
        self.count = 0
        voters = tuple(Voter(NodeId(n), DirectoryId(f"{n:032x}"), "host", 1) for n in (1, 2, 3))
        self.replica = Replica(
            settings=QuorumSettings(),
            voters=voters,
            me=ReplicaKey(NodeId(1), voters[0].directory_id),
            cluster_id="stage",
            incarnation=Incarnation(1),
            state=self.durable,
            log=LogShape(Offset(0), Offset(0), ()),
            random=random.Random(seed),
            now=Microseconds(0),
        )
        self.step(Started())

    def step(self, event: Event) -> None:
        for effect in self.replica.step(Microseconds(self.now), event):
            self.perform(effect)
        self.replica.validate()

    def perform(self, effect: Effect) -> None:
        match effect:
            case PersistQuorumState():
                self.versions.append(effect)
            case AppendBatches() | AppendRecords() | AppendLeaderChange():
                self.submission = effect.submission
            case TruncateLog():
                assert effect.end_offset >= self.high_watermark
                self.submission = effect.submission
            case AdvanceHighWatermark():
                assert effect.offset > self.high_watermark
                self.high_watermark = effect.offset
            case SendRequest():
                assert getattr(effect.request, "epoch", 0) <= self.durable.epoch
                if isinstance(effect.request, VoteRequest) and not effect.request.pre_vote:
                    assert self.votes.setdefault(effect.request.epoch, 1) == 1
                self.outstanding[effect.peer] = (effect.correlation, effect.request)
            case SendAnswer(answer=VoteAnswer(granted=True), connection=connection):
                request = self.asked[connection]
                if not request.pre_vote:
                    candidate = int(request.candidate_id)
                    assert self.votes.setdefault(request.epoch, candidate) == candidate
                    assert self.durable.epoch >= request.epoch
            case _:
                pass

    @rule(wait_ms=st.sampled_from([0, 1, 20, 150, 400]))
    def time_passes(self, wait_ms: int) -> None:
        self.now += wait_ms * 1000
        self.step(TimerElapsed())

    @rule()
    def state_is_persisted(self) -> None:
        if self.versions:
            newest = self.versions[-1]
            self.versions.clear()
            self.durable = newest.state
            self.step(QuorumStatePersisted(newest.version))

    @rule()
    def log_is_flushed(self) -> None:
        if self.submission:
            self.step(LogFlushed(self.submission))

    @rule(
        epoch=EPOCHS, candidate=PEERS, last_epoch=st.integers(-1, 6), end=OFFSETS, pre=st.booleans()
    )
    def vote_is_asked(
        self, epoch: int, candidate: int, last_epoch: int, end: int, pre: bool
    ) -> None:
        fields = {
            "epoch": epoch,
            "candidate_id": candidate,
            "last_epoch": last_epoch,
            "end_offset": end,
            "pre_vote": pre,
        }
        self.receive("VoteRequest", fields)

    @rule(epoch=EPOCHS, leader=PEERS)
    def epoch_begins(self, epoch: int, leader: int) -> None:
        self.receive("BeginQuorumEpochRequest", {"epoch": epoch, "leader_id": leader})

    @rule(epoch=EPOCHS, leader=PEERS)
    def epoch_ends(self, epoch: int, leader: int) -> None:
        self.receive("EndQuorumEpochRequest", {"epoch": epoch, "leader_id": leader})

    @rule(epoch=EPOCHS, replica=PEERS, offset=OFFSETS, last=st.integers(-1, 6))
    def fetch_is_asked(self, epoch: int, replica: int, offset: int, last: int) -> None:
        fields = {
            "epoch": epoch,
            "replica_id": replica,
            "replica_directory_id": DirectoryId(f"{replica:032x}"),
            "fetch_offset": offset,
            "last_fetched_epoch": last,
        }
        self.receive("FetchRequest", fields)

    def receive(self, kind: str, fields: dict[str, Any]) -> None:
        self.count += 1
        request = message_defaults.request(kind, NodeId(1), fields)
        if isinstance(request, VoteRequest):
            self.asked[self.count] = request
        self.step(RequestReceived(ConnectionId(self.count), CorrelationId(0), request))

    @rule(
        peer=st.sampled_from([2, 3]), epoch=EPOCHS, error=ERRORS, leader=LEADERS, yes=st.booleans()
    )
    def vote_is_answered(
        self, peer: int, epoch: int, error: str, leader: int | None, yes: bool
    ) -> None:
        fields = {"epoch": epoch, "error": error, "leader_id": leader, "granted": yes}
        self.reply(peer, "VoteAnswer", fields)

    @rule(
        peer=st.sampled_from([2, 3]),
        epoch=EPOCHS,
        error=ERRORS,
        leader=LEADERS,
        high_watermark=st.integers(-1, 6),
        diverging=st.none() | st.tuples(EPOCHS, OFFSETS),
        batches=st.lists(st.tuples(OFFSETS, OFFSETS, EPOCHS), max_size=2).map(tuple),
    )
    def fetch_is_answered(self, peer: int, **fields: Any) -> None:
        fields["leader_id"] = fields.pop("leader")
        self.reply(peer, "FetchAnswer", fields)

    @rule(peer=st.sampled_from([2, 3]), epoch=EPOCHS, high_watermark=st.integers(-1, 6))
    def fetch_is_answered_well(self, peer: int, epoch: int, high_watermark: int) -> None:
        offset = self.replica.log_end_offset
        fields = {
            "epoch": self.replica.epoch,
            "leader_id": peer,
            "high_watermark": high_watermark,
            "batches": ((offset, offset + 1, min(epoch, self.replica.epoch)),),
        }
        self.reply(peer, "FetchAnswer", fields)

    @rule(peer=st.sampled_from([2, 3]))
    def vote_is_granted(self, peer: int) -> None:
        self.reply(peer, "VoteAnswer", {"epoch": self.replica.epoch, "granted": True})

    def reply(self, peer: int, kind: str, fields: dict[str, Any]) -> None:
        if peer in self.outstanding:
            correlation, _ = self.outstanding[peer]
            answer = message_defaults.answer(kind, fields)
            self.step(AnswerReceived(NodeId(peer), correlation, Incarnation(1), answer))

    @rule(peer=st.sampled_from([2, 3]))
    def request_fails(self, peer: int) -> None:
        if peer in self.outstanding:
            correlation, _ = self.outstanding.pop(peer)
            self.step(RequestFailed(NodeId(peer), correlation, Incarnation(1), "timeout"))

    @rule()
    def records_are_proposed(self) -> None:
        self.count += 1
        self.step(RecordsProposed(ProposalId(self.count), (b"x",)))

    @rule()
    def read_is_asked(self) -> None:
        self.count += 1
        self.step(ReadRequested(ReadId(self.count)))

    @rule()
    def resignation_is_asked(self) -> None:
        self.step(ResignRequested())

    @rule()
    def connection_closes(self) -> None:
        self.step(ConnectionClosed(ConnectionId(self.count)))

    @invariant()
    def the_epoch_never_falls(self) -> None:
        if hasattr(self, "replica"):
            assert self.replica.epoch >= self.epoch
            self.epoch = self.replica.epoch


ReplicaAgainstStrangers.TestCase.settings = settings(
    max_examples=60, stateful_step_count=40, deadline=None
)
TestReplicaAgainstStrangers = ReplicaAgainstStrangers.TestCase
