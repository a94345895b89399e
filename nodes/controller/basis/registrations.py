"""State of a broker in the image: whether it may lead, and its directories.

Source: KIP-858 for directories; a real controller's rules for both.
"""

from typing import Final

from splitbrain.nodes.controller.basis.decisions import Refusal
from splitbrain.nodes.metadata.image import MetadataImage
from splitbrain.nodes.metadata.partitions import (
    LOST_DIRECTORY,
    MIGRATING_DIRECTORY,
    UNASSIGNED_DIRECTORY,
)
from splitbrain.nodes.metadata.records import RegisterBrokerRecord
from splitbrain.nodes.wire.errors import ApiError

#: Directory ids below it are not for directories; Kafka compares the lower half as signed.
_RESERVED_IDS: Final = 100
_SIGN_BIT: Final = 1 << 63
_HALF_BITS: Final = 64


def registered(image: MetadataImage, broker_id: int, epoch: int) -> RegisterBrokerRecord:
    """Return the broker's registration with this epoch.

    Raises Refusal: it has another epoch, or none.
    """
    broker = image.brokers.get(broker_id)
    if broker is None:
        raise Refusal(ApiError.STALE_BROKER_EPOCH, f"broker {broker_id} is not registered")
    if broker.broker_epoch != epoch:
        raise Refusal(
            ApiError.STALE_BROKER_EPOCH,
            f"broker {broker_id} is registered with epoch {broker.broker_epoch}, not {epoch}",
        )
    return broker


def is_active(image: MetadataImage, broker_id: int) -> bool:
    """Whether the broker is registered, and neither fenced nor about to go."""
    broker = image.brokers.get(broker_id)
    return broker is not None and not broker.fenced and not broker.in_controlled_shutdown


def is_online(broker: RegisterBrokerRecord, directory: str) -> bool:
    """Whether what lies in the directory can be served; one that is not said yet counts as good."""
    if directory in (UNASSIGNED_DIRECTORY, MIGRATING_DIRECTORY):
        return True
    if directory == LOST_DIRECTORY:
        return False
    # A broker that never told its directories is from a time before they had ids.
    return not broker.log_dirs or directory in broker.log_dirs


def default_directory(image: MetadataImage, broker_id: int) -> str:
    """Where a new replica on the broker lies until the broker says."""
    broker = image.brokers.get(broker_id)
    if broker is None:
        return UNASSIGNED_DIRECTORY
    if not broker.log_dirs:
        return MIGRATING_DIRECTORY
    return broker.log_dirs[0] if len(broker.log_dirs) == 1 else UNASSIGNED_DIRECTORY


def is_reserved(directory: str) -> bool:
    """Whether the id is none that a directory may have."""
    upper, lower = divmod(int(directory, 16), 1 << _HALF_BITS)
    return upper == 0 and (lower < _RESERVED_IDS or lower >= _SIGN_BIT)
