"""Configs of client metrics subscriptions: which metrics, how often, and of which clients.

Source: Kafka 4.3.1's ``ClientMetricsConfigs``; KIP-714.
"""

import re
from collections.abc import Mapping
from typing import Any, Final

from splitbrain.nodes.controller.basis.decisions import bad_request
from splitbrain.nodes.controller.configs.config_types import (
    ConfigDefinition,
    ConfigType,
    ListOf,
    bad_config,
    config_table,
    parse_configs,
)

CLIENT_METRICS_CONFIGS: Final = config_table(
    (
        ConfigDefinition("metrics", ConfigType.LIST, "", ListOf()),
        ConfigDefinition("interval.ms", ConfigType.INT, "300000"),
        ConfigDefinition("match", ConfigType.LIST, "", ListOf()),
    )
)
_INTERVAL_MS_MIN: Final = 100
_INTERVAL_MS_MAX: Final = 3_600_000
_MATCHABLE: Final = frozenset(
    {
        "client_instance_id",
        "client_id",
        "client_software_name",
        "client_software_version",
        "client_source_address",
        "client_source_port",
    }
)


def check_client_metrics(name: str, texts: Mapping[str, str]) -> None:
    """Refuse configs that no subscription may have, as INVALID_REQUEST or INVALID_CONFIG."""
    if not name:
        raise bad_request("Subscription name can't be empty")
    for each in texts:
        if each not in CLIENT_METRICS_CONFIGS:
            raise bad_request(f"Unknown client metrics configuration: {each}")
    values: dict[str, Any] = dict(parse_configs(CLIENT_METRICS_CONFIGS, texts))
    interval_ms = values["interval.ms"]
    if not _INTERVAL_MS_MIN <= interval_ms <= _INTERVAL_MS_MAX:
        raise bad_request(
            f"Invalid value {interval_ms} for interval.ms, interval must be between 100 and "
            "3600000 (1 hour)"
        )
    for pattern in values["match"]:
        if not _is_pattern(pattern):
            raise bad_config(f"Illegal client matching pattern: {pattern}")


def _is_pattern(text: str) -> bool:
    # Java's split drops what is empty at the end.
    name, *rest = text.rstrip("=").split("=")
    if len(rest) != 1 or name.strip() not in _MATCHABLE:
        return False
    try:
        re.compile(rest[0].strip())
    except re.error:
        return False
    return True
