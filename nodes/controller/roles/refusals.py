"""A whole request refused: the answer of every API that a controller serves.

Source: what Kafka's requests make of an error (``getErrorResponse``).
"""

from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any, Final

import msgspec

from splitbrain.nodes.wire.apis import ApiKey
from splitbrain.nodes.wire.errors import ApiError
from splitbrain.nodes.wire.families import brokers, configs, controllers, partitions, topics

#: Answer for controllers, which know by themselves who is active.
_WRONG_CONTROLLER: Final = "This is not the correct controller for this cluster."
#: First version of DeleteTopics whose answer can say why.
_MESSAGES_OF_DELETION_SINCE: Final = 5
#: First version of ElectLeaders with an error for the whole request.
_WHOLE_ELECTIONS_SINCE: Final = 1


def refuse(
    api_key: ApiKey, request: msgspec.Struct, version: int, code: ApiError, message: str | None
) -> msgspec.Struct:
    """Return the answer that says the same of every item of the request; KeyError: no such API."""
    if api_key in _OF_CODES:
        return _OF_CODES[api_key](throttle_time_ms=0, error_code=code)
    return _REFUSALS[api_key](request, version, code, message)


def _unregistration(
    _: Any, __: int, code: ApiError, message: str | None
) -> brokers.UnregisterBrokerResponse:
    # A real controller that says nothing says it with an empty string.
    return brokers.UnregisterBrokerResponse(
        throttle_time_ms=0, error_code=code, error_message=message or ""
    )


def _controller_registration(
    _: Any, __: int, code: ApiError, message: str | None
) -> controllers.ControllerRegistrationResponse:
    text = _WRONG_CONTROLLER if code is ApiError.NOT_CONTROLLER else message
    return controllers.ControllerRegistrationResponse(
        throttle_time_ms=0, error_code=code, error_message=text or ""
    )


def _elections(
    request: partitions.ElectLeadersRequest, version: int, code: ApiError, message: str | None
) -> partitions.ElectLeadersResponse:
    return partitions.ElectLeadersResponse(
        throttle_time_ms=0,
        error_code=code if version >= _WHOLE_ELECTIONS_SINCE else ApiError.NONE,
        replica_election_results=tuple(
            partitions.ElectedTopic(
                topic=topic.topic,
                partition_result=tuple(
                    partitions.ElectedPartition(
                        partition_id=each, error_code=code, error_message=message
                    )
                    for each in topic.partitions
                ),
            )
            for topic in request.topic_partitions or ()
        ),
    )


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
                        partition_index=each.partition_index, error_code=code, error_message=message
                    )
                    for each in topic.partitions
                ),
            )
            for topic in request.topics
        ),
    )


def _reassignments(
    request: partitions.ListPartitionReassignmentsRequest,
    _: int,
    code: ApiError,
    message: str | None,
) -> partitions.ListPartitionReassignmentsResponse:
    return partitions.ListPartitionReassignmentsResponse(
        throttle_time_ms=0,
        error_code=code,
        error_message=message,
        topics=tuple(
            partitions.TopicUnderReassignment(
                name=topic.name,
                partitions=tuple(
                    partitions.PartitionUnderReassignment(
                        partition_index=each, replicas=(), adding_replicas=(), removing_replicas=()
                    )
                    for each in topic.partition_indexes
                ),
            )
            for topic in request.topics or ()
        ),
    )


#: Answers that carry nothing but the code, with their other fields.
_OF_CODES: Final[Mapping[ApiKey, Callable[..., msgspec.Struct]]] = MappingProxyType(
    {
        ApiKey.BROKER_REGISTRATION: partial(brokers.BrokerRegistrationResponse, broker_epoch=-1),
        ApiKey.BROKER_HEARTBEAT: partial(
            brokers.BrokerHeartbeatResponse,
            is_caught_up=False,
            is_fenced=True,
            should_shut_down=False,
        ),
        ApiKey.ALLOCATE_PRODUCER_IDS: partial(
            brokers.AllocateProducerIdsResponse, producer_id_start=0, producer_id_len=0
        ),
        ApiKey.ASSIGN_REPLICAS_TO_DIRS: partial(
            brokers.AssignReplicasToDirsResponse, directories=()
        ),
        ApiKey.ALTER_PARTITION: partial(partitions.AlterPartitionResponse, topics=()),
    }
)
_REFUSALS: Final[Mapping[ApiKey, Callable[[Any, int, ApiError, str | None], msgspec.Struct]]] = (
    MappingProxyType(
        {
            ApiKey.UNREGISTER_BROKER: _unregistration,
            ApiKey.CONTROLLER_REGISTRATION: _controller_registration,
            ApiKey.ELECT_LEADERS: _elections,
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
)
