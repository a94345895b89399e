"""The quorum's answers as Kafka's responses, and back.

An error of the request as such (wrong cluster, not allowed, not understood) goes into the
response's own field, all else into the partition's; the first one that is set counts when reading.
Unknown codes are read as ``UNKNOWN_SERVER_ERROR``. The records of a fetch pass untouched, apart
from a last batch that is cut short, which real Kafka sends and every receiver drops.
"""

from collections.abc import Mapping
from typing import Final, TypeVar

import msgspec

from splitbrain.nodes.quorum import messages as core
from splitbrain.nodes.quorum.admission import fetch_refusal, snapshot_refusal
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
from splitbrain.nodes.wire.apis import METADATA_PARTITION, METADATA_TOPIC, METADATA_TOPIC_ID
from splitbrain.nodes.wire.batches import split_whole_batches
from splitbrain.nodes.wire.errors import UnsupportedAnswerError, WireError, error_named
from splitbrain.nodes.wire.families import quorum as kafka
from splitbrain.nodes.wire.requests import (
    Endpoint,
    OtherPartition,
    Topics,
    listeners_of,
    named_topics,
    snapshot_id_from_kafka,
    snapshot_id_to_kafka,
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

_Answered = TypeVar(
    "_Answered",
    kafka.VotedPartition,
    kafka.LedPartition,
    kafka.FetchedPartition,
    kafka.SnapshotChunk,
    kafka.DescribedPartition,
)


def answer_to_kafka(answer: core.Answer, endpoints: Endpoints) -> msgspec.Struct:
    """Return the answer as Kafka's response; ``endpoints`` says where voters listen."""
    whole, partial = _errors(answer.error)
    nodes = _node_endpoints(answer.leader_id, endpoints)
    leader_id = _NOBODY if answer.leader_id is None else answer.leader_id
    leader = kafka.LeaderIdAndEpoch(leader_id=leader_id, leader_epoch=answer.epoch)
    match answer:
        case core.VoteAnswer():
            voted = kafka.VotedPartition(
                partition_index=METADATA_PARTITION,
                error_code=partial,
                leader_id=leader_id,
                leader_epoch=answer.epoch,
                vote_granted=answer.granted,
            )
            return kafka.VoteResponse(
                error_code=whole, topics=named_topics(voted), node_endpoints=nodes
            )
        case core.BeginQuorumEpochAnswer() | core.EndQuorumEpochAnswer():
            led = kafka.LedPartition(
                partition_index=METADATA_PARTITION,
                error_code=partial,
                leader_id=leader_id,
                leader_epoch=answer.epoch,
            )
            begins = isinstance(answer, core.BeginQuorumEpochAnswer)
            response = kafka.BeginQuorumEpochResponse if begins else kafka.EndQuorumEpochResponse
            return response(error_code=whole, topics=named_topics(led), node_endpoints=nodes)
        case core.FetchAnswer():
            fetched = _fetched_to_kafka(answer, partial, leader)
            topic = kafka.IdentifiedTopic(topic_id=METADATA_TOPIC_ID, partitions=(fetched,))
            brokers = tuple(
                kafka.BrokerEndpoint(node_id=node.node_id, host=node.host, port=node.port)
                for node in nodes
            )
            return kafka.FetchResponse(error_code=whole, responses=(topic,), node_endpoints=brokers)
        case core.FetchSnapshotAnswer():
            chunk = kafka.SnapshotChunk(
                index=METADATA_PARTITION,
                error_code=partial,
                snapshot_id=snapshot_id_to_kafka(answer.snapshot_id or _NO_SNAPSHOT),
                current_leader=leader,
                size=answer.size_bytes,
                position=answer.position,
                unaligned_records=answer.data,
            )
            snapshots = kafka.NamedTopic(name=METADATA_TOPIC, partitions=(chunk,))
            return kafka.FetchSnapshotResponse(
                error_code=whole, topics=(snapshots,), node_endpoints=nodes
            )
        case core.DescribeQuorumAnswer():
            return _described_to_kafka(answer, endpoints)


def answer_from_kafka(message: msgspec.Struct) -> core.Answer:
    """Return the answer that Kafka's response makes.

    Raises:
        UnsupportedAnswerError: it points to a snapshot that cannot be.
        WireError: it is not about the metadata partition, or its records are corrupt.
        TypeError: it is no response of the quorum.
    """
    match message:
        case kafka.FetchResponse():
            return _fetch_from_kafka(message)
        case kafka.VoteResponse():
            voted, error = _partition(message.topics, message.error_code)
            if voted is None:
                return core.VoteAnswer(error, None, NO_EPOCH, granted=False)
            return core.VoteAnswer(error, *_leader_of(voted), voted.vote_granted)
        case kafka.BeginQuorumEpochResponse():
            led, error = _partition(message.topics, message.error_code)
            ends = isinstance(message, kafka.EndQuorumEpochResponse)
            answer = core.EndQuorumEpochAnswer if ends else core.BeginQuorumEpochAnswer
            return answer(error, *((None, NO_EPOCH) if led is None else _leader_of(led)))
        case kafka.FetchSnapshotResponse():
            return _fetch_snapshot_from_kafka(message)
        case kafka.DescribeQuorumResponse():
            return _describe_from_kafka(message)
        case _:
            raise TypeError(f"{type(message).__name__} is no response of the quorum")


def _errors(error: ErrorCode) -> tuple[ErrorCode, ErrorCode]:
    """Codes of the whole response and of the partition."""
    if error in _WHOLE_RESPONSE:
        return error, ErrorCode.NONE
    return ErrorCode.NONE, error


def _partition(topics: Topics[_Answered], whole: int) -> tuple[_Answered | None, ErrorCode]:
    """The one partition, None where an error of the whole response stands for it; the error."""
    if not topics and whole != ErrorCode.NONE:
        return None, error_named(whole)
    try:
        partition = sole_partition(topics)
    except OtherPartition as error:
        raise WireError("a response is not about the metadata partition alone") from error
    return partition, error_named(whole or partition.error_code)


def _leader_of(
    partition: kafka.LedPartition | kafka.LeaderIdAndEpoch | kafka.DescribedPartition,
) -> tuple[NodeId | None, Epoch]:
    leader_id = partition.leader_id
    return NodeId(leader_id) if leader_id >= 0 else None, Epoch(partition.leader_epoch)


def _node_endpoints(
    leader_id: NodeId | None, endpoints: Endpoints
) -> tuple[kafka.NodeEndpoint, ...]:
    endpoint = None if leader_id is None else endpoints.get(leader_id)
    if leader_id is None or endpoint is None:
        return ()
    return (kafka.NodeEndpoint(node_id=leader_id, host=endpoint.host, port=endpoint.port),)


def _fetched_to_kafka(
    answer: core.FetchAnswer, error: ErrorCode, leader: kafka.LeaderIdAndEpoch
) -> kafka.FetchedPartition:
    epoch, end_offset = answer.diverging or (NO_EPOCH, UNKNOWN_OFFSET)
    return kafka.FetchedPartition(
        partition_index=METADATA_PARTITION,
        error_code=error,
        high_watermark=answer.high_watermark,
        log_start_offset=answer.log_start_offset,
        records=answer.records,
        diverging_epoch=kafka.EpochEndOffset(epoch=epoch, end_offset=end_offset),
        current_leader=leader,
        snapshot_id=snapshot_id_to_kafka(answer.snapshot_id or _NO_SNAPSHOT),
    )


def _fetch_from_kafka(message: kafka.FetchResponse) -> core.FetchAnswer:
    partition, error = _partition(message.responses, message.error_code)
    if partition is None:
        return fetch_refusal(error, None, NO_EPOCH, UNKNOWN_OFFSET)
    leader_id, epoch = _leader_of(partition.current_leader)
    diverging = partition.diverging_epoch
    place = Epoch(diverging.epoch), Offset(diverging.end_offset)
    records, batches = split_whole_batches(partition.records or b"")
    return core.FetchAnswer(
        error=error,
        leader_id=leader_id,
        epoch=epoch,
        high_watermark=Offset(partition.high_watermark),
        log_start_offset=Offset(partition.log_start_offset),
        diverging=place if max(place) >= 0 else None,
        batches=batches,
        records=records,
        snapshot_id=_snapshot_id(partition.snapshot_id),
    )


def _fetch_snapshot_from_kafka(message: kafka.FetchSnapshotResponse) -> core.FetchSnapshotAnswer:
    partition, error = _partition(message.topics, message.error_code)
    if partition is None:
        return snapshot_refusal(error, None, NO_EPOCH)
    leader_id, epoch = _leader_of(partition.current_leader)
    return core.FetchSnapshotAnswer(
        error=error,
        leader_id=leader_id,
        epoch=epoch,
        snapshot_id=_snapshot_id(partition.snapshot_id),
        size_bytes=partition.size,
        position=partition.position,
        data=partition.unaligned_records or b"",
    )


def _snapshot_id(message: kafka.SnapshotId) -> SnapshotId | None:
    """None where no snapshot is named; raises UnsupportedAnswerError for half a name."""
    end_offset, epoch = message.end_offset, message.epoch
    if end_offset < 0 and epoch < 0:
        return None
    if end_offset < 0 or epoch < 0:
        problem = f"a snapshot that ends at offset {end_offset} in epoch {epoch} cannot be"
        raise UnsupportedAnswerError(problem)
    return snapshot_id_from_kafka(message)


def _described_to_kafka(
    answer: core.DescribeQuorumAnswer, endpoints: Endpoints
) -> kafka.DescribeQuorumResponse:
    whole, partial = _errors(answer.error)
    partition = kafka.DescribedPartition(
        partition_index=METADATA_PARTITION,
        error_code=partial,
        leader_id=_NOBODY if answer.leader_id is None else answer.leader_id,
        leader_epoch=answer.epoch,
        high_watermark=answer.high_watermark,
        current_voters=tuple(_progress_to_kafka(progress) for progress in answer.voters),
        observers=tuple(_progress_to_kafka(progress) for progress in answer.observers),
    )
    nodes = tuple(
        kafka.DescribedNode(node_id=voter.node_id, listeners=listeners_of(endpoint))
        for voter in answer.voters
        if (endpoint := endpoints.get(voter.node_id)) is not None
    )
    return kafka.DescribeQuorumResponse(
        error_code=whole, topics=named_topics(partition), nodes=nodes
    )


def _describe_from_kafka(message: kafka.DescribeQuorumResponse) -> core.DescribeQuorumAnswer:
    partition, error = _partition(message.topics, message.error_code)
    if partition is None:
        return core.DescribeQuorumAnswer(error, None, NO_EPOCH, UNKNOWN_OFFSET, (), ())
    leader_id, epoch = _leader_of(partition)
    return core.DescribeQuorumAnswer(
        error=error,
        leader_id=leader_id,
        epoch=epoch,
        high_watermark=Offset(partition.high_watermark),
        voters=tuple(_progress_from_kafka(entry) for entry in partition.current_voters),
        observers=tuple(_progress_from_kafka(entry) for entry in partition.observers),
    )


def _progress_to_kafka(progress: core.ReplicaProgress) -> kafka.DescribedReplica:
    return kafka.DescribedReplica(
        replica_id=progress.node_id,
        replica_directory_id=progress.directory_id,
        log_end_offset=progress.end_offset,
        last_fetch_timestamp=progress.last_fetch_ms,
        last_caught_up_timestamp=progress.last_caught_up_ms,
    )


def _progress_from_kafka(replica: kafka.DescribedReplica) -> core.ReplicaProgress:
    return core.ReplicaProgress(
        node_id=NodeId(replica.replica_id),
        directory_id=DirectoryId(replica.replica_directory_id),
        end_offset=Offset(replica.log_end_offset),
        last_fetch_ms=replica.last_fetch_timestamp,
        last_caught_up_ms=replica.last_caught_up_timestamp,
    )
