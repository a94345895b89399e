"""Turns settings given as text, by our names or by Kafka's, into a controller's settings. Pure.

Source of Kafka's names: KRaftConfigs, ReplicationConfigs and ServerLogConfigs of Kafka 4.3.
"""

from collections.abc import Mapping
from typing import Final

import msgspec

from splitbrain.nodes.controller.basis.settings import ControllerSettings
from splitbrain.nodes.server.start.whole_settings import whole_settings

_KAFKA: Final = {
    "broker.session.timeout.ms": "broker_session_timeout_ms",
    "num.partitions": "num_partitions",
    "default.replication.factor": "default_replication_factor",
    "min.insync.replicas": "min_insync_replicas",
    "leader.imbalance.check.interval.seconds": "leader_imbalance_check_interval_s",
    "unclean.leader.election.interval.ms": "unclean_leader_election_interval_ms",
    "metadata.max.idle.interval.ms": "max_idle_interval_ms",
}
#: Settings of a controller, by our names and by Kafka's; the last one is a constant of Kafka's.
CONTROLLER_SETTING_NAMES: Final = frozenset(
    {*_KAFKA, *_KAFKA.values(), "activation_records_per_batch_max"}
)
#: 0 turns these off; of the others there must be one at least.
_MAY_BE_ZERO: Final = frozenset(
    {
        "leader_imbalance_check_interval_s",
        "unclean_leader_election_interval_ms",
        "max_idle_interval_ms",
    }
)


def controller_settings(settings: Mapping[str, str]) -> ControllerSettings:
    """Defaults, overridden by what is given; names of others are passed over.

    Raises:
        ValueError: names a setting that is no whole number, too small, or given twice.
    """
    chosen = whole_settings(settings, CONTROLLER_SETTING_NAMES, _KAFKA, _MAY_BE_ZERO)
    return msgspec.structs.replace(ControllerSettings(), **chosen)
