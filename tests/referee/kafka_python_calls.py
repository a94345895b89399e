"""Calls of an administrator with kafka-python, one after the other: at brokers 11 and 12.

Partitions are placed by hand, because a real controller places them by chance.

kafka-python can be pointed at brokers alone, and asks whichever it likes; only configs of a broker
go to that broker. It cannot name the configs of all brokers, nor unregister a broker.
``kraft.version`` is not raised: a real quorum would have dynamic voters then, and ours has static
ones alone.
"""

from collections.abc import Mapping
from functools import partial
from typing import Any, Final

from kafka.structs import TopicPartition

from tests.referee.client_answers import (
    ASKS_NOBODY,
    COORDINATED,
    LEADERS_OWN,
    NOT_OURS,
    Call,
    refusable,
)

# The type checker's stubs of the library are of an older one.
_admin: Any = __import__("kafka.admin", fromlist=["ConfigResource"])

_TRANSACTED: Final = "brokers answer it alone, as coordinators of transactions"
#: Methods that are not asked here, and why.
LEFT_OUT: Final[Mapping[str, str]] = {
    "close": ASKS_NOBODY,
    "wait_for_topics": "asks as describe_topics does, for as long as it likes",
    "create_acls": NOT_OURS,
    "delete_acls": NOT_OURS,
    "alter_user_scram_credentials": NOT_OURS,
    "alter_replica_log_dirs": "our brokers have one directory each",
    "delete_records": LEADERS_OWN,
    **dict.fromkeys(
        (
            "alter_group_offsets",
            "delete_group_offsets",
            "delete_groups",
            "describe_groups",
            "list_group_offsets",
            "list_groups",
            "remove_group_members",
            "reset_group_offsets",
        ),
        COORDINATED,
    ),
    **dict.fromkeys(
        (
            "abort_transaction",
            "describe_transactions",
            "find_hanging_transactions",
            "list_transactions",
        ),
        _TRANSACTED,
    ),
}

#: The topic that records are produced to.
PRODUCED: Final = "p"


def calls() -> tuple[Call, ...]:
    """While both brokers live. Anew for each client: it changes what it is given."""
    return (*_topics(), *_partitions(), *_configs(), *_cluster(), *_deletions())


def _cluster() -> tuple[Call, ...]:
    return (
        Call("describe_cluster", tells="CLUSTER"),
        Call("describe_metadata_quorum", tells="__cluster_metadata"),
        Call("describe_features", tells="metadata.version"),
        Call("describe_features", options={"send_request_to_controller": True}),
        Call("api_versions", tells="CreateTopics"),
        Call("get_broker_version_data", (11,)),
        Call("describe_acls", (_any_acl(),), tells="SecurityDisabled", is_refused=True),
        Call("describe_user_scram_credentials"),
        Call("describe_user_scram_credentials", (["none"],), tells="none"),
        *_features(),
    )


def _any_acl() -> Any:
    return _admin.ACLFilter(
        principal=None,
        host=None,
        operation=_admin.ACLOperation.ANY,
        permission_type=_admin.ACLPermissionType.ANY,
        resource_pattern=_admin.ResourcePatternFilter(
            _admin.ResourceType.ANY, None, _admin.ACLResourcePatternType.ANY
        ),
    )


def _features() -> tuple[Call, ...]:
    def update(changes: dict[str, Any], **rest: Any) -> Call:
        is_tried = {"validate_only": rest.pop("validate_only", False)}
        return Call("update_features", (changes,), is_tried, **rest)

    return (
        update({"metadata.version": 31}, tells="InvalidUpdateVersion", is_refused=True),
        update({"metadata.version": 30}),
        update({"no.such": 1}, tells="InvalidUpdateVersion", is_refused=True),
        update({"transaction.version": 1}, tells="InvalidUpdateVersion", is_refused=True),
        update({"transaction.version": ("SAFE_DOWNGRADE", 1)}, validate_only=True),
        update({"transaction.version": ("SAFE_DOWNGRADE", 1)}),
        Call("describe_features", tells="transaction.version"),
        update({"transaction.version": 2}),
        Call("describe_features", tells="transaction.version"),
    )


