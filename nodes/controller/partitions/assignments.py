"""Replicas of new partitions: which brokers may hold them, where they lie there, who leads first.

Source: a real controller's replication control; KIP-858 (directories), KIP-1066 (cordoned ones).
"""

from collections.abc import Sequence

from splitbrain.nodes.controller.basis.decisions import Refusal, View
from splitbrain.nodes.controller.basis.registrations import default_directory, is_active
from splitbrain.nodes.controller.partitions.placement import UsableBroker, place
from splitbrain.nodes.metadata.image import MetadataImage
from splitbrain.nodes.metadata.records import PartitionRecord
from splitbrain.nodes.wire.errors import ApiError

_RECOVERED = 0


def place_replicas(
    view: View, partition_count: int, replication_factor: int
) -> list[tuple[int, ...]]:
    """Replicas of new partitions where the controller chooses; raises Refusal as ``place`` does.

    On brokers not on their way out, nor all cordoned off. A fenced broker is no longer shutting
    down, whatever its registration says.
    """
    usable = [
        UsableBroker(broker_id, broker.rack, broker.fenced)
        for broker_id, broker in sorted(view.image.brokers.items())
        if (broker.fenced or not broker.in_controlled_shutdown)
        and not (
            broker.log_dirs
            and broker.cordoned_log_dirs is not None
            and set(broker.log_dirs) <= set(broker.cordoned_log_dirs)
        )
    ]
    return place(usable, partition_count, replication_factor, view.random)


def check_assignment(
    image: MetadataImage, replicas: Sequence[int], replication_factor: int | None
) -> None:
    """Refuse a caller's choice of replicas; None for a first partition, which sets the factor.

    Raises Refusal: INVALID_REPLICA_ASSIGNMENT.
    """
    if not replicas:
        raise _refused("The manual partition assignment includes an empty replica list.")
    last: int | None = None
    for broker_id in sorted(replicas):
        if broker_id not in image.brokers:
            raise _refused(
                f"The manual partition assignment includes broker {broker_id}, but no such broker "
                "is registered."
            )
        if broker_id == last:
            raise _refused(
                f"The manual partition assignment includes the broker {broker_id} more than once."
            )
        last = broker_id
    if replication_factor is not None and len(replicas) != replication_factor:
        raise _refused(
            f"The manual partition assignment includes a partition with {len(replicas)} "
            "replica(s), but this is not consistent with previous partitions, which have "
            f"{replication_factor} replica(s)."
        )


def check_chosen_isr(image: MetadataImage, replicas: Sequence[int], partition_id: int) -> None:
    """Refuse a caller's choice of replicas none of which could lead."""
    if not any(is_active(image, broker_id) for broker_id in replicas):
        raise _refused(
            "All brokers specified in the manual partition assignment for partition "
            f"{partition_id} are fenced or in controlled shutdown."
        )


def new_partition(
    image: MetadataImage, topic_id: str, partition_id: int, replicas: Sequence[int]
) -> PartitionRecord:
    """Return the record of a new partition; at least one replica must be active.

    Active replicas are in sync from the start, and the first of them leads.
    """
    isr = tuple(broker_id for broker_id in replicas if is_active(image, broker_id))
    return PartitionRecord(
        partition_id=partition_id,
        topic_id=topic_id,
        replicas=tuple(replicas),
        isr=isr,
        removing_replicas=(),
        adding_replicas=(),
        leader=isr[0],
        leader_recovery_state=_RECOVERED,
        leader_epoch=0,
        partition_epoch=0,
        directories=tuple(default_directory(image, broker_id) for broker_id in replicas),
    )


def _refused(problem: str) -> Refusal:
    return Refusal(ApiError.INVALID_REPLICA_ASSIGNMENT, problem)
