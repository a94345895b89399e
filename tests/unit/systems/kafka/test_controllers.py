"""Whoever decides about metadata is told by brokers, and is a target of faults."""

import asyncio
from typing import Any, ClassVar

import pytest
from kafka.protocol.admin import (
    DescribeQuorumRequest,  # pyright: ignore[reportAttributeAccessIssue, reportUnknownVariableType]
    DescribeQuorumResponse,  # pyright: ignore[reportAttributeAccessIssue, reportUnknownVariableType]
)

from splitbrain.contracts.experiment import Experiment
from splitbrain.contracts.names import NodeName
from splitbrain.contracts.runtime import Address
from splitbrain.systems.kafka.adapter import KafkaSystem
from splitbrain.systems.kafka.driver import KafkaDriver
from tests.unit.systems.compose_file.fake_kafka import ANSWERS, FakeBroker, brokers, targets

TOPICS = {"splitbrain": 12}


class QuorumBroker(FakeBroker):
    """Knows a leader of the metadata, of an epoch; or an error."""

    kinds: ClassVar[dict[Any, Any]] = {**ANSWERS, DescribeQuorumRequest: DescribeQuorumResponse}
    known: tuple[int, int] = (3, 1)
    error = 0

    def _describequorum(self, request: Any, answer: Any) -> Any:
        (topic,) = request.topics
        assert topic.topic_name == "__cluster_metadata"
        epoch, leader = self.known
        kind = answer.TopicData
        row = kind.PartitionData(
            partition_index=0,
            error_code=self.error,
            leader_id=leader,
            leader_epoch=epoch,
            high_watermark=9,
            current_voters=[],
            observers=[],
        )
        found = [kind(topic_name=topic.topic_name, partitions=[row])]
        return answer(error_code=0, topics=found)


def told(*known: tuple[int, int] | int | None, has_zookeeper: bool = False) -> int | None:
    """Ask brokers that know a leader, answer with an error, or do not answer."""

    async def ask() -> int | None:
        async with brokers(len(known), TOPICS, QuorumBroker) as found:
            for broker, word in zip(found, known, strict=True):
                assert isinstance(broker, QuorumBroker)
                if isinstance(word, tuple):
                    broker.known = word
                elif word is None:
                    broker.silent = {"DescribeQuorum", "Metadata"}
                else:
                    broker.error = word
            driver = KafkaDriver({}, {}, "log")
            driver.targets = targets(found)
            return await driver.controller(0.5, has_zookeeper=has_zookeeper)

    return asyncio.run(ask())


@pytest.mark.parametrize(
    ("known", "number"),
    [
        (((3, 1), (3, 1)), 1),
        # One that is cut off knows an older one.
        (((3, 1), (4, 2), (3, 1)), 2),
        (((3, 1), None), 1),
        ((6, (3, 2)), 2),
        ((6, None), None),
        (((3, -1), (3, -1)), None),
    ],
)
def test_the_newest_of_those_that_brokers_name_is_it(known: Any, number: int | None) -> None:
    assert told(*known) == number


def test_with_zookeeper_brokers_name_it_in_their_metadata() -> None:
    # Nobody is asked for a quorum: there is none.
    assert told(6, 6, has_zookeeper=True) == 1


@pytest.mark.parametrize(
    ("number", "controller"), [(1, "n1"), (3, "c1"), (None, None), (7, None), (0, None)]
)
def test_its_number_is_the_place_of_a_node(
    monkeypatch: pytest.MonkeyPatch, number: int | None, controller: str | None
) -> None:
    class There:
        def nodes(self) -> tuple[NodeName, ...]:
            return tuple(map(NodeName, ("n1", "n2", "c1")))

        def endpoint(self, node: NodeName, port: str) -> Address:
            return Address("127.0.0.1", 1)

    async def found(driver: KafkaDriver, timeout_s: float, *, has_zookeeper: bool) -> int | None:
        assert has_zookeeper
        return number

    monkeypatch.setattr(KafkaDriver, "controller", found)
    system = KafkaSystem()
    system.chosen_version = "3.9.2"
    settings = {"controllers": "1", "metadata": "zookeeper"}
    system.experiment = Experiment(system="kafka", nodes=2, settings=settings, runtime="docker")
    view = system.leader(There(), 1.0)
    assert (view.leader, view.controller) == (None, controller)