def _create(name: str, *, told: str = "", tries: bool = False, **rest: Any) -> Call:
    options = {"validate_only": True} if tries else {}
    return refusable("create_topics", {name: rest}, told=told, **options)


def _topics() -> tuple[Call, ...]:
    placed: dict[str, Any] = {"assignments": {0: [11, 12], 1: [12, 11]}}
    return (
        Call("list_topics"),
        _create("p", **placed, tries=True),
        _create("p", **placed, configs={"retention.ms": "7200000"}),
        _create("p", num_partitions=1, told="TopicAlreadyExists"),
        _create("p", num_partitions=1, told="TopicAlreadyExists", tries=True),
        _create("q", num_partitions=1, replication_factor=3, told="InvalidReplicationFactor"),
        _create("q", num_partitions=1, replication_factor=0, told="InvalidReplicationFactor"),
        _create("q", num_partitions=0, told="InvalidPartitions"),
        _create("q", configs={"retention.ms": "x"}, told="InvalidConfig"),
        _create("q", configs={"max.message.bytes": "-1"}, told="InvalidConfig"),
        _create("q", configs={"no.such": "1"}, told="InvalidConfig"),
        _create("q!", told="InvalidTopic"),
        _create("." * 2, told="InvalidTopic"),
        _create("q" * 250, told="InvalidTopic"),
        _create("q", assignments={0: [11, 13]}, told="InvalidReplicationAssignment"),
        _create("q", assignments={0: [11, 11]}, told="InvalidReplicationAssignment"),
        _create("q", assignments={1: [11]}, told="InvalidReplicationAssignment"),
        _create("q", assignments={0: [11]}, num_partitions=2, told="InvalidRequest"),
        Call(
            "create_topics",
            ({"p": {}, "q": {"assignments": {0: [11]}}, "q!": {}},),
            {"raise_errors": False},
            "Topic",
        ),
        _create("p.q", assignments={0: [12, 11]}),
        _create("p_q", num_partitions=1, told="InvalidTopic"),
        Call("list_topics", tells="p.q"),
        Call("describe_topics", tells="p.q"),
        Call("describe_topics", (["p", "none"],), tells="none"),
        Call("describe_topics", (["q!"],), tells="q!"),
        Call("describe_topic_partitions", (["p", "p.q", "none"],), tells="none"),
        Call(
            "describe_topic_partitions",
            (["p", "p.q"],),
            {"response_partition_limit": 1},
            "next_cursor",
        ),
    )


def _partitions() -> tuple[Call, ...]:
    create = partial(refusable, "create_partitions")

    def placed(count: int, *assignments: list[int]) -> dict[str, Any]:
        return {"p": {"count": count, "assignments": list(assignments)}}

    return (
        create(placed(3, [12, 11]), validate_only=True),
        create(placed(3, [12, 11])),
        create({"p": 2}, told="InvalidPartitions"),
        create({"p": 3}, told="InvalidPartitions"),
        create({"none": 3}, told="UnknownTopicOrPartition"),
        create(placed(5, [11, 12]), told="InvalidReplicationAssignment"),
        create(placed(4, [11]), told="InvalidReplicationAssignment"),
        create(placed(4, [11, 13]), told="InvalidReplicationAssignment"),
        create({**placed(2, [11]), "none": 1}, raise_errors=False),
        Call("describe_topics", (["p"],), tells="p"),
        *_elections(),
        *_reassignments(),
    )


