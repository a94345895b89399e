"""The quorum's requests as field values of Kafka's messages, and back.

One pair of functions for each request. Must never lose a field that the version can carry; what an
old version lacks comes back as Kafka's default: voter id -1 (any voter), ``NO_DIRECTORY``,
``UNKNOWN_OFFSET``. A request about another partition is refused by name, not guessed at.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

import msgspec

from splitbrain.nodes.quorum.identifiers import (
    NO_EPOCH,
    UNKNOWN_OFFSET,
    DirectoryId,
    Epoch,
    NodeId,
    Offset,
)
from splitbrain.nodes.quorum.messages import (
    BeginQuorumEpochRequest,
    DescribeQuorumRequest,
    EndQuorumEpochRequest,
    ErrorCode,
    FetchRequest,
    FetchSnapshotRequest,
    Request,
    VoteRequest,
)
from splitbrain.nodes.quorum.persistent import SnapshotId
from splitbrain.nodes.wire.apis import (
    METADATA_PARTITION,
    METADATA_TOPIC,
    METADATA_TOPIC_ID,
    PRE_VOTE_SINCE,
    QUORUM_LISTENER,
    ApiKey,
)
from splitbrain.nodes.wire.codec import Fields
from splitbrain.nodes.wire.schemas import HIGH_WATERMARK_NOT_SUPPORTED


class Endpoint(msgspec.Struct, frozen=True):
    """Where a node's quorum listener is reached."""

    host: str
    port: int


class OtherPartition(Exception):
    """The fields are not about the metadata partition alone; ``messages`` makes the error of it."""

    def __init__(self, code: ErrorCode) -> None:
        self.code = code
        super().__init__(code.name)


def request_to_fields(request: Request, version: int, leader: Endpoint | None) -> Fields:
    """Field values of the request's message.

    ``leader``: own listener, which BeginQuorumEpoch and EndQuorumEpoch tell.

    Raises:
        ValueError: the version cannot say what the request says.
    """
    match request:
        case VoteRequest():
            return _vote_to_fields(request, version)
        case BeginQuorumEpochRequest():
            return _begin_to_fields(request, leader)
        case EndQuorumEpochRequest():
            return _end_to_fields(request, leader)
        case FetchRequest():
            return _fetch_to_fields(request)
        case FetchSnapshotRequest():
            return _fetch_snapshot_to_fields(request)
        case DescribeQuorumRequest():
            return {"topics": named_topics({})}


def request_from_fields(api_key: ApiKey, fields: Fields) -> Request:
    """The request that a message's field values make.

    Raises:
        OtherPartition: it is not about the metadata partition alone.
    """
    return _FROM_FIELDS[api_key](fields)


def named_topics(partition: Fields) -> list[Fields]:
    """The topics of a message that names them, with the one partition in them."""
    numbered = {"partition_index": METADATA_PARTITION, **partition}
    return [{"topic_name": METADATA_TOPIC, "partitions": [numbered]}]


def sole_partition(fields: Fields, topics: str = "topics") -> Fields:
    """The one partition of a message.

    Raises:
        OtherPartition: there is another one, or none.
    """
    found: list[Fields] = fields[topics]
    by_id = len(found) == 1 and "topic_id" in found[0]
    unknown = ErrorCode.UNKNOWN_TOPIC_ID if by_id else ErrorCode.INVALID_REQUEST
    if len(found) != 1:
        raise OtherPartition(ErrorCode.INVALID_REQUEST)
    topic = found[0]
    name = topic.get("topic_name", topic.get("name"))
    if topic["topic_id"] != METADATA_TOPIC_ID if by_id else name != METADATA_TOPIC:
        raise OtherPartition(unknown)
    partitions: list[Fields] = topic["partitions"]
    if len(partitions) != 1:
        raise OtherPartition(unknown)
    if _number_of(partitions[0]) != METADATA_PARTITION:
        raise OtherPartition(unknown)
    return partitions[0]


