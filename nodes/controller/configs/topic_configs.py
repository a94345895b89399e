"""Configs of topics: their types, bounds and defaults, and what brokers call them.

Source: Kafka 4.3.1's ``LogConfig`` and ``ServerTopicConfigSynonyms``.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from splitbrain.nodes.controller.configs.config_types import (
    AtLeast,
    Between,
    BetweenOr,
    ConfigDefinition,
    ConfigType,
    ListOf,
    OneOf,
    ThrottledReplicas,
    bad_config,
    config_table,
    parse_configs,
)

MIN_INSYNC_REPLICAS: Final = "min.insync.replicas"
_HOUR_MS: Final = 3_600_000
_LONGEST: Final = str((1 << 63) - 1)

TOPIC_CONFIGS: Final = config_table(
    (
        ConfigDefinition("segment.bytes", ConfigType.INT, "1073741824", AtLeast(1048576)),
        ConfigDefinition("segment.ms", ConfigType.LONG, "604800000", AtLeast(1)),
        ConfigDefinition("segment.jitter.ms", ConfigType.LONG, "0", AtLeast(0)),
        ConfigDefinition("segment.index.bytes", ConfigType.INT, "10485760", AtLeast(4)),
        ConfigDefinition("flush.messages", ConfigType.LONG, _LONGEST, AtLeast(1)),
        ConfigDefinition("flush.ms", ConfigType.LONG, _LONGEST, AtLeast(0)),
        ConfigDefinition("retention.bytes", ConfigType.LONG, "-1"),
        ConfigDefinition("retention.ms", ConfigType.LONG, "604800000", AtLeast(-1)),
        ConfigDefinition("max.message.bytes", ConfigType.INT, "1048588", AtLeast(0)),
        ConfigDefinition("index.interval.bytes", ConfigType.INT, "4096", AtLeast(0)),
        ConfigDefinition("delete.retention.ms", ConfigType.LONG, "86400000", AtLeast(0)),
        ConfigDefinition("min.compaction.lag.ms", ConfigType.LONG, "0", AtLeast(0)),
        ConfigDefinition("max.compaction.lag.ms", ConfigType.LONG, _LONGEST, AtLeast(1)),
        ConfigDefinition("file.delete.delay.ms", ConfigType.LONG, "60000", AtLeast(0)),
        ConfigDefinition("min.cleanable.dirty.ratio", ConfigType.DOUBLE, "0.5", Between(0, 1)),
        ConfigDefinition(
            "cleanup.policy", ConfigType.LIST, "delete", ListOf(("compact", "delete"))
        ),
        ConfigDefinition("unclean.leader.election.enable", ConfigType.BOOLEAN, "false"),
        ConfigDefinition("min.insync.replicas", ConfigType.INT, "1", AtLeast(1)),
        ConfigDefinition(
            "compression.type",
            ConfigType.STRING,
            "producer",
            OneOf(("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer")),
        ),
        ConfigDefinition("compression.gzip.level", ConfigType.INT, "-1", BetweenOr(1, 9, -1)),
        ConfigDefinition("compression.lz4.level", ConfigType.INT, "9", Between(1, 17)),
        ConfigDefinition("compression.zstd.level", ConfigType.INT, "3", Between(-131072, 22)),
        ConfigDefinition("preallocate", ConfigType.BOOLEAN, "false"),
        ConfigDefinition(
            "message.timestamp.type",
            ConfigType.STRING,
            "CreateTime",
            OneOf(("CreateTime", "LogAppendTime")),
        ),
        ConfigDefinition("message.timestamp.before.max.ms", ConfigType.LONG, _LONGEST, AtLeast(0)),
        ConfigDefinition("message.timestamp.after.max.ms", ConfigType.LONG, "3600000", AtLeast(0)),
        ConfigDefinition(
            "leader.replication.throttled.replicas", ConfigType.LIST, "", ThrottledReplicas()
        ),
        ConfigDefinition(
            "follower.replication.throttled.replicas", ConfigType.LIST, "", ThrottledReplicas()
        ),
        ConfigDefinition("remote.storage.enable", ConfigType.BOOLEAN, "false"),
        ConfigDefinition("local.retention.ms", ConfigType.LONG, "-2", AtLeast(-2)),
        ConfigDefinition("local.retention.bytes", ConfigType.LONG, "-2", AtLeast(-2)),
        ConfigDefinition("remote.log.copy.disable", ConfigType.BOOLEAN, "false"),
        ConfigDefinition("remote.log.delete.on.disable", ConfigType.BOOLEAN, "false"),
        ConfigDefinition("internal.segment.bytes", ConfigType.INT, None, is_internal=True),
    )
)


class Synonym(NamedTuple):
    """A broker's config that says the same of all its topics."""

    name: str
    #: One of its units in units of the topic's config; None for text taken as it is.
    factor: int | None = None

    def converted(self, text: str) -> str:
        """Return the value as the topic's config has it; hours and minutes become milliseconds."""
        if self.factor is None:
            return text
        try:
            return str(int(text.strip() or "0") * self.factor)
        except ValueError:
            # An unreadable value counts as none, as in Kafka.
            return "0"


