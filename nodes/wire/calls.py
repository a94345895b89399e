"""Requests and responses of all APIs as Kafka frames, and back.

Whole version ranges for the control plane, since a broker offers its clients what it and the
controller both speak, and clients differ widely. A row promises the codec alone; the APIs that a
node *serves* are in ``nodes.wire.apis`` and ``nodes.wire.controller_apis``. In the flexible form
(request header 2, response header 1) tagged fields follow a header; ApiVersions is answered with
response header 0, since the asker cannot know the form yet.

Source: Kafka 4.3's message definitions; Kafka's protocol guide, "Request Header" and "Response
Header"; KIP-511.
"""

from collections.abc import Mapping
from struct import Struct
from types import MappingProxyType, ModuleType
from typing import Final, NamedTuple

import msgspec

from splitbrain.nodes.wire import api_versions
from splitbrain.nodes.wire.apis import SUPPORTED_VERSIONS, ApiKey, RequestHeader, VersionRange
from splitbrain.nodes.wire.declared import kind_of
from splitbrain.nodes.wire.errors import UnsupportedApiError, WireError
from splitbrain.nodes.wire.families import (
    brokers,
    cluster,
    configs,
    controllers,
    partitions,
    quorum,
    topics,
    voters,
)
from splitbrain.nodes.wire.framing import frame
from splitbrain.nodes.wire.varints import skip_tagged_fields

_PREFIX: Final = Struct(">hhi")
_CLIENT_ID_SIZE: Final = Struct(">h")
_CORRELATION: Final = Struct(">i")

#: A request's header, and the position of the message after it.
Head = tuple[RequestHeader, int]


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


def _rows(*rows: tuple[ApiKey, ModuleType, tuple[int, int], int]) -> Mapping[ApiKey, ApiTable]:
    """Tables by API: module of its structs, lowest and highest version, first flexible version.

    A struct has the name that Kafka gives to the message.
    """
    tables: dict[ApiKey, ApiTable] = {}
    for key, family, versions, flexible_since in rows:
        name = key.name.title().replace("_", "")
        tables[key] = ApiTable(
            getattr(family, f"{name}Request"),
            getattr(family, f"{name}Response"),
            VersionRange(*versions),
            flexible_since,
        )
    return MappingProxyType(tables)


TABLES: Final = _rows(
    (ApiKey.FETCH, quorum, SUPPORTED_VERSIONS[ApiKey.FETCH], 12),
    (ApiKey.METADATA, cluster, (0, 13), 9),
    (ApiKey.API_VERSIONS, api_versions, SUPPORTED_VERSIONS[ApiKey.API_VERSIONS], 3),
    (ApiKey.CREATE_TOPICS, topics, (2, 7), 5),
    (ApiKey.DELETE_TOPICS, topics, (1, 6), 4),
    (ApiKey.DESCRIBE_CONFIGS, configs, (1, 4), 4),
    (ApiKey.ALTER_CONFIGS, configs, (0, 2), 2),
    (ApiKey.CREATE_PARTITIONS, topics, (0, 3), 2),
    (ApiKey.ELECT_LEADERS, partitions, (0, 2), 2),
    (ApiKey.INCREMENTAL_ALTER_CONFIGS, configs, (0, 1), 1),
    (ApiKey.ALTER_PARTITION_REASSIGNMENTS, partitions, (0, 1), 0),
    (ApiKey.LIST_PARTITION_REASSIGNMENTS, partitions, (0, 0), 0),
    (ApiKey.VOTE, quorum, SUPPORTED_VERSIONS[ApiKey.VOTE], 0),
    (ApiKey.BEGIN_QUORUM_EPOCH, quorum, SUPPORTED_VERSIONS[ApiKey.BEGIN_QUORUM_EPOCH], 1),
    (ApiKey.END_QUORUM_EPOCH, quorum, SUPPORTED_VERSIONS[ApiKey.END_QUORUM_EPOCH], 1),
    (ApiKey.DESCRIBE_QUORUM, quorum, SUPPORTED_VERSIONS[ApiKey.DESCRIBE_QUORUM], 0),
    (ApiKey.ALTER_PARTITION, partitions, (2, 3), 0),
    (ApiKey.UPDATE_FEATURES, controllers, (0, 2), 0),
    (ApiKey.ENVELOPE, controllers, (0, 0), 0),
    (ApiKey.FETCH_SNAPSHOT, quorum, SUPPORTED_VERSIONS[ApiKey.FETCH_SNAPSHOT], 0),
    (ApiKey.DESCRIBE_CLUSTER, cluster, (0, 2), 0),
    (ApiKey.BROKER_REGISTRATION, brokers, (0, 4), 0),
    (ApiKey.BROKER_HEARTBEAT, brokers, (0, 2), 0),
    (ApiKey.UNREGISTER_BROKER, brokers, (0, 0), 0),
    (ApiKey.ALLOCATE_PRODUCER_IDS, brokers, (0, 0), 0),
    (ApiKey.CONTROLLER_REGISTRATION, controllers, (0, 0), 0),
    (ApiKey.ASSIGN_REPLICAS_TO_DIRS, brokers, (0, 0), 0),
    (ApiKey.DESCRIBE_TOPIC_PARTITIONS, cluster, (0, 0), 0),
    (ApiKey.ADD_RAFT_VOTER, voters, (0, 1), 0),
    (ApiKey.REMOVE_RAFT_VOTER, voters, (0, 0), 0),
    (ApiKey.UPDATE_RAFT_VOTER, voters, (0, 0), 0),
)
_BY_NUMBER: Final[Mapping[int, ApiTable]] = MappingProxyType(
    {int(key): table for key, table in TABLES.items()}
)
_REQUEST_KEYS: Final = MappingProxyType({table.request: key for key, table in TABLES.items()})
_RESPONSE_KEYS: Final = MappingProxyType({table.response: key for key, table in TABLES.items()})


