"""The quorum's requests as Kafka's messages, and back.

A field that an old version lacks comes back as Kafka's default: voter id -1 (any voter),
``NO_DIRECTORY``, ``UNKNOWN_OFFSET``. A request about another partition is refused by name.
"""

from typing import TypeAlias, TypeVar

import msgspec

from splitbrain.nodes.quorum import messages as core
from splitbrain.nodes.quorum.identifiers import (
    NO_EPOCH,
    UNKNOWN_OFFSET,
    DirectoryId,
    Epoch,
    NodeId,
    Offset,
)
from splitbrain.nodes.quorum.messages import ErrorCode
from splitbrain.nodes.quorum.persistent import SnapshotId
from splitbrain.nodes.wire.apis import (
    METADATA_PARTITION,
    METADATA_TOPIC,
    METADATA_TOPIC_ID,
    QUORUM_LISTENER,
)
from splitbrain.nodes.wire.families import quorum as kafka

P = TypeVar("P", bound=msgspec.Struct)
Topics: TypeAlias = tuple[kafka.Topic[P] | kafka.IdentifiedTopic[P] | kafka.NamedTopic[P], ...]


class Endpoint(msgspec.Struct, frozen=True):
    """Where a node's quorum listener is reached."""

    host: str
    port: int


class OtherPartition(Exception):
    """The message is not about the metadata partition alone; ``messages`` makes the error of it."""

    def __init__(self, code: ErrorCode) -> None:
        self.code = code
        super().__init__(code.name)


def request_to_kafka(request: core.Request, leader: Endpoint | None) -> msgspec.Struct:
    """Return the request as Kafka's message.

    ``leader``: own listener, which BeginQuorumEpoch and EndQuorumEpoch tell.
    """
    match request:
        case core.VoteRequest():
            return _vote_to_kafka(request)
        case core.BeginQuorumEpochRequest():
            begun = kafka.BegunPartition(
                partition_index=METADATA_PARTITION,
                voter_directory_id=request.voter_directory_id,
                leader_id=request.leader_id,
                leader_epoch=request.epoch,
            )
            return kafka.BeginQuorumEpochRequest(
                cluster_id=request.cluster_id,
                voter_id=request.voter_id,
                topics=named_topics(begun),
                leader_endpoints=listeners_of(leader),
            )
        case core.EndQuorumEpochRequest():
            return _end_to_kafka(request, leader)
        case core.FetchRequest():
            return _fetch_to_kafka(request)
        case core.FetchSnapshotRequest():
            return _fetch_snapshot_to_kafka(request)
        case core.DescribeQuorumRequest():
            described = kafka.PartitionNumber(partition_index=METADATA_PARTITION)
            return kafka.DescribeQuorumRequest(topics=named_topics(described))


def request_from_kafka(message: msgspec.Struct) -> core.Request:
    """Return the request that Kafka's message makes; raises OtherPartition."""
    match message:
        case kafka.FetchRequest():
            return _fetch_from_kafka(message)
        case kafka.VoteRequest():
            return _vote_from_kafka(message)
        case kafka.BeginQuorumEpochRequest():
            begun = sole_partition(message.topics)
            return core.BeginQuorumEpochRequest(
                cluster_id=message.cluster_id,
                voter_id=NodeId(message.voter_id),
                voter_directory_id=DirectoryId(begun.voter_directory_id),
                leader_id=NodeId(begun.leader_id),
                epoch=Epoch(begun.leader_epoch),
            )
        case kafka.EndQuorumEpochRequest():
            return _end_from_kafka(message)
        case kafka.FetchSnapshotRequest():
            return _fetch_snapshot_from_kafka(message)
        case kafka.DescribeQuorumRequest():
            sole_partition(message.topics)
            return core.DescribeQuorumRequest()
        case _:
            raise TypeError(f"{type(message).__name__} is no request of the quorum")


