"""Acts of Kafka's clients beyond plain records, before and after the active controller's kill.

Transactions, groups of both protocols, and configs. One body judges Kafka's controllers, which
proves the referee, and ours.
"""

# The library's own names, which it does not list as exported.
# pyright: reportPrivateImportUsage=false

from collections.abc import Generator, Iterable
from contextlib import contextmanager, suppress
from typing import Final, Literal

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)

from tests.referee.brokers_view import create_topic, quorum_view
from tests.referee.cluster import Cluster

pytestmark = [pytest.mark.containers, pytest.mark.nightly, pytest.mark.timeout(600)]

_PATIENCE_S: Final = 90.0
_POLL_S: Final = 0.5
_PARTITIONS: Final = 4
_RECORDS: Final = 120
Protocol = Literal["classic", "consumer"]


@contextmanager
def consumer(bootstrap: str, group: str, **settings: str | bool) -> Generator[Consumer]:
    made = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            **{name.replace("_", "."): value for name, value in settings.items()},
        }
    )
    try:
        yield made
    finally:
        made.close()


def kill_the_active(cluster: Cluster) -> None:
    """Kill it, and wait until another is known to the brokers."""
    active = quorum_view(cluster.bootstrap).leader
    cluster.kill(active)

    def has_moved() -> bool:
        with suppress(Exception):
            return quorum_view(cluster.bootstrap).leader not in (-1, active)
        return False

    cluster.await_true("another controller is active", has_moved, _PATIENCE_S)


def values(start: int, count: int = _RECORDS) -> list[bytes]:
    return [str(number).encode() for number in range(start, start + count)]


def read_committed(bootstrap: str, topic: str, count: int, group: str) -> list[bytes]:
    """The first records that readers of committed ones see, so many."""
    found: list[bytes] = []
    with consumer(bootstrap, group, isolation_level="read_committed") as reader:
        reader.assign([TopicPartition(topic, 0, 0)])
        while len(found) < count:
            message = reader.poll(_PATIENCE_S)
            assert message is not None, f"{len(found)} of {count} records came"
            assert message.error() is None, str(message.error())
            value = message.value()
            assert value is not None
            found.append(value)
        assert reader.poll(_POLL_S) is None, "no more was committed"
    return found


def test_transactions_are_whole_also_those_in_which_the_active_controller_dies(
    trio: Cluster,
) -> None:
    create_topic(trio.bootstrap, "transactions", partitions=1, replication_factor=3)
    producer = Producer(
        {"bootstrap.servers": trio.bootstrap, "transactional.id": "t", "acks": "all"}
    )

    def produce(wanted: Iterable[bytes]) -> None:
        for value in wanted:
            producer.produce("transactions", value=value)
        assert producer.flush(_PATIENCE_S) == 0

    producer.init_transactions(_PATIENCE_S)
    producer.begin_transaction()
    produce(values(0))
    producer.commit_transaction(_PATIENCE_S)
    producer.begin_transaction()
    produce(values(1_000))
    producer.abort_transaction(_PATIENCE_S)
    producer.begin_transaction()
    produce(values(2_000))
    kill_the_active(trio)
    produce(values(3_000))
    producer.commit_transaction(_PATIENCE_S)
    # Whoever takes over the id fences this producer: a new epoch, and soon a new block of ids.
    successor = Producer({"bootstrap.servers": trio.bootstrap, "transactional.id": "t"})
    successor.init_transactions(_PATIENCE_S)
    producer.begin_transaction()
    producer.produce("transactions", value=b"fenced")
    with pytest.raises(KafkaException):
        producer.commit_transaction(_PATIENCE_S)
    committed = [*values(0), *values(2_000), *values(3_000)]
    found = read_committed(trio.bootstrap, "transactions", len(committed), "readers")
    assert found == committed


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_group_shares_its_topic_and_goes_on_where_it_was(
    trio: Cluster, protocol: Protocol
) -> None:
    topic = f"group-{protocol}"
    create_topic(trio.bootstrap, topic, _PARTITIONS, replication_factor=3)
    producer = Producer({"bootstrap.servers": trio.bootstrap, "acks": "all"})

    def produce(wanted: Iterable[bytes]) -> None:
        for number, value in enumerate(wanted):
            producer.produce(topic, value=value, partition=number % _PARTITIONS)
        assert producer.flush(_PATIENCE_S) == 0

    settings = {"group_protocol": protocol}
    produce(values(0))
    with (
        consumer(trio.bootstrap, topic, **settings) as one,
        consumer(trio.bootstrap, topic, **settings) as other,
    ):
        members = (one, other)
        for member in members:
            member.subscribe([topic])
        first = Sharing(trio, members)
        first.read_until(set(values(0)))
        trio.await_true("both have partitions", lambda: first.is_shared(_PARTITIONS), _PATIENCE_S)
        for member in members:
            with suppress(KafkaException):  # it had read nothing since it was last asked
                member.commit(asynchronous=False)
        kill_the_active(trio)
        produce(values(1_000))
        first.read_until(set(values(0)) | set(values(1_000)))
        for member in members:
            with suppress(KafkaException):
                member.commit(asynchronous=False)
    produce(values(2_000))
    with consumer(trio.bootstrap, topic, **settings) as late:
        late.subscribe([topic])
        second = Sharing(trio, (late,))
        second.read_until(set(values(2_000)))
        assert second.found == set(values(2_000)), "it begins where the group was"


