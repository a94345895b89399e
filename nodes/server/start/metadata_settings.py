"""Turns settings given as text, by our names or by Kafka's, into those of controllers and brokers.

All nodes of a cluster are given all settings: each part reads its own and passes over the others'.
Source of Kafka's names: KRaftConfigs, ReplicationConfigs and ServerLogConfigs of Kafka 4.3. Pure.
"""

from collections.abc import Mapping
from typing import Final

from splitbrain.nodes.broker.settings import BrokerSettings
from splitbrain.nodes.controller.basis.settings import ControllerSettings

_CONTROLLER: Final = {
    "broker.session.timeout.ms": "broker_session_timeout_ms",
    "num.partitions": "num_partitions",
    "default.replication.factor": "default_replication_factor",
    "min.insync.replicas": "min_insync_replicas",
    "leader.imbalance.check.interval.seconds": "leader_imbalance_check_interval_s",
    "unclean.leader.election.interval.ms": "unclean_leader_election_interval_ms",
    "metadata.max.idle.interval.ms": "max_idle_interval_ms",
}
_BROKER: Final = {
    "broker.heartbeat.interval.ms": "heartbeat_interval_ms",
    "initial.broker.registration.timeout.ms": "initial_registration_timeout_ms",
}
#: Settings of a controller, by our names and by Kafka's; the last one is a constant of Kafka's.
CONTROLLER_SETTING_NAMES: Final = frozenset(
    {*_CONTROLLER, *_CONTROLLER.values(), "activation_records_per_batch_max"}
)
#: Settings of a broker, by our names and by Kafka's.
BROKER_SETTING_NAMES: Final = frozenset({*_BROKER, *BrokerSettings.__struct_fields__})
#: 0 turns these off; of the others there must be one at least.
_MAY_BE_ZERO: Final = (
    "leader_imbalance_check_interval_s",
    "unclean_leader_election_interval_ms",
    "max_idle_interval_ms",
)


def controller_settings(settings: Mapping[str, str]) -> ControllerSettings:
    """Defaults, overridden by what is given; names of others are passed over.

    Raises:
        ValueError: names a setting that is no whole number, too small, or given twice.
    """
    own = {name: text for name, text in settings.items() if name in CONTROLLER_SETTING_NAMES}
    return ControllerSettings(**_whole_numbers(own, _CONTROLLER))


def broker_settings(settings: Mapping[str, str]) -> BrokerSettings:
    """As ``controller_settings``, for a broker."""
    own = {name: text for name, text in settings.items() if name in BROKER_SETTING_NAMES}
    return BrokerSettings(**_whole_numbers(own, _BROKER))


def quorums_part(settings: Mapping[str, str]) -> dict[str, str]:
    """Return the settings that are neither a controller's nor a broker's; those are checked."""
    controller_settings(settings)
    broker_settings(settings)
    others = CONTROLLER_SETTING_NAMES | BROKER_SETTING_NAMES
    return {name: text for name, text in settings.items() if name not in others}


def _whole_numbers(settings: Mapping[str, str], kafka_names: Mapping[str, str]) -> dict[str, int]:
    """Return the values by our names; raises ValueError."""
    chosen: dict[str, int] = {}
    for name, text in settings.items():
        field = kafka_names.get(name, name)
        if field in chosen:
            raise ValueError(f"setting {name!r} is given twice, by Kafka's name and by ours")
        if not text.strip().isdecimal():
            raise ValueError(f"setting {name!r} is {text!r}, not a whole number")
        chosen[field] = int(text)
        if not chosen[field] and field not in _MAY_BE_ZERO:
            raise ValueError(f"setting {name!r} is 0; choose 1 or more")
    return chosen
