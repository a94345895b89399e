"""Configs of groups: their types, bounds and defaults.

Source: Kafka 4.3.1's ``GroupConfig``, with the bounds that a broker's configuration has by default.
"""

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import msgspec

from splitbrain.nodes.controller.configs.config_types import (
    AtLeast,
    ConfigDefinition,
    ConfigType,
    OneOf,
    bad_config,
    bad_value,
    config_table,
    parse_configs,
)

#: Form that Java's ``Duration.parse`` takes.
_DURATION: Final = re.compile(
    r"([+-]?)P(?:([+-]?[0-9]+)D)?"
    r"(?:T(?=[+-]?[0-9.])(?:([+-]?[0-9]+)H)?(?:([+-]?[0-9]+)M)?"
    r"(?:([+-]?[0-9]+)(?:[.,]([0-9]{0,9}))?S)?)?",
    re.IGNORECASE,
)


class OffsetReset(msgspec.Struct, frozen=True):
    """Where a share group begins to read."""

    def check(self, name: str, value: Any) -> None:
        """As ``Check`` says."""
        if value not in {"earliest", "latest"} and not _is_back_in_time(value):
            raise bad_value(
                name,
                value,
                f"Invalid value `{value}` for configuration {name}. The value must be either "
                "'earliest', 'latest' or of the format 'by_duration:<PnDTnHnMn.nS>'.",
            )


GROUP_CONFIGS: Final = config_table(
    (
        ConfigDefinition("consumer.session.timeout.ms", ConfigType.INT, "45000", AtLeast(1)),
        ConfigDefinition("consumer.heartbeat.interval.ms", ConfigType.INT, "5000", AtLeast(1)),
        ConfigDefinition("consumer.assignment.interval.ms", ConfigType.INT, "1000", AtLeast(0)),
        ConfigDefinition("share.session.timeout.ms", ConfigType.INT, "45000", AtLeast(1)),
        ConfigDefinition("share.heartbeat.interval.ms", ConfigType.INT, "5000", AtLeast(1)),
        ConfigDefinition("share.record.lock.duration.ms", ConfigType.INT, "30000", AtLeast(1000)),
        ConfigDefinition("share.delivery.count.limit", ConfigType.INT, "5", AtLeast(2)),
        ConfigDefinition("share.partition.max.record.locks", ConfigType.INT, "2000", AtLeast(100)),
        ConfigDefinition("share.auto.offset.reset", ConfigType.STRING, "latest", OffsetReset()),
        ConfigDefinition(
            "share.isolation.level",
            ConfigType.STRING,
            "read_uncommitted",
            OneOf(("read_committed", "read_uncommitted")),
        ),
        ConfigDefinition("share.renew.acknowledge.enable", ConfigType.BOOLEAN, "true"),
        ConfigDefinition("share.assignment.interval.ms", ConfigType.INT, "1000", AtLeast(0)),
        ConfigDefinition("streams.session.timeout.ms", ConfigType.INT, "45000", AtLeast(1)),
        ConfigDefinition("streams.heartbeat.interval.ms", ConfigType.INT, "5000", AtLeast(1)),
        ConfigDefinition("streams.num.standby.replicas", ConfigType.INT, "0", AtLeast(0)),
        ConfigDefinition("streams.initial.rebalance.delay.ms", ConfigType.INT, "3000", AtLeast(0)),
        ConfigDefinition("streams.assignment.interval.ms", ConfigType.INT, "1000", AtLeast(0)),
    )
)


#: Those that brokers have no default of their own for.
_OF_GROUPS_ALONE: Final = frozenset(
    {"share.auto.offset.reset", "share.isolation.level", "share.renew.acknowledge.enable"}
)
#: Their names at brokers, as the default of all groups.
GROUP_SYNONYMS: Final[Mapping[str, str]] = MappingProxyType(
    {name: f"group.{name}" for name in GROUP_CONFIGS if name not in _OF_GROUPS_ALONE}
)


class _Bound(NamedTuple):
    """Return the bounds that a broker's configuration sets for a group's."""

    name: str
    lowest: int
    highest: int
    #: Of the broker's configs that hold the bounds, without the kind of group.
    limit: str

    def problem(self, value: int) -> str | None:
        """Return the problem with the value."""
        kind = self.name.partition(".")[0]
        if value < self.lowest:
            return f"{self.name} must be greater than or equal to group.{kind}.min.{self.limit}"
        if value > self.highest:
            return f"{self.name} must be less than or equal to group.{kind}.max.{self.limit}"
        return None


_BOUNDS: Final = (
    _Bound("consumer.heartbeat.interval.ms", 5_000, 15_000, "heartbeat.interval.ms"),
    _Bound("consumer.session.timeout.ms", 45_000, 60_000, "session.timeout.ms"),
    _Bound("consumer.assignment.interval.ms", 0, 15_000, "assignment.interval.ms"),
    _Bound("share.heartbeat.interval.ms", 5_000, 15_000, "heartbeat.interval.ms"),
    _Bound("share.session.timeout.ms", 45_000, 60_000, "session.timeout.ms"),
    _Bound("share.record.lock.duration.ms", 15_000, 60_000, "record.lock.duration.ms"),
    _Bound("share.delivery.count.limit", 2, 10, "delivery.count.limit"),
    _Bound("share.partition.max.record.locks", 100, 4_000, "partition.max.record.locks"),
    _Bound("share.assignment.interval.ms", 0, 15_000, "assignment.interval.ms"),
    _Bound("streams.heartbeat.interval.ms", 5_000, 15_000, "heartbeat.interval.ms"),
    _Bound("streams.session.timeout.ms", 45_000, 60_000, "session.timeout.ms"),
    _Bound("streams.num.standby.replicas", 0, 2, "standby.replicas"),
    _Bound("streams.assignment.interval.ms", 0, 15_000, "assignment.interval.ms"),
)


def check_group_configs(texts: Mapping[str, str]) -> None:
    """Refuse configs that no group may have; raises Refusal: INVALID_CONFIG."""
    for name in texts:
        if name not in GROUP_CONFIGS:
            raise bad_config(f"Unknown group config name: {name}")
    values: dict[str, Any] = dict(parse_configs(GROUP_CONFIGS, texts))
    for bound in _BOUNDS:
        problem = bound.problem(values[bound.name])
        if problem is not None:
            raise bad_config(problem)
    for kind in ("consumer", "share", "streams"):
        timeout, interval = f"{kind}.session.timeout.ms", f"{kind}.heartbeat.interval.ms"
        if values[timeout] <= values[interval]:
            raise bad_config(f"{timeout} must be greater than {interval}")


def _is_back_in_time(value: str) -> bool:
    """Whether the value says a duration that is not negative."""
    prefix, _, duration = value.partition(":")
    found = _DURATION.fullmatch(duration)
    if prefix != "by_duration" or found is None:
        return False
    sign, *parts, fraction = found.groups()
    if not any(parts):
        return False
    days, hours, minutes, seconds = (int(part or "0") for part in parts)
    total = ((days * 24 + hours) * 60 + minutes) * 60 + seconds
    # The fraction has the sign of its seconds.
    below = int((fraction or "0").ljust(9, "0"))
    if parts[3] is not None and parts[3].startswith("-"):
        below = -below
    nanoseconds = total * 1_000_000_000 + below
    return (-nanoseconds if sign == "-" else nanoseconds) >= 0
