"""Effects of a replica: everything that ``Replica.step`` returns, to be performed in that order.

- **Storage** (``PersistQuorumState``, appends, ``TruncateLog``, ``ReplaceLog``) is *submitted* in
  order and completes later, reported by ``QuorumStatePersisted`` and ``LogFlushed``; quorum state
  and log are two queues. A submitted append can be read at once, so an answer to a fetch may
  contain records that are not flushed here.
- **Snapshots** (chunk, freeze, abandon) are a third queue; nobody waits for ``CutLogStart``.
- **Messages** may leave at once: the replica has held them back until what they promise is durable.
- A failed write or fsync is never retried: the host stops the node.
"""

from typing import Literal

import msgspec

from splitbrain.nodes.quorum.events import ProposalId, ReadId
from splitbrain.nodes.quorum.identifiers import ConnectionId, CorrelationId, Epoch, NodeId, Offset
from splitbrain.nodes.quorum.messages import (
    Answer,
    BatchHeader,
    FetchAnswer,
    FetchSnapshotAnswer,
    Request,
)
from splitbrain.nodes.quorum.persistent import EpochStart, QuorumState, SnapshotId

ReportKind = Literal["started", "role", "high-watermark", "append", "commit", "truncate"]


class PersistQuorumState(msgspec.Struct, frozen=True, tag=True):
    """Write the quorum state atomically and durably; a later version may overtake this one."""

    #: Ascending within an incarnation, with gaps; at most one per step.
    version: int
    state: QuorumState


class AppendLeaderChange(msgspec.Struct, frozen=True, tag=True):
    """A new leader's first record: Kafka's LeaderChangeMessage in a control batch of its own.

    It counts as flushed once ``epoch_start`` is durable in the leader-epoch checkpoint, too.
    """

    #: Number of this log effect, shared by all of them, from 1, without gaps in an incarnation.
    submission: int
    base_offset: Offset
    epoch: Epoch
    leader_id: NodeId
    voters: tuple[NodeId, ...]
    granting_voters: tuple[NodeId, ...]
    epoch_start: EpochStart


class AppendRecords(msgspec.Struct, frozen=True, tag=True):
    """Encode these payloads as one batch (one record each, from ``base_offset``) and append it."""

    submission: int
    base_offset: Offset
    epoch: Epoch
    payloads: tuple[bytes, ...]


class AppendBatches(msgspec.Struct, frozen=True, tag=True):
    """Append raw batches of the leader, byte for byte.

    They count as flushed once ``epoch_starts`` are durable in the leader-epoch checkpoint, too.
    """

    submission: int
    base_offset: Offset
    #: One past the last record.
    end_offset: Offset
    batches: tuple[BatchHeader, ...]
    records: bytes
    epoch_starts: tuple[EpochStart, ...]


class TruncateLog(msgspec.Struct, frozen=True, tag=True):
    """Drop every record at or above ``end_offset``, and every epoch start at or above it."""

    submission: int
    end_offset: Offset


class ReplaceLog(msgspec.Struct, frozen=True, tag=True):
    """Drop the whole log: it is empty and starts where the snapshot ends, which is durable.

    The state machine is what the snapshot says from here on. Must be whole before any later effect
    is performed.
    """

    submission: int
    snapshot_id: SnapshotId


class CutLogStart(msgspec.Struct, frozen=True, tag=True):
    """The log starts where this snapshot ends: segments that lie below, and older snapshots, go.

    The snapshot is durable, and so are newer ones. Nothing below is read any more.
    """

    snapshot_id: SnapshotId


class WriteSnapshotChunk(msgspec.Struct, frozen=True, tag=True):
    """Bytes of a snapshot that a leader sent, in order; position 0 begins it, and ends any other.

    Nothing of it counts before ``FreezeSnapshot``.
    """

    snapshot_id: SnapshotId
    position: int
    data: bytes


class FreezeSnapshot(msgspec.Struct, frozen=True, tag=True):
    """All bytes are written: check them, make the snapshot durable, and say ``SnapshotFrozen``."""

    snapshot_id: SnapshotId


class AbandonSnapshot(msgspec.Struct, frozen=True, tag=True):
    """Nobody wants the rest of this snapshot: remove what was written."""

    snapshot_id: SnapshotId


class SendRequest(msgspec.Struct, frozen=True, tag=True):
    """Send to a peer, alone on a connection; report AnswerReceived or, in time, RequestFailed.

    There is at most one outstanding request per peer.
    """

    peer: NodeId
    #: Unique within the incarnation.
    correlation: CorrelationId
    request: Request
    timeout_ms: int


