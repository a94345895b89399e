"""Turns settings given as text, by our names or by Kafka's, into a broker's settings. Pure.

All nodes of a cluster are given the same settings, so that controllers pass these over, as brokers
pass over a controller's. Source of Kafka's names: KRaftConfigs of Kafka 4.3.
"""

from collections.abc import Mapping
from typing import Final

from splitbrain.nodes.broker.settings import BrokerSettings
from splitbrain.nodes.server.start.whole_settings import whole_settings

_KAFKA: Final = {
    "broker.heartbeat.interval.ms": "heartbeat_interval_ms",
    "initial.broker.registration.timeout.ms": "initial_registration_timeout_ms",
}
#: Settings of a broker, by our names and by Kafka's.
BROKER_SETTING_NAMES: Final = frozenset({*_KAFKA, *BrokerSettings.__struct_fields__})


def broker_settings(settings: Mapping[str, str]) -> BrokerSettings:
    """Defaults, overridden by what is given; names of others are passed over.

    Raises:
        ValueError: names a setting that is no whole number, too small, or given twice.
    """
    chosen = whole_settings(settings, BROKER_SETTING_NAMES, _KAFKA)
    return BrokerSettings(**chosen)
