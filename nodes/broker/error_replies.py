"""Answers to forwarded requests that no controller gave: all of a request failed with one code.

Each thing that was asked for carries the code where the response has a place for it, as in Kafka.

Source: ``getErrorResponse`` of the requests in Kafka 4.3.1's clients.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

import msgspec

from splitbrain.nodes.controller.partitions.leader_elections import refused_elections
from splitbrain.nodes.quorum.messages import ErrorCode
from splitbrain.nodes.wire.apis import ApiKey, RequestHeader
from splitbrain.nodes.wire.calls import encode_reply
from splitbrain.nodes.wire.errors import ApiError
from splitbrain.nodes.wire.families.brokers import UnregisterBrokerResponse
from splitbrain.nodes.wire.families.configs import (
    AlterConfigsResponse,
    AlteredResource,
    IncrementalAlterConfigsResponse,
)
from splitbrain.nodes.wire.families.controllers import UpdateFeaturesResponse
from splitbrain.nodes.wire.families.partitions import (
    AlterPartitionReassignmentsResponse,
    ListPartitionReassignmentsResponse,
    PartitionUnderReassignment,
    ReassignedPartition,
    ReassignedTopic,
    TopicUnderReassignment,
)
from splitbrain.nodes.wire.families.topics import (
    CreatedTopic,
    CreatePartitionsResponse,
    CreateTopicsResponse,
    DeletedTopic,
    DeleteTopicsResponse,
    EnlargedTopic,
)
from splitbrain.nodes.wire.families.voters import AddRaftVoterResponse, RemoveRaftVoterResponse
from splitbrain.nodes.wire.messages import encode_refusal

#: First version of DeleteTopics that names topics in structures of their own.
_TOPICS_SINCE: Final = 6


def error_reply(header: RequestHeader, request: msgspec.Struct, code: ApiError) -> bytes:
    """Return the frame that answers the request with this header; everything in it failed.

    Raises:
        KeyError: the API is not one that a broker forwards.
    """
    if header.api_key == ApiKey.DESCRIBE_QUORUM:
        return encode_refusal(header, ErrorCode(code))
    make = _REPLIES[ApiKey(header.api_key)]
    return encode_reply(make(request, header.api_version, code), header)


def _created(request: Any, _: int, code: ApiError) -> msgspec.Struct:
    topics = tuple(
        CreatedTopic(name=each.name, error_code=code, error_message=None) for each in request.topics
    )
    return CreateTopicsResponse(throttle_time_ms=0, topics=topics)


def _deleted(request: Any, version: int, code: ApiError) -> msgspec.Struct:
    if version >= _TOPICS_SINCE:
        wanted = [
            DeletedTopic(name=each.name, topic_id=each.topic_id, error_code=code)
            for each in request.topics
        ]
    else:
        wanted = [DeletedTopic(name=each, error_code=code) for each in request.topic_names]
    return DeleteTopicsResponse(throttle_time_ms=0, responses=tuple(wanted))


def _enlarged(request: Any, _: int, code: ApiError) -> msgspec.Struct:
    results = tuple(EnlargedTopic(name=each.name, error_code=code) for each in request.topics)
    return CreatePartitionsResponse(throttle_time_ms=0, results=results)


def _resources(request: Any, code: ApiError) -> tuple[AlteredResource, ...]:
    return tuple(
        AlteredResource(
            error_code=code,
            error_message=None,
            resource_type=each.resource_type,
            resource_name=each.resource_name,
        )
        for each in request.resources
    )


def _reassigned(request: Any, _: int, code: ApiError) -> msgspec.Struct:
    return AlterPartitionReassignmentsResponse(
        throttle_time_ms=0,
        error_code=code,
        error_message=None,
        responses=tuple(
            ReassignedTopic(
                name=topic.name,
                partitions=tuple(
                    ReassignedPartition(
                        partition_index=each.partition_index, error_code=code, error_message=None
                    )
                    for each in topic.partitions
                ),
            )
            for topic in request.topics
        ),
    )


def _under_reassignment(request: Any, _: int, code: ApiError) -> msgspec.Struct:
    return ListPartitionReassignmentsResponse(
        throttle_time_ms=0,
        error_code=code,
        error_message=None,
        topics=tuple(
            TopicUnderReassignment(
                name=topic.name,
                partitions=tuple(
                    PartitionUnderReassignment(
                        partition_index=each, replicas=(), adding_replicas=(), removing_replicas=()
                    )
                    for each in topic.partition_indexes
                ),
            )
            for topic in request.topics or ()
        ),
    )


_REPLIES: Final[Mapping[ApiKey, Callable[[Any, int, ApiError], msgspec.Struct]]] = MappingProxyType(
    {
        ApiKey.CREATE_TOPICS: _created,
        ApiKey.DELETE_TOPICS: _deleted,
        ApiKey.CREATE_PARTITIONS: _enlarged,
        ApiKey.ALTER_CONFIGS: lambda request, _, code: AlterConfigsResponse(
            throttle_time_ms=0, responses=_resources(request, code)
        ),
        ApiKey.INCREMENTAL_ALTER_CONFIGS: lambda request, _, code: IncrementalAlterConfigsResponse(
            throttle_time_ms=0, responses=_resources(request, code)
        ),
        ApiKey.ELECT_LEADERS: lambda request, version, code: refused_elections(
            request, version, code, None
        ),
        ApiKey.ALTER_PARTITION_REASSIGNMENTS: _reassigned,
        ApiKey.LIST_PARTITION_REASSIGNMENTS: _under_reassignment,
        ApiKey.UPDATE_FEATURES: lambda _, __, code: UpdateFeaturesResponse(
            throttle_time_ms=0, error_code=code, error_message=None
        ),
        ApiKey.UNREGISTER_BROKER: lambda _, __, code: UnregisterBrokerResponse(
            throttle_time_ms=0, error_code=code, error_message=None
        ),
        ApiKey.ADD_RAFT_VOTER: lambda _, __, code: AddRaftVoterResponse(
            throttle_time_ms=0, error_code=code, error_message=None
        ),
        ApiKey.REMOVE_RAFT_VOTER: lambda _, __, code: RemoveRaftVoterResponse(
            throttle_time_ms=0, error_code=code, error_message=None
        ),
    }
)
