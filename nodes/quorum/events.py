"""Events of a replica: everything that ``Replica.step`` takes.

An inbound connection carries one request at a time: the host reads the next one only after it has
sent the answer to the last. An outbound request is sent alone on its connection; if it fails or is
abandoned the host closes that connection and uses a new one. Linearizable reads depend on it.
"""

from typing import NewType

import msgspec

from splitbrain.nodes.quorum.identifiers import ConnectionId, CorrelationId, Incarnation, NodeId
from splitbrain.nodes.quorum.messages import Answer, Request
from splitbrain.nodes.quorum.persistent import SnapshotId

#: Chosen by the layer above, unique within an incarnation.
ProposalId = NewType("ProposalId", int)
#: Chosen by the layer above, unique within an incarnation.
ReadId = NewType("ReadId", int)


class Started(msgspec.Struct, frozen=True, tag=True):
    """The process is up; the first event, given once."""


class TimerElapsed(msgspec.Struct, frozen=True, tag=True):
    """Time has passed; the replica looks at ``now``, so an early one does nothing."""


class RequestReceived(msgspec.Struct, frozen=True, tag=True):
    """A peer asks something. It is answered once on that connection, maybe much later."""

    connection: ConnectionId
    #: Chosen by the peer; given back in the answer.
    correlation: CorrelationId
    request: Request


class ConnectionClosed(msgspec.Struct, frozen=True, tag=True):
    """An inbound connection is gone; no answer can leave on it any more."""

    connection: ConnectionId


class AnswerReceived(msgspec.Struct, frozen=True, tag=True):
    """A peer answered a request of ours. Unknown correlations are ignored."""

    peer: NodeId
    correlation: CorrelationId
    #: Life of this node in which the request was sent.
    incarnation: Incarnation
    answer: Answer


class RequestFailed(msgspec.Struct, frozen=True, tag=True):
    """No answer will come: timeout, reset, refused, undecodable. The connection is closed."""

    peer: NodeId
    correlation: CorrelationId
    incarnation: Incarnation
    #: In words, for the trace; the replica does not look into it.
    reason: str
    #: The connection was refused: nobody listens there, so the peer's process does not run.
    refused: bool = False


class QuorumStatePersisted(msgspec.Struct, frozen=True, tag=True):
    """The quorum state of this version, and so every older one, is durable."""

    version: int


class LogFlushed(msgspec.Struct, frozen=True, tag=True):
    """Every log effect up to and with this submission is durable (one report may cover many)."""

    submission: int


class SnapshotWritten(msgspec.Struct, frozen=True, tag=True):
    """A snapshot of what this node has applied is durable under its name."""

    snapshot_id: SnapshotId


class SnapshotFrozen(msgspec.Struct, frozen=True, tag=True):
    """End of what ``FreezeSnapshot`` asked for: a fetched snapshot is whole and durable, or not.

    A host that was told to begin another one, or to abandon it, may never say so.
    """

    snapshot_id: SnapshotId
    #: The problem with it, in words; None: nothing.
    problem: str | None = None


class RecordsProposed(msgspec.Struct, frozen=True, tag=True):
    """The layer above wants records appended as one batch; answered at once, see effects."""

    proposal_id: ProposalId
    #: Record values, opaque, at least one.
    payloads: tuple[bytes, ...]


class ReadRequested(msgspec.Struct, frozen=True, tag=True):
    """The layer above wants to read linearizably; answered or rejected later."""

    read_id: ReadId


class ResignRequested(msgspec.Struct, frozen=True, tag=True):
    """A graceful stop: a leader hands over, any other role does nothing."""


Event = (
    Started
    | TimerElapsed
    | RequestReceived
    | ConnectionClosed
    | AnswerReceived
    | RequestFailed
    | QuorumStatePersisted
    | LogFlushed
    | SnapshotWritten
    | SnapshotFrozen
    | RecordsProposed
    | ReadRequested
    | ResignRequested
)
