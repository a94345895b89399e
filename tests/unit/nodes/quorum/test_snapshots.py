"""Snapshots between replicas: who is sent one, how it comes, and what takes the log's place."""

from typing import TypeVar

import msgspec
import pytest

from splitbrain.nodes.quorum import events
from splitbrain.nodes.quorum.effects import (
    AbandonSnapshot,
    AdvanceHighWatermark,
    AnswerFetchSnapshot,
    AppendBatches,
    CutLogStart,
    Effect,
    FreezeSnapshot,
    Halt,
    ReplaceLog,
    SendAnswer,
    SendRequest,
    WriteSnapshotChunk,
)
from splitbrain.nodes.quorum.errors import InvariantViolation, StorageMismatch
from splitbrain.nodes.quorum.identifiers import NO_EPOCH, Epoch, NodeId, Offset
from splitbrain.nodes.quorum.messages import (
    BatchHeader,
    ErrorCode,
    FetchAnswer,
    FetchRequest,
    FetchSnapshotAnswer,
    FetchSnapshotRequest,
)
from splitbrain.nodes.quorum.persistent import EpochStart, LogShape, SnapshotId
from splitbrain.nodes.quorum.replica import Replica
from tests.unit.nodes.quorum.replicas import (
    SETTINGS,
    answered,
    begin,
    directory,
    fetch_request,
    lone_leader,
    received,
    replica_of,
    sent_by,
    shape,
    step,
)

SNAPSHOT = SnapshotId(Offset(40), Epoch(3))
EffectType = TypeVar("EffectType", bound=Effect)
RequestType = TypeVar("RequestType", FetchRequest, FetchSnapshotRequest)


def only(effects: tuple[Effect, ...], kind: type[EffectType]) -> EffectType:
    found = [effect for effect in effects if isinstance(effect, kind)]
    assert len(found) == 1, effects
    return found[0]


def requested(effects: tuple[Effect, ...], kind: type[RequestType]) -> RequestType:
    request = only(effects, SendRequest).request
    assert isinstance(request, kind)
    return request


def none(effects: tuple[Effect, ...], kind: type[Effect]) -> bool:
    return not any(isinstance(effect, kind) for effect in effects)


class Following:
    """Node 1 follows node 2 in epoch 4, with five records of epoch 1; node 2 answers by hand."""

    def __init__(self, found: LogShape | None = None) -> None:
        log = found or shape((1, 0), end=5)
        self.replica = replica_of(epoch=4, leader=2, log=log)
        self.now_ms = 0.0
        self.sent = only(step(self.replica, events.Started()), SendRequest)

    def take(self, event: object, *, after_ms: float = 1) -> tuple[Effect, ...]:
        self.now_ms += after_ms
        effects = step(self.replica, event, self.now_ms)  # type: ignore[arg-type]
        if sent := sent_by(effects):
            self.sent = sent[-1]
        return effects

    def answer(self, answer: FetchAnswer | FetchSnapshotAnswer) -> tuple[Effect, ...]:
        return self.take(answered(self.sent, answer))

    def fetched(
        self, snapshot_id: SnapshotId | None = None, batches: tuple[BatchHeader, ...] = ()
    ) -> tuple[Effect, ...]:
        return self.answer(
            FetchAnswer(
                ErrorCode.NONE, NodeId(2), Epoch(4), Offset(60), Offset(40), None, batches, b"",
                snapshot_id,
            )
        )  # fmt: skip

    def chunk(self, position: int, data: bytes, size: int = 10) -> tuple[Effect, ...]:
        return self.answer(
            FetchSnapshotAnswer(ErrorCode.NONE, NodeId(2), Epoch(4), SNAPSHOT, size, position, data)
        )

    def refused(self, error: ErrorCode) -> tuple[Effect, ...]:
        return self.answer(FetchSnapshotAnswer(error, NodeId(2), Epoch(4), None, 0, 0, b""))

    def whole(self) -> None:
        self.fetched(SNAPSHOT)
        self.chunk(0, b"0123456789")


