"""Logs in a pretended Kafka: from where a client reads on, and how far."""

import pytest

from splitbrain.contracts.errors import UsageError
from splitbrain.contracts.operations import Operation
from splitbrain.systems.kafka import client as kafka_client
from splitbrain.systems.kafka.driver import KafkaDriver
from tests.unit.systems.compose_file.fake_kafka import FakeBroker
from tests.unit.systems.compose_file.test_kafka import told


def send(log: str, value: int) -> Operation:
    return Operation("send", None, [["send", log, value]])


def poll(starts: dict[str, int] | None = None, *, final: bool = False) -> Operation:
    return Operation("poll", None, [["poll"] if starts is None else ["poll", starts]], final=final)


@pytest.mark.parametrize("has_large_batches", [False, True])
def test_a_poll_reads_on_from_where_its_client_is(has_large_batches: bool) -> None:
    def large(broker: FakeBroker) -> None:
        broker.has_large_batches = has_large_batches

    answers, _ = told(
        large,
        *(send("0", 7), send("0", 8), poll({"0": 1}), send("0", 5)),
        *(poll(), poll(), poll({"0": 0}, final=True)),
    )
    assert [answer.type for answer in answers] == ["ok"] * 7
    assert answers[1].value == [["send", "0", [1, 8]]]
    assert answers[2].value == [["poll", {"0": [[1, 8]]}, {"0": 2}]]
    assert answers[4].value == [["poll", {"0": [[2, 5]]}, {"0": 3}]]
    assert answers[5].value == [["poll", {"0": []}, {"0": 3}]]
    assert answers[6].value == [["poll", {"0": [[0, 7], [1, 8], [2, 5]]}, {"0": 3}]]


def test_a_new_client_reads_nothing_until_it_is_told_where_to_begin() -> None:
    (answer, first), _ = told(lambda _: None, poll(), poll({"2": 0}))
    assert (answer.type, answer.error) == ("fail", "not-assigned")
    assert first.value == [["poll", {"2": []}, {"2": 0}]]


def test_a_poll_has_a_limit_and_a_final_one_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kafka_client, "_POLLED_MAX", 2)
    answers, _ = told(
        lambda _: None,
        *(send("0", value) for value in range(5)),
        *(poll({"0": 0}), poll(), poll({"0": 0}, final=True)),
    )
    assert answers[5].value == [["poll", {"0": [[0, 0], [1, 1]]}, {"0": 2}]]
    assert answers[6].value == [["poll", {"0": [[2, 2], [3, 3]]}, {"0": 4}]]
    assert answers[7].value[0][2] == {"0": 5}


def test_logs_need_a_partition_each() -> None:
    with pytest.raises(UsageError, match="leaves no place for 4 logs"):
        KafkaDriver({"partitions": "3"}, {}, "log")
    KafkaDriver({"partitions": "3"}, {}, "set")