def api_key_of_call(message: msgspec.Struct) -> ApiKey:
    """Key of the API that carries the request; raises KeyError for any other message."""
    return _REQUEST_KEYS[type(message)]


def encode_call(
    message: msgspec.Struct, version: int, correlation_id: int, client_id: str | None
) -> bytes:
    """Return the frame of a request; raises ValueError for what this version cannot say."""
    api_key = api_key_of_call(message)
    flexible = _table(api_key, version).is_flexible(version)
    name = b"" if client_id is None else client_id.encode()
    if len(name) > 0x7FFF or not -(1 << 31) <= correlation_id < 1 << 31:
        raise ValueError(f"client id or correlation id does not fit: {client_id}, {correlation_id}")
    parts = [
        _PREFIX.pack(api_key, version, correlation_id),
        _CLIENT_ID_SIZE.pack(-1 if client_id is None else len(name)),
        name,
        b"\0" if flexible else b"",
    ]
    kind_of(type(message), flexible=flexible).write(message, version, parts)
    return frame(b"".join(parts))


def decode_head(payload: bytes) -> Head:
    """The header of a request, to be read once; the client id may go unread if no table has it.

    Raises:
        UnsupportedApiError: the header is malformed, and no table has its API and version.
        WireError: it is malformed.
    """
    if len(payload) < _PREFIX.size:
        raise WireError(f"a request of {len(payload)} bytes has no header")
    api_key, version, correlation_id = _PREFIX.unpack_from(payload)
    table = _known_table(api_key, version)
    try:
        client_id, end = _read_client_id(payload)
        if table is not None and table.is_flexible(version):
            end = skip_tagged_fields(payload, end)
    except WireError:
        if table is not None:
            raise
        if api_key != ApiKey.API_VERSIONS:
            raise UnsupportedApiError(api_key, version) from None
        client_id, end = None, _PREFIX.size
    return RequestHeader(api_key, version, correlation_id, client_id), end


def decode_call(payload: bytes, head: Head | None = None, *, exact: bool = True) -> ReceivedCall:
    """Return the request in a frame without its size; an envelope's content is one too.

    Kafka does not look at bytes that follow the message, and librdkafka sends some behind its
    question for metadata: they are malformed only where ``exact``.

    Raises:
        UnsupportedApiError: the table has no such API or version.
        WireError: it is malformed.
    """
    header, position = decode_head(payload) if head is None else head
    version = header.api_version
    table = _known_table(header.api_key, version)
    if table is None:
        raise UnsupportedApiError(header.api_key, version)
    kind = kind_of(table.request, flexible=table.is_flexible(version))
    message, end = kind.read(payload, position, version)
    if exact:
        _check_end(payload, end)
    return ReceivedCall(header, message)


def encode_reply(message: msgspec.Struct, header: RequestHeader) -> bytes:
    """Return the frame of a response, in the request's version; raises ValueError if it is none."""
    version = header.api_version
    api_key = ApiKey(header.api_key)
    table = _table(api_key, version)
    if _RESPONSE_KEYS.get(type(message)) is not api_key:
        raise ValueError(f"{type(message).__name__} does not answer {api_key.name}")
    flexible = table.is_flexible(version)
    # Not that of ApiVersions: its asker cannot know the form yet.
    tags = b"\0" if flexible and api_key is not ApiKey.API_VERSIONS else b""
    parts = [_CORRELATION.pack(header.correlation_id), tags]
    kind_of(table.response, flexible=flexible).write(message, version, parts)
    return frame(b"".join(parts))


def read_correlation_id(payload: bytes) -> int:
    """Return the number of the request that a response answers; raises WireError."""
    if len(payload) < _CORRELATION.size:
        raise WireError(f"a response of {len(payload)} bytes has no correlation id")
    return _CORRELATION.unpack_from(payload)[0]


def decode_reply(payload: bytes, api_key: ApiKey, version: int) -> ReceivedReply:
    """Return the response in a frame, which does not say what was asked; raises WireError."""
    table = _table(api_key, version)
    flexible = table.is_flexible(version)
    correlation_id, position = read_correlation_id(payload), _CORRELATION.size
    if flexible and api_key is not ApiKey.API_VERSIONS:
        position = skip_tagged_fields(payload, position)
    message, end = kind_of(table.response, flexible=flexible).read(payload, position, version)
    _check_end(payload, end)
    return ReceivedReply(correlation_id, message)


def _read_client_id(payload: bytes) -> tuple[str | None, int]:
    """Name of the asker, and the position after it; raises WireError."""
    position = _PREFIX.size + _CLIENT_ID_SIZE.size
    if position > len(payload):
        raise WireError("a request ends before its client id")
    (size,) = _CLIENT_ID_SIZE.unpack_from(payload, _PREFIX.size)
    end = position + max(size, 0)
    if size < -1 or end > len(payload):
        raise WireError(f"a request's client id announces {size} bytes")
    try:
        return None if size == -1 else payload[position:end].decode(), end
    except UnicodeDecodeError as error:
        raise WireError("a request's client id is not UTF-8") from error


def _known_table(api_key: int, version: int) -> ApiTable | None:
    """Return the table of a number from outside; None if there is none that has the version."""
    table = _BY_NUMBER.get(api_key)
    return table if table is not None and version in table.versions else None


def _table(api_key: ApiKey, version: int) -> ApiTable:
    table = TABLES[api_key]
    if version not in table.versions:
        raise ValueError(f"{api_key.name} version {version} is not spoken here")
    return table


def _check_end(payload: bytes, end: int) -> None:
    if end != len(payload):
        raise WireError(f"{len(payload) - end} bytes follow the message")
