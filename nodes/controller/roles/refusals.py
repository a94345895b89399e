"""A whole request refused: the answer of every API that a controller serves.

Source: what Kafka's requests make of an error (``getErrorResponse``).
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

import msgspec

from splitbrain.nodes.controller.roles.broker_handlers import BROKER_REFUSALS
from splitbrain.nodes.wire.apis import ApiKey
from splitbrain.nodes.wire.errors import ApiError
from splitbrain.nodes.wire.families import configs, controllers, partitions, topics

Refuse = Callable[[Any, int, ApiError, str | None], msgspec.Struct]


def refuse(
    api_key: ApiKey, request: msgspec.Struct, version: int, code: ApiError, message: str | None
) -> msgspec.Struct:
    """Return the answer that says the same of every item of the request.

    Raises:
        KeyError: a controller does not serve that API.
    """
    return _REFUSALS[api_key](request, version, code, message)


def _creation(
    request: topics.CreateTopicsRequest, _: int, code: ApiError, message: str | None
) -> topics.CreateTopicsResponse:
    return topics.CreateTopicsResponse(
        throttle_time_ms=0,
        topics=tuple(
            topics.CreatedTopic(name=topic.name, error_code=code, error_message=message)
            for topic in request.topics
        ),
    )


def _deletion(
    request: topics.DeleteTopicsRequest, version: int, code: ApiError, message: str | None
) -> topics.DeleteTopicsResponse:
    named = [topics.TopicToDelete(name=name, topic_id="0" * 32) for name in request.topic_names]
    return topics.DeleteTopicsResponse(
        throttle_time_ms=0,
        responses=tuple(
            topics.DeletedTopic(
                name=topic.name,
                topic_id=topic.topic_id,
                error_code=code,
                error_message=message if version >= _MESSAGES_OF_DELETION_SINCE else None,
            )
            for topic in (*request.topics, *named)
        ),
    )


def _enlargement(
    request: topics.CreatePartitionsRequest, _: int, code: ApiError, message: str | None
) -> topics.CreatePartitionsResponse:
    return topics.CreatePartitionsResponse(
        throttle_time_ms=0,
        results=tuple(
            topics.EnlargedTopic(name=topic.name, error_code=code, error_message=message)
            for topic in request.topics
        ),
    )


def _description(
    request: configs.DescribeConfigsRequest, _: int, code: ApiError, message: str | None
) -> configs.DescribeConfigsResponse:
    return configs.DescribeConfigsResponse(
        throttle_time_ms=0,
        results=tuple(
            configs.DescribedResource(
                error_code=code,
                error_message=message,
                resource_type=resource.resource_type,
                resource_name=resource.resource_name,
                configs=(),
            )
            for resource in request.resources
        ),
    )


def _alteration(
    request: configs.AlterConfigsRequest, _: int, code: ApiError, message: str | None
) -> configs.AlterConfigsResponse:
    return configs.AlterConfigsResponse(
        throttle_time_ms=0, responses=_altered(request, code, message)
    )


def _incremental_alteration(
    request: configs.IncrementalAlterConfigsRequest, _: int, code: ApiError, message: str | None
) -> configs.IncrementalAlterConfigsResponse:
    return configs.IncrementalAlterConfigsResponse(
        throttle_time_ms=0, responses=_altered(request, code, message)
    )


def _altered(
    request: configs.AlterConfigsRequest | configs.IncrementalAlterConfigsRequest,
    code: ApiError,
    message: str | None,
) -> tuple[configs.AlteredResource, ...]:
    return tuple(
        configs.AlteredResource(
            error_code=code,
            error_message=message,
            resource_type=resource.resource_type,
            resource_name=resource.resource_name,
        )
        for resource in request.resources
    )


def _features(
    _: Any, __: int, code: ApiError, message: str | None
) -> controllers.UpdateFeaturesResponse:
    return controllers.UpdateFeaturesResponse(
        throttle_time_ms=0, error_code=code, error_message=message
    )


def _reassignment(
    request: partitions.AlterPartitionReassignmentsRequest,
    _: int,
    code: ApiError,
    message: str | None,
) -> partitions.AlterPartitionReassignmentsResponse:
    return partitions.AlterPartitionReassignmentsResponse(
        throttle_time_ms=0,
        error_code=code,
        error_message=message,
        responses=tuple(
            partitions.ReassignedTopic(
                name=topic.name,
                partitions=tuple(
                    partitions.ReassignedPartition(
                        partition_index=each.partition_index,
                        error_code=code,
                        error_message=message,
                    )
                    for each in topic.partitions
                ),
            )
            for topic in request.topics
        ),
    )


def _reassignments(
    _: Any, __: int, code: ApiError, message: str | None
) -> partitions.ListPartitionReassignmentsResponse:
    return partitions.ListPartitionReassignmentsResponse(
        throttle_time_ms=0, error_code=code, error_message=message, topics=()
    )


#: First version of DeleteTopics whose answer can say why.
_MESSAGES_OF_DELETION_SINCE: Final = 5
_REFUSALS: Final[Mapping[ApiKey, Refuse]] = MappingProxyType(
    {
        **BROKER_REFUSALS,
        ApiKey.CREATE_TOPICS: _creation,
        ApiKey.DELETE_TOPICS: _deletion,
        ApiKey.CREATE_PARTITIONS: _enlargement,
        ApiKey.DESCRIBE_CONFIGS: _description,
        ApiKey.ALTER_CONFIGS: _alteration,
        ApiKey.INCREMENTAL_ALTER_CONFIGS: _incremental_alteration,
        ApiKey.UPDATE_FEATURES: _features,
        ApiKey.ALTER_PARTITION_REASSIGNMENTS: _reassignment,
        ApiKey.LIST_PARTITION_REASSIGNMENTS: _reassignments,
    }
)
