"""DescribeTopicPartitions: topics with their partitions in pages, by name.

A page holds so many partitions at most, and says where the next one begins: at a partition of the
topic that did not fit, or at the next topic, whether there is one of that name or not.

Source: KIP-966; Kafka 4.3.1's DescribeTopicPartitionsRequestHandler and KRaftMetadataCache.
"""

from typing import Final

from splitbrain.nodes.broker.image_reading import (
    ALL_TOPIC_OPERATIONS,
    RequestContext,
    is_internal,
    leader_on,
    offline_replicas,
    unknown_topic_code,
)
from splitbrain.nodes.metadata.image import TopicImage
from splitbrain.nodes.metadata.partitions import PartitionState
from splitbrain.nodes.wire.declared import NO_UUID
from splitbrain.nodes.wire.errors import ApiError
from splitbrain.nodes.wire.families.cluster import (
    DescribedPartition,
    DescribedTopic,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    PartitionCursor,
)

#: Kafka's default ``max.request.partition.size.limit``.
PAGE_PARTITIONS_MAX: Final = 2000


def answer_partitions(
    context: RequestContext, request: DescribeTopicPartitionsRequest
) -> DescribeTopicPartitionsResponse:
    """Return the page that begins at the cursor."""
    cursor = request.cursor
    wanted = {each.name for each in request.topics}
    names = sorted(
        name
        for name in wanted or context.image.topics.ids_by_name
        if cursor is None or name >= cursor.topic_name
    )
    if cursor is not None and (
        cursor.partition_index < 0 or (wanted and cursor.topic_name not in wanted)
    ):
        return refused_partitions(request, ApiError.INVALID_REQUEST)
    room = max(min(PAGE_PARTITIONS_MAX, request.response_partition_limit), 1)
    topics: list[DescribedTopic] = []
    for name in names:
        if room == 0:
            return _page(topics, PartitionCursor(topic_name=name, partition_index=0))
        topic = context.image.topics.named(name)
        if topic is None:
            topics.append(_unknown(name))
            continue
        is_first = cursor is not None and cursor.topic_name == name
        start = cursor.partition_index if cursor is not None and is_first else 0
        end = min(len(topic.partitions), start + room)
        topics.append(_known(context, topic, start, end))
        if end < len(topic.partitions):
            return _page(topics, PartitionCursor(topic_name=name, partition_index=end))
        room -= max(end - start, 0)
    return _page(topics, None)


def refused_partitions(
    request: DescribeTopicPartitionsRequest, code: ApiError
) -> DescribeTopicPartitionsResponse:
    """Each topic that was named carries the code; nothing else can."""
    return DescribeTopicPartitionsResponse(
        throttle_time_ms=0,
        topics=tuple(
            DescribedTopic(error_code=code, name=each.name, topic_id=NO_UUID, partitions=())
            for each in request.topics
        ),
    )


def _page(
    topics: list[DescribedTopic], next_cursor: PartitionCursor | None
) -> DescribeTopicPartitionsResponse:
    return DescribeTopicPartitionsResponse(
        throttle_time_ms=0, topics=tuple(topics), next_cursor=next_cursor
    )


def _unknown(name: str) -> DescribedTopic:
    return DescribedTopic(
        error_code=unknown_topic_code(name),
        name=name,
        topic_id=NO_UUID,
        is_internal=is_internal(name),
        partitions=(),
        topic_authorized_operations=ALL_TOPIC_OPERATIONS,
    )


def _known(context: RequestContext, topic: TopicImage, start: int, end: int) -> DescribedTopic:
    return DescribedTopic(
        error_code=ApiError.NONE,
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=is_internal(topic.name),
        partitions=tuple(
            _partition(context, number, topic.partitions[number]) for number in range(start, end)
        ),
        topic_authorized_operations=ALL_TOPIC_OPERATIONS,
    )


def _partition(context: RequestContext, number: int, state: PartitionState) -> DescribedPartition:
    # A leader that cannot be named is no error here.
    return DescribedPartition(
        error_code=ApiError.NONE,
        partition_index=number,
        leader_id=leader_on(context.image, state, context.listener),
        leader_epoch=state.leader_epoch,
        replica_nodes=state.replicas,
        isr_nodes=state.isr,
        eligible_leader_replicas=state.elr,
        last_known_elr=state.last_known_elr,
        offline_replicas=offline_replicas(context.image, state, context.listener),
    )