def _elections() -> tuple[Call, ...]:
    elect = partial(refusable, "elect_leaders")
    return (
        elect(0, {"p": [0, 1]}),
        elect(1, {"p": [0]}),
        elect(0, {"p": [9]}, told="UnknownTopicOrPartition"),
        elect(0, {"none": [0]}, told="UnknownTopicOrPartition"),
        elect(0, ["p"]),
        # Preferred is then another than leads.
        Call("alter_partition_reassignments", ({TopicPartition("p", 0): [12, 11]},)),
        Call("describe_topics", (["p"],), tells="p"),
        elect(0, {"p": [0]}),
        Call("describe_topics", (["p"],), tells="p"),
        Call("elect_leaders", (0, {"p": [0], "none": [1]}), {"raise_errors": False}),
    )


def _reassignments() -> tuple[Call, ...]:
    alter = partial(refusable, "alter_partition_reassignments")
    first = TopicPartition("p", 0)
    return (
        Call("list_partition_reassignments"),
        Call("list_partition_reassignments", ({"p": [0, 1]},)),
        Call("list_partition_reassignments", ({"none": [0]},)),
        alter({first: None}, told="NoReassignmentInProgress"),
        alter({first: [11, 13]}, told="InvalidReplicationAssignment"),
        alter({first: [11, 11]}, told="InvalidReplicationAssignment"),
        alter({TopicPartition("p", 9): [11]}, told="UnknownTopicOrPartition"),
        alter({TopicPartition("none", 0): [11]}, told="UnknownTopicOrPartition"),
        alter({first: [11, 12], TopicPartition("p", 9): None}, told="UnknownTopicOrPartition"),
    )


#: Types of what has configs; a name, a config of it and a value, and one that it cannot be.
_SETTINGS: Final = (
    ("TOPIC", "p", "max.message.bytes", "100000", "many"),
    ("BROKER", "11", "log.cleaner.threads", "2", "many"),
    ("GROUP", "g", "consumer.session.timeout.ms", "50000", "many"),
    ("CLIENT_METRICS", "m", "interval.ms", "30000", "many"),
)


def _configs() -> tuple[Call, ...]:
    return (
        *(call for setting in _SETTINGS for call in _configs_of(*setting)),
        *_unknown_configs(),
        _alter("TOPIC", "p", {"cleanup.policy": ("SET", "compact")}),
        _alter("TOPIC", "p", {"cleanup.policy": ("APPEND", "delete")}),
        _described("TOPIC", "p"),
        _alter("TOPIC", "p", {"cleanup.policy": ("SUBTRACT", "compact")}),
        _alter("TOPIC", "p", {"flush.ms": ("APPEND", "1")}, told="Error"),
        # In place of all others.
        _alter("TOPIC", "p", {"retention.ms": "3600000"}, incremental=False),
        _alter("TOPIC", "p", {"retention.ms": "soon"}, told="Error", incremental=False),
        _alter("TOPIC", "none", {"retention.ms": "1"}, told="Error", incremental=False),
        _described("TOPIC", "p"),
        Call("reset_configs", ([_resource("TOPIC", "p", {"retention.ms": None})],)),
        _alter("TOPIC", "p", {"flush.ms": "9", "retention.ms": "7200000"}),
        Call("reset_configs", ([_resource("TOPIC", "p", {})],)),
        _described("TOPIC", "p", "all"),
        Call("list_config_resources", tells="p.q"),
        Call("list_config_resources", (["GROUP", "CLIENT_METRICS"],), tells="m"),
    )


def _configs_of(kind: str, name: str, config: str, value: str, none: str) -> tuple[Call, ...]:
    """Set one, be refused, look, take it away."""
    return (
        _alter(kind, name, {config: value}, validate_only=True),
        _described(kind, name),
        _alter(kind, name, {config: value}),
        _alter(kind, name, {config: none}, told="Error"),
        # A broker may have plugins with configs of their own.
        _alter(kind, name, {"no.such": "1"}, told="" if kind == "BROKER" else "Error"),
        _described(kind, name, "modified"),
        _described(kind, name, "all"),
        _alter(kind, name, {config: ("DELETE", None)}),
        _described(kind, name, "modified"),
    )