class AbandonRequest(msgspec.Struct, frozen=True, tag=True):
    """Nobody waits for this answer any more: close its connection; no event need follow."""

    peer: NodeId
    correlation: CorrelationId


class SendAnswer(msgspec.Struct, frozen=True, tag=True):
    """Answer a request; dropped silently if the connection is gone.

    A DescribeQuorumAnswer carries times of the monotonic clock given to ``step``, in ms: the host
    moves them to wall time.
    """

    connection: ConnectionId
    correlation: CorrelationId
    answer: Answer


class AnswerFetch(msgspec.Struct, frozen=True, tag=True):
    """Answer a fetch with whole batches from ``read_offset`` on, all below ``end_offset``.

    The host fills ``batches`` and ``records`` of ``answer`` (as much as fits into ``max_bytes``,
    at least one batch if there is one) from the log as it is at this place in the order of
    effects, so never across a later truncation. ``read_offset == end_offset``: no records.
    """

    connection: ConnectionId
    correlation: CorrelationId
    answer: FetchAnswer
    read_offset: Offset
    end_offset: Offset
    max_bytes: int


class AnswerFetchSnapshot(msgspec.Struct, frozen=True, tag=True):
    """Answer with bytes of a snapshot.

    The host fills ``size_bytes`` and ``data`` of ``answer`` from the file, from ``position`` on and
    as much as ``max_bytes`` allows; it may take its time. Where the file is gone the answer is
    SNAPSHOT_NOT_FOUND, where it has no byte at the position POSITION_OUT_OF_RANGE, without bytes.
    """

    connection: ConnectionId
    correlation: CorrelationId
    answer: FetchSnapshotAnswer
    snapshot_id: SnapshotId
    position: int
    max_bytes: int


class AdvanceHighWatermark(msgspec.Struct, frozen=True, tag=True):
    """Everything below ``offset`` is committed and is in this node's log: apply it."""

    offset: Offset


class AcceptProposal(msgspec.Struct, frozen=True, tag=True):
    """The records are appended here, no more.

    They are committed once the high watermark is above ``last_offset`` *while this node still leads
    this epoch*; else their fate is unknown.
    """

    proposal_id: ProposalId
    base_offset: Offset
    #: Inclusive.
    last_offset: Offset
    epoch: Epoch


class RejectProposal(msgspec.Struct, frozen=True, tag=True):
    """Not the leader: the records are certainly not appended."""

    proposal_id: ProposalId
    leader_id: NodeId | None
    epoch: Epoch


class AnswerRead(msgspec.Struct, frozen=True, tag=True):
    """The read may be served once the state machine has applied everything below ``offset``."""

    read_id: ReadId
    offset: Offset
    epoch: Epoch


class RejectRead(msgspec.Struct, frozen=True, tag=True):
    """Not the leader, or no longer: ask again elsewhere."""

    read_id: ReadId
    leader_id: NodeId | None
    epoch: Epoch


class ReportState(msgspec.Struct, frozen=True, tag=True):
    """Material for a state event (the same field meanings as in ``contracts``).

    ``append`` has ``base_offset`` and ``offset`` (end), at submission; ``commit`` likewise, by a
    leader whose high watermark moved; ``high-watermark`` (offset) by any other role; ``truncate``
    has the new end offset, which is that of the snapshot where one has replaced the log; ``role``
    has role and leader; ``started`` has role, leader and log end.
    """

    kind: ReportKind
    epoch: Epoch
    #: Number of the event, counted from 1 in this incarnation, that caused it.
    cause: int
    role: str
    leader_id: NodeId | None
    offset: Offset | None = None
    base_offset: Offset | None = None
    #: Why, in words, for a change of role, or for a log that was replaced.
    reason: str | None = None


class Warn(msgspec.Struct, frozen=True, tag=True):
    """Tell the operator, in the node's log; nothing else comes of it."""

    #: The same for all warnings of one kind.
    message: str
    reason: str


class Halt(msgspec.Struct, frozen=True, tag=True):
    """The node must stop for good: going on could break a promise. Nothing follows it."""

    reason: str


Effect = (
    PersistQuorumState
    | AppendLeaderChange
    | AppendRecords
    | AppendBatches
    | TruncateLog
    | ReplaceLog
    | CutLogStart
    | WriteSnapshotChunk
    | FreezeSnapshot
    | AbandonSnapshot
    | SendRequest
    | AbandonRequest
    | SendAnswer
    | AnswerFetch
    | AnswerFetchSnapshot
    | AdvanceHighWatermark
    | AcceptProposal
    | RejectProposal
    | AnswerRead
    | RejectRead
    | ReportState
    | Warn
    | Halt
)
