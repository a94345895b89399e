"""CreatePartitions: more partitions for topics, each topic for itself.

Where a topic would make more records than a batch may have, a real controller keeps those that fit
and answers UNKNOWN_SERVER_ERROR; ours refuses the topic whole.

Source: a real controller's replication control; KIP-195.
"""

from collections import Counter

from splitbrain.nodes.controller.basis.batch_limit import RecordBatch
from splitbrain.nodes.controller.basis.decisions import Decision, Refusal, View, bad_request
from splitbrain.nodes.controller.partitions.assignments import (
    check_assignment,
    check_chosen_isr,
    new_partition,
    place_replicas,
)
from splitbrain.nodes.metadata.image import TopicImage
from splitbrain.nodes.wire.errors import ApiError
from splitbrain.nodes.wire.families.topics import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    EnlargedTopic,
    TopicToEnlarge,
)


def create_partitions(view: View, request: CreatePartitionsRequest, _version: int) -> Decision:
    """Decide about CreatePartitions."""
    named = Counter(topic.name for topic in request.topics)
    batch = RecordBatch(view)
    answers = [
        _refused(name, bad_request("Duplicate topic name."))
        for name, count in named.items()
        if count > 1
    ]
    for topic in request.topics:
        if named[topic.name] == 1:
            try:
                _enlarge(view, topic, batch)
                answers.append(EnlargedTopic(name=topic.name, error_code=ApiError.NONE))
            except Refusal as refusal:
                answers.append(_refused(topic.name, refusal))
    answer = CreatePartitionsResponse(throttle_time_ms=0, results=tuple(answers))
    return Decision(answer, () if request.validate_only else tuple(batch.records))


def _enlarge(view: View, wanted: TopicToEnlarge, batch: RecordBatch) -> None:
    topic = view.image.topics.named(wanted.name)
    if topic is None:
        raise Refusal(ApiError.UNKNOWN_TOPIC_OR_PARTITION)
    added = _added_count(topic, wanted)
    batch.check_room(added)
    first = len(topic.partitions)
    factor = len(topic.partitions[0].replicas)
    if wanted.assignments is None:
        assignments = place_replicas(view, added, factor)
    else:
        assignments = [assignment.broker_ids for assignment in wanted.assignments]
        for partition_id, replicas in enumerate(assignments, start=first):
            check_assignment(view.image, replicas, factor)
            check_chosen_isr(view.image, replicas, partition_id)
    batch.add(
        new_partition(view.image, topic.topic_id, partition_id, replicas)
        for partition_id, replicas in enumerate(assignments, start=first)
    )


def _added_count(topic: TopicImage, wanted: TopicToEnlarge) -> int:
    count = len(topic.partitions)
    if count == 0:
        # Only a log that no controller wrote holds such a topic.
        raise Refusal(ApiError.UNKNOWN_SERVER_ERROR)
    if wanted.count == count:
        raise Refusal(ApiError.INVALID_PARTITIONS, f"Topic already has {count} partition(s).")
    if wanted.count < count:
        raise Refusal(
            ApiError.INVALID_PARTITIONS,
            f"The topic {topic.name} currently has {count} partition(s); {wanted.count} would not "
            "be an increase.",
        )
    added = wanted.count - count
    if wanted.assignments is not None and len(wanted.assignments) != added:
        raise Refusal(
            ApiError.INVALID_REPLICA_ASSIGNMENT,
            f"Attempted to add {added} additional partition(s), but only "
            f"{len(wanted.assignments)} assignment(s) were specified.",
        )
    return added


def _refused(name: str, refusal: Refusal) -> EnlargedTopic:
    return EnlargedTopic(name=name, error_code=refusal.code, error_message=refusal.message)