def test_a_follower_fetches_chunks_by_position_and_has_them_frozen() -> None:
    node = Following()
    request = requested(node.fetched(SNAPSHOT), FetchSnapshotRequest)
    assert (request.snapshot_id, request.position, request.epoch) == (SNAPSHOT, 0, 4)
    effects = node.chunk(0, b"0123")
    assert only(effects, WriteSnapshotChunk) == WriteSnapshotChunk(SNAPSHOT, 0, b"0123")
    more = requested(effects, FetchSnapshotRequest)
    assert more.position == 4
    effects = node.chunk(4, b"456789")
    assert only(effects, WriteSnapshotChunk).position == 4
    assert only(effects, FreezeSnapshot).snapshot_id == SNAPSHOT
    # Nothing is different before it is durable, and the leader still hears of this node.
    assert none(effects, ReplaceLog)
    heartbeat = requested(effects, FetchRequest)
    assert heartbeat.fetch_offset == 5


def test_a_durable_snapshot_takes_the_logs_place_and_fetching_goes_on_behind_it() -> None:
    node = Following()
    node.whole()
    replaced = only(node.take(events.SnapshotFrozen(SNAPSHOT)), ReplaceLog)
    replica = node.replica
    assert (replica.log_start_offset, replica.log_end_offset, replica.high_watermark) == (
        40, 40, 40,
    )  # fmt: skip
    assert replica.newest_snapshot == SNAPSHOT
    # The heartbeat under way is of no use any more; then the log is settled and node 1 fetches.
    node.fetched(SNAPSHOT)
    node.take(events.LogFlushed(replaced.submission))
    effects = node.take(events.TimerElapsed(), after_ms=25)
    request = requested(effects, FetchRequest)
    assert (request.fetch_offset, request.last_fetched_epoch, request.high_watermark) == (40, 3, 40)
    batch = BatchHeader(Offset(40), Offset(44), Epoch(3), 100)
    appended = only(node.fetched(batches=(batch,)), AppendBatches)
    assert appended.epoch_starts == (EpochStart(Epoch(3), Offset(40)),)
    assert (
        only(node.take(events.LogFlushed(appended.submission)), AdvanceHighWatermark).offset == 45
    )


def test_a_snapshot_that_the_disk_refuses_is_fetched_anew() -> None:
    node = Following()
    node.whole()
    effects = node.take(events.SnapshotFrozen(SNAPSHOT, "a snapshot ends without its footer"))
    assert none(effects, ReplaceLog)
    assert node.replica.log_end_offset == 5
    node.fetched(SNAPSHOT)
    node.take(events.TimerElapsed(), after_ms=25)
    request = node.sent.request
    assert isinstance(request, FetchSnapshotRequest)
    assert request.position == 0


@pytest.mark.parametrize("error", [ErrorCode.SNAPSHOT_NOT_FOUND, ErrorCode.POSITION_OUT_OF_RANGE])
def test_a_snapshot_that_is_gone_is_abandoned_and_the_leader_asked_again(error: ErrorCode) -> None:
    node = Following()
    node.fetched(SNAPSHOT)
    node.chunk(0, b"0123")
    assert only(node.refused(error), AbandonSnapshot).snapshot_id == SNAPSHOT
    requested(node.take(events.TimerElapsed(), after_ms=25), FetchRequest)


@pytest.mark.parametrize(
    ("position", "data", "size"),
    [(3, b"456", 10), (4, b"", 10), (4, b"4567890", 10), (0, b"4567", 10)],
)
def test_bytes_that_do_not_fit_make_it_begin_anew(position: int, data: bytes, size: int) -> None:
    node = Following()
    node.fetched(SNAPSHOT)
    node.chunk(0, b"0123")
    effects = node.chunk(position, data, size)
    assert none(effects, WriteSnapshotChunk)
    assert only(effects, AbandonSnapshot).snapshot_id == SNAPSHOT


def test_an_error_that_may_pass_loses_nothing() -> None:
    node = Following()
    node.fetched(SNAPSHOT)
    node.chunk(0, b"0123")
    assert none(node.refused(ErrorCode.UNKNOWN_SERVER_ERROR), AbandonSnapshot)
    request = requested(node.take(events.TimerElapsed(), after_ms=25), FetchSnapshotRequest)
    assert request.position == 4