#: The first that is set counts.
SYNONYMS: Final[Mapping[str, tuple[Synonym, ...]]] = MappingProxyType(
    {
        "segment.bytes": (Synonym("log.segment.bytes"),),
        "segment.ms": (Synonym("log.roll.ms"), Synonym("log.roll.hours", _HOUR_MS)),
        "segment.jitter.ms": (
            Synonym("log.roll.jitter.ms"),
            Synonym("log.roll.jitter.hours", _HOUR_MS),
        ),
        "segment.index.bytes": (Synonym("log.index.size.max.bytes"),),
        "flush.messages": (Synonym("log.flush.interval.messages"),),
        "flush.ms": (Synonym("log.flush.interval.ms"), Synonym("log.flush.scheduler.interval.ms")),
        "retention.bytes": (Synonym("log.retention.bytes"),),
        "retention.ms": (
            Synonym("log.retention.ms"),
            Synonym("log.retention.minutes", 60_000),
            Synonym("log.retention.hours", _HOUR_MS),
        ),
        "max.message.bytes": (Synonym("message.max.bytes"),),
        "index.interval.bytes": (Synonym("log.index.interval.bytes"),),
        "delete.retention.ms": (Synonym("log.cleaner.delete.retention.ms"),),
        "min.compaction.lag.ms": (Synonym("log.cleaner.min.compaction.lag.ms"),),
        "max.compaction.lag.ms": (Synonym("log.cleaner.max.compaction.lag.ms"),),
        "file.delete.delay.ms": (Synonym("log.segment.delete.delay.ms"),),
        "min.cleanable.dirty.ratio": (Synonym("log.cleaner.min.cleanable.ratio"),),
        "cleanup.policy": (Synonym("log.cleanup.policy"),),
        "unclean.leader.election.enable": (Synonym("unclean.leader.election.enable"),),
        "min.insync.replicas": (Synonym("min.insync.replicas"),),
        "compression.type": (Synonym("compression.type"),),
        "compression.gzip.level": (Synonym("compression.gzip.level"),),
        "compression.lz4.level": (Synonym("compression.lz4.level"),),
        "compression.zstd.level": (Synonym("compression.zstd.level"),),
        "preallocate": (Synonym("log.preallocate"),),
        "message.timestamp.type": (Synonym("log.message.timestamp.type"),),
        "message.timestamp.before.max.ms": (Synonym("log.message.timestamp.before.max.ms"),),
        "message.timestamp.after.max.ms": (Synonym("log.message.timestamp.after.max.ms"),),
        "local.retention.ms": (Synonym("log.local.retention.ms"),),
        "local.retention.bytes": (Synonym("log.local.retention.bytes"),),
    }
)


def check_topic_configs(texts: Mapping[str, str], before: Mapping[str, str]) -> None:
    """Refuse configs that no topic may have; ``before`` are those that it has.

    Raises Refusal: INVALID_CONFIG.
    """
    for name in texts:
        if name not in TOPIC_CONFIGS:
            raise bad_config(f"Unknown topic config name: {name}")
    values = parse_configs(TOPIC_CONFIGS, texts)
    shortest, longest = values["min.compaction.lag.ms"], values["max.compaction.lag.ms"]
    if shortest > longest:  # pyright: ignore[reportOperatorIssue]
        raise bad_config(
            f"conflict topic config setting min.compaction.lag.ms ({shortest}) > "
            f"max.compaction.lag.ms ({longest})"
        )
    if values["remote.storage.enable"]:
        raise bad_config(
            "Tiered Storage functionality is disabled in the broker. Topic cannot be configured "
            "with remote log storage."
        )
    was_remote = before.get("remote.storage.enable", "").lower() == "true"
    if was_remote and not values["remote.log.delete.on.disable"]:
        raise bad_config(
            "It is invalid to disable remote storage without deleting remote data. If you want to "
            "keep the remote data and turn to read only, please set "
            "`remote.storage.enable=true,remote.log.copy.disable=true`. If you want to disable "
            "remote storage and delete all remote data, please set "
            "`remote.storage.enable=false,remote.log.delete.on.disable=true`."
        )
