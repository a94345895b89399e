"""Administrators' clients in Python are answered on our controllers as on Kafka's.

Up to declared renamings. kafka-python and confluent-kafka ask through unmodified brokers, which
answer looks from what they learnt of the controllers' log and forward changes to the active one.
Neither can be pointed at controllers: a controller serves no Metadata, without which both give up,
and that they do on both makes alike. Calls that are left out, and why, are told beside the others
(``LEFT_OUT`` of ``kafka_python_calls`` and ``librdkafka_calls``); ``test_client_calls`` holds that
every other method is.
"""

# The library's own names, which it does not list as exported.
# pyright: reportPrivateImportUsage=false

import json
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from kafka.errors import KafkaError

from splitbrain.contracts.system import PEER_PORT
from splitbrain.nodes.controller.configs.config_validation import ResourceType
from splitbrain.nodes.wire.families.configs import (
    DescribeConfigsRequest,
    DescribeConfigsResponse,
    IncrementalAlterConfigsResponse,
    ResourceToDescribe,
)
from tests.referee import kafka_python_calls, librdkafka_calls
from tests.referee.brokers_view import PartitionView, admin, partitions
from tests.referee.client_answers import Call, plain
from tests.referee.client_renaming import ClientRenaming
from tests.referee.cluster import Cluster, deployed
from tests.referee.controllers import Controllers, KafkaControllers, OwnControllers
from tests.referee.one_config import set_config
from tests.referee.same_answers import assert_same
from tests.referee.wire_client import Connection

pytestmark = [
    pytest.mark.containers,
    pytest.mark.slow,
    pytest.mark.nightly,
    pytest.mark.timeout(1200),
]

_PATIENCE_S = 60.0
#: Of a client that asks whom nobody should ask.
_SHORT_S = 5.0
_RECORDS = 20
#: That of emergencies.
_NO_LOG = 0
#: Client metrics that nobody asks for.
_MARK = "settled"
_FIRST_INTERVAL_MS = 1_000
#: Nobody but an administrator moves a leader.
_KAFKA = KafkaControllers(settings={"auto.leader.rebalance.enable": "false"})
_OWN = OwnControllers(settings={"leader.imbalance.check.interval.seconds": "0"})
#: Of what no broker could tell.
_NOWHERE = PartitionView(-1, frozenset(), frozenset())
#: A search for a topic would make it.
_BROKERS = {"auto.create.topics.enable": "false"}


def test_clients_are_answered_on_our_controllers_as_on_kafkas(tmp_path: Path) -> None:
    kafkas = _answers(tmp_path / "kafka", _KAFKA)
    ours = _answers(tmp_path / "own", _OWN)
    assert_same(kafkas, ours)


def _answers(run_folder: Path, controllers: Controllers) -> list[str]:
    """Return the clients' answers, renamed, in order."""
    with deployed(run_folder, controllers, brokers=2, settings=_BROKERS) as cluster:
        cluster.await_brokers()
        asking = Asking(cluster)
        answers = [
            *asking.by_kafka_python(cluster.bootstrap, kafka_python_calls.calls()),
            *asking.by_confluent_kafka(cluster.bootstrap, librdkafka_calls.calls()),
        ]
        for topic in (kafka_python_calls.PRODUCED, librdkafka_calls.PRODUCED):
            _produce(cluster, topic)
        answers += [
            *asking.by_kafka_python(cluster.bootstrap, kafka_python_calls.produced_calls()),
            *asking.by_confluent_kafka(cluster.bootstrap, librdkafka_calls.produced_calls()),
            *asking.of_controllers(),
        ]
        stays, killed = cluster.brokers
        cluster.kill(killed)
        asking.await_fenced(stays, killed)
        rest = cluster.client_address(stays)
        answers += [
            *asking.by_kafka_python(rest, kafka_python_calls.fenced_calls()),
            *asking.by_confluent_kafka(rest, librdkafka_calls.fenced_calls()),
        ]
        cluster.start(killed)
        asking.await_in_sync(killed)
        return [
            *answers,
            *asking.by_kafka_python(rest, kafka_python_calls.restored_calls()),
            *asking.by_confluent_kafka(rest, librdkafka_calls.restored_calls()),
        ]


def _produce(cluster: Cluster, topic: str) -> None:
    """By a producer that got an id of its own, to the first partition."""
    settings = {
        "bootstrap.servers": cluster.bootstrap,
        "enable.idempotence": True,
        "log_level": _NO_LOG,
    }
    producer = Producer(settings)
    for number in range(_RECORDS):
        producer.produce(topic, value=b"%d" % number, partition=0)
        assert producer.flush(_PATIENCE_S) == 0, f"{topic} takes no records"


