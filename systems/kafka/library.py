"""The library that encodes Kafka's protocol, an extra."""

from typing import TYPE_CHECKING

from splitbrain.systems.extras import library

if TYPE_CHECKING:
    from splitbrain.systems.kafka.driver import KafkaDriver


def require_library() -> None:
    """Raise UsageError where the library is not installed."""
    library("a client of Kafka", "kafka-python", "kafka", "kafka")


def driver_kind() -> "type[KafkaDriver]":
    """Return the driver; raises UsageError where its library is not installed."""
    require_library()
    from splitbrain.systems.kafka.driver import KafkaDriver

    return KafkaDriver
