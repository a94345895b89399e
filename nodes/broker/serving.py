"""Answers that a broker gives by itself, from its image; while it is fenced it gives none.

A real broker opens its listener when it is first unfenced and answers from then on, fenced or not,
from whatever it knew last. Ours refuses while it has to believe itself fenced
(``Lifecycle.is_fenced``), in the way that makes clients ask again, and another broker:

- Metadata is answered without brokers, each topic with LEADER_NOT_AVAILABLE. Clients take an answer
  without brokers for one of a broker that is about to start, keep what they knew, and ask again;
  the code is one that they retry, which BROKER_NOT_AVAILABLE is not.
- DescribeCluster and DescribeTopicPartitions have no error that Kafka's own admin client would
  retry: the connection is closed without an answer, as if nobody listened.

A forwarded request (``nodes.broker.forwarding``) is let through: the controller decides, and
a real broker would forward it too.

Source: KIP-700, KIP-919, KIP-1073 (DescribeCluster), KIP-584, KIP-590 (ApiVersions); Kafka 4.3.1's
AuthHelper, KafkaApis, ApiVersionsResponse and DefaultApiVersionManager.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

import msgspec

from splitbrain.nodes.broker.forwarding import FORWARDED
from splitbrain.nodes.broker.image_reading import (
    NOBODY,
    RequestContext,
    brokers_on,
    some_alive_broker,
)
from splitbrain.nodes.broker.metadata_answers import answer_metadata, refused_metadata
from splitbrain.nodes.broker.partition_pages import answer_partitions
from splitbrain.nodes.broker.settings import BROKER_FEATURES
from splitbrain.nodes.controller.brokers.controllers import (
    BROKERS,
    CONTROLLERS,
    cluster_operations,
    wrong_endpoint,
)
from splitbrain.nodes.metadata.image import MetadataImage
from splitbrain.nodes.wire.api_versions import ApiVersionsResponse, served_versions
from splitbrain.nodes.wire.apis import ApiKey, VersionRange
from splitbrain.nodes.wire.calls import TABLES
from splitbrain.nodes.wire.errors import ApiError
from splitbrain.nodes.wire.families.cluster import (
    DescribeClusterRequest,
    DescribeClusterResponse,
    DescribedNode,
)

#: APIs that ``answer`` knows.
ANSWERED: Final = frozenset(
    {ApiKey.METADATA, ApiKey.DESCRIBE_CLUSTER, ApiKey.DESCRIBE_TOPIC_PARTITIONS}
)
_OWN_VERSIONS: Final[Mapping[ApiKey, VersionRange]] = MappingProxyType(
    {api_key: TABLES[api_key].versions for api_key in {ApiKey.API_VERSIONS, *ANSWERED, *FORWARDED}}
)


#: Versions of an API that is not served.
_NONE: Final = VersionRange(0, -1)


def answer(
    context: RequestContext, api_key: ApiKey, request: Any, version: int, *, is_fenced: bool
) -> msgspec.Struct | None:
    """Return the response's message; None where the client's connection is to be closed instead.

    Raises ValueError for an API that is not one of ``ANSWERED``.
    """
    match api_key:
        case ApiKey.METADATA if is_fenced:
            return refused_metadata(request, ApiError.LEADER_NOT_AVAILABLE)
        case ApiKey.METADATA:
            return answer_metadata(context, request, version)
        case ApiKey.DESCRIBE_CLUSTER:
            return None if is_fenced else _cluster(context, request, version)
        case ApiKey.DESCRIBE_TOPIC_PARTITIONS:
            return None if is_fenced else answer_partitions(context, request)
        case _:
            raise ValueError(f"a broker does not answer {api_key.name} by itself")


def offered_versions(
    image: MetadataImage, controller: ApiVersionsResponse | None
) -> ApiVersionsResponse:
    """The answer to ApiVersions; ``controller``: what the active controller answered to it.

    An API that is forwarded is offered in the versions that broker and controller both speak: a
    client that asked in another would be cut off. Until the broker knows its controller's versions
    it offers its own, as a real broker does.
    """
    versions = dict(_OWN_VERSIONS)
    if controller is not None:
        theirs = controller.versions()
        for api_key, own in _OWN_VERSIONS.items():
            if api_key in FORWARDED:
                other = theirs.get(api_key, _NONE)
                common = VersionRange(
                    max(own.lowest, other.lowest), min(own.highest, other.highest)
                )
                versions[api_key] = common
        versions = {
            key: common for key, common in versions.items() if common.lowest <= common.highest
        }
    return served_versions(versions, BROKER_FEATURES, image.features, image.provenance.last_offset)


def _cluster(
    context: RequestContext, request: DescribeClusterRequest, version: int
) -> DescribeClusterResponse:
    """Return the brokers that have the listener, one of them in the controller's place.

    Fenced ones only if wanted. Controllers are described by controllers.
    """
    if request.endpoint_type != BROKERS:
        problem = f"this is a broker's endpoint, not one of type {request.endpoint_type}"
        return wrong_endpoint(request, version, CONTROLLERS, problem)
    nodes = tuple(
        DescribedNode(
            broker_id=broker.broker_id,
            host=endpoint.host,
            port=endpoint.port,
            rack=broker.rack,
            is_fenced=broker.fenced,
        )
        for broker, endpoint in brokers_on(
            context.image, context.listener, fenced_too=request.include_fenced_brokers
        )
    )
    controller_id = some_alive_broker(context.image, context.random)
    # A broker without the listener may be drawn; it is not named then.
    is_named = any(node.broker_id == controller_id for node in nodes)
    return DescribeClusterResponse(
        throttle_time_ms=0,
        error_code=ApiError.NONE,
        endpoint_type=BROKERS,
        cluster_id=context.cluster_id,
        controller_id=controller_id if is_named else NOBODY,
        brokers=nodes,
        cluster_authorized_operations=cluster_operations(
            wanted=request.include_cluster_authorized_operations
        ),
    )