def _number_of(partition: Fields) -> int:
    """Kafka has three names for it."""
    return next(
        partition[name] for name in ("partition_index", "partition", "index") if name in partition
    )


def _vote_to_fields(request: VoteRequest, version: int) -> Fields:
    if request.pre_vote and version < PRE_VOTE_SINCE:
        raise ValueError(f"Vote version {version} has no pre-vote")
    partition = {
        "replica_epoch": request.epoch,
        "replica_id": request.candidate_id,
        "replica_directory_id": request.candidate_directory_id,
        "voter_directory_id": request.voter_directory_id,
        "last_offset_epoch": _told_epoch(request.last_epoch),
        "last_offset": request.end_offset,
        "pre_vote": request.pre_vote,
    }
    return {
        "cluster_id": request.cluster_id,
        "voter_id": request.voter_id,
        "topics": named_topics(partition),
    }


def _told_epoch(epoch: Epoch) -> int:
    """Kafka's nodes refuse one below 0 as malformed: an empty log's is 0, as their own is."""
    return max(epoch, 0)


def _last_epoch(told: int, end_offset: int) -> Epoch:
    """The epoch of the last record before an offset, which is none of an empty log."""
    return NO_EPOCH if told == end_offset == 0 else Epoch(told)


def _vote_from_fields(fields: Fields) -> VoteRequest:
    partition = sole_partition(fields)
    return VoteRequest(
        cluster_id=fields["cluster_id"],
        voter_id=NodeId(fields["voter_id"]),
        voter_directory_id=DirectoryId(partition["voter_directory_id"]),
        epoch=Epoch(partition["replica_epoch"]),
        candidate_id=NodeId(partition["replica_id"]),
        candidate_directory_id=DirectoryId(partition["replica_directory_id"]),
        last_epoch=_last_epoch(partition["last_offset_epoch"], partition["last_offset"]),
        end_offset=Offset(partition["last_offset"]),
        pre_vote=partition["pre_vote"],
    )


def _begin_to_fields(request: BeginQuorumEpochRequest, leader: Endpoint | None) -> Fields:
    partition = {
        "voter_directory_id": request.voter_directory_id,
        "leader_id": request.leader_id,
        "leader_epoch": request.epoch,
    }
    return {
        "cluster_id": request.cluster_id,
        "voter_id": request.voter_id,
        "topics": named_topics(partition),
        "leader_endpoints": _leader_endpoints(leader),
    }


def _begin_from_fields(fields: Fields) -> BeginQuorumEpochRequest:
    partition = sole_partition(fields)
    return BeginQuorumEpochRequest(
        cluster_id=fields["cluster_id"],
        voter_id=NodeId(fields["voter_id"]),
        voter_directory_id=DirectoryId(partition["voter_directory_id"]),
        leader_id=NodeId(partition["leader_id"]),
        epoch=Epoch(partition["leader_epoch"]),
    )


def _end_to_fields(request: EndQuorumEpochRequest, leader: Endpoint | None) -> Fields:
    candidates = [
        {"candidate_id": node_id, "candidate_directory_id": directory_id}
        for node_id, directory_id in request.preferred
    ]
    partition = {
        "leader_id": request.leader_id,
        "leader_epoch": request.epoch,
        "preferred_candidates": candidates,
    }
    return {
        "cluster_id": request.cluster_id,
        "topics": named_topics(partition),
        "leader_endpoints": _leader_endpoints(leader),
    }


def _end_from_fields(fields: Fields) -> EndQuorumEpochRequest:
    partition = sole_partition(fields)
    preferred = tuple(
        (NodeId(entry["candidate_id"]), DirectoryId(entry["candidate_directory_id"]))
        for entry in partition["preferred_candidates"]
    )
    return EndQuorumEpochRequest(
        cluster_id=fields["cluster_id"],
        leader_id=NodeId(partition["leader_id"]),
        epoch=Epoch(partition["leader_epoch"]),
        preferred=preferred,
    )