def test_another_leader_makes_an_unfinished_snapshot_void() -> None:
    node = Following()
    node.fetched(SNAPSHOT)
    node.chunk(0, b"0123")
    assert only(node.take(begin(3, 5)), AbandonSnapshot).snapshot_id == SNAPSHOT
    assert none(node.take(events.SnapshotFrozen(SNAPSHOT)), ReplaceLog)
    assert node.replica.log_end_offset == 5


def test_chunks_are_signs_of_life() -> None:
    node = Following()
    node.fetched(SNAPSHOT)
    for position in range(9):
        node.now_ms += SETTINGS.fetch_timeout_ms * 0.8
        node.chunk(position, b"x")
        assert node.replica.role == "follower"
    node.take(events.TimerElapsed(), after_ms=SETTINGS.fetch_timeout_ms + 1)
    assert node.replica.role == "prospective"


def test_while_the_disk_checks_it_both_sides_hear_of_each_other() -> None:
    node = Following()
    node.whole()
    for _ in range(20):
        # The leader offers the snapshot again, which begins nothing.
        effects = node.fetched(SNAPSHOT)
        assert none(effects, WriteSnapshotChunk)
        assert none(effects, SendRequest)
        node.take(events.TimerElapsed(), after_ms=SETTINGS.fetch_max_wait_ms)
        assert isinstance(node.sent.request, FetchRequest)
    assert node.replica.role == "follower"


def test_a_snapshot_below_what_is_committed_here_halts() -> None:
    node = Following(LogShape(Offset(50), Offset(50), (), (SnapshotId(Offset(50), Epoch(3)),)))
    assert "below the high watermark 50" in only(node.fetched(SNAPSHOT), Halt).reason


def test_the_snapshot_that_it_has_or_one_of_a_later_epoch_is_no_answer() -> None:
    node = Following(LogShape(Offset(40), Offset(40), (), (SNAPSHOT,)))
    node.fetched(SNAPSHOT)
    node.take(events.TimerElapsed(), after_ms=25)
    assert isinstance(node.sent.request, FetchRequest)
    node.fetched(SnapshotId(Offset(90), Epoch(9)))
    node.take(events.TimerElapsed(), after_ms=25)
    assert isinstance(node.sent.request, FetchRequest)


def leader_of(records_count: int = 6) -> Replica:
    """Node 1 leads epoch 1 and has committed so many records, its LeaderChange among them."""
    replica = lone_leader()
    step(replica, events.QuorumStatePersisted(2), 1_002)
    for number in range(records_count - 1):
        step(replica, events.RecordsProposed(events.ProposalId(number), (b"x",)), 1_003)
    step(replica, events.LogFlushed(records_count), 1_004)
    assert replica.high_watermark == records_count
    return replica


def observer_fetch(offset: int, last_epoch: Epoch = NO_EPOCH) -> events.RequestReceived:
    return received(
        fetch_request(
            replica_id=4,
            replica_directory_id=directory(4),
            fetch_offset=offset,
            last_fetched_epoch=last_epoch,
        )
    )


def observer_fetch_snapshot(snapshot_id: SnapshotId, position: int = 0) -> events.RequestReceived:
    return received(
        FetchSnapshotRequest(
            "cluster", NodeId(4), directory(4), Epoch(1), snapshot_id, position, 1_000
        )
    )


FIRST = SnapshotId(Offset(2), Epoch(1))
SECOND = SnapshotId(Offset(4), Epoch(1))
THIRD = SnapshotId(Offset(6), Epoch(1))


def test_the_log_starts_where_the_oldest_snapshot_that_stays_ends() -> None:
    replica = leader_of()
    assert none(step(replica, events.SnapshotWritten(FIRST), 1_005), CutLogStart)
    assert replica.log_start_offset == 0
    cut = only(step(replica, events.SnapshotWritten(SECOND), 1_006), CutLogStart)
    assert (cut.snapshot_id, replica.log_start_offset) == (FIRST, 2)
    cut = only(step(replica, events.SnapshotWritten(THIRD), 1_007), CutLogStart)
    assert (cut.snapshot_id, replica.log_start_offset) == (SECOND, 4)
    assert replica.newest_snapshot == THIRD


