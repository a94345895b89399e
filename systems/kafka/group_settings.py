"""Settings of consumer groups: of the protocol, and of brokers so that members are missed soon."""

from collections.abc import Mapping
from typing import Final

from splitbrain.contracts.share_groups import DELIVERIES_MAX

#: Setting of a run, under the name that consumers have for it.
GROUP_PROTOCOL: Final = "group.protocol"
#: Members agree on a generation by way of a leader, who shares out; or the coordinator shares out,
#: and members have epochs of their own (KIP-848).
CLASSIC: Final = "classic"
CONSUMER: Final = "consumer"
#: A member that is silent for so long is removed, and one that is late for a rebalance: operations
#: have a second, and a join is part of one.
SESSION_MS: Final = 2000
REBALANCE_MS: Final = 500
OFFSETS_PARTITIONS: Final = 4
#: Of brokers. A group that has no members is not forgotten within a run, since its generations
#: would begin anew.
OF_BROKERS: Final[Mapping[str, str]] = {
    "offsets.topic.num.partitions": str(OFFSETS_PARTITIONS),
    "offsets.retention.check.interval.ms": str(24 * 60 * 60 * 1000),
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": str(SESSION_MS),
    "group.consumer.min.session.timeout.ms": str(SESSION_MS),
    "group.consumer.session.timeout.ms": str(SESSION_MS),
    "group.consumer.min.heartbeat.interval.ms": str(REBALANCE_MS),
    "group.consumer.heartbeat.interval.ms": str(REBALANCE_MS),
}
#: How long what a member of a share group has acquired is its own.
_LOCK_MS: Final = 2000
#: Of brokers that have share groups.
OF_SHARING_BROKERS: Final[Mapping[str, str]] = {
    "group.share.min.record.lock.duration.ms": str(_LOCK_MS // 2),
    "group.share.record.lock.duration.ms": str(_LOCK_MS),
    "group.share.delivery.count.limit": str(DELIVERIES_MAX),
    "group.share.min.session.timeout.ms": str(SESSION_MS),
    "group.share.session.timeout.ms": str(SESSION_MS),
    "group.share.min.heartbeat.interval.ms": str(REBALANCE_MS),
    "group.share.heartbeat.interval.ms": str(REBALANCE_MS),
    "share.coordinator.state.topic.num.partitions": str(OFFSETS_PARTITIONS),
}
#: Of transforms: whether the offset of what was read is committed in the transaction of the
#: outputs, or by itself behind it, so that it may be lost where these are not.
OFFSETS_GO: Final = "offsets"
APART: Final = "apart"
#: Of transforms: whether a client that takes an input commits something before it asks for the
#: offset, or takes the word of any broker that says it coordinates the group.
OFFSETS_READ: Final = "offsets.read"
PLAIN: Final = "plain"
OF_TRANSFORMS: Final[Mapping[str, tuple[str, ...]]] = {
    OFFSETS_GO: ("with-outputs", APART),
    OFFSETS_READ: ("behind-a-commit", PLAIN),
}
