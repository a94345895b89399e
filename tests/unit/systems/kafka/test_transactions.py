"""Producers with an id in a pretended Kafka: what is sent again, and how a transaction ends."""

import asyncio
from collections.abc import Callable, Sequence

import pytest

from splitbrain.contracts.names import NodeName
from splitbrain.contracts.operations import Completion, Operation
from splitbrain.contracts.runtime import Address
from splitbrain.systems.kafka.driver import KafkaDriver
from splitbrain.systems.kafka.records import Stamp, batch_of, records_of
from tests.unit.systems.compose_file.fake_kafka import FakeBroker, brokers, targets

N1 = NodeName("n1")
_NOWHERE = Address("127.0.0.1", 1)
TOPIC = {"splitbrain": 12}
NOT_ENOUGH_REPLICAS, AFTER_APPEND, DUPLICATE, OUT_OF_ORDER, FENCED = 19, 20, 46, 45, 90
LOADING, CONCURRENT, WRONG_STATE = 14, 51, 48


def send(value: int) -> Operation:
    return Operation("send", None, [["send", "0", value]])


def txn(*values: int, f: str = "txn") -> Operation:
    return Operation(f, None, [["send", "0", value] for value in values])


def told(
    change: Callable[[FakeBroker], None],
    *operations: Operation,
    count: int = 1,
    timeout_s: float = 20.0,
    **options: str,
) -> tuple[list[Completion], Sequence[FakeBroker]]:
    """Ask brokers, of which the first leads; the answers, and the brokers as they are then."""

    async def ask() -> tuple[list[Completion], Sequence[FakeBroker]]:
        async with brokers(count, topics=TOPIC) as found:
            change(found[0])
            named = {name.replace("_", "."): value for name, value in options.items()}
            driver = KafkaDriver(named, {}, "log")
            driver.targets = targets(found)
            client = driver.open_client(N1, found[0].address)
            answers = [await client.invoke(operation, timeout_s) for operation in operations]
            await client.close()
        return answers, found

    return asyncio.run(ask())


def test_a_record_is_sent_again_under_its_number_until_it_is_there() -> None:
    def change(broker: FakeBroker) -> None:
        broker.produce_errors = [(NOT_ENOUGH_REPLICAS, -1), (AFTER_APPEND, -1), None, None]

    answers, (broker,) = told(change, send(7), send(8), enable_idempotence="true")
    assert [answer.type for answer in answers] == ["ok", "ok"]
    assert broker.stamps == [(70, 1, 0, False)] * 3 + [(70, 1, 1, False)]


def test_without_an_id_nothing_is_sent_again() -> None:
    def change(broker: FakeBroker) -> None:
        broker.produce_errors = [(AFTER_APPEND, -1)]

    (answer,), (broker,) = told(change, send(7))
    assert (answer.type, answer.error) == ("info", "not-enough-replicas-after-append")
    assert broker.stamps == [(-1, -1, -1, False)]


def test_a_duplicate_is_there_at_an_offset_that_nobody_knows() -> None:
    def change(broker: FakeBroker) -> None:
        broker.produce_errors = [(AFTER_APPEND, -1), (DUPLICATE, -1)]

    (answer,), _ = told(change, send(7), enable_idempotence="true")
    assert (answer.type, answer.value) == ("ok", [["send", "0", 7]])


@pytest.mark.parametrize(
    ("errors", "outcome"),
    [
        ([(OUT_OF_ORDER, -1)], "fail"),
        # The first may have come through, and only its answer got lost.
        ([(AFTER_APPEND, -1), (OUT_OF_ORDER, -1)], "info"),
        ([(NOT_ENOUGH_REPLICAS, -1), (FENCED, -1)], "fail"),
    ],
)
def test_a_refusal_is_certain_unless_it_may_have_come_through_before(
    errors: list[tuple[int, int] | None], outcome: str
) -> None:
    def change(broker: FakeBroker) -> None:
        broker.produce_errors = [*errors]

    answers, (broker,) = told(change, send(7), send(8), enable_idempotence="true")
    assert [answer.type for answer in answers] == [outcome, "ok"]
    # Whose numbers are open is done with.
    assert broker.stamps[-1] == (70, 2, 0, False)


def test_a_transaction_of_one_epoch_each_is_sent_and_ended() -> None:
    answers, (broker,) = told(lambda _: None, txn(1, 2), txn(3), txn(4, f="abort"))
    assert [answer.type for answer in answers] == ["ok"] * 3
    assert answers[0].value == [["send", "0", [0, 1]], ["send", "0", [1, 2]]]
    assert broker.stamps == [(70, 1, 0, True), (70, 1, 1, True), (70, 2, 0, True), (70, 3, 0, True)]
    assert broker.ended == [(1, True), (2, True), (3, False)]
    assert "AddPartitionsToTxn" not in broker.heard


def test_before_kip_890_partitions_are_told_and_the_epoch_stays() -> None:
    _, (broker,) = told(lambda _: None, txn(1, 2), txn(3), transaction_version="1")
    assert broker.stamps == [(70, 1, 0, True), (70, 1, 1, True), (70, 1, 2, True)]
    assert broker.ended == [(1, True), (1, True)]
    assert broker.heard.count("AddPartitionsToTxn") == 2


