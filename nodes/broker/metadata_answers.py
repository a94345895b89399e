"""Metadata: which brokers there are, and who leads and holds the partitions of topics.

As a real broker whose ``auto.create.topics.enable`` is false: an unknown topic is never created.
Topics and brokers come in a fixed order where a real broker has none.

Source: Kafka 4.3.1's KafkaApis and KRaftMetadataCache; KIP-516 (topic ids), KIP-112 (offline
replicas), KIP-896.
"""

from typing import Final

from msgspec import structs

from splitbrain.nodes.broker.image_reading import (
    ALL_TOPIC_OPERATIONS,
    NOBODY,
    RequestContext,
    brokers_on,
    is_alive_on,
    is_internal,
    leader_on,
    offline_replicas,
    some_alive_broker,
    unknown_topic_code,
)
from splitbrain.nodes.controller.brokers.controllers import cluster_operations
from splitbrain.nodes.metadata.image import TopicImage
from splitbrain.nodes.metadata.partitions import PartitionState
from splitbrain.nodes.wire.declared import NO_UUID
from splitbrain.nodes.wire.errors import ApiError
from splitbrain.nodes.wire.families.cluster import (
    ListedBroker,
    ListedPartition,
    ListedTopic,
    MetadataRequest,
    MetadataResponse,
    TopicWanted,
)

#: In the first version an empty array means all topics, and absent replicas are errors.
_FIRST: Final = 0
#: First version that tells a leader without the client's listener from none.
_LISTENER_NOT_FOUND_SINCE: Final = 6
#: First version in which topics may be asked for by id; two before have the field.
_BY_ID_SINCE: Final = 12


def answer_metadata(
    context: RequestContext, request: MetadataRequest, version: int
) -> MetadataResponse:
    """Brokers that are alive, and topics."""
    wanted = request.topics
    if wanted is None or (version == _FIRST and not wanted):
        topics = [
            _listed(context, context.image.topics.by_id[topic_id], version)
            for _, topic_id in sorted(context.image.topics.ids_by_name.items())
        ]
    elif _is_illegal(wanted, version):
        return refused_metadata(request, ApiError.INVALID_REQUEST)
    else:
        topics = _wanted(context, wanted, version)
    if request.include_topic_authorized_operations:
        topics = [_with_operations(topic) for topic in topics]
    return MetadataResponse(
        brokers=tuple(
            ListedBroker(
                node_id=broker.broker_id, host=endpoint.host, port=endpoint.port, rack=broker.rack
            )
            for broker, endpoint in brokers_on(context.image, context.listener)
        ),
        cluster_id=context.cluster_id,
        controller_id=some_alive_broker(context.image, context.random),
        topics=tuple(topics),
        cluster_authorized_operations=cluster_operations(
            wanted=request.include_cluster_authorized_operations
        ),
    )


def refused_metadata(request: MetadataRequest, code: ApiError) -> MetadataResponse:
    """Return an answer without brokers: clients take it for none, and ask again later.

    Each topic that was named carries the code, and so does the whole, where the version can say it.
    """
    return MetadataResponse(
        brokers=(),
        topics=tuple(
            ListedTopic(
                error_code=code, name=each.name or "", topic_id=each.topic_id, partitions=()
            )
            for each in request.topics or ()
        ),
        error_code=code,
    )


def _is_illegal(wanted: tuple[TopicWanted, ...], version: int) -> bool:
    if version < _BY_ID_SINCE:
        return any(each.name is None or each.topic_id != NO_UUID for each in wanted)
    # A real broker fails on neither name nor id as on a bug of its own.
    return any(each.name is None and each.topic_id == NO_UUID for each in wanted)


def _wanted(
    context: RequestContext, wanted: tuple[TopicWanted, ...], version: int
) -> list[ListedTopic]:
    """Each topic once; where any id was given, names do not count."""
    topics = context.image.topics
    ids = dict.fromkeys(each.topic_id for each in wanted if each.topic_id != NO_UUID)
    if ids:
        return [
            _unknown(None, ApiError.UNKNOWN_TOPIC_ID, topic_id)
            if (topic := topics.by_id.get(topic_id)) is None
            else _listed(context, topic, version)
            for topic_id in ids
        ]
    names = dict.fromkeys(each.name for each in wanted if each.name is not None)
    return [
        _unknown(name, unknown_topic_code(name))
        if (topic := topics.named(name)) is None
        else _listed(context, topic, version)
        for name in names
    ]


def _unknown(name: str | None, code: ApiError, topic_id: str = NO_UUID) -> ListedTopic:
    return ListedTopic(
        error_code=code,
        name=name,
        topic_id=topic_id,
        is_internal=name is not None and is_internal(name),
        partitions=(),
    )


def _listed(context: RequestContext, topic: TopicImage, version: int) -> ListedTopic:
    return ListedTopic(
        error_code=ApiError.NONE,
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=is_internal(topic.name),
        partitions=tuple(
            _partition(context, number, state, version)
            for number, state in enumerate(topic.partitions)
        ),
    )


def _partition(
    context: RequestContext, number: int, state: PartitionState, version: int
) -> ListedPartition:
    image, listener = context.image, context.listener
    replicas, isr = state.replicas, state.isr
    if version == _FIRST:
        replicas = tuple(each for each in replicas if is_alive_on(image, each, listener))
        isr = tuple(each for each in isr if is_alive_on(image, each, listener))
    leader = leader_on(image, state, listener)
    if leader == NOBODY:
        is_known = state.leader in image.brokers and version >= _LISTENER_NOT_FOUND_SINCE
        code = ApiError.LISTENER_NOT_FOUND if is_known else ApiError.LEADER_NOT_AVAILABLE
    elif len(replicas) < len(state.replicas):
        # Whoever is in sync is a replica, so this is all that can be missing.
        code = ApiError.REPLICA_NOT_AVAILABLE
    else:
        code = ApiError.NONE
    return ListedPartition(
        error_code=code,
        partition_index=number,
        leader_id=leader,
        leader_epoch=state.leader_epoch,
        replica_nodes=replicas,
        isr_nodes=isr,
        offline_replicas=offline_replicas(image, state, listener),
    )


def _with_operations(topic: ListedTopic) -> ListedTopic:
    if topic.error_code == ApiError.UNKNOWN_TOPIC_ID:
        return topic
    return structs.replace(topic, topic_authorized_operations=ALL_TOPIC_OPERATIONS)
