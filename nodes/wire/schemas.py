"""The quorum's requests and responses as tables, field by field in the order of the wire.

One table for all versions of a message: a field says from which version on it is there. Names are
those of Kafka's message definitions. Held equal to ``kio``'s generated schemas by the tests.

Source: Kafka 4.3's message definitions (KIP-595, KIP-630, KIP-836, KIP-853, KIP-996, KIP-1166).
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from splitbrain.nodes.wire.apis import ApiKey
from splitbrain.nodes.wire.codec import (
    BOOLEAN,
    INT8,
    INT16,
    INT32,
    INT64,
    NULLABLE_BYTES,
    NULLABLE_STRING,
    STRING,
    UINT16,
    UUID,
    ArrayOf,
    Field,
    StructureOf,
)

#: Fetch 18: the follower does not say its high watermark.
HIGH_WATERMARK_NOT_SUPPORTED: Final = (1 << 63) - 1
_NO_UUID: Final = "0" * 32


class Schema(NamedTuple):
    """Request and response of one API."""

    request: StructureOf
    response: StructureOf


_NODE_ENDPOINTS: Final = Field(
    "node_endpoints",
    ArrayOf(StructureOf(Field("node_id", INT32), Field("host", STRING), Field("port", UINT16))),
    default=[],
    tag=0,
    since=1,
)
_LEADER_ENDPOINTS: Final = Field(
    "leader_endpoints",
    ArrayOf(StructureOf(Field("name", STRING), Field("host", STRING), Field("port", UINT16))),
    default=[],
)


def _topics(*fields: Field) -> Field:
    partition = StructureOf(Field("partition_index", INT32), *fields)
    topic = StructureOf(Field("topic_name", STRING), Field("partitions", ArrayOf(partition)))
    return Field("topics", ArrayOf(topic))


_LEADER_FIELDS: Final = (
    Field("error_code", INT16),
    Field("leader_id", INT32),
    Field("leader_epoch", INT32),
)

_VOTE: Final = Schema(
    request=StructureOf(
        Field("cluster_id", NULLABLE_STRING),
        Field("voter_id", INT32, default=-1, since=1),
        _topics(
            Field("replica_epoch", INT32),
            Field("replica_id", INT32),
            Field("replica_directory_id", UUID, default=_NO_UUID, since=1),
            Field("voter_directory_id", UUID, default=_NO_UUID, since=1),
            Field("last_offset_epoch", INT32),
            Field("last_offset", INT64),
            Field("pre_vote", BOOLEAN, default=False, since=2),
        ),
    ),
    response=StructureOf(
        Field("error_code", INT16),
        _topics(*_LEADER_FIELDS, Field("vote_granted", BOOLEAN)),
        _NODE_ENDPOINTS,
    ),
)

_BEGIN_QUORUM_EPOCH: Final = Schema(
    request=StructureOf(
        Field("cluster_id", NULLABLE_STRING),
        Field("voter_id", INT32),
        _topics(
            Field("voter_directory_id", UUID),
            Field("leader_id", INT32),
            Field("leader_epoch", INT32),
        ),
        _LEADER_ENDPOINTS,
    ),
    response=StructureOf(Field("error_code", INT16), _topics(*_LEADER_FIELDS), _NODE_ENDPOINTS),
)

_END_QUORUM_EPOCH: Final = Schema(
    request=StructureOf(
        Field("cluster_id", NULLABLE_STRING),
        _topics(
            Field("leader_id", INT32),
            Field("leader_epoch", INT32),
            Field(
                "preferred_candidates",
                ArrayOf(
                    StructureOf(Field("candidate_id", INT32), Field("candidate_directory_id", UUID))
                ),
            ),
        ),
        _LEADER_ENDPOINTS,
    ),
    response=StructureOf(Field("error_code", INT16), _topics(*_LEADER_FIELDS), _NODE_ENDPOINTS),
)

_FETCH_PARTITION: Final = StructureOf(
    Field("partition", INT32),
    Field("current_leader_epoch", INT32),
    Field("fetch_offset", INT64),
    Field("last_fetched_epoch", INT32),
    Field("log_start_offset", INT64, default=-1),
    Field("partition_max_bytes", INT32),
    Field("replica_directory_id", UUID, default=_NO_UUID, tag=0),
    Field("high_watermark", INT64, default=HIGH_WATERMARK_NOT_SUPPORTED, tag=1, since=18),
)
_FETCHED_PARTITION: Final = StructureOf(
    Field("partition_index", INT32),
    Field("error_code", INT16),
    Field("high_watermark", INT64),
    Field("last_stable_offset", INT64, default=-1),
    Field("log_start_offset", INT64),
    Field(
        "aborted_transactions",
        ArrayOf(
            StructureOf(Field("producer_id", INT64), Field("first_offset", INT64)), nullable=True
        ),
        default=[],
    ),
    Field("preferred_read_replica", INT32, default=-1),
    Field("records", NULLABLE_BYTES),
    Field(
        "diverging_epoch",
        StructureOf(Field("epoch", INT32), Field("end_offset", INT64)),
        default={"epoch": -1, "end_offset": -1},
        tag=0,
    ),
    Field(
        "current_leader",
        StructureOf(Field("leader_id", INT32), Field("leader_epoch", INT32)),
        default={"leader_id": -1, "leader_epoch": -1},
        tag=1,
    ),
    Field(
        "snapshot_id",
        StructureOf(Field("end_offset", INT64), Field("epoch", INT32)),
        default={"end_offset": -1, "epoch": -1},
        tag=2,
    ),
)
_FETCH: Final = Schema(
    request=StructureOf(
        Field("max_wait_ms", INT32),
        Field("min_bytes", INT32, default=0),
        Field("max_bytes", INT32),
        Field("isolation_level", INT8, default=0),
        Field("session_id", INT32, default=0),
        Field("session_epoch", INT32, default=-1),
        Field(
            "topics",
            ArrayOf(
                StructureOf(Field("topic_id", UUID), Field("partitions", ArrayOf(_FETCH_PARTITION)))
            ),
        ),
        Field(
            "forgotten_topics",
            ArrayOf(StructureOf(Field("topic_id", UUID), Field("partitions", ArrayOf(INT32)))),
            default=[],
        ),
        Field("rack_id", STRING, default=""),
        Field("cluster_id", NULLABLE_STRING, default=None, tag=0),
        Field(
            "replica_state",
            StructureOf(
                Field("replica_id", INT32, default=-1), Field("replica_epoch", INT64, default=-1)
            ),
            default={"replica_id": -1, "replica_epoch": -1},
            tag=1,
        ),
    ),
    response=StructureOf(
        Field("throttle_time_ms", INT32, default=0),
        Field("error_code", INT16),
        Field("session_id", INT32, default=0),
        Field(
            "responses",
            ArrayOf(
                StructureOf(
                    Field("topic_id", UUID), Field("partitions", ArrayOf(_FETCHED_PARTITION))
                )
            ),
        ),
        Field(
            "node_endpoints",
            ArrayOf(
                StructureOf(
                    Field("node_id", INT32),
                    Field("host", STRING),
                    Field("port", INT32),
                    Field("rack", NULLABLE_STRING, default=None),
                )
            ),
            default=[],
            tag=0,
        ),
    ),
)

_SNAPSHOT_ID: Final = Field(
    "snapshot_id", StructureOf(Field("end_offset", INT64), Field("epoch", INT32))
)
_FETCH_SNAPSHOT: Final = Schema(
    request=StructureOf(
        Field("cluster_id", NULLABLE_STRING, default=None, tag=0),
        Field("replica_id", INT32, default=-1),
        Field("max_bytes", INT32, default=0x7FFFFFFF),
        Field(
            "topics",
            ArrayOf(
                StructureOf(
                    Field("name", STRING),
                    Field(
                        "partitions",
                        ArrayOf(
                            StructureOf(
                                Field("partition", INT32),
                                Field("current_leader_epoch", INT32),
                                _SNAPSHOT_ID,
                                Field("position", INT64),
                                Field(
                                    "replica_directory_id", UUID, default=_NO_UUID, tag=0, since=1
                                ),
                            )
                        ),
                    ),
                )
            ),
        ),
    ),
    response=StructureOf(
        Field("throttle_time_ms", INT32, default=0),
        Field("error_code", INT16),
        Field(
            "topics",
            ArrayOf(
                StructureOf(
                    Field("name", STRING),
                    Field(
                        "partitions",
                        ArrayOf(
                            StructureOf(
                                Field("index", INT32),
                                Field("error_code", INT16),
                                _SNAPSHOT_ID,
                                Field(
                                    "current_leader",
                                    StructureOf(
                                        Field("leader_id", INT32), Field("leader_epoch", INT32)
                                    ),
                                    default={"leader_id": 0, "leader_epoch": 0},
                                    tag=0,
                                ),
                                Field("size", INT64),
                                Field("position", INT64),
                                Field("unaligned_records", NULLABLE_BYTES),
                            )
                        ),
                    ),
                )
            ),
        ),
        _NODE_ENDPOINTS,
    ),
)

_REPLICA_STATE: Final = StructureOf(
    Field("replica_id", INT32),
    Field("replica_directory_id", UUID, default=_NO_UUID, since=2),
    Field("log_end_offset", INT64),
    Field("last_fetch_timestamp", INT64, default=-1, since=1),
    Field("last_caught_up_timestamp", INT64, default=-1, since=1),
)
_DESCRIBE_QUORUM: Final = Schema(
    request=StructureOf(_topics()),
    response=StructureOf(
        Field("error_code", INT16),
        Field("error_message", NULLABLE_STRING, default=None, since=2),
        _topics(
            Field("error_code", INT16),
            Field("error_message", NULLABLE_STRING, default=None, since=2),
            Field("leader_id", INT32),
            Field("leader_epoch", INT32),
            Field("high_watermark", INT64),
            Field("current_voters", ArrayOf(_REPLICA_STATE)),
            Field("observers", ArrayOf(_REPLICA_STATE)),
        ),
        Field(
            "nodes",
            ArrayOf(
                StructureOf(
                    Field("node_id", INT32),
                    Field(
                        "listeners",
                        ArrayOf(
                            StructureOf(
                                Field("name", STRING), Field("host", STRING), Field("port", UINT16)
                            )
                        ),
                    ),
                )
            ),
            default=[],
            since=2,
        ),
    ),
)

SCHEMAS: Final[Mapping[ApiKey, Schema]] = MappingProxyType(
    {
        ApiKey.FETCH: _FETCH,
        ApiKey.FETCH_SNAPSHOT: _FETCH_SNAPSHOT,
        ApiKey.VOTE: _VOTE,
        ApiKey.BEGIN_QUORUM_EPOCH: _BEGIN_QUORUM_EPOCH,
        ApiKey.END_QUORUM_EPOCH: _END_QUORUM_EPOCH,
        ApiKey.DESCRIBE_QUORUM: _DESCRIBE_QUORUM,
    }
)
