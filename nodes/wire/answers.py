"""The quorum's answers as field values of Kafka's responses, and back.

A Kafka response has two error fields: one for the whole of it, one for the partition. What concerns
the request as such (wrong cluster, not allowed, not understood) goes into the first, all else into
the second; the first one that is set counts when reading. Error codes that the quorum has no name
for are read as ``UNKNOWN_SERVER_ERROR``. The records of a fetch pass untouched, apart from a last
batch that is cut short, which real Kafka sends and every receiver drops.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

from splitbrain.nodes.quorum.identifiers import (
    NO_EPOCH,
    UNKNOWN_OFFSET,
    DirectoryId,
    Epoch,
    NodeId,
    Offset,
)
from splitbrain.nodes.quorum.messages import (
    Answer,
    BeginQuorumEpochAnswer,
    DescribeQuorumAnswer,
    EndQuorumEpochAnswer,
    ErrorCode,
    FetchAnswer,
    FetchSnapshotAnswer,
    ReplicaProgress,
    VoteAnswer,
)
from splitbrain.nodes.quorum.persistent import SnapshotId
from splitbrain.nodes.wire.apis import (
    METADATA_PARTITION,
    METADATA_TOPIC,
    METADATA_TOPIC_ID,
    QUORUM_LISTENER,
    ApiKey,
)
from splitbrain.nodes.wire.batches import split_whole_batches
from splitbrain.nodes.wire.codec import Fields
from splitbrain.nodes.wire.errors import UnsupportedAnswerError, WireError
from splitbrain.nodes.wire.requests import (
    Endpoint,
    OtherPartition,
    named_topics,
    snapshot_id_from_fields,
    sole_partition,
)

Endpoints = Mapping[NodeId, Endpoint]

_NOBODY: Final = -1
_NO_SNAPSHOT: Final = SnapshotId(UNKNOWN_OFFSET, NO_EPOCH)
_WHOLE_RESPONSE: Final = frozenset(
    {
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
        ErrorCode.INCONSISTENT_CLUSTER_ID,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.UNSUPPORTED_VERSION,
    }
)


def answer_to_fields(answer: Answer, endpoints: Endpoints) -> Fields:
    """Field values of the answer's response; ``endpoints`` says where voters listen."""
    match answer:
        case VoteAnswer():
            return _leader_answer_to_fields(answer, {"vote_granted": answer.granted}, endpoints)
        case BeginQuorumEpochAnswer() | EndQuorumEpochAnswer():
            return _leader_answer_to_fields(answer, {}, endpoints)
        case FetchAnswer():
            return _fetch_to_fields(answer, endpoints)
        case FetchSnapshotAnswer():
            return _fetch_snapshot_to_fields(answer, endpoints)
        case DescribeQuorumAnswer():
            return _describe_to_fields(answer, endpoints)


def answer_from_fields(api_key: ApiKey, fields: Fields) -> Answer:
    """The answer that a response's field values make.

    Raises:
        UnsupportedAnswerError: it points to a snapshot that cannot be.
        WireError: it is not about the metadata partition, or its records are corrupt.
    """
    return _FROM_FIELDS[api_key](fields)


def refusal_to_fields(api_key: ApiKey, error: ErrorCode) -> Fields:
    """A response that says nothing but ``error``, as Kafka answers what it does not look into."""
    topics = "responses" if api_key is ApiKey.FETCH else "topics"
    return {"error_code": error, topics: []}


def _errors(error: ErrorCode) -> tuple[ErrorCode, ErrorCode]:
    """Codes of the whole response and of the partition."""
    if error in _WHOLE_RESPONSE:
        return error, ErrorCode.NONE
    return ErrorCode.NONE, error


def _error(fields: Fields, partition: Fields | None) -> ErrorCode:
    code: int = fields["error_code"]
    if code == ErrorCode.NONE and partition is not None:
        code = partition["error_code"]
    try:
        return ErrorCode(code)
    except ValueError:
        return ErrorCode.UNKNOWN_SERVER_ERROR


def _partition(fields: Fields, topics: str = "topics") -> Fields | None:
    """The one partition; None where an error of the whole response stands for it."""
    if not fields[topics] and fields["error_code"] != ErrorCode.NONE:
        return None
    try:
        return sole_partition(fields, topics)
    except OtherPartition as error:
        raise WireError("a response is not about the metadata partition alone") from error


def _leader_id(value: int) -> NodeId | None:
    return NodeId(value) if value >= 0 else None


def _leader_value(leader_id: NodeId | None) -> int:
    return _NOBODY if leader_id is None else leader_id


