"""Error codes on the wire, and exceptions for bytes of a peer or a file.

A remote error: the peer (or the disk) sent what it should not have. The host closes the connection
and goes on; it never ends a node. Our own misuse of this room is a plain ``ValueError``.
"""

from enum import IntEnum

from splitbrain.nodes.quorum.messages import ErrorCode
from splitbrain.nodes.wire.apis import ApiKey, RequestHeader


class ApiError(IntEnum):
    """Error codes that the control plane's APIs return, by Kafka's names and numbers.

    The quorum's own requests have fewer: ``nodes.quorum.messages.ErrorCode``.
    Source: ``org.apache.kafka.common.protocol.Errors`` of Kafka 4.3.
    """

    UNKNOWN_SERVER_ERROR = -1
    NONE = 0
    UNKNOWN_TOPIC_OR_PARTITION = 3
    LEADER_NOT_AVAILABLE = 5
    NOT_LEADER_OR_FOLLOWER = 6
    REQUEST_TIMED_OUT = 7
    BROKER_NOT_AVAILABLE = 8
    REPLICA_NOT_AVAILABLE = 9
    STALE_CONTROLLER_EPOCH = 11
    INVALID_TOPIC_EXCEPTION = 17
    TOPIC_AUTHORIZATION_FAILED = 29
    CLUSTER_AUTHORIZATION_FAILED = 31
    UNSUPPORTED_VERSION = 35
    TOPIC_ALREADY_EXISTS = 36
    INVALID_PARTITIONS = 37
    INVALID_REPLICATION_FACTOR = 38
    INVALID_REPLICA_ASSIGNMENT = 39
    INVALID_CONFIG = 40
    NOT_CONTROLLER = 41
    INVALID_REQUEST = 42
    POLICY_VIOLATION = 44
    OPERATION_NOT_ATTEMPTED = 55
    KAFKA_STORAGE_ERROR = 56
    LOG_DIR_NOT_FOUND = 57
    REASSIGNMENT_IN_PROGRESS = 60
    LISTENER_NOT_FOUND = 72
    TOPIC_DELETION_DISABLED = 73
    FENCED_LEADER_EPOCH = 74
    UNKNOWN_LEADER_EPOCH = 75
    STALE_BROKER_EPOCH = 77
    PREFERRED_LEADER_NOT_AVAILABLE = 80
    ELIGIBLE_LEADERS_NOT_AVAILABLE = 83
    ELECTION_NOT_NEEDED = 84
    NO_REASSIGNMENT_IN_PROGRESS = 85
    THROTTLING_QUOTA_EXCEEDED = 89
    RESOURCE_NOT_FOUND = 91
    DUPLICATE_RESOURCE = 92
    INCONSISTENT_VOTER_SET = 94
    INVALID_UPDATE_VERSION = 95
    FEATURE_UPDATE_FAILED = 96
    PRINCIPAL_DESERIALIZATION_FAILURE = 97
    SNAPSHOT_NOT_FOUND = 98
    POSITION_OUT_OF_RANGE = 99
    UNKNOWN_TOPIC_ID = 100
    DUPLICATE_BROKER_REGISTRATION = 101
    BROKER_ID_NOT_REGISTERED = 102
    INCONSISTENT_TOPIC_ID = 103
    INCONSISTENT_CLUSTER_ID = 104
    INELIGIBLE_REPLICA = 107
    NEW_LEADER_ELECTED = 108
    MISMATCHED_ENDPOINT_TYPE = 114
    UNSUPPORTED_ENDPOINT_TYPE = 115
    UNKNOWN_CONTROLLER_ID = 116
    INVALID_REGISTRATION = 119
    INVALID_VOTER_KEY = 125
    DUPLICATE_VOTER = 126
    VOTER_NOT_FOUND = 127
    REBOOTSTRAP_REQUIRED = 129


def error_named(code: int) -> ErrorCode:
    """Return the quorum's error of a number; UNKNOWN_SERVER_ERROR if it has no name for it."""
    try:
        return ErrorCode(code)
    except ValueError:
        return ErrorCode.UNKNOWN_SERVER_ERROR


class WireError(Exception):
    """Bytes that cannot be read as what they should be."""


class FrameTooLargeError(WireError):
    """A frame announces more bytes than the reader accepts; the stream cannot be read further."""


class UnsupportedApiError(WireError):
    """A request of an API or a version that we do not serve; Kafka closes the connection."""

    def __init__(self, api_key: int, api_version: int) -> None:
        self.api_key = api_key
        self.api_version = api_version
        super().__init__(f"request of API {api_key} version {api_version} is not served here")


class NoCommonVersionError(WireError):
    """A peer serves an API in no version that we speak, or not at all; nothing may be sent."""

    def __init__(
        self, api_key: ApiKey, own: tuple[int, int], served: tuple[int, int] | None
    ) -> None:
        self.api_key = api_key
        here = f"this node speaks versions {own[0]} to {own[1]}"
        there = "not at all" if served is None else f"in versions {served[0]} to {served[1]}"
        super().__init__(f"the peer serves {api_key.name} {there}, {here}")


class UnsupportedAnswerError(WireError):
    """A well-formed response that says something the quorum has no message for."""


class CorruptBatchError(WireError):
    """A record batch is cut short, fails its checksum or contradicts its neighbours.

    ``position`` is the byte position of the batch within the bytes that were given; ``incomplete``
    tells a batch that may only be cut short from one that is wrong.
    """

    def __init__(self, position: int, problem: str, *, incomplete: bool = False) -> None:
        self.position = position
        self.problem = problem
        self.incomplete = incomplete
        super().__init__(f"record batch at byte {position}: {problem}")


class ForeignPartitionError(WireError):
    """A well-formed request that is not about the metadata partition alone.

    Answer it with ``encode_refusal(error.header, error.code)``.
    """

    def __init__(self, header: RequestHeader, code: ErrorCode) -> None:
        self.header = header
        self.code = code
        super().__init__(
            f"request of API {header.api_key} is not about the metadata partition alone"
        )
