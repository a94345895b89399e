"""The adapter: configuration, and what its settings let through."""

from pathlib import Path

import pytest

from splitbrain.contracts.errors import HarnessError, UsageError
from splitbrain.contracts.experiment import Experiment
from splitbrain.contracts.names import NodeName, RunId
from splitbrain.contracts.runtime import Address
from splitbrain.systems.kafka.adapter import KafkaSystem
from tests.unit.systems.pod_place import pod_place


class Nowhere:
    """A runtime whose nodes are not there."""

    def nodes(self) -> tuple[NodeName, ...]:
        return (NodeName("n1"), NodeName("n2"))

    def endpoint(self, node: NodeName, port: str) -> Address:
        return Address("127.0.0.1", 1)


def system_with(nodes: int = 3, **settings: str) -> KafkaSystem:
    system = KafkaSystem()
    named = {name.replace("_", "."): value for name, value in settings.items()}
    system.experiment = Experiment(system="kafka", nodes=nodes, settings=named, runtime="docker")
    return system


def configuration(folder: Path, system: KafkaSystem, node: str) -> dict[str, str]:
    assert system.experiment is not None
    system.deployment(RunId("r"), folder, system.experiment, pod_place)
    text = (folder / f"nodes/{node}/config/server.properties").read_text()
    return dict(line.split("=", 1) for line in text.splitlines())


def test_nodes_are_brokers_and_voters_and_know_each_other(tmp_path: Path) -> None:
    system = system_with()
    assert system.experiment is not None
    spec = system.deployment(RunId("r"), tmp_path, system.experiment, pod_place)
    commands = {node.command for node in spec.nodes}
    assert len(commands) == 1
    features = ("eligible.leader.replicas.version=1", "transaction.version=2")
    assert commands.pop()[-4:] == ("--feature", features[0], "--feature", features[1])
    found = configuration(tmp_path, system, "n2")
    assert found["node.id"] == "2"
    assert found["controller.quorum.voters"] == "1@n1:9093,2@n2:9093,3@n3:9093"
    assert found["advertised.listeners"] == "PLAINTEXT://n2:9092,CONTROLLER://n2:9093"
    assert (found["log.dirs"], found["min.insync.replicas"]) == ("/data/log", "2")
    assert found["unclean.leader.election.enable"] == "false"
    assert found["transaction.partition.verification.enable"] == "true"


@pytest.mark.parametrize(("nodes", "asked", "given"), [(1, "2", "1"), (5, "3", "3"), (2, "3", "2")])
def test_no_more_replicas_are_asked_to_be_in_sync_than_there_are(
    tmp_path: Path, nodes: int, asked: str, given: str
) -> None:
    system = system_with(nodes, min_insync_replicas=asked)
    assert configuration(tmp_path, system, "n1")["min.insync.replicas"] == given


@pytest.mark.parametrize(
    ("settings", "problem"),
    [({"acks": "2"}, "does not know '2' as acks"), ({"min_insync": "2"}, "has no setting")],
)
def test_a_setting_that_there_is_not_is_refused(settings: dict[str, str], problem: str) -> None:
    system = system_with(3, **settings)
    assert system.experiment is not None
    with pytest.raises(UsageError, match=problem):
        system.check_options(system.experiment)


def test_the_runtime_without_images_is_refused() -> None:
    system = system_with()
    with pytest.raises(UsageError, match="does not run on the runtime local"):
        system.check_options(Experiment(system="kafka", nodes=3, runtime="local"))


def test_brokers_that_do_not_answer_are_named() -> None:
    with pytest.raises(HarnessError, match="n1: "):
        system_with().ready(Nowhere())


def test_acks_reach_the_clients() -> None:
    (node, there) = (NodeName("n1"), Address("127.0.0.1", 1))
    for acks, number in (("all", -1), ("1", 1)):
        system = system_with(3, acks=acks)
        client = system._driver_at(Nowhere()).open_client(node, there)
        assert client._topic.acks == number