def _fetch_to_fields(request: FetchRequest) -> Fields:
    partition = {
        "partition": METADATA_PARTITION,
        "current_leader_epoch": request.epoch,
        "fetch_offset": request.fetch_offset,
        "last_fetched_epoch": _told_epoch(request.last_fetched_epoch),
        "partition_max_bytes": request.max_bytes,
        "replica_directory_id": request.replica_directory_id,
        "high_watermark": request.high_watermark,
    }
    return {
        "max_wait_ms": request.max_wait_ms,
        "max_bytes": request.max_bytes,
        "topics": [{"topic_id": METADATA_TOPIC_ID, "partitions": [partition]}],
        "cluster_id": request.cluster_id,
        "replica_state": {"replica_id": request.replica_id, "replica_epoch": -1},
    }


def _fetch_from_fields(fields: Fields) -> FetchRequest:
    partition = sole_partition(fields)
    high_watermark: int = partition["high_watermark"]
    if high_watermark == HIGH_WATERMARK_NOT_SUPPORTED:
        high_watermark = UNKNOWN_OFFSET
    return FetchRequest(
        cluster_id=fields["cluster_id"],
        replica_id=NodeId(fields["replica_state"]["replica_id"]),
        replica_directory_id=DirectoryId(partition["replica_directory_id"]),
        epoch=Epoch(partition["current_leader_epoch"]),
        fetch_offset=Offset(partition["fetch_offset"]),
        last_fetched_epoch=_last_epoch(partition["last_fetched_epoch"], partition["fetch_offset"]),
        high_watermark=Offset(high_watermark),
        max_wait_ms=fields["max_wait_ms"],
        max_bytes=fields["max_bytes"],
    )


def _fetch_snapshot_to_fields(request: FetchSnapshotRequest) -> Fields:
    partition = {
        "partition": METADATA_PARTITION,
        "current_leader_epoch": request.epoch,
        "snapshot_id": {
            "end_offset": request.snapshot_id.end_offset,
            "epoch": request.snapshot_id.epoch,
        },
        "position": request.position,
        "replica_directory_id": request.replica_directory_id,
    }
    return {
        "cluster_id": request.cluster_id,
        "replica_id": request.replica_id,
        "max_bytes": request.max_bytes,
        "topics": [{"name": METADATA_TOPIC, "partitions": [partition]}],
    }


def _fetch_snapshot_from_fields(fields: Fields) -> FetchSnapshotRequest:
    partition = sole_partition(fields)
    return FetchSnapshotRequest(
        cluster_id=fields["cluster_id"],
        replica_id=NodeId(fields["replica_id"]),
        replica_directory_id=DirectoryId(partition["replica_directory_id"]),
        epoch=Epoch(partition["current_leader_epoch"]),
        snapshot_id=snapshot_id_from_fields(partition["snapshot_id"]),
        position=partition["position"],
        max_bytes=fields["max_bytes"],
    )


def snapshot_id_from_fields(fields: Fields) -> SnapshotId:
    """The snapshot that a message names."""
    return SnapshotId(Offset(fields["end_offset"]), Epoch(fields["epoch"]))


def _describe_from_fields(fields: Fields) -> DescribeQuorumRequest:
    sole_partition(fields)
    return DescribeQuorumRequest()


def _leader_endpoints(leader: Endpoint | None) -> list[dict[str, Any]]:
    if leader is None:
        return []
    return [{"name": QUORUM_LISTENER, "host": leader.host, "port": leader.port}]


_FROM_FIELDS: Final[Mapping[ApiKey, Callable[[Fields], Request]]] = MappingProxyType(
    {
        ApiKey.VOTE: _vote_from_fields,
        ApiKey.BEGIN_QUORUM_EPOCH: _begin_from_fields,
        ApiKey.END_QUORUM_EPOCH: _end_from_fields,
        ApiKey.FETCH: _fetch_from_fields,
        ApiKey.FETCH_SNAPSHOT: _fetch_snapshot_from_fields,
        ApiKey.DESCRIBE_QUORUM: _describe_from_fields,
    }
)
