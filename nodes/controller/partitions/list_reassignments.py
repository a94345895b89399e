"""ListPartitionReassignments: which partitions are on the move.

Source: a real controller's replication control; KIP-455.
"""

from collections.abc import Iterable

from splitbrain.nodes.controller.basis.decisions import Decision, View
from splitbrain.nodes.metadata.image import TopicImage
from splitbrain.nodes.wire.errors import ApiError
from splitbrain.nodes.wire.families.partitions import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    PartitionUnderReassignment,
    TopicUnderReassignment,
)


def list_reassignments(
    view: View, request: ListPartitionReassignmentsRequest, _version: int
) -> Decision:
    """Decide about ListPartitionReassignments; it never writes."""
    topics = view.image.topics
    if request.topics is None:
        wanted = [(topic, range(len(topic.partitions))) for topic in topics.by_id.values()]
    else:
        wanted = [
            (topic, each.partition_indexes)
            for each in request.topics
            if (topic := topics.named(each.name)) is not None
        ]
    moving = (_moving(topic, partition_ids) for topic, partition_ids in wanted)
    return Decision(
        ListPartitionReassignmentsResponse(
            throttle_time_ms=0,
            error_code=ApiError.NONE,
            error_message=None,
            topics=tuple(topic for topic in moving if topic.partitions),
        )
    )


def _moving(topic: TopicImage, partition_ids: Iterable[int]) -> TopicUnderReassignment:
    partitions: list[PartitionUnderReassignment] = []
    for partition_id in partition_ids:
        if 0 <= partition_id < len(topic.partitions):
            state = topic.partitions[partition_id]
            if state.adding_replicas or state.removing_replicas:
                partitions.append(
                    PartitionUnderReassignment(
                        partition_index=partition_id,
                        replicas=state.replicas,
                        adding_replicas=state.adding_replicas,
                        removing_replicas=state.removing_replicas,
                    )
                )
    return TopicUnderReassignment(name=topic.name, partitions=tuple(partitions))
