"""When the leader's host is asked to come back for a fetch that is parked."""

import random

from nodes.quorum.effects import AnswerFetch, Effect
from nodes.quorum.events import (
    Event,
    QuorumStatePersisted,
    RequestReceived,
    Started,
    TimerElapsed,
)
from nodes.quorum.identifiers import (
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
from nodes.quorum.messages import FetchRequest
from nodes.quorum.persistent import LogShape, QuorumState, Voter
from nodes.quorum.replica import Replica
from nodes.quorum.settings import QuorumSettings
from nodes.quorum.voters import ReplicaKey

MS = 1_000
DIRECTORY = DirectoryId(f"{1:032x}")


def step(replica: Replica, event: Event, at_ms: int) -> tuple[Effect, ...]:
    effects = replica.step(Microseconds(at_ms * MS), event)
    replica.validate()
    return effects


def only_voter() -> Replica:
    return Replica(
        settings=QuorumSettings(),
        voters=(Voter(NodeId(1), DIRECTORY, "host", 1),),
        me=ReplicaKey(NodeId(1), DIRECTORY),
        cluster_id="cluster",
        incarnation=Incarnation(1),
        state=QuorumState(Epoch(0), None, None, None),
        log=LogShape(Offset(0), Offset(0), ()),
        random=random.Random(1),
        now=Microseconds(0),
    )


def observer_fetches(max_wait_ms: int) -> RequestReceived:
    request = FetchRequest(
        cluster_id="cluster",
        replica_id=NodeId(4),
        replica_directory_id=DirectoryId(f"{4:032x}"),
        epoch=Epoch(1),
        fetch_offset=Offset(0),
        last_fetched_epoch=NO_EPOCH,
        high_watermark=UNKNOWN_OFFSET,
        max_wait_ms=max_wait_ms,
        max_bytes=1_000,
    )
    return RequestReceived(ConnectionId(1), CorrelationId(1), request)


def test_a_fetch_that_waits_for_a_slow_disk_asks_for_no_timer_that_is_over() -> None:
    """The host came back at once, again and again, until the leader's election was on disk."""
    replica = only_voter()
    step(replica, Started(), 0)
    step(replica, TimerElapsed(), 1_000)
    step(replica, QuorumStatePersisted(1), 1_001)
    assert replica.role == "leader"
    assert step(replica, observer_fetches(max_wait_ms=100), 1_002) == ()
    assert step(replica, TimerElapsed(), 1_102) == ()
    assert replica.deadline is None or replica.deadline > 1_102 * MS
    effects = step(replica, QuorumStatePersisted(2), 3_000)
    assert any(isinstance(effect, AnswerFetch) for effect in effects)
