"""The control plane's requests and responses as Kafka frames, and back.

One row for each API: its structs, the versions that Kafka 4.3.1 supports, and the first flexible
one. Whole version ranges, since a broker offers its clients what it and the controller both speak,
and clients differ widely. What a node *serves* is told elsewhere (``nodes.wire.apis``,
``nodes.wire.controller_apis``): a row here promises the codec alone. Bytes that make no sense raise
``WireError`` and nothing else. Must never hold state.

Source: Kafka 4.3's message definitions.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

import msgspec

from splitbrain.nodes.wire.apis import ApiKey, RequestHeader, VersionRange
from splitbrain.nodes.wire.declared import kind_of
from splitbrain.nodes.wire.errors import UnsupportedApiError, WireError
from splitbrain.nodes.wire.families import (
    api_versions,
    brokers,
    cluster,
    configs,
    controllers,
    partitions,
    topics,
    voters,
)
from splitbrain.nodes.wire.framing import frame
from splitbrain.nodes.wire.headers import (
    decode_request_header,
    decode_request_prefix,
    decode_response_header,
    encode_request_header,
    encode_response_header,
)


class ApiTable(NamedTuple):
    """One API: what its messages are and in which versions they can be read and written."""

    request: type[msgspec.Struct]
    response: type[msgspec.Struct]
    versions: VersionRange
    flexible_since: int

    def is_flexible(self, version: int) -> bool:
        """Whether a version has the flexible form (KIP-482)."""
        return version >= self.flexible_since


class ReceivedCall(msgspec.Struct, frozen=True):
    """A request from a peer, and what its answer needs to know of it."""

    header: RequestHeader
    message: msgspec.Struct


class ReceivedReply(msgspec.Struct, frozen=True):
    """A response from a peer, and the number of the request that it answers."""

    correlation_id: int
    message: msgspec.Struct


def _row(
    request: type[msgspec.Struct],
    response: type[msgspec.Struct],
    lowest: int,
    highest: int,
    flexible_since: int = 0,
) -> ApiTable:
    return ApiTable(request, response, VersionRange(lowest, highest), flexible_since)


TABLES: Final[Mapping[ApiKey, ApiTable]] = MappingProxyType(
    {
        ApiKey.METADATA: _row(cluster.MetadataRequest, cluster.MetadataResponse, 0, 13, 9),
        ApiKey.API_VERSIONS: _row(
            api_versions.ApiVersionsRequest, api_versions.ApiVersionsResponse, 0, 4, 3
        ),
        ApiKey.CREATE_TOPICS: _row(
            topics.CreateTopicsRequest, topics.CreateTopicsResponse, 2, 7, 5
        ),
        ApiKey.DELETE_TOPICS: _row(
            topics.DeleteTopicsRequest, topics.DeleteTopicsResponse, 1, 6, 4
        ),
        ApiKey.DESCRIBE_CONFIGS: _row(
            configs.DescribeConfigsRequest, configs.DescribeConfigsResponse, 1, 4, 4
        ),
        ApiKey.ALTER_CONFIGS: _row(
            configs.AlterConfigsRequest, configs.AlterConfigsResponse, 0, 2, 2
        ),
        ApiKey.CREATE_PARTITIONS: _row(
            topics.CreatePartitionsRequest, topics.CreatePartitionsResponse, 0, 3, 2
        ),
        ApiKey.ELECT_LEADERS: _row(
            partitions.ElectLeadersRequest, partitions.ElectLeadersResponse, 0, 2, 2
        ),
        ApiKey.INCREMENTAL_ALTER_CONFIGS: _row(
            configs.IncrementalAlterConfigsRequest, configs.IncrementalAlterConfigsResponse, 0, 1, 1
        ),
        ApiKey.ALTER_PARTITION_REASSIGNMENTS: _row(
            partitions.AlterPartitionReassignmentsRequest,
            partitions.AlterPartitionReassignmentsResponse,
            0,
            1,
        ),
        ApiKey.LIST_PARTITION_REASSIGNMENTS: _row(
            partitions.ListPartitionReassignmentsRequest,
            partitions.ListPartitionReassignmentsResponse,
            0,
            0,
        ),
        ApiKey.ALTER_PARTITION: _row(
            partitions.AlterPartitionRequest, partitions.AlterPartitionResponse, 2, 3
        ),
        ApiKey.UPDATE_FEATURES: _row(
            controllers.UpdateFeaturesRequest, controllers.UpdateFeaturesResponse, 0, 2
        ),
        ApiKey.ENVELOPE: _row(controllers.EnvelopeRequest, controllers.EnvelopeResponse, 0, 0),
        ApiKey.FETCH_SNAPSHOT: _row(
            controllers.FetchSnapshotRequest, controllers.FetchSnapshotResponse, 0, 1
        ),
        ApiKey.DESCRIBE_CLUSTER: _row(
            cluster.DescribeClusterRequest, cluster.DescribeClusterResponse, 0, 2
        ),
        ApiKey.BROKER_REGISTRATION: _row(
            brokers.BrokerRegistrationRequest, brokers.BrokerRegistrationResponse, 0, 4
        ),
        ApiKey.BROKER_HEARTBEAT: _row(
            brokers.BrokerHeartbeatRequest, brokers.BrokerHeartbeatResponse, 0, 2
        ),
        ApiKey.UNREGISTER_BROKER: _row(
            brokers.UnregisterBrokerRequest, brokers.UnregisterBrokerResponse, 0, 0
        ),
        ApiKey.ALLOCATE_PRODUCER_IDS: _row(
            brokers.AllocateProducerIdsRequest, brokers.AllocateProducerIdsResponse, 0, 0
        ),
        ApiKey.CONTROLLER_REGISTRATION: _row(
            controllers.ControllerRegistrationRequest,
            controllers.ControllerRegistrationResponse,
            0,
            0,
        ),
        ApiKey.ASSIGN_REPLICAS_TO_DIRS: _row(
            brokers.AssignReplicasToDirsRequest, brokers.AssignReplicasToDirsResponse, 0, 0
        ),
        ApiKey.DESCRIBE_TOPIC_PARTITIONS: _row(
            cluster.DescribeTopicPartitionsRequest, cluster.DescribeTopicPartitionsResponse, 0, 0
        ),
        ApiKey.ADD_RAFT_VOTER: _row(voters.AddRaftVoterRequest, voters.AddRaftVoterResponse, 0, 1),
        ApiKey.REMOVE_RAFT_VOTER: _row(
            voters.RemoveRaftVoterRequest, voters.RemoveRaftVoterResponse, 0, 0
        ),
        ApiKey.UPDATE_RAFT_VOTER: _row(
            voters.UpdateRaftVoterRequest, voters.UpdateRaftVoterResponse, 0, 0
        ),
    }
)
_REQUEST_KEYS: Final = MappingProxyType({table.request: key for key, table in TABLES.items()})
_RESPONSE_KEYS: Final = MappingProxyType({table.response: key for key, table in TABLES.items()})


def api_key_of_call(message: msgspec.Struct) -> ApiKey:
    """Key of the API that carries the request.

    Raises:
        KeyError: it is no request of the control plane.
    """
    return _REQUEST_KEYS[type(message)]


def encode_call(
    message: msgspec.Struct, version: int, correlation_id: int, client_id: str | None
) -> bytes:
    """The frame of a request, size included.

    Raises:
        ValueError: the table has no such version, or the version cannot say what the message says.
    """
    api_key = api_key_of_call(message)
    flexible = _table(api_key, version).is_flexible(version)
    header = RequestHeader(api_key, version, correlation_id, client_id)
    parts = [encode_request_header(header, flexible=flexible)]
    kind_of(type(message), flexible=flexible).write(message, version, parts)
    return frame(b"".join(parts))


def decode_call(payload: bytes, *, exact: bool = True) -> ReceivedCall:
    """The request in a frame without its size; an envelope's content is one too.

    ``exact``: whether bytes that follow the message make it malformed. Kafka does not look at them,
    and librdkafka sends some behind its question for metadata.

    Raises:
        UnsupportedApiError: the table has no such API or version.
        WireError: it is malformed.
    """
    header = decode_request_prefix(payload)
    try:
        table = _table(ApiKey(header.api_key), header.api_version)
    except (KeyError, ValueError):
        raise UnsupportedApiError(header.api_key, header.api_version) from None
    version = header.api_version
    flexible = table.is_flexible(version)
    header, position = decode_request_header(payload, flexible=flexible)
    if not exact:
        message, _ = kind_of(table.request, flexible=flexible).read(payload, position, version)
        return ReceivedCall(header, message)
    return ReceivedCall(
        header, _read_whole(payload, position, table.request, version, flexible=flexible)
    )


def encode_reply(message: msgspec.Struct, header: RequestHeader) -> bytes:
    """The frame of the response to the request with this header, in the request's version.

    Raises:
        ValueError: it is not a response of that API, or the version cannot say what it says.
    """
    version = header.api_version
    api_key = ApiKey(header.api_key)
    table = _table(api_key, version)
    if _RESPONSE_KEYS.get(type(message)) is not api_key:
        raise ValueError(f"{type(message).__name__} does not answer {api_key.name}")
    parts = [
        encode_response_header(
            header.correlation_id, flexible=_header_is_flexible(api_key, version)
        )
    ]
    kind_of(table.response, flexible=table.is_flexible(version)).write(message, version, parts)
    return frame(b"".join(parts))


def decode_reply(payload: bytes, api_key: ApiKey, version: int) -> ReceivedReply:
    """The response in a frame; the asker knows what it asked, the frame does not say.

    Raises:
        WireError: it is malformed.
    """
    table = _table(api_key, version)
    flexible = _header_is_flexible(api_key, version)
    correlation_id, position = decode_response_header(payload, flexible=flexible)
    message = _read_whole(
        payload, position, table.response, version, flexible=table.is_flexible(version)
    )
    return ReceivedReply(correlation_id, message)


def _table(api_key: ApiKey, version: int) -> ApiTable:
    table = TABLES[api_key]
    if version not in table.versions:
        raise ValueError(f"{api_key.name} version {version} is not spoken here")
    return table


def _header_is_flexible(api_key: ApiKey, version: int) -> bool:
    """Whether the response header is; never for ApiVersions, whose asker cannot know yet."""
    return api_key is not ApiKey.API_VERSIONS and TABLES[api_key].is_flexible(version)


def _read_whole(
    payload: bytes,
    position: int,
    message: type[msgspec.Struct],
    version: int,
    *,
    flexible: bool,
) -> msgspec.Struct:
    value, end = kind_of(message, flexible=flexible).read(payload, position, version)
    if end != len(payload):
        raise WireError(f"{len(payload) - end} bytes follow the message")
    return value
