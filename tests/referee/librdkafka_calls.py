"""Calls of an administrator with confluent-kafka, one after the other: at brokers 11 and 12.

Its requests are those of librdkafka. It can be pointed at brokers alone, and sends what changes the
metadata to the one that they call the controller. It offers nothing of features, of the quorum, of
reassignments, of log directories, of client metrics and of the configs of all brokers, and
unregisters no broker.
"""

# The library's own names, which it does not list as exported.
# pyright: reportPrivateImportUsage=false

from collections.abc import Mapping
from typing import Any, Final

from confluent_kafka import ElectionType, TopicCollection, TopicPartition
from confluent_kafka.admin import (
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    OffsetSpec,
    ResourcePatternType,
    ResourceType,
)
from confluent_kafka.cimpl import NewPartitions, NewTopic

from tests.referee.client_answers import (
    ASKS_NOBODY,
    COORDINATED,
    LEADERS_OWN,
    NOT_OURS,
    Call,
    refusable,
)

#: Methods that are not asked here, and why.
LEFT_OUT: Final[Mapping[str, str]] = {
    "poll": ASKS_NOBODY,
    "set_sasl_credentials": ASKS_NOBODY,
    "create_acls": NOT_OURS,
    "delete_acls": NOT_OURS,
    "alter_user_scram_credentials": NOT_OURS,
    "delete_records": LEADERS_OWN,
    **dict.fromkeys(
        (
            "alter_consumer_group_offsets",
            "delete_consumer_groups",
            "describe_consumer_groups",
            "list_consumer_group_offsets",
            "list_consumer_groups",
            "list_groups",
        ),
        COORDINATED,
    ),
}

#: The topic that records are produced to.
PRODUCED: Final = "c"


def calls() -> tuple[Call, ...]:
    return (*_topics(), *_partitions(), *_elections(), *_configs(), *_cluster(), *_deletions())


def _cluster() -> tuple[Call, ...]:
    # It says itself that None stands for any.
    acl: Any = AclBindingFilter
    any_acl = acl(
        ResourceType.ANY,
        None,
        ResourcePatternType.ANY,
        None,
        None,
        AclOperation.ANY,
        AclPermissionType.ANY,
    )
    return (
        Call("cluster_id", options={"timeout": 10}, tells="CLUSTER"),
        Call("describe_cluster", options={"include_authorized_operations": True}, tells="CLUSTER"),
        Call("describe_acls", (any_acl,)),
        Call("describe_user_scram_credentials"),
        Call("describe_user_scram_credentials", (["none"],), tells="RESOURCE", is_refused=True),
    )


def _create(name: str, *, told: str = "", tries: bool = False, **wanted: Any) -> Call:
    # A topic that is placed by hand has as many partitions as it is given places.
    many = len(wanted.get("replica_assignment", [None]))
    topic = NewTopic(name, **{"num_partitions": many, **wanted})
    return refusable("create_topics", [topic], told=told, validate_only=tries)


def _topics() -> tuple[Call, ...]:
    placed: dict[str, Any] = {"replica_assignment": [[11, 12], [12, 11]]}
    factor = "INVALID_REPLICATION_FACTOR"
    return (
        _create("c", **placed, tries=True),
        _create("c", **placed, config={"retention.ms": "7200000"}),
        _create("c", told="TOPIC_ALREADY_EXISTS"),
        _create("c", told="TOPIC_ALREADY_EXISTS", tries=True),
        _create("d", replication_factor=3, told=factor),
        _create("d", config={"retention.ms": "x"}, told="INVALID_CONFIG"),
        _create("d", config={"no.such": "1"}, told="INVALID_CONFIG"),
        _create("d!", told="TOPIC_EXCEPTION"),
        _create("d", replica_assignment=[[11, 13]], told="INVALID_REPLICA_ASSIGNMENT"),
        _create("d", replica_assignment=[[11, 11]], told="INVALID_REPLICA_ASSIGNMENT"),
        _create("c.d", replica_assignment=[[12, 11]]),
        _create("c_d", told="TOPIC_EXCEPTION"),
        Call("list_topics", tells="c.d"),
        Call("list_topics", ("c",), tells="isrs"),
        Call("list_topics", ("none",), tells="none"),
        Call("describe_topics", (TopicCollection(["c", "c.d"]),), tells="c.d"),
        Call(
            "describe_topics",
            (TopicCollection(["none"]),),
            {"include_authorized_operations": True},
            "UNKNOWN_TOPIC_OR_PART",
            is_refused=True,
        ),
    )


def _partitions() -> tuple[Call, ...]:
    def create(name: str, count: int, *placed: list[int], told: str = "", **rest: Any) -> Call:
        options = {"replica_assignment": list(placed)} if placed else {}
        wanted = [NewPartitions(name, count, **options)]
        return refusable("create_partitions", wanted, told=told, **rest)

    return (
        create("c", 3, [12, 11], validate_only=True),
        create("c", 3, [12, 11]),
        create("c", 2, told="INVALID_PARTITIONS"),
        create("c", 3, told="INVALID_PARTITIONS"),
        create("none", 3, told="UNKNOWN_TOPIC_OR_PART"),
        create("c", 4, [11], told="INVALID_REPLICA_ASSIGNMENT"),
        create("c", 4, [11, 13], told="INVALID_REPLICA_ASSIGNMENT"),
        Call("describe_topics", (TopicCollection(["c"]),), tells="c"),
    )


def _elect(
    kind: ElectionType, *where: tuple[str, int], told: str = "", is_refused: bool = False
) -> Call:
    partitions = [TopicPartition(*each) for each in where] or None
    return Call("elect_leaders", (kind, partitions), tells=told, is_refused=is_refused)


