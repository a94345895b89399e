"""The library that encodes Kafka's protocol, an extra."""

from typing import TYPE_CHECKING

from splitbrain.contracts.errors import UsageError

if TYPE_CHECKING:
    from splitbrain.systems.kafka.driver import KafkaDriver


def driver_kind() -> "type[KafkaDriver]":
    """Return the driver; raises UsageError where its library is not installed."""
    try:
        from splitbrain.systems.kafka.driver import KafkaDriver
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != "kafka":
            raise
        raise UsageError(
            "clients of Kafka need the package kafka-python, which is not installed",
            "pip install 'splitbrain[kafka]' brings it",
        ) from error
    return KafkaDriver
