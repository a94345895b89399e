"""One replica of a small quorum, stepped by hand."""

import random
from collections.abc import Callable

import msgspec

from splitbrain.nodes.quorum.effects import Effect
from splitbrain.nodes.quorum.events import Event, RequestReceived
from splitbrain.nodes.quorum.identifiers import (
    NO_DIRECTORY,
    NO_EPOCH,
    ConnectionId,
    CorrelationId,
    DirectoryId,
    Epoch,
    Incarnation,
    Microseconds,
    NodeId,
    Offset,
)
from splitbrain.nodes.quorum.messages import BeginQuorumEpochRequest, VoteRequest
from splitbrain.nodes.quorum.persistent import LogShape, QuorumState, Voter
from splitbrain.nodes.quorum.replica import Replica
from splitbrain.nodes.quorum.settings import QuorumSettings
from splitbrain.nodes.quorum.voters import ReplicaKey

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
    numbers = range(1, voter_count + 1)
    return Replica(
        settings=settings,
        voters=tuple(Voter(NodeId(n), directory_of(n), "host", 1) for n in numbers),
        me=ReplicaKey(NodeId(me), directory(me)),
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


def vote_request(**changes: object) -> VoteRequest:
    """Node 1 asks node 2 for its vote in epoch 3, with an empty log, but for what is changed."""
    usual = VoteRequest(
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


def begin(leader: int, epoch: int, me: int = 1, *, correlation: int = 1) -> RequestReceived:
    """A leader tells ``me`` that it leads."""
    request = BeginQuorumEpochRequest(
        "cluster", NodeId(me), directory(me), NodeId(leader), Epoch(epoch)
    )
    return RequestReceived(ConnectionId(1), CorrelationId(correlation), request)
