"""Requests about configs, right ones and wrong ones, by chance. Pure."""

from random import Random
from typing import Final

import msgspec

from splitbrain.nodes.controller.configs.config_types import ConfigType
from splitbrain.nodes.controller.configs.config_validation import ResourceType
from splitbrain.nodes.controller.configs.group_configs import GROUP_CONFIGS
from splitbrain.nodes.controller.configs.topic_configs import TOPIC_CONFIGS as _TOPIC_DEFINITIONS
from splitbrain.nodes.wire.families import configs
from tests.referee.known import BROKER_IDS, NOBODY, Known

_SET, _DELETE, _APPEND, _SUBTRACT = range(4)
_OPERATIONS: Final = (_SET, _DELETE, _APPEND, _SUBTRACT)
_UNKNOWN_TYPE: Final = 3

#: Names of topics' configs, one of them nobody's.
TOPIC_CONFIGS: Final = (
    *(name for name, each in _TOPIC_DEFINITIONS.items() if not each.is_internal),
    "no.such.config",
)
_BROKER_CONFIGS: Final = (
    "log.cleaner.threads",
    "message.max.bytes",
    "log.cleanup.policy",
    "min.insync.replicas",
    "log.retention.hours",
    "node.id",
    "no.such.config",
)
_ALL_BROKERS_CONFIGS: Final = (
    "log.cleaner.threads",
    "message.max.bytes",
    "log.cleanup.policy",
    "min.insync.replicas",
)
_METRICS_CONFIGS: Final = ("metrics", "interval.ms", "match", "no.such.config")
_GROUP_CONFIGS: Final = (*GROUP_CONFIGS, "no.such.config")
_NAMES: Final = {
    ResourceType.TOPIC: TOPIC_CONFIGS,
    ResourceType.BROKER: _BROKER_CONFIGS,
    ResourceType.BROKER_LOGGER: ("kafka",),
    ResourceType.CLIENT_METRICS: _METRICS_CONFIGS,
    ResourceType.GROUP: _GROUP_CONFIGS,
}
_TEXTS: Final = ("", "x", "delete", "compact,delete", "*", "0:1,1:2", "zstd", "a,b")
_NUMBERS: Final = ("-3", "-1", "0", "1", "3", "9", "100", "50000", "1048576", "0.5", " 7 ", "1e3")
_FITTING: Final = {
    "interval.ms": ("100", "60000"),
    "match": ("client_id=a.*", "client_id=b"),
    "metrics": ("*", "org.apache"),
    "cleanup.policy": ("compact", "delete", "delete,compact"),
    "compression.type": ("zstd", "producer"),
    "message.timestamp.type": ("CreateTime", "LogAppendTime"),
    "share.auto.offset.reset": ("earliest", "latest", "by_duration:PT1H"),
    "share.isolation.level": ("read_committed", "read_uncommitted"),
    "remote.storage.enable": ("false",),
    "remote.log.copy.disable": ("false",),
    "remote.log.delete.on.disable": ("false",),
    "leader.replication.throttled.replicas": ("*", "0:1,1:2"),
    "min.insync.replicas": ("1", "2"),
    "log.cleaner.threads": ("2",),
    "message.max.bytes": ("2000000",),
    "log.cleanup.policy": ("compact", "delete"),
    "log.retention.hours": ("7",),
    "node.id": ("7",),
}
#: A real controller takes blanks around this number, and then fails at each change of the topic's
#: replicas, for it reads them as a part of the number (4.3.1).
_NEVER_WITH_BLANKS: Final = "min.insync.replicas"
#: Values that a config of this name may not have, and nearly may.
_BY_NAME: Final = {
    "interval.ms": ("99", "3600001"),
    "match": ("client_id", "client_id=[", "x=y"),
    "cleanup.policy": ("none", "", "delete,delete"),
    "share.auto.offset.reset": ("by_duration:x", "by_duration:-PT1H"),
    "remote.storage.enable": ("true",),
}


def some_settings(
    random: Random, kind: int, resource: str = "some"
) -> list[tuple[str, str | None]]:
    """Names of configs with values for them, of which the first alone need not fit.

    Of several wrong ones a real controller names any, by the order of a hash map.
    """
    names = _names(kind)
    if random.random() < 0.05:
        return []
    if kind == ResourceType.BROKER and not resource:
        # Nobody checks what shall be for all brokers; a real controller that cannot be so itself
        # goes on as if nothing had been said.
        return [(name, _fitting(random, name)) for name in random.sample(_ALL_BROKERS_CONFIGS, 2)]
    first = random.choice(names)
    others = random.sample(names, random.choice((0, 0, 1, 2))) if len(names) > 2 else []
    fitting = [(name, _fitting(random, name)) for name in others if name != first]
    return [(first, _any_value(random, first)), *((n, v) for n, v in fitting if v is not None)]