def _node_endpoints(leader_id: NodeId | None, endpoints: Endpoints) -> list[Fields]:
    endpoint = None if leader_id is None else endpoints.get(leader_id)
    if endpoint is None:
        return []
    return [{"node_id": leader_id, "host": endpoint.host, "port": endpoint.port}]


def _leader_answer_to_fields(
    answer: VoteAnswer | BeginQuorumEpochAnswer | EndQuorumEpochAnswer,
    more: Fields,
    endpoints: Endpoints,
) -> Fields:
    whole, partial = _errors(answer.error)
    partition: dict[str, Any] = {
        "error_code": partial,
        "leader_id": _leader_value(answer.leader_id),
        "leader_epoch": answer.epoch,
        **more,
    }
    return {
        "error_code": whole,
        "topics": named_topics(partition),
        "node_endpoints": _node_endpoints(answer.leader_id, endpoints),
    }


def _leader_and_epoch(partition: Fields | None) -> tuple[NodeId | None, Epoch]:
    if partition is None:
        return None, NO_EPOCH
    return _leader_id(partition["leader_id"]), Epoch(partition["leader_epoch"])


def _vote_from_fields(fields: Fields) -> VoteAnswer:
    partition = _partition(fields)
    leader_id, epoch = _leader_and_epoch(partition)
    granted = partition is not None and bool(partition["vote_granted"])
    return VoteAnswer(_error(fields, partition), leader_id, epoch, granted)


def _begin_from_fields(fields: Fields) -> BeginQuorumEpochAnswer:
    partition = _partition(fields)
    return BeginQuorumEpochAnswer(_error(fields, partition), *_leader_and_epoch(partition))


def _end_from_fields(fields: Fields) -> EndQuorumEpochAnswer:
    partition = _partition(fields)
    return EndQuorumEpochAnswer(_error(fields, partition), *_leader_and_epoch(partition))


def _fetch_to_fields(answer: FetchAnswer, endpoints: Endpoints) -> Fields:
    whole, partial = _errors(answer.error)
    partition: Fields = {
        "partition_index": METADATA_PARTITION,
        "error_code": partial,
        "high_watermark": answer.high_watermark,
        "log_start_offset": answer.log_start_offset,
        "records": answer.records,
        "current_leader": {
            "leader_id": _leader_value(answer.leader_id),
            "leader_epoch": answer.epoch,
        },
    }
    if answer.diverging is not None:
        epoch, end_offset = answer.diverging
        partition["diverging_epoch"] = {"epoch": epoch, "end_offset": end_offset}
    if answer.snapshot_id is not None:
        partition["snapshot_id"] = _snapshot_id_to_fields(answer.snapshot_id)
    return {
        "error_code": whole,
        "responses": [{"topic_id": METADATA_TOPIC_ID, "partitions": [partition]}],
        "node_endpoints": _node_endpoints(answer.leader_id, endpoints),
    }


def _fetch_from_fields(fields: Fields) -> FetchAnswer:
    partition = _partition(fields, "responses")
    error = _error(fields, partition)
    if partition is None:
        return FetchAnswer(error, None, NO_EPOCH, UNKNOWN_OFFSET, UNKNOWN_OFFSET, None, (), b"")
    diverging: Fields = partition["diverging_epoch"]
    says_diverging = diverging["epoch"] >= 0 or diverging["end_offset"] >= 0
    records, batches = split_whole_batches(partition["records"] or b"")
    return FetchAnswer(
        error=error,
        leader_id=_leader_id(partition["current_leader"]["leader_id"]),
        epoch=Epoch(partition["current_leader"]["leader_epoch"]),
        high_watermark=Offset(partition["high_watermark"]),
        log_start_offset=Offset(partition["log_start_offset"]),
        diverging=(Epoch(diverging["epoch"]), Offset(diverging["end_offset"]))
        if says_diverging
        else None,
        batches=batches,
        records=records,
        snapshot_id=_snapshot_id(partition["snapshot_id"]),
    )


def _fetch_snapshot_to_fields(answer: FetchSnapshotAnswer, endpoints: Endpoints) -> Fields:
    whole, partial = _errors(answer.error)
    partition: Fields = {
        "index": METADATA_PARTITION,
        "error_code": partial,
        "snapshot_id": _snapshot_id_to_fields(answer.snapshot_id or _NO_SNAPSHOT),
        "current_leader": {
            "leader_id": _leader_value(answer.leader_id),
            "leader_epoch": answer.epoch,
        },
        "size": answer.size_bytes,
        "position": answer.position,
        "unaligned_records": answer.data,
    }
    return {
        "error_code": whole,
        "topics": [{"name": METADATA_TOPIC, "partitions": [partition]}],
        "node_endpoints": _node_endpoints(answer.leader_id, endpoints),
    }


