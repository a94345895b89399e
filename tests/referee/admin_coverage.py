"""Error codes that the streams must meet, of each API that our controllers serve. Pure.

A code that ours names and this table has not must be excused (``EXCUSED``): ``test_admin_coverage``
looks into the code.
"""

from collections.abc import Mapping
from typing import Final

from splitbrain.nodes.wire.apis import ApiKey
from splitbrain.nodes.wire.errors import ApiError

_E = ApiError
#: Codes of every API; a stream of 20,000 requests meets each.
MET: Final[Mapping[ApiKey, frozenset[ApiError]]] = {
    ApiKey.CREATE_TOPICS: frozenset(
        {
            *(_E.NONE, _E.INVALID_TOPIC_EXCEPTION, _E.TOPIC_ALREADY_EXISTS),
            *(_E.INVALID_PARTITIONS, _E.INVALID_REPLICATION_FACTOR, _E.INVALID_REPLICA_ASSIGNMENT),
            *(_E.INVALID_CONFIG, _E.NOT_CONTROLLER, _E.INVALID_REQUEST, _E.POLICY_VIOLATION),
        }
    ),
    ApiKey.DELETE_TOPICS: frozenset(
        {_E.NONE, _E.UNKNOWN_TOPIC_OR_PARTITION, _E.INVALID_REQUEST, _E.UNKNOWN_TOPIC_ID}
    ),
    ApiKey.DESCRIBE_CONFIGS: frozenset(
        {*(_E.NONE, _E.UNKNOWN_TOPIC_OR_PARTITION, _E.INVALID_TOPIC_EXCEPTION), _E.INVALID_REQUEST}
    ),
    ApiKey.ALTER_CONFIGS: frozenset(
        {
            *(_E.NONE, _E.UNKNOWN_TOPIC_OR_PARTITION, _E.INVALID_TOPIC_EXCEPTION),
            *(_E.UNSUPPORTED_VERSION, _E.INVALID_CONFIG, _E.NOT_CONTROLLER, _E.INVALID_REQUEST),
            _E.BROKER_ID_NOT_REGISTERED,
        }
    ),
    ApiKey.INCREMENTAL_ALTER_CONFIGS: frozenset(
        {
            *(_E.NONE, _E.UNKNOWN_TOPIC_OR_PARTITION, _E.INVALID_TOPIC_EXCEPTION),
            *(_E.UNSUPPORTED_VERSION, _E.INVALID_CONFIG, _E.NOT_CONTROLLER, _E.INVALID_REQUEST),
            _E.BROKER_ID_NOT_REGISTERED,
        }
    ),
    ApiKey.CREATE_PARTITIONS: frozenset(
        {
            *(_E.NONE, _E.UNKNOWN_TOPIC_OR_PARTITION, _E.INVALID_PARTITIONS),
            *(_E.INVALID_REPLICA_ASSIGNMENT, _E.NOT_CONTROLLER, _E.INVALID_REQUEST),
            _E.INVALID_REPLICATION_FACTOR,
        }
    ),
    ApiKey.ELECT_LEADERS: frozenset(
        {
            *(_E.NONE, _E.UNKNOWN_TOPIC_OR_PARTITION, _E.NOT_CONTROLLER, _E.INVALID_REQUEST),
            *(_E.PREFERRED_LEADER_NOT_AVAILABLE, _E.ELIGIBLE_LEADERS_NOT_AVAILABLE),
            _E.ELECTION_NOT_NEEDED,
        }
    ),
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: frozenset(
        {
            *(_E.NONE, _E.UNKNOWN_TOPIC_OR_PARTITION, _E.INVALID_REPLICATION_FACTOR),
            *(_E.INVALID_REPLICA_ASSIGNMENT, _E.NOT_CONTROLLER, _E.NO_REASSIGNMENT_IN_PROGRESS),
        }
    ),
    ApiKey.LIST_PARTITION_REASSIGNMENTS: frozenset({_E.NONE}),
    ApiKey.ALTER_PARTITION: frozenset(
        {
            *(_E.NONE, _E.UNKNOWN_TOPIC_OR_PARTITION, _E.NOT_CONTROLLER, _E.INVALID_REQUEST),
            *(_E.FENCED_LEADER_EPOCH, _E.STALE_BROKER_EPOCH, _E.INVALID_UPDATE_VERSION),
            *(_E.UNKNOWN_TOPIC_ID, _E.INELIGIBLE_REPLICA, _E.NEW_LEADER_ELECTED),
        }
    ),
    ApiKey.UPDATE_FEATURES: frozenset({_E.NONE, _E.NOT_CONTROLLER, _E.INVALID_UPDATE_VERSION}),
    ApiKey.ENVELOPE: frozenset(
        {
            *(_E.NONE, _E.INVALID_REQUEST, _E.PRINCIPAL_DESERIALIZATION_FAILURE),
            _E.UNSUPPORTED_VERSION,
        }
    ),
    ApiKey.DESCRIBE_CLUSTER: frozenset(
        {*(_E.NONE, _E.INVALID_REQUEST, _E.MISMATCHED_ENDPOINT_TYPE), _E.UNSUPPORTED_ENDPOINT_TYPE}
    ),
    ApiKey.BROKER_REGISTRATION: frozenset(
        {
            *(_E.NONE, _E.UNSUPPORTED_VERSION, _E.NOT_CONTROLLER, _E.INVALID_REGISTRATION),
            *(_E.DUPLICATE_BROKER_REGISTRATION, _E.BROKER_ID_NOT_REGISTERED),
            _E.INCONSISTENT_CLUSTER_ID,
        }
    ),
    ApiKey.BROKER_HEARTBEAT: frozenset({_E.NONE, _E.NOT_CONTROLLER, _E.STALE_BROKER_EPOCH}),
    ApiKey.UNREGISTER_BROKER: frozenset({_E.NONE, _E.NOT_CONTROLLER, _E.BROKER_ID_NOT_REGISTERED}),
    ApiKey.ALLOCATE_PRODUCER_IDS: frozenset({_E.NONE, _E.NOT_CONTROLLER, _E.STALE_BROKER_EPOCH}),
    ApiKey.CONTROLLER_REGISTRATION: frozenset({_E.NONE, _E.NOT_CONTROLLER}),
    ApiKey.ASSIGN_REPLICAS_TO_DIRS: frozenset(
        {
            *(_E.NONE, _E.UNKNOWN_TOPIC_OR_PARTITION, _E.NOT_LEADER_OR_FOLLOWER),
            *(_E.NOT_CONTROLLER, _E.STALE_BROKER_EPOCH, _E.UNKNOWN_TOPIC_ID),
        }
    ),
}

#: Codes that our controllers can answer and no stream meets, and why.
EXCUSED: Final[Mapping[ApiError, str]] = {
    _E.UNKNOWN_SERVER_ERROR: (
        "ours refuses so what makes a real controller fail, and lead no more: recovery states and "
        "security protocols that there are not; or what no log of a controller's holds"
    )
}