def named_topics(partition: P) -> tuple[kafka.Topic[P], ...]:
    """Return the topics of a message that names them, with the one partition in them."""
    return (kafka.Topic(topic_name=METADATA_TOPIC, partitions=(partition,)),)


def sole_partition(topics: Topics[P]) -> P:
    """Return the one partition of a message; raises OtherPartition if there is another, or none."""
    if len(topics) != 1:
        raise OtherPartition(ErrorCode.INVALID_REQUEST)
    (topic,) = topics
    ours, unknown = METADATA_TOPIC, ErrorCode.INVALID_REQUEST
    if isinstance(topic, kafka.IdentifiedTopic):
        ours, unknown = METADATA_TOPIC_ID, ErrorCode.UNKNOWN_TOPIC_ID
    numbers = [_first_field(partition) for partition in topic.partitions]
    if (_first_field(topic), numbers) != (ours, [METADATA_PARTITION]):
        raise OtherPartition(unknown)
    return topic.partitions[0]


def _first_field(message: msgspec.Struct) -> str | int:
    """Return a topic's name or id, a partition's number: Kafka has three names for either."""
    return getattr(message, message.__struct_fields__[0])


def _vote_to_kafka(request: core.VoteRequest) -> kafka.VoteRequest:
    partition = kafka.VotePartition(
        partition_index=METADATA_PARTITION,
        replica_epoch=request.epoch,
        replica_id=request.candidate_id,
        replica_directory_id=request.candidate_directory_id,
        voter_directory_id=request.voter_directory_id,
        last_offset_epoch=_epoch_to_kafka(request.last_epoch),
        last_offset=request.end_offset,
        pre_vote=request.pre_vote,
    )
    return kafka.VoteRequest(
        cluster_id=request.cluster_id, voter_id=request.voter_id, topics=named_topics(partition)
    )


def _epoch_to_kafka(epoch: Epoch) -> int:
    """Kafka's nodes refuse one below 0 as malformed: an empty log's is 0, as their own is."""
    return max(epoch, 0)


def _last_epoch(epoch: int, end_offset: int) -> Epoch:
    """Return the epoch of the last record before an offset, which is none of an empty log."""
    return NO_EPOCH if epoch == end_offset == 0 else Epoch(epoch)


def _vote_from_kafka(message: kafka.VoteRequest) -> core.VoteRequest:
    partition = sole_partition(message.topics)
    return core.VoteRequest(
        cluster_id=message.cluster_id,
        voter_id=NodeId(message.voter_id),
        voter_directory_id=DirectoryId(partition.voter_directory_id),
        epoch=Epoch(partition.replica_epoch),
        candidate_id=NodeId(partition.replica_id),
        candidate_directory_id=DirectoryId(partition.replica_directory_id),
        last_epoch=_last_epoch(partition.last_offset_epoch, partition.last_offset),
        end_offset=Offset(partition.last_offset),
        pre_vote=partition.pre_vote,
    )


def _end_to_kafka(
    request: core.EndQuorumEpochRequest, leader: Endpoint | None
) -> kafka.EndQuorumEpochRequest:
    partition = kafka.EndedPartition(
        partition_index=METADATA_PARTITION,
        leader_id=request.leader_id,
        leader_epoch=request.epoch,
        preferred_candidates=tuple(
            kafka.PreferredCandidate(candidate_id=node_id, candidate_directory_id=directory_id)
            for node_id, directory_id in request.preferred
        ),
    )
    return kafka.EndQuorumEpochRequest(
        cluster_id=request.cluster_id,
        topics=named_topics(partition),
        leader_endpoints=listeners_of(leader),
    )


def _end_from_kafka(message: kafka.EndQuorumEpochRequest) -> core.EndQuorumEpochRequest:
    partition = sole_partition(message.topics)
    return core.EndQuorumEpochRequest(
        cluster_id=message.cluster_id,
        leader_id=NodeId(partition.leader_id),
        epoch=Epoch(partition.leader_epoch),
        preferred=tuple(
            (NodeId(entry.candidate_id), DirectoryId(entry.candidate_directory_id))
            for entry in partition.preferred_candidates
        ),
    )