class Asking:
    """Of one cluster, as long as it lives."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._live = set(cluster.brokers)
        self._intervals_ms: Iterator[int] = count(_FIRST_INTERVAL_MS)
        quorum = [cluster.address(voter.node_id, PEER_PORT) for voter in cluster.voters]
        self._controllers = [f"{address.host}:{address.port}" for address in quorum]
        names = {where: f"CONTROLLER-{at}" for at, where in enumerate(self._controllers, start=1)}
        self._renaming = ClientRenaming({**cluster.own_names, **names})

    def by_kafka_python(self, bootstrap: str, calls: Sequence[Call]) -> list[str]:
        with admin(bootstrap) as client:
            return self._ask_all(client, calls)

    def by_confluent_kafka(self, bootstrap: str, calls: Sequence[Call]) -> list[str]:
        with confluent_admin(bootstrap) as client:
            return self._ask_all(client, calls)

    def of_controllers(self) -> list[str]:
        bootstrap = ",".join(self._controllers)
        look = Call("describe_cluster", options={"request_timeout": _SHORT_S})
        with confluent_admin(bootstrap) as client:
            found = look.ask(client)
        with pytest.raises(KafkaError) as refused, admin(bootstrap):
            pass
        answers = {"confluent-kafka": found, "kafka-python": plain(refused.value)}
        return [
            f"{name} at controllers: {_text(self._renaming(answer))}"
            for name, answer in answers.items()
        ]

    def await_fenced(self, stays: int, killed: int) -> None:
        """Return when the killed broker serves no more, as the other one knows."""
        self._live.remove(killed)

        def is_fenced() -> bool:
            # A client may ask the killed one as long as it is listed.
            with suppress(KafkaError), admin(self._cluster.client_address(stays)) as client:
                brokers = client.describe_cluster()["brokers"]
                return [each["broker_id"] for each in brokers if each["is_fenced"]] == [killed]
            return False

        self._cluster.await_true("the killed broker is fenced", is_fenced, _PATIENCE_S)
        self._settle()

    def await_in_sync(self, restarted: int) -> None:
        """Return when the broker serves again and has what the other one took meanwhile."""
        cluster = self._cluster

        def is_in_sync() -> bool:
            return all(
                restarted in partition.in_sync
                for topic in (kafka_python_calls.PRODUCED, librdkafka_calls.PRODUCED)
                for partition in partitions(cluster.bootstrap, topic) or [_NOWHERE]
            )

        cluster.await_true(f"broker {restarted} is in sync", is_in_sync, _PATIENCE_S)
        self._live.add(restarted)
        self._settle()

    def _ask_all(self, client: Any, calls: Sequence[Call]) -> list[str]:
        return [self._ask(client, call) for call in calls]

    def _ask(self, client: Any, call: Call) -> str:
        heading = str(call)
        with warnings.catch_warnings():
            # That there is a newer way to change configs.
            warnings.simplefilter("ignore", DeprecationWarning)
            answer = _text(self._renaming(call.ask(client)))
        said = f"{heading}:\n{answer}"
        assert call.tells in answer, said
        assert call.is_refused or '"raised"' not in answer, said
        if call.changes:
            self._settle()
        return said

    def _settle(self) -> None:
        """Return when every broker has all that was committed, and has acted on it.

        A broker that tells of one change may not have finished with it; once it tells of the next,
        it has.
        """
        for _ in range(2):
            interval_ms = str(next(self._intervals_ms))
            self._mark(interval_ms)
            for broker in self._live:
                self._cluster.await_true(
                    f"broker {broker} has what was committed",
                    lambda broker=broker, wanted=interval_ms: self._marked(broker) == wanted,
                    _PATIENCE_S,
                )

    def _mark(self, interval_ms: str) -> None:
        request = set_config(ResourceType.CLIENT_METRICS, _MARK, "interval.ms", interval_ms)
        with self._connection(min(self._live)) as connection:
            answer = connection.ask(request, 1)
        assert isinstance(answer, IncrementalAlterConfigsResponse)
        assert [each.error_code for each in answer.responses] == [0], answer

    def _marked(self, broker: int) -> str | None:
        """The last interval that it knows of."""
        resource = ResourceToDescribe(
            resource_type=ResourceType.CLIENT_METRICS, resource_name=_MARK, configuration_keys=None
        )
        with self._connection(broker) as connection:
            answer = connection.ask(DescribeConfigsRequest(resources=(resource,)), 4)
        assert isinstance(answer, DescribeConfigsResponse)
        (described,) = answer.results
        configs = {config.name: config.value for config in described.configs}
        return configs.get("interval.ms")

    def _connection(self, broker: int) -> Connection:
        host, _, port = self._cluster.client_address(broker).rpartition(":")
        return Connection(host, int(port))


def _text(answer: Any) -> str:
    return json.dumps(answer, indent=1)


@contextmanager
def confluent_admin(bootstrap: str) -> Iterator[AdminClient]:
    """A client of librdkafka's; what it prints about connections is nobody's answer."""
    yield AdminClient(
        {"bootstrap.servers": bootstrap, "socket.timeout.ms": 10_000, "log_level": _NO_LOG}
    )