def _fetch_snapshot_from_fields(fields: Fields) -> FetchSnapshotAnswer:
    partition = _partition(fields)
    error = _error(fields, partition)
    if partition is None:
        return FetchSnapshotAnswer(error, None, NO_EPOCH, None, 0, 0, b"")
    leader_id, epoch = _leader_and_epoch(partition["current_leader"])
    return FetchSnapshotAnswer(
        error=error,
        leader_id=leader_id,
        epoch=epoch,
        snapshot_id=_snapshot_id(partition["snapshot_id"]),
        size_bytes=partition["size"],
        position=partition["position"],
        data=partition["unaligned_records"] or b"",
    )


def _snapshot_id(fields: Fields) -> SnapshotId | None:
    """None where no snapshot is named; raises UnsupportedAnswerError for half a name."""
    snapshot_id = snapshot_id_from_fields(fields)
    if snapshot_id.end_offset < 0 and snapshot_id.epoch < 0:
        return None
    if snapshot_id.end_offset < 0 or snapshot_id.epoch < 0:
        raise UnsupportedAnswerError(
            f"a snapshot that ends at offset {snapshot_id.end_offset} in epoch {snapshot_id.epoch}"
            " cannot be"
        )
    return snapshot_id


def _snapshot_id_to_fields(snapshot_id: SnapshotId) -> Fields:
    return {"end_offset": snapshot_id.end_offset, "epoch": snapshot_id.epoch}


def _describe_to_fields(answer: DescribeQuorumAnswer, endpoints: Endpoints) -> Fields:
    whole, partial = _errors(answer.error)
    partition: dict[str, Any] = {
        "error_code": partial,
        "leader_id": _leader_value(answer.leader_id),
        "leader_epoch": answer.epoch,
        "high_watermark": answer.high_watermark,
        "current_voters": [_progress_to_fields(progress) for progress in answer.voters],
        "observers": [_progress_to_fields(progress) for progress in answer.observers],
    }
    nodes = [
        {
            "node_id": progress.node_id,
            "listeners": [{"name": QUORUM_LISTENER, "host": endpoint.host, "port": endpoint.port}],
        }
        for progress in answer.voters
        if (endpoint := endpoints.get(progress.node_id)) is not None
    ]
    return {"error_code": whole, "topics": named_topics(partition), "nodes": nodes}


def _describe_from_fields(fields: Fields) -> DescribeQuorumAnswer:
    partition = _partition(fields)
    error = _error(fields, partition)
    leader_id, epoch = _leader_and_epoch(partition)
    if partition is None:
        return DescribeQuorumAnswer(error, leader_id, epoch, UNKNOWN_OFFSET, (), ())
    return DescribeQuorumAnswer(
        error=error,
        leader_id=leader_id,
        epoch=epoch,
        high_watermark=Offset(partition["high_watermark"]),
        voters=tuple(_progress_from_fields(entry) for entry in partition["current_voters"]),
        observers=tuple(_progress_from_fields(entry) for entry in partition["observers"]),
    )


def _progress_to_fields(progress: ReplicaProgress) -> Fields:
    return {
        "replica_id": progress.node_id,
        "replica_directory_id": progress.directory_id,
        "log_end_offset": progress.end_offset,
        "last_fetch_timestamp": progress.last_fetch_ms,
        "last_caught_up_timestamp": progress.last_caught_up_ms,
    }


def _progress_from_fields(fields: Fields) -> ReplicaProgress:
    return ReplicaProgress(
        node_id=NodeId(fields["replica_id"]),
        directory_id=DirectoryId(fields["replica_directory_id"]),
        end_offset=Offset(fields["log_end_offset"]),
        last_fetch_ms=fields["last_fetch_timestamp"],
        last_caught_up_ms=fields["last_caught_up_timestamp"],
    )


_FROM_FIELDS: Final[Mapping[ApiKey, Callable[[Fields], Answer]]] = MappingProxyType(
    {
        ApiKey.VOTE: _vote_from_fields,
        ApiKey.BEGIN_QUORUM_EPOCH: _begin_from_fields,
        ApiKey.END_QUORUM_EPOCH: _end_from_fields,
        ApiKey.FETCH: _fetch_from_fields,
        ApiKey.FETCH_SNAPSHOT: _fetch_snapshot_from_fields,
        ApiKey.DESCRIBE_QUORUM: _describe_from_fields,
    }
)
