"""One replica of a small quorum, stepped by hand."""

import random
from collections.abc import Callable
from typing import Any

import msgspec

from splitbrain.nodes.quorum import messages
from splitbrain.nodes.quorum.effects import Effect, SendRequest
from splitbrain.nodes.quorum.events import (
    AnswerReceived,
    Event,
    QuorumStatePersisted,
    RequestReceived,
    Started,
    TimerElapsed,
)
from splitbrain.nodes.quorum.identifiers import (
    NO_DIRECTORY,
    NO_EPOCH,
    UNKNOWN_OFFSET,
    ConnectionId,
    CorrelationId,
    DirectoryId,
    Epoch,
    Incarnation,
    Microseconds,
    NodeId,
    Offset,
)
from splitbrain.nodes.quorum.messages import ErrorCode
from splitbrain.nodes.quorum.persistent import EpochStart, LogShape, QuorumState, Voter
from splitbrain.nodes.quorum.replica import Replica
from splitbrain.nodes.quorum.settings import QuorumSettings
from splitbrain.nodes.quorum.voters import ReplicaKey, VoterSet

MS = 1_000
LIFE = Incarnation(7)
#: Settings that the times of the tests are written for; the retry back-off is 20 ms.
SETTINGS = QuorumSettings(
    fetch_timeout_ms=300,
    election_timeout_ms_min=200,
    election_timeout_ms_max=400,
    request_timeout_ms=200,
)


def directory(number: int) -> DirectoryId:
    return DirectoryId(f"{number:032x}")


def key(number: int) -> ReplicaKey:
    return ReplicaKey(NodeId(number), directory(number))


def voters_of(
    count: int, directory_of: Callable[[int], DirectoryId] = directory
) -> tuple[Voter, ...]:
    return tuple(Voter(NodeId(n), directory_of(n), "host", 1) for n in range(1, count + 1))


def voter_set(count: int = 3, me: int = 1) -> VoterSet:
    return VoterSet(voters_of(count), key(me))


def shape(*starts: tuple[int, int], end: int, start: int = 0) -> LogShape:
    """A log by (epoch, offset) of where each of its epochs begins, and by its end."""
    epochs = tuple(EpochStart(Epoch(epoch), Offset(offset)) for epoch, offset in starts)
    return LogShape(Offset(start), Offset(end), epochs)


def replica_of(
    me: int = 1,
    *,
    voter_count: int = 3,
    epoch: int = 0,
    leader: int | None = None,
    log: LogShape | None = None,
    settings: QuorumSettings = SETTINGS,
    directory_of: Callable[[int], DirectoryId] = directory,
) -> Replica:
    """A replica; ``directory_of``: by which the voters know each other."""
    return Replica(
        settings=settings,
        voters=voters_of(voter_count, directory_of),
        me=key(me),
        cluster_id="cluster",
        incarnation=LIFE,
        state=QuorumState(Epoch(epoch), None if leader is None else NodeId(leader), None, None),
        log=log or LogShape(Offset(0), Offset(0), ()),
        random=random.Random(1),
        now=Microseconds(0),
    )


def step(replica: Replica, event: Event, at_ms: float = 0) -> tuple[Effect, ...]:
    """The effects of an event, at this time."""
    effects = replica.step(Microseconds(int(at_ms * MS)), event)
    replica.validate()
    return effects


def vote_request(**changes: object) -> messages.VoteRequest:
    """Node 1 asks node 2 for its vote in epoch 3, with an empty log, but for what is changed."""
    usual = messages.VoteRequest(
        cluster_id=None,
        voter_id=NodeId(2),
        voter_directory_id=NO_DIRECTORY,
        epoch=Epoch(3),
        candidate_id=NodeId(1),
        candidate_directory_id=NO_DIRECTORY,
        last_epoch=NO_EPOCH,
        end_offset=Offset(0),
        pre_vote=False,
    )
    return msgspec.structs.replace(usual, **changes)


def fetch_request(**changes: object) -> messages.FetchRequest:
    """Node 2 fetches from the start of an empty log in epoch 1, but for what is changed."""
    usual = messages.FetchRequest(
        "cluster",
        NodeId(2),
        directory(2),
        Epoch(1),
        Offset(0),
        NO_EPOCH,
        UNKNOWN_OFFSET,
        100,
        1_000,
    )
    return msgspec.structs.replace(usual, **changes)


def received(
    request: messages.Request, *, connection: int = 1, correlation: int = 1
) -> RequestReceived:
    return RequestReceived(ConnectionId(connection), CorrelationId(correlation), request)


def answered(sent: SendRequest, answer: messages.Answer) -> AnswerReceived:
    return AnswerReceived(sent.peer, sent.correlation, LIFE, answer)


def granted(sent: SendRequest, epoch: int) -> AnswerReceived:
    """The peer that was asked gives its vote, or its pre-vote."""
    return answered(sent, messages.VoteAnswer(ErrorCode.NONE, None, Epoch(epoch), granted=True))


def sent_by(effects: tuple[Effect, ...]) -> list[SendRequest]:
    return [effect for effect in effects if isinstance(effect, SendRequest)]


def lone_leader(**more: Any) -> Replica:
    """The only voter, as it begins to lead epoch 1; its state and its first record wait."""
    replica = replica_of(voter_count=1, **more)
    step(replica, Started())
    step(replica, TimerElapsed(), 1_000)
    step(replica, QuorumStatePersisted(1), 1_001)
    assert replica.role == "leader"
    return replica


def begin(leader: int, epoch: int, me: int = 1, *, correlation: int = 1) -> RequestReceived:
    """A leader tells ``me`` that it leads."""
    request = messages.BeginQuorumEpochRequest(
        "cluster", NodeId(me), directory(me), NodeId(leader), Epoch(epoch)
    )
    return received(request, correlation=correlation)