def _any_value(random: Random, name: str) -> str | None:
    if random.random() < 0.03:
        return None
    fitting = _fitting(random, name)
    if random.random() < 0.4 or fitting is None:
        value = random.choice((*_BY_NAME.get(name, ()), *_TEXTS, *_NUMBERS))
        return value.strip() if name == _NEVER_WITH_BLANKS else value
    return fitting


def _fitting(random: Random, name: str) -> str | None:
    """A value that the config may have; None if it is nobody's config."""
    fitting = _FITTING.get(name)
    if fitting is not None:
        return random.choice(fitting)
    definition = _TOPIC_DEFINITIONS.get(name) or GROUP_CONFIGS.get(name)
    if definition is None:
        return None
    if definition.type is ConfigType.BOOLEAN:
        return random.choice(("true", "false"))
    return definition.default


def alter_incrementally(random: Random, known: Known) -> msgspec.Struct:
    return configs.IncrementalAlterConfigsRequest(
        resources=tuple(
            configs.ResourceToChange(
                resource_type=kind, resource_name=name, configs=_changes(random, kind, name)
            )
            for kind, name in _some_resources(random, known)
            # A real controller changes levels of its own loggers so; ours has none.
            if kind != ResourceType.BROKER_LOGGER
        ),
        validate_only=random.random() < 0.1,
    )


def _changes(random: Random, kind: int, resource: str) -> tuple[configs.ConfigChange, ...]:
    changes = [
        configs.ConfigChange(
            name=name, config_operation=random.choice((_SET, _SET, _DELETE)), value=value
        )
        for name, value in some_settings(random, kind, resource)
    ]
    if changes and random.random() < 0.4:
        # Never one that there is not, and nothing appended or subtracted: at either a real
        # controller fails and leads no more.
        operation = random.choice(_OPERATIONS)
        value = changes[0].value
        if operation in (_APPEND, _SUBTRACT) and value is None:
            value = "x"
        changes[0] = msgspec.structs.replace(changes[0], config_operation=operation, value=value)
    return tuple(changes)


def alter(random: Random, known: Known) -> msgspec.Struct:
    return configs.AlterConfigsRequest(
        resources=tuple(
            configs.ResourceToSet(
                resource_type=kind,
                resource_name=name,
                configs=tuple(
                    configs.ConfigValue(name=config, value=value)
                    for config, value in some_settings(random, kind, name)
                ),
            )
            for kind, name in _some_resources(random, known)
        ),
        validate_only=random.random() < 0.1,
    )


def describe(random: Random, known: Known) -> msgspec.Struct:
    return configs.DescribeConfigsRequest(
        resources=tuple(
            configs.ResourceToDescribe(
                resource_type=kind,
                resource_name=name,
                configuration_keys=None
                if random.random() < 0.5
                else tuple(random.sample(_names(kind), min(2, len(_names(kind))))),
            )
            for kind, name in _some_resources(random, known)
            # As above.
            if kind != ResourceType.BROKER_LOGGER
        ),
        include_synonyms=random.random() < 0.5,
    )


def _names(kind: int) -> tuple[str, ...]:
    return _NAMES[ResourceType(kind)] if kind in frozenset(ResourceType) else ("x",)


def _some_resources(random: Random, known: Known) -> list[tuple[int, str]]:
    count = random.choice((1, 1, 1, 2))
    found = [_resource(random, known) for _ in range(count)]
    if random.random() < 0.05:
        found.append(found[0])
    return found


def _resource(random: Random, known: Known) -> tuple[int, str]:
    chance = random.random()
    if chance < 0.4:
        names = [topic.name for topic in known.topics]
        odd = random.random() < 0.1 or not names
        return ResourceType.TOPIC, random.choice(("none", "", "a b") if odd else names)
    if chance < 0.6:
        ids = ("", *map(str, BROKER_IDS), str(NOBODY), "x", "-1")
        return ResourceType.BROKER, random.choice(ids)
    if chance < 0.78:
        return ResourceType.CLIENT_METRICS, random.choice(("m", "n", ""))
    if chance < 0.96:
        return ResourceType.GROUP, random.choice(("g", "h", ""))
    return random.choice(((ResourceType.BROKER_LOGGER, "11"), (_UNKNOWN_TYPE, "x")))
