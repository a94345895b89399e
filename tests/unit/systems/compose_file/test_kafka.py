"""Sets in a pretended Kafka: what an error leaves open, whom a client asks, what a read claims."""

import asyncio
import json
import sys
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from splitbrain.contracts.errors import HarnessError, UsageError
from splitbrain.contracts.names import NodeName
from splitbrain.contracts.operations import Completion, Operation
from splitbrain.contracts.system import LeaderView
from splitbrain.systems.compose_file.drivers.registry import driver_kind
from splitbrain.systems.kafka import driver as kafka
from splitbrain.systems.kafka.client import CERTAINLY_NOT
from splitbrain.systems.kafka.driver import KafkaDriver
from splitbrain.systems.kafka.errors import error_name
from tests.unit.systems.compose_file.fake_kafka import FakeBroker, brokers, targets

READ = Operation("read", "s0", None)
ADD = Operation("add", "s0", 7)
N1, N2, N3 = map(NodeName, ("n1", "n2", "n3"))
TOPIC = {"splitbrain": 12}


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Among many other processes connecting alone may take seconds; no test here waits for that."""
    monkeypatch.setattr(kafka, "_TIMEOUT_S", 60.0)


def driver(found: Sequence[FakeBroker], **options: str) -> KafkaDriver:
    made = KafkaDriver(options, {}, "set")
    made.targets = targets(found)
    return made


def told(
    change: Callable[[FakeBroker], None] = lambda _: None,
    *operations: Operation,
    timeout_s: float = 5.0,
    **options: str,
) -> tuple[list[Completion], FakeBroker]:
    """Ask a single broker; its answers, and the broker as it is then."""

    async def ask() -> tuple[list[Completion], FakeBroker]:
        async with brokers(topics=TOPIC) as found:
            change(found[0])
            client = driver(found, **options).open_client(N1, found[0].address)
            answers = [await client.invoke(operation, timeout_s) for operation in operations]
            await client.close()
        return answers, found[0]

    return asyncio.run(ask())


@pytest.mark.parametrize("has_large_batches", [False, True])
def test_an_element_is_a_record_and_a_read_has_all_of_its_set(has_large_batches: bool) -> None:
    def others(broker: FakeBroker) -> None:
        broker.has_large_batches = has_large_batches
        broker.log = [b'["s0",9]', b'["s1",1]', b'["s0",3]', b'["s0",3]']

    answers, broker = told(others, ADD, READ)
    assert answers == [
        Completion("ok", 7, node="n1"),
        # Records that are there twice are read twice.
        Completion("ok", [3, 3, 7, 9], node="n1"),
    ]
    assert json.loads(broker.log[-1]) == ["s0", 7]
    assert (broker.acks, broker.timeout_ms) == (-1, 5000)
    assert broker.heard.count("Fetch") == 3
    assert told(lambda _: None, ADD, acks="1")[1].acks == 1


def test_a_read_ends_at_the_high_watermark() -> None:
    def change(broker: FakeBroker) -> None:
        broker.log = [b'["s0",1]', b'["s0",2]']
        broker.high_watermark = 1

    assert told(change, READ)[0] == [Completion("ok", [1], node="n1")]


@pytest.mark.parametrize(
    ("code", "offset", "outcome", "error"),
    [
        (10, -1, "fail", "message-size-too-large"),
        (19, -1, "fail", "not-enough-replicas"),
        (3, -1, "fail", "unknown-topic-or-partition"),
        (87, -1, "fail", "invalid-record"),
        # It was appended, says the offset: its partition went while it waited.
        (3, 5, "info", "unknown-topic-or-partition"),
        (20, 5, "info", "not-enough-replicas-after-append"),
        (20, -1, "info", "not-enough-replicas-after-append"),
        (7, 5, "info", "request-timed-out"),
        (6, 5, "info", "not-leader-or-follower"),
        (6, -1, "info", "not-leader-or-follower"),
        (56, -1, "info", "kafka-storage-error"),
        (-1, -1, "info", "unknown"),
        (999, -1, "info", "error-999"),
    ],
)
def test_an_add_fails_where_it_certainly_did_not_happen(
    code: int, offset: int, outcome: Any, error: str
) -> None:
    (answer,), broker = told(lambda broker: setattr(broker, "produce_error", (code, offset)), ADD)
    assert (answer.type, answer.error) == (outcome, error)
    assert broker.heard.count("Produce") == 1


def test_no_error_after_an_append_is_taken_for_a_refusal() -> None:
    names = set(map(error_name, CERTAINLY_NOT))
    assert not names & {
        "not-leader-or-follower",
        "request-timed-out",
        "not-enough-replicas-after-append",
        "leader-not-available",
        "kafka-storage-error",
        "network-exception",
        "unknown",
    }


def patience_s(error: str) -> float:
    """A timeout that a busy machine does not use up, but where the test waits for its end."""
    return 1.0 if error == "timeout" else 30.0


@pytest.mark.parametrize("how", ["silent", "broken"])
def test_an_add_without_an_answer_is_open_and_is_not_sent_again(how: str) -> None:
    error = {"silent": "timeout", "broken": "connection-broken"}[how]
    (add, read), broker = told(
        lambda broker: getattr(broker, how).add("Produce"), ADD, READ, timeout_s=patience_s(error)
    )
    assert add == Completion("info", error=error)
    assert read == Completion("ok", [], node="n1")
    assert broker.heard.count("Produce") == 1


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (lambda broker: setattr(broker, "end_error", 5), "leader-not-available"),
        (lambda broker: setattr(broker, "end_error", 3), "unknown-topic-or-partition"),
        (lambda broker: broker.silent.add("ListOffsets"), "timeout"),
        (lambda broker: broker.broken.add("ListOffsets"), "no-connection"),
    ],
)
def test_nothing_is_sent_to_who_does_not_say_that_it_leads(
    change: Callable[[FakeBroker], None], error: str
) -> None:
    (add,), broker = told(change, ADD, timeout_s=patience_s(error))
    assert add == Completion("fail", error=error)
    assert "Produce" not in broker.heard


@pytest.mark.parametrize(
    ("change", "error", "node"),
    [
        # Another leads by now, its beginning is gone, and so on.
        (lambda broker: setattr(broker, "fetch_error", 74), "fenced-leader-epoch", "n1"),
        (lambda broker: setattr(broker, "fetch_error", 1), "offset-out-of-range", "n1"),
        (lambda broker: setattr(broker, "damages", True), "unexpected-answer", None),
        (lambda broker: setattr(broker, "high_watermark", 2), "unexpected-answer", None),
        (lambda broker: broker.log.append(b"hello"), "record-of-others", "n1"),
        (lambda broker: broker.log.append(b""), "record-of-others", "n1"),
        (lambda broker: broker.silent.add("Fetch"), "timeout", None),
    ],
)
def test_a_read_that_is_not_whole_claims_nothing(
    change: Callable[[FakeBroker], None], error: str, node: str | None
) -> None:
    def with_a_record(broker: FakeBroker) -> None:
        broker.log.append(b'["s0",1]')
        change(broker)

    (read,), _ = told(with_a_record, READ, timeout_s=patience_s(error))
    assert read == Completion("fail", error=error, node=node)


def test_a_client_asks_one_after_the_other_who_leads_and_remembers_it() -> None:
    async def ask() -> None:
        async with brokers(3, TOPIC) as found:
            one, two, three = found
            client = driver(found).open_client(N2, two.address)
            two.broken.add("ListOffsets")
            assert await client.invoke(ADD, 60.0) == Completion("ok", 7, node="n1")
            assert await client.invoke(ADD, 60.0) == Completion("ok", 7, node="n1")
            assert (one.heard, two.heard, three.heard) == (
                ["ListOffsets", "Produce", "Produce"],
                ["ListOffsets"],
                [],
            )
            # The leader moves: the old one says so to the next that comes, and is left.
            one.produce_error, one.shared.leader = (6, -1), 3
            assert (await client.invoke(ADD, 60.0)).type == "info"
            assert await client.invoke(ADD, 60.0) == Completion("ok", 7, node="n3")
            assert await client.invoke(READ, 60.0) == Completion("ok", [7], node="n3")
            # One that refuses to be read, or to append, is left as well.
            one.shared.leader = 2
            two.broken.clear()
            refused = Completion("fail", error="not-leader-or-follower", node="n3")
            assert await client.invoke(READ, 60.0) == refused
            assert await client.invoke(READ, 60.0) == Completion("ok", [], node="n2")
            two.produce_error, one.shared.leader = (3, -1), 3
            assert (await client.invoke(ADD, 60.0)).type == "fail"
            assert await client.invoke(ADD, 60.0) == Completion("ok", 7, node="n3")
            await client.close()

    asyncio.run(ask())


def test_a_frozen_broker_costs_a_client_its_share_of_the_time_alone() -> None:
    async def ask() -> None:
        async with brokers(2, TOPIC) as found:
            one = found[0]
            one.shared.leader = 2
            one.silent.add("ListOffsets")
            client = driver(found).open_client(N1, one.address)
            assert await client.invoke(ADD, 1.0) == Completion("ok", 7, node="n2")
            await client.close()

    asyncio.run(ask())


def test_a_topic_is_made_that_keeps_all_of_its_records() -> None:
    async def prepare() -> None:
        async with brokers(4) as found:
            for broker in found:
                await driver(found, partitions="5").prepare(broker.address)
            (topic,) = found[0].created
            assert topic.name == "splitbrain"
            assert [row.broker_ids for row in topic.assignments] == [
                [1, 2, 3],
                [2, 3, 4],
                [3, 4, 1],
                [4, 1, 2],
                [1, 2, 3],
            ]
            assert {row.name: row.value for row in topic.configs} == {
                "cleanup.policy": "delete",
                "retention.ms": "-1",
                "retention.bytes": "-1",
            }
            assert not found[1].created

    asyncio.run(prepare())


@pytest.mark.parametrize(
    ("change", "options", "says"),
    [
        (lambda broker: setattr(broker.shared, "brokers", 1), {}, "it knows 1 brokers, and .* 2"),
        (lambda broker: setattr(broker.shared, "brokers", 3), {}, "--port names 2. Name each"),
        (lambda broker: setattr(broker, "create_error", 38), {}, "invalid-replication-factor"),
        (lambda broker: setattr(broker, "create_error", 36), {}, "does not know the topic"),
        (lambda broker: setattr(broker.shared, "leader", -1), {}, r"nobody leads .* \[0, 1\]"),
        (
            lambda broker: broker.shared.topics.update(mine=3),
            {"topic": "mine"},
            "has 3 partitions, and not 2. Give --setting partitions=3",
        ),
        (lambda broker: broker.versions_max.update({0: 6}), {}, "lacks version 7 of Produce"),
        (lambda broker: broker.broken.add("ApiVersions"), {}, "it ends the connection"),
    ],
)
def test_brokers_that_are_not_fit_are_told(
    change: Callable[[FakeBroker], None], options: dict[str, str], says: str
) -> None:
    async def prepare() -> None:
        async with brokers(2) as found:
            change(found[0])
            await driver(found, **{"partitions": "2", **options}).prepare(found[0].address)

    with pytest.raises(HarnessError, match=says):
        asyncio.run(prepare())


@pytest.mark.parametrize("answer", [b"HTTP/1.1 400 Bad Request\r\n\r\n", b"-ERR unknown\r\n"])
def test_a_service_that_is_no_kafka_is_told(answer: bytes) -> None:
    async def prepare() -> None:
        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.read(1000)
            writer.write(answer)
            writer.close()

        async with brokers() as found, await asyncio.start_server(serve, "127.0.0.1", 0) as other:
            there = found[0].address
            there = type(there)("127.0.0.1", other.sockets[0].getsockname()[1])
            await driver(found).prepare(there)

    with pytest.raises(HarnessError, match="it does not answer as Kafka does"):
        asyncio.run(prepare())


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda one, two: None, None),
        (lambda one, two: setattr(one.shared, "in_sync", (1,)), "1 of 2 replicas are in sync"),
        (
            lambda one, two: setattr(one.shared, "leader", -1),
            "n1 knows nobody that leads partition 0",
        ),
        (lambda one, two: setattr(two, "believes", 2), "n2 and n1 name different leaders"),
        (lambda one, two: two.broken.add("Metadata"), "n2 does not answer"),
        (lambda one, two: one.shared.topics.clear(), "does not know the topic"),
    ],
)
def test_brokers_agree_once_they_name_the_same_leaders_and_all_is_in_sync(
    change: Callable[[FakeBroker, FakeBroker], None], says: str | None
) -> None:
    async def converge() -> None:
        async with brokers(2, TOPIC) as found:
            change(*found)
            await driver(found).converged()

    if says is None:
        asyncio.run(converge())
        return
    with pytest.raises(HarnessError, match=says):
        asyncio.run(converge())


@pytest.mark.parametrize(
    ("partitions", "change", "leads"),
    [
        ("1", lambda one, two: None, LeaderView(N1, 4)),
        # The second does not know yet that it was replaced.
        ("1", lambda one, two: setattr(two, "believes", 2), LeaderView(N1, 4)),
        ("1", lambda one, two: one.silent.add("ListOffsets"), LeaderView(None, None)),
        ("2", lambda one, two: None, LeaderView(None, None)),
    ],
)
def test_the_leader_is_that_of_a_single_partition(
    partitions: str, change: Callable[[FakeBroker, FakeBroker], None], leads: LeaderView
) -> None:
    async def ask() -> LeaderView:
        async with brokers(2, {"splitbrain": int(partitions)}) as found:
            change(*found)
            return await driver(found, partitions=partitions).leader(0.3)

    assert asyncio.run(ask()) == leads


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"acks": "0"}, "acks cannot be '0'. Choose all or 1"),
        ({"partitions": "0"}, "partitions cannot be '0'. Give a whole number from 1 to 1000"),
        ({"partitions": "many"}, "partitions cannot be 'many'"),
        ({"replicas": "4"}, "replicas cannot be '4'. Give a whole number from 1 to 3"),
    ],
)
def test_settings_have_bounds(options: dict[str, str], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        KafkaDriver(options, {}, "set")


def test_the_driver_says_which_package_it_lacks(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if "splitbrain.systems.kafka." in name]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "kafka", None)
    monkeypatch.setitem(sys.modules, "kafka.errors", None)
    with pytest.raises(UsageError, match=r"needs the package kafka-python.*splitbrain\[kafka\]"):
        driver_kind("kafka")
