"""Every method of both administrators' clients is asked, or declared left out."""

import inspect
from collections.abc import Iterator, Mapping
from types import ModuleType
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient

from tests.referee import kafka_python_calls, librdkafka_calls
from tests.referee.client_answers import Call, plain

_kafka_admin: Any = __import__("kafka.admin", fromlist=["KafkaAdminClient"])


def _methods(client: type) -> set[str]:
    return {name for name, _ in inspect.getmembers(client, callable) if not name.startswith("_")}


def _calls(room: Any) -> Iterator[Call]:
    for calls in (room.calls, room.produced_calls, room.fenced_calls, room.restored_calls):
        yield from calls()


@pytest.mark.parametrize(
    ("client", "room"),
    [
        pytest.param(_kafka_admin.KafkaAdminClient, kafka_python_calls, id="kafka-python"),
        pytest.param(AdminClient, librdkafka_calls, id="confluent-kafka"),
    ],
)
def test_every_method_is_asked_or_left_out_for_a_reason(client: type, room: ModuleType) -> None:
    asked = {call.method for call in _calls(room)}
    left_out: Mapping[str, str] = room.LEFT_OUT
    assert asked | set(left_out) == _methods(client)
    assert not asked & set(left_out)
    assert all(left_out.values())


def test_a_refused_call_says_how_a_real_cluster_refuses_it() -> None:
    for room in (kafka_python_calls, librdkafka_calls):
        for call in _calls(room):
            assert call.tells or not call.is_refused, str(call)


def test_an_answer_of_an_unknown_kind_is_an_error() -> None:
    with pytest.raises(TypeError, match="nobody has said"):
        plain(object())


def test_what_a_client_raises_is_its_answer_with_code_and_words() -> None:
    class Client:
        def list_topics(self) -> None:
            raise KafkaException(KafkaError(KafkaError.INVALID_CONFIG, "no such config"))

    answer = Call("list_topics").ask(Client())
    assert answer == {"raised": {"error": "INVALID_CONFIG", "said": "no such config"}}


def test_an_error_beside_a_partition_is_told() -> None:
    partition = plain(TopicPartition("a", 1))
    assert partition == {"topic": "a", "partition": 1, "offset": -1001, "error": None}