def test_the_coordinator_is_whoever_does_not_refuse() -> None:
    def change(broker: FakeBroker) -> None:
        broker.shared.coordinator = 2

    answers, found = told(change, txn(1), txn(2), count=3)
    assert [answer.type for answer in answers] == ["ok", "ok"]
    assert [broker.ended for broker in found] == [[], [(1, True), (2, True)], []]
    # Whoever was the one is asked first.
    assert found[0].heard.count("EndTxn") == 0


@pytest.mark.parametrize(
    ("errors", "outcome"),
    [
        ([LOADING, CONCURRENT], "ok"),
        ([WRONG_STATE], "fail"),
        # It may have been done when it was asked before.
        ([LOADING, WRONG_STATE], "info"),
        ([CONCURRENT, FENCED], "info"),
    ],
)
def test_a_commit_is_asked_for_until_there_is_an_answer(errors: list[int], outcome: str) -> None:
    def change(broker: FakeBroker) -> None:
        broker.end_txn_errors = [*errors]

    answers, (broker,) = told(change, txn(1), txn(2))
    assert [answer.type for answer in answers] == [outcome, "ok"]
    # After an error the next producer of the id has the rest aborted.
    assert broker.heard.count("InitProducerId") == (1 if outcome == "ok" else 2)


def test_a_transaction_fails_certainly_until_its_commit_is_asked_for() -> None:
    def change(broker: FakeBroker) -> None:
        broker.produce_errors = [None, (FENCED, -1)]

    (answer,), (broker,) = told(change, txn(1, 2))
    assert (answer.type, answer.error) == ("fail", "producer-fenced")
    assert broker.ended == []


def test_a_commit_without_an_answer_is_open() -> None:
    def change(broker: FakeBroker) -> None:
        broker.silent = {"EndTxn"}

    answers, (broker,) = told(change, txn(1), txn(2, f="abort"), timeout_s=1.0)
    assert [(answer.type, answer.error) for answer in answers] == [
        ("info", "timeout"),
        # Nobody ever asks for it to be committed.
        ("fail", "timeout"),
    ]
    assert broker.heard.count("InitProducerId") == 2


def test_the_next_client_has_the_id_of_one_that_was_closed() -> None:
    driver = KafkaDriver({}, {}, "log")
    there = targets([])

    async def ids() -> list[str | None]:
        driver.targets = there
        first, second = (driver.open_client(N1, _NOWHERE) for _ in range(2))
        await first.close()
        await first.close()
        third, fourth = (driver.open_client(N1, _NOWHERE) for _ in range(2))
        return [client._transactional_id for client in (first, second, third, fourth)]

    first, second, third, fourth = asyncio.run(ids())
    assert third == first
    assert len({first, second, fourth}) == 3


def test_a_late_end_arrives_in_the_transaction_behind_it() -> None:
    _, (broker,) = told(lambda _: None, txn(1), txn(2), late_ends="yes")
    assert [name for name in broker.heard if name in ("Produce", "EndTxn")] == [
        *("Produce", "EndTxn"),
        *("Produce", "EndTxn", "EndTxn"),
    ]
    assert broker.ended == [(1, True), (1, True), (2, True)]


@pytest.mark.parametrize("version", ["1", "2"])
def test_a_late_record_arrives_behind_the_end_of_its_transaction(version: str) -> None:
    answers, (broker,) = told(
        lambda _: None,
        *(txn(1), txn(2, 3, f="abort"), txn(4)),
        transaction_version=version,
        late_records="yes",
    )
    assert [answer.type for answer in answers] == ["ok"] * 3
    assert answers[1].value == [["send", "0", [1, 2]], ["send", "0", 3]]
    assert [name for name in broker.heard if name in ("Produce", "EndTxn")] == [
        *("Produce", "EndTxn"),
        *("Produce", "EndTxn", "Produce"),
        *("Produce", "EndTxn"),
    ]
    # In the epoch in which its transaction was.
    assert broker.stamps[2] == ((70, 1, 2, True) if version == "1" else (70, 2, 1, True))


def test_a_final_read_tells_the_end_behind_a_transaction_that_is_open() -> None:
    def change(broker: FakeBroker) -> None:
        broker.log = [b'["0",1]', b'["0",2]']
        broker.stable = 1

    asked = [["poll", {"0": 0}]]
    answers, _ = told(
        change, Operation("poll", None, asked), Operation("poll", None, asked, final=True)
    )
    assert answers[0].value == [["poll", {"0": [[0, 1]]}, {"0": 1}]]
    assert answers[1].value == [["poll", {"0": [[0, 1]]}, {"0": 1}, {"0": 2}]]


def test_records_of_aborted_transactions_are_left_out() -> None:
    class Aborted:
        producer_id, first_offset = 70, 0

    stamp = Stamp(producer_id=70, epoch=0, sequence=0, transactional_id="t", produce_version=7)
    batch = batch_of(b"x", stamp)
    assert records_of(batch, [], 0, 9) == ([(0, b"x")], 1)
    assert records_of(batch, [Aborted], 0, 9) == ([], 1)
    other = Aborted()
    other.producer_id = 71
    assert records_of(batch, [other], 0, 9) == ([(0, b"x")], 1)
