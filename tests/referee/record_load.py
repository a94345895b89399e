"""Numbered records through unmodified brokers: which were acknowledged, which are found.

The producer is idempotent and waits for all in-sync replicas, so that every acknowledged record
must be found once, in order. An unacknowledged one may be found or not.
"""

import threading
from collections.abc import Generator
from contextlib import contextmanager
from typing import Final, Self

from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition

from tests.referee.audit import Audit, audit

_TIMEOUT_S: Final = 30.0
_DELIVERY_TIMEOUT_MS: Final = 60_000
#: Between two records of a load that runs on.
_PACE_S: Final = 0.002


class RecordLoad:
    """Produces numbered records into one topic and reads them all back."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self._bootstrap = bootstrap
        self._topic = topic
        self._sent = 0
        self._acknowledged: set[int] = set()
        self._refused: dict[int, str] = {}
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "acks": "all",
                "enable.idempotence": True,
                "delivery.timeout.ms": _DELIVERY_TIMEOUT_MS,
                "linger.ms": 2,
            }
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        # Else it goes on in the background, after its brokers are gone.
        self._producer.purge()
        self._producer.close()

    @property
    def acknowledged(self) -> int:
        return len(self._acknowledged)

    def produce(self, count: int) -> None:
        """Send so many records and wait until each is acknowledged or given up."""
        for _ in range(count):
            self._send()
        self.flush()

    def flush(self) -> None:
        left = self._producer.flush(_DELIVERY_TIMEOUT_MS / 1000)
        assert left == 0, f"{left} records are neither acknowledged nor given up"

    @contextmanager
    def running(self) -> Generator[None]:
        """Go on producing until the block ends; then wait as :meth:`produce` does."""
        stopped = threading.Event()

        def send_on() -> None:
            while not stopped.wait(_PACE_S):
                self._send()

        sender = threading.Thread(target=send_on, name="record-load")
        sender.start()
        try:
            yield
        finally:
            stopped.set()
            sender.join()
        self.flush()

    def _send(self) -> None:
        number = self._sent
        self._sent += 1

        def delivered(error: KafkaError | None, message: Message) -> None:
            del message
            if error is None:
                self._acknowledged.add(number)
            else:
                self._refused[number] = str(error)

        self._producer.produce(self._topic, value=str(number).encode(), on_delivery=delivered)
        self._producer.poll(0)

    @property
    def refusals(self) -> set[str]:
        return set(self._refused.values())

    def audit(self) -> Audit:
        return audit(self._acknowledged, read_all(self._bootstrap, self._topic))


def read_all(bootstrap: str, topic: str) -> dict[int, list[int]]:
    """Numbers in each partition, in the order of their offsets, up to its end as it is now."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": f"audit-{topic}",
            "enable.auto.commit": False,
            "auto.offset.reset": "error",
        }
    )
    try:
        partitions = consumer.list_topics(topic, timeout=_TIMEOUT_S).topics[topic].partitions
        ends: dict[int, int] = {}
        for partition in partitions:
            position = TopicPartition(topic, partition)
            ends[partition] = consumer.get_watermark_offsets(position, timeout=_TIMEOUT_S)[1]
        consumer.assign([TopicPartition(topic, partition, 0) for partition in partitions])
        return _read_up_to(consumer, ends)
    finally:
        consumer.close()


def _read_up_to(consumer: Consumer, ends: dict[int, int]) -> dict[int, list[int]]:
    found: dict[int, list[int]] = {partition: [] for partition in ends}
    open_partitions = {partition for partition, end in ends.items() if end > 0}
    while open_partitions:
        message = consumer.poll(_TIMEOUT_S)
        assert message is not None, (
            f"nothing came in {_TIMEOUT_S} s of partitions {open_partitions}"
        )
        error = message.error()
        assert error is None, str(error)
        partition, offset, value = message.partition(), message.offset(), message.value()
        assert partition is not None
        assert offset is not None
        assert value is not None
        found[partition].append(int(value))
        if offset + 1 >= ends[partition]:
            open_partitions.discard(partition)
    return found
