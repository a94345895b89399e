"""When the leader's host is asked to come back for a fetch that is parked."""

from splitbrain.nodes.quorum.effects import AnswerFetch
from splitbrain.nodes.quorum.events import (
    QuorumStatePersisted,
    RequestReceived,
    Started,
    TimerElapsed,
)
from splitbrain.nodes.quorum.identifiers import (
    NO_EPOCH,
    UNKNOWN_OFFSET,
    ConnectionId,
    CorrelationId,
    Epoch,
    NodeId,
    Offset,
)
from splitbrain.nodes.quorum.messages import FetchRequest
from splitbrain.nodes.quorum.settings import QuorumSettings
from tests.unit.nodes.quorum.replicas import MS, directory, replica_of, step


def observer_fetches(max_wait_ms: int) -> RequestReceived:
    request = FetchRequest(
        cluster_id="cluster",
        replica_id=NodeId(4),
        replica_directory_id=directory(4),
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
    replica = replica_of(voter_count=1, settings=QuorumSettings())
    step(replica, Started(), 0)
    step(replica, TimerElapsed(), 1_000)
    step(replica, QuorumStatePersisted(1), 1_001)
    assert replica.role == "leader"
    assert step(replica, observer_fetches(max_wait_ms=100), 1_002) == ()
    assert step(replica, TimerElapsed(), 1_102) == ()
    assert replica.deadline is None or replica.deadline > 1_102 * MS
    effects = step(replica, QuorumStatePersisted(2), 3_000)
    assert any(isinstance(effect, AnswerFetch) for effect in effects)