class Sharing:
    """Members of one group, polled in turn."""

    def __init__(self, cluster: Cluster, members: tuple[Consumer, ...]) -> None:
        self._cluster = cluster
        self._members = members
        self.found: set[bytes] = set()

    def read_until(self, wanted: set[bytes]) -> None:
        def has_all() -> bool:
            self._poll()
            return wanted <= self.found

        self._cluster.await_true(f"{len(wanted)} records are read", has_all, _PATIENCE_S)

    def is_shared(self, partitions: int) -> bool:
        """Whether each member has some partitions, and together they have all."""
        self._poll()
        counts = [len(member.assignment()) for member in self._members]
        return min(counts) > 0 and sum(counts) == partitions

    def _poll(self) -> None:
        for member in self._members:
            message = member.poll(_POLL_S / 10)
            while message is not None:
                error = message.error()
                assert error is None or error.retriable(), str(error)
                value = message.value()
                if error is None and value is not None:
                    self.found.add(value)
                message = member.poll(0)


def test_a_topics_configs_are_set_told_and_unset_by_an_administrator(trio: Cluster) -> None:
    create_topic(trio.bootstrap, "configured", partitions=1, replication_factor=3)
    admin = AdminClient({"bootstrap.servers": trio.bootstrap})
    resource = ConfigResource(ResourceType.TOPIC, "configured")

    def told(name: str) -> tuple[str | None, bool]:
        described = admin.describe_configs([resource])[resource].result(_PATIENCE_S)
        entry = described[name]
        return entry.value, entry.is_default

    def change(name: str, value: str | None, how: AlterConfigOpType) -> None:
        entry = ConfigEntry(name, value, incremental_operation=how)
        wanted = ConfigResource(ResourceType.TOPIC, "configured", incremental_configs=[entry])
        admin.incremental_alter_configs([wanted])[wanted].result(_PATIENCE_S)

    default, is_default = told("retention.ms")
    assert is_default
    change("retention.ms", "86400000", AlterConfigOpType.SET)
    trio.await_true(
        "the brokers tell it", lambda: told("retention.ms") == ("86400000", False), _PATIENCE_S
    )
    kill_the_active(trio)
    assert told("retention.ms") == ("86400000", False)
    change("retention.ms", None, AlterConfigOpType.DELETE)
    trio.await_true(
        "the default holds again", lambda: told("retention.ms") == (default, True), _PATIENCE_S
    )
    with pytest.raises(KafkaException):
        change("retention.ms", "soon", AlterConfigOpType.SET)