def _elections() -> tuple[Call, ...]:
    preferred, unclean = ElectionType.PREFERRED, ElectionType.UNCLEAN
    return (
        _elect(preferred),
        _elect(preferred, ("c", 0), told="ELECTION_NOT_NEEDED", is_refused=True),
        _elect(unclean, ("c", 0), told="ELECTION_NOT_NEEDED", is_refused=True),
        _elect(preferred, ("c", 9), told="UNKNOWN_TOPIC_OR_PART", is_refused=True),
        _elect(preferred, ("none", 0), told="UNKNOWN_TOPIC_OR_PART", is_refused=True),
    )


#: Types of what has configs; a name, a config of it and a value.
_SETTINGS: Final = (
    (ResourceType.TOPIC, "c", "max.message.bytes", "100000"),
    (ResourceType.BROKER, "12", "log.cleaner.threads", "2"),
    (ResourceType.GROUP, "h", "consumer.session.timeout.ms", "50000"),
)


def _configs() -> tuple[Call, ...]:
    append, subtract = AlterConfigOpType.APPEND, AlterConfigOpType.SUBTRACT
    topic, broker = ResourceType.TOPIC, ResourceType.BROKER
    return (
        *(call for setting in _SETTINGS for call in _configs_of(*setting)),
        _alter(topic, "none", "flush.ms", "9", told="UNKNOWN_TOPIC_OR_PART"),
        _alter(topic, "d!", "flush.ms", "9", told="TOPIC_EXCEPTION"),
        _alter(broker, "12", "node.id", "7", told="INVALID"),
        _alter(topic, "c", "cleanup.policy", "compact"),
        _alter(topic, "c", "cleanup.policy", "delete", append),
        _described(topic, "c"),
        _alter(topic, "c", "cleanup.policy", "compact", subtract),
        _alter(topic, "c", "flush.ms", "1", append, told="INVALID"),
        # In place of all others.
        _replace("c", {"retention.ms": "3600000"}),
        _replace("c", {"retention.ms": "soon"}, told="INVALID_CONFIG"),
        _replace("none", {"retention.ms": "1"}, told="UNKNOWN_TOPIC_OR_PART"),
        _described(topic, "c"),
        _described(topic, "none", told="UNKNOWN_TOPIC_OR_PART"),
        _described(broker, "11"),
    )


def _configs_of(kind: ResourceType, name: str, config: str, value: str) -> tuple[Call, ...]:
    """Set one, be refused, look, take it away."""
    return (
        _alter(kind, name, config, value, validate_only=True),
        _alter(kind, name, config, value),
        _alter(kind, name, config, "many", told="INVALID"),
        # A broker may have plugins with configs of their own.
        _alter(kind, name, "no.such", "1", told="" if kind is ResourceType.BROKER else "INVALID"),
        _described(kind, name),
        _alter(kind, name, config, None, AlterConfigOpType.DELETE),
        _described(kind, name),
    )


def _alter(
    kind: ResourceType,
    name: str,
    config: str,
    value: str | None,
    how: AlterConfigOpType = AlterConfigOpType.SET,
    *,
    told: str = "",
    **options: bool,
) -> Call:
    entry = ConfigEntry(config, value, incremental_operation=how)
    wanted = ConfigResource(kind, name, incremental_configs=[entry])
    return refusable("incremental_alter_configs", [wanted], told=told, **options)


def _replace(name: str, configs: dict[str, str], told: str = "") -> Call:
    wanted = ConfigResource(ResourceType.TOPIC, name, set_config=configs)
    return refusable("alter_configs", [wanted], told=told)


def _described(kind: ResourceType, name: str, told: str = "") -> Call:
    return refusable("describe_configs", [ConfigResource(kind, name)], told=told)


def _deletions() -> tuple[Call, ...]:
    def delete(name: str, told: str = "") -> Call:
        return refusable("delete_topics", [name], told=told)

    return (
        delete("c.d"),
        delete("c.d", told="UNKNOWN_TOPIC_OR_PART"),
        # The same name, and another topic.
        _create("c.d", replica_assignment=[[12]]),
        Call("describe_topics", (TopicCollection(["c.d"]),), tells="c.d"),
    )


def produced_calls() -> tuple[Call, ...]:
    """Once an idempotent producer has written to the topic."""
    wanted = {TopicPartition(PRODUCED, 0): OffsetSpec.latest()}
    return (Call("list_offsets", (wanted,), tells="offset"),)


def fenced_calls() -> tuple[Call, ...]:
    """Once broker 12 was killed and is fenced; of a client that knows the other one."""
    return (
        Call("describe_cluster", tells="CLUSTER"),
        Call("describe_topics", (TopicCollection(["c", "c.d"]),), tells="c.d"),
        _create("e", replica_assignment=[[12]], told="INVALID_REPLICA_ASSIGNMENT"),
        _elect(ElectionType.PREFERRED, ("c", 1), told="PREFERRED", is_refused=True),
        _elect(ElectionType.UNCLEAN, ("c.d", 0), told="ELIGIBLE", is_refused=True),
    )


def restored_calls() -> tuple[Call, ...]:
    """Once broker 12 is back and in sync; nobody has given it what it led."""
    return (
        Call("describe_topics", (TopicCollection(["c", "c.d"]),), tells="c.d"),
        # Of all topics those whose leader is another than the preferred one.
        _elect(ElectionType.PREFERRED),
        _elect(ElectionType.PREFERRED),
        Call("describe_topics", (TopicCollection(["c", "c.d"]),), tells="c.d"),
    )
