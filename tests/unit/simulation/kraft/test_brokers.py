"""Simulated brokers: registered, unfenced, shown to clients, fenced when they fall silent."""

import pytest

from splitbrain.contracts.names import NodeName
from tests.unit.simulation.kraft.small_controllers import Controllers


@pytest.mark.parametrize("through_codec", [False, True])
def test_a_topic_is_created_at_the_active_controller_and_shown_by_brokers(
    *, through_codec: bool
) -> None:
    controllers = Controllers(brokers=3, through_codec=through_codec)
    leader = str(controllers.leader.host.name)
    created = controllers.ask(leader, "create-topic", "t", 2)
    assert (created.outcome, created.result) == ("ok", True)
    assert controllers.ask(leader, "create-topic", "t", 2).result is False
    assert controllers.ask(leader, "describe-topic", "t").result == 2
    assert [len(partition.isr) for partition in controllers.partitions("t")] == [3, 3]
    controllers.until(lambda: controllers.ask("n5", "describe-topic", "t").result == 2)
    assert controllers.ask(leader, "delete-topic", "t").result is True
    controllers.until(lambda: controllers.ask("n5", "describe-topic", "t").result is None)


def test_a_broker_hands_on_what_changes_topics() -> None:
    controllers = Controllers(brokers=2)
    created = controllers.ask("n4", "create-topic", "t", 1)
    assert (created.outcome, created.result, created.offset) == ("ok", True, None)
    assert controllers.ask("n5", "create-topic", "t", 1).result is False
    assert controllers.ask("n5", "delete-topic", "t").result is True


def test_a_silent_broker_is_fenced_and_its_partitions_move() -> None:
    controllers = Controllers(brokers=2)
    controllers.ask("n4", "create-topic", "t", 4)
    epoch = controllers.metadata.brokers[4].broker_epoch
    controllers.cluster.kill(NodeName("n4"), 0)
    controllers.until(lambda: controllers.unfenced == {5})
    assert {partition.leader for partition in controllers.partitions("t")} == {5}
    controllers.cluster.start(NodeName("n4"))
    controllers.until(lambda: controllers.unfenced == {4, 5})
    assert controllers.metadata.brokers[4].broker_epoch > epoch
    controllers.until(lambda: all(len(each.isr) == 2 for each in controllers.partitions("t")))


def test_a_new_life_shows_nothing_before_the_controllers_know_it() -> None:
    controllers = Controllers(brokers=1)
    nodes = [NodeName(f"n{number}") for number in (1, 2, 3)]
    controllers.cluster.power_off([*nodes, NodeName("n4")], 0)
    controllers.cluster.start(NodeName("n4"))
    controllers.run(2_000_000)
    assert controllers.ask("n4", "describe-topic", "t").outcome == "fenced"
    for node in nodes:
        controllers.cluster.start(node)
    controllers.until(lambda: controllers.ask("n4", "describe-topic", "t").outcome == "ok")


def test_a_broker_that_is_asked_to_end_hands_over_and_comes_back() -> None:
    controllers = Controllers(brokers=2)
    controllers.ask("n4", "create-topic", "t", 4)
    controllers.cluster.terminate(NodeName("n4"), 0)
    controllers.until(lambda: not controllers.cluster.is_up(NodeName("n4")))
    assert controllers.cluster.ended(NodeName("n4")) is None
    assert {partition.leader for partition in controllers.partitions("t")} == {5}
    controllers.cluster.start(NodeName("n4"))
    controllers.until(lambda: controllers.unfenced == {4, 5})


def test_brokers_outlive_the_failover_of_their_controller() -> None:
    controllers = Controllers(brokers=2)
    controllers.ask("n4", "create-topic", "t", 4)
    old = controllers.leader.host.name
    controllers.cluster.power_off([old], 0)
    controllers.until(lambda: controllers.cluster.leader().leader not in (None, old))
    controllers.until(lambda: controllers.ask("n5", "describe-topic", "t").outcome == "ok")
    controllers.cluster.start(old)
    controllers.until(lambda: controllers.cluster.unlike(controllers.cluster.nodes) is None)
    assert controllers.ask("n4", "delete-topic", "t").result is True
