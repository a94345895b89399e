"""Whoever decides about metadata is told by brokers, and is a target of faults."""

import asyncio
from collections.abc import Callable
from typing import Any, ClassVar

import pytest
from kafka.protocol.admin import (
    DescribeQuorumRequest,  # pyright: ignore[reportAttributeAccessIssue, reportUnknownVariableType]
    DescribeQuorumResponse,  # pyright: ignore[reportAttributeAccessIssue, reportUnknownVariableType]
)

from splitbrain.contracts.errors import HarnessError
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


def told(
    *known: tuple[int, int] | int | None, has_zookeeper: bool = False
) -> dict[NodeName, tuple[int, int]]:
    """Ask brokers that know a leader, answer with an error, or do not answer."""

    async def ask() -> dict[NodeName, tuple[int, int]]:
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
            return await driver.controllers(0.5, has_zookeeper=has_zookeeper)

    return asyncio.run(ask())


def test_each_broker_names_it_unless_it_refuses_or_is_silent() -> None:
    assert told((3, 1), (4, 2), (3, -1)) == {"n1": (3, 1), "n2": (4, 2), "n3": (3, -1)}
    assert told(6, (3, 2), None) == {"n2": (3, 2)}


def test_with_zookeeper_brokers_name_it_in_their_metadata() -> None:
    # Nobody is asked for a quorum: there is none.
    assert told(6, 6, has_zookeeper=True) == {"n1": (0, 1), "n2": (0, 1)}


class There:
    """A cluster of two brokers and a node beside them, none of which answers."""

    def nodes(self) -> tuple[NodeName, ...]:
        return tuple(map(NodeName, ("n1", "n2", "c1")))

    def endpoint(self, node: NodeName, port: str) -> Address:
        return Address("127.0.0.1", 1)


@pytest.fixture
def naming(monkeypatch: pytest.MonkeyPatch) -> Callable[..., KafkaSystem]:
    """Adapter whose brokers name these controllers, in order."""

    def make(*named: tuple[int, int] | None) -> KafkaSystem:
        brokers = map(NodeName, ("n1", "n2"))
        told = {node: each for node, each in zip(brokers, named, strict=True) if each}

        async def found(driver: KafkaDriver, timeout_s: float, *, has_zookeeper: bool) -> Any:
            assert has_zookeeper
            return told

        async def agreed(driver: KafkaDriver) -> None:
            assert [*driver.targets] == ["n1", "n2"]

        monkeypatch.setattr(KafkaDriver, "controllers", found)
        monkeypatch.setattr(KafkaDriver, "converged", agreed)
        system = KafkaSystem()
        system.chosen_version = "3.9.2"
        settings = {"controllers": "1", "metadata": "zookeeper"}
        system.experiment = Experiment(system="kafka", nodes=2, settings=settings, runtime="docker")
        return system

    return make


@pytest.mark.parametrize(
    ("named", "controller"),
    [
        (((3, 1), (3, 1)), "n1"),
        # One that is cut off knows an older one.
        (((4, 3), (3, 1)), "c1"),
        ((None, (3, 2)), "n2"),
        ((None, None), None),
        (((3, -1), (3, -1)), None),
        (((3, 7), (3, 7)), None),
    ],
)
def test_the_newest_number_is_the_place_of_a_node(
    naming: Callable[..., KafkaSystem], named: Any, controller: str | None
) -> None:
    view = naming(*named).leader(There(), 1.0)
    assert (view.leader, view.controller) == (None, controller)


@pytest.mark.parametrize(
    ("named", "problem"),
    [
        (((4, 3), (3, 1)), "brokers name several"),
        # The same node, of another epoch: one of them has not heard of the newer one.
        (((4, 1), (3, 1)), "brokers name several"),
        (((3, 1), None), "n2 knows no controller"),
        (((3, -1), (3, -1)), "n1 knows no controller"),
    ],
)
def test_brokers_agree_once_all_name_the_same_controller(
    naming: Callable[..., KafkaSystem], named: Any, problem: str
) -> None:
    with pytest.raises(HarnessError, match=problem):
        naming(*named).converged(There())
    naming((3, 1), (3, 1)).converged(There())