def test_a_leader_goes_on_with_its_epoch_behind_a_log_cut_at_its_end() -> None:
    replica = lone_leader(settings=msgspec.structs.replace(SETTINGS, snapshots_retained_count=1))
    step(replica, events.QuorumStatePersisted(2), 1_002)
    step(replica, events.LogFlushed(1), 1_003)
    step(replica, events.SnapshotWritten(SnapshotId(Offset(1), Epoch(1))), 1_004)
    assert (replica.log_start_offset, replica.log_end_offset) == (1, 1)
    step(replica, events.RecordsProposed(events.ProposalId(1), (b"x",)), 1_005)
    assert only(step(replica, events.LogFlushed(2), 1_006), AdvanceHighWatermark).offset == 2


def test_a_leader_sends_who_is_below_its_start_to_the_newest_snapshot() -> None:
    replica = leader_of()
    for snapshot_id in (FIRST, SECOND, THIRD):
        step(replica, events.SnapshotWritten(snapshot_id), 1_005)
    answer = only(step(replica, observer_fetch(3, Epoch(1)), 1_006), SendAnswer).answer
    assert isinstance(answer, FetchAnswer)
    assert (answer.error, answer.snapshot_id, answer.log_start_offset) == (0, THIRD, 4)
    assert answer.high_watermark == 6


def test_a_leader_answers_chunks_of_the_snapshots_that_it_has_alone() -> None:
    replica = leader_of()
    for snapshot_id in (FIRST, SECOND, THIRD):
        step(replica, events.SnapshotWritten(snapshot_id), 1_005)
    chunk = only(step(replica, observer_fetch_snapshot(SECOND, 7), 1_006), AnswerFetchSnapshot)
    assert (chunk.snapshot_id, chunk.position, chunk.max_bytes) == (SECOND, 7, 1_000)
    assert (chunk.answer.leader_id, chunk.answer.epoch, chunk.answer.position) == (1, 1, 7)
    for snapshot_id, position, error in (
        (FIRST, 0, ErrorCode.SNAPSHOT_NOT_FOUND),
        (SnapshotId(Offset(6), Epoch(0)), 0, ErrorCode.SNAPSHOT_NOT_FOUND),
        (THIRD, -1, ErrorCode.POSITION_OUT_OF_RANGE),
    ):
        request = observer_fetch_snapshot(snapshot_id, position)
        answer = only(step(replica, request, 1_007), SendAnswer).answer
        assert isinstance(answer, FetchSnapshotAnswer)
        assert (answer.error, answer.snapshot_id, answer.data) == (error, None, b"")


@pytest.mark.parametrize(
    ("epoch", "error"),
    [
        (3, ErrorCode.FENCED_LEADER_EPOCH),
        (5, ErrorCode.UNKNOWN_LEADER_EPOCH),
        (4, ErrorCode.NOT_LEADER_OR_FOLLOWER),
    ],
)
def test_who_does_not_lead_says_who_does(epoch: int, error: ErrorCode) -> None:
    node = Following()
    request = FetchSnapshotRequest(
        "cluster", NodeId(3), directory(3), Epoch(epoch), SNAPSHOT, 0, 1_000
    )
    answer = only(node.take(received(request)), SendAnswer).answer
    assert isinstance(answer, FetchSnapshotAnswer)
    assert (answer.error, answer.leader_id, answer.epoch) == (error, 2, 4)


def test_a_snapshot_that_ends_above_what_is_committed_is_a_bug_of_ours() -> None:
    replica = leader_of()
    with pytest.raises(InvariantViolation, match="INV-28"):
        step(replica, events.SnapshotWritten(SnapshotId(Offset(7), Epoch(1))), 1_005)


def test_a_written_snapshot_that_was_overtaken_changes_nothing() -> None:
    replica = leader_of()
    step(replica, events.SnapshotWritten(SECOND), 1_005)
    assert step(replica, events.SnapshotWritten(FIRST), 1_006) == ()
    assert replica.newest_snapshot == SECOND


@pytest.mark.parametrize(
    "found",
    [
        LogShape(Offset(40), Offset(40), ()),
        LogShape(Offset(40), Offset(40), (), (SnapshotId(Offset(39), Epoch(3)),)),
        LogShape(Offset(0), Offset(0), (), (SNAPSHOT,)),
    ],
)
def test_a_log_without_its_snapshot_is_refused(found: LogShape) -> None:
    with pytest.raises(StorageMismatch):
        replica_of(epoch=4, log=found)