def _fetch_to_kafka(request: core.FetchRequest) -> kafka.FetchRequest:
    partition = kafka.PartitionToFetch(
        partition=METADATA_PARTITION,
        current_leader_epoch=request.epoch,
        fetch_offset=request.fetch_offset,
        last_fetched_epoch=_epoch_to_kafka(request.last_fetched_epoch),
        partition_max_bytes=request.max_bytes,
        replica_directory_id=request.replica_directory_id,
        high_watermark=request.high_watermark,
    )
    return kafka.FetchRequest(
        max_wait_ms=request.max_wait_ms,
        max_bytes=request.max_bytes,
        topics=(kafka.IdentifiedTopic(topic_id=METADATA_TOPIC_ID, partitions=(partition,)),),
        cluster_id=request.cluster_id,
        replica_state=kafka.ReplicaState(replica_id=request.replica_id),
    )


def _fetch_from_kafka(message: kafka.FetchRequest) -> core.FetchRequest:
    partition = sole_partition(message.topics)
    high_watermark = partition.high_watermark
    if high_watermark == kafka.HIGH_WATERMARK_NOT_SUPPORTED:
        high_watermark = UNKNOWN_OFFSET
    return core.FetchRequest(
        cluster_id=message.cluster_id,
        replica_id=NodeId(message.replica_state.replica_id),
        replica_directory_id=DirectoryId(partition.replica_directory_id),
        epoch=Epoch(partition.current_leader_epoch),
        fetch_offset=Offset(partition.fetch_offset),
        last_fetched_epoch=_last_epoch(partition.last_fetched_epoch, partition.fetch_offset),
        high_watermark=Offset(high_watermark),
        max_wait_ms=message.max_wait_ms,
        max_bytes=message.max_bytes,
    )


def _fetch_snapshot_to_kafka(request: core.FetchSnapshotRequest) -> kafka.FetchSnapshotRequest:
    partition = kafka.SnapshotToFetch(
        partition=METADATA_PARTITION,
        current_leader_epoch=request.epoch,
        snapshot_id=snapshot_id_to_kafka(request.snapshot_id),
        position=request.position,
        replica_directory_id=request.replica_directory_id,
    )
    return kafka.FetchSnapshotRequest(
        cluster_id=request.cluster_id,
        replica_id=request.replica_id,
        max_bytes=request.max_bytes,
        topics=(kafka.NamedTopic(name=METADATA_TOPIC, partitions=(partition,)),),
    )


def _fetch_snapshot_from_kafka(message: kafka.FetchSnapshotRequest) -> core.FetchSnapshotRequest:
    partition = sole_partition(message.topics)
    return core.FetchSnapshotRequest(
        cluster_id=message.cluster_id,
        replica_id=NodeId(message.replica_id),
        replica_directory_id=DirectoryId(partition.replica_directory_id),
        epoch=Epoch(partition.current_leader_epoch),
        snapshot_id=snapshot_id_from_kafka(partition.snapshot_id),
        position=partition.position,
        max_bytes=message.max_bytes,
    )


def snapshot_id_to_kafka(snapshot_id: SnapshotId) -> kafka.SnapshotId:
    """Return a snapshot's name on the wire."""
    return kafka.SnapshotId(end_offset=snapshot_id.end_offset, epoch=snapshot_id.epoch)


def snapshot_id_from_kafka(message: kafka.SnapshotId) -> SnapshotId:
    """Return the snapshot that a message names."""
    return SnapshotId(Offset(message.end_offset), Epoch(message.epoch))


def listeners_of(node: Endpoint | None) -> tuple[kafka.Listener, ...]:
    """Return the quorum listener of a node; nothing for one that is not known."""
    if node is None:
        return ()
    return (kafka.Listener(name=QUORUM_LISTENER, host=node.host, port=node.port),)