def _unknown_configs() -> tuple[Call, ...]:
    return (
        _alter("TOPIC", "none", {"flush.ms": "9"}, told="Error"),
        _alter("TOPIC", "q!", {"flush.ms": "9"}, told="Error"),
        _alter("BROKER", "11", {"node.id": "7"}, told="Error"),
        _alter("GROUP", "", {"consumer.session.timeout.ms": "50000"}, told="Error"),
        _alter("CLIENT_METRICS", "", {"interval.ms": "30000"}, told="Error"),
        _alter("CLIENT_METRICS", "m", {"match": "no=such"}, told="Error"),
        Call("describe_configs", ([_resource("TOPIC", "none")],)),
    )


def _resource(kind: str, name: str, configs: dict[str, Any] | None = None) -> Any:
    return _admin.ConfigResource(kind, name, configs)


def _alter(
    kind: str, name: str, configs: dict[str, Any], *, told: str = "", **options: bool
) -> Call:
    wanted = [_resource(kind, name, configs)]
    # The library would look itself for what it knows.
    return refusable("alter_configs", wanted, told=told, raise_on_unknown=False, **options)


def _described(kind: str, name: str, which: str = "modified") -> Call:
    options = {"include_synonyms": True, "config_filter": which}
    return Call("describe_configs", ([_resource(kind, name)],), options)


def _deletions() -> tuple[Call, ...]:
    def delete(*names: str, told: str = "") -> Call:
        return refusable("delete_topics", list(names), told=told)

    return (
        delete("p.q"),
        delete("p.q", told="UnknownTopicOrPartition"),
        Call("delete_topics", (["none", "q"],), {"raise_errors": False}, "does not host"),
        Call("list_topics"),
        # The same name, and another topic.
        _create("p.q", assignments={0: [12]}),
        Call("describe_topics", (["p.q"],), tells="p.q"),
    )


def produced_calls() -> tuple[Call, ...]:
    """Once an idempotent producer has written to the topic."""
    written = [TopicPartition(PRODUCED, 0)]
    return (
        Call("describe_producers", (written,), tells="producer_id"),
        Call("list_partition_offsets", ({written[0]: -1},), tells="offset"),
        Call("describe_log_dirs", tells=PRODUCED),
        Call("describe_log_dirs", ([PRODUCED], [12]), tells=PRODUCED),
    )


def fenced_calls() -> tuple[Call, ...]:
    """Once broker 12 was killed and is fenced; of a client that knows the other one."""
    first = TopicPartition("p", 1)
    gone = TopicPartition("p.q", 0)
    return (
        Call("describe_cluster", tells="CLUSTER"),
        Call("describe_topics", tells="p.q"),
        _create("r", assignments={0: [12]}, told="InvalidReplicationAssignment"),
        _create("r", num_partitions=1, replication_factor=3, told="InvalidReplicationFactor"),
        Call("elect_leaders", (0, {"p": [1]}), tells="Preferred", is_refused=True),
        Call("elect_leaders", (1, {"p.q": [0]}), tells="Eligible", is_refused=True),
        Call("alter_partition_reassignments", ({gone: [11]},)),
        Call("list_partition_reassignments", tells="p.q"),
        Call("describe_topics", (["p.q"],), tells="p.q"),
        Call("alter_partition_reassignments", ({gone: None},)),
        Call("list_partition_reassignments", ({"p.q": [0]},)),
        Call("list_partition_reassignments", ([first],)),
        Call("describe_topic_partitions", (["p", "p.q"],), tells="p.q"),
    )


def restored_calls() -> tuple[Call, ...]:
    """Once broker 12 is back and in sync; nobody has given it what it led."""
    return (
        Call("describe_topics", tells="p.q"),
        Call("elect_leaders", (1, {"p": [1]}), {"raise_errors": False}, "84"),
        Call("elect_leaders", (0, {"p": [1, 0]})),
        Call("describe_topics", (["p"],), tells="p"),
        Call("describe_topic_partitions", (["p", "p.q"],), tells="p.q"),
        Call("describe_producers", ([TopicPartition(PRODUCED, 0)],), tells="producer_id"),
    )
