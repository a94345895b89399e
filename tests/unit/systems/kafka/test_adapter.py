"""The adapter: configuration, and what its settings let through."""

from pathlib import Path

import msgspec
import pytest

from splitbrain.contracts.errors import HarnessError, UsageError
from splitbrain.contracts.experiment import Experiment
from splitbrain.contracts.names import NodeName, RunId
from splitbrain.contracts.runtime import Address
from splitbrain.contracts.state_event import Resigning
from splitbrain.nodes.server.machine.configuration import read_configuration
from splitbrain.runtimes.docker import jars
from splitbrain.runtimes.docker.images import ROOT
from splitbrain.systems import registry
from splitbrain.systems.kafka.adapter import KafkaSystem
from splitbrain.systems.kafka.group_settings import SESSION_MS
from splitbrain.systems.kafka.groups import GroupClient
from tests.unit.systems.pod_place import pod_place


class Nowhere:
    """A runtime whose nodes are not there."""

    def nodes(self) -> tuple[NodeName, ...]:
        return (NodeName("n1"), NodeName("n2"))

    def endpoint(self, node: NodeName, port: str) -> Address:
        return Address("127.0.0.1", 1)


class NowhereWithControllers(Nowhere):
    """As it is, with a controller."""

    def nodes(self) -> tuple[NodeName, ...]:
        return (*super().nodes(), NodeName("c1"))


def system_with(nodes: int = 3, version: str | None = None, **settings: str) -> KafkaSystem:
    system = KafkaSystem()
    system.chosen_version = version
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
    assert {node.image for node in spec.nodes} == {"splitbrain-kafka-4.3.1"}
    features = ("eligible.leader.replicas.version=1", "transaction.version=2", "share.version=1")
    assert commands.pop()[-6:] == tuple(word for name in features for word in ("--feature", name))
    found = configuration(tmp_path, system, "n2")
    assert found["node.id"] == "2"
    assert found["controller.quorum.voters"] == "1@n1:9093,2@n2:9093,3@n3:9093"
    assert found["advertised.listeners"] == "PLAINTEXT://n2:9092,CONTROLLER://n2:9093"
    assert (found["log.dirs"], found["min.insync.replicas"]) == ("/data/log", "2")
    assert found["log.flush.interval.messages"] == "9223372036854775807"
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
    [
        ({"acks": "2"}, "does not know '2' as acks"),
        ({"min_insync": "2"}, "has no setting"),
        ({"log_segment_bytes": "1000"}, "log.segment.bytes of kafka cannot be '1000'"),
        ({"replica_lag_time_max_ms": "soon"}, "replica.lag.time.max.ms of kafka cannot be 'soon'"),
    ],
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


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_the_protocol_of_groups_reaches_their_members(tmp_path: Path, protocol: str) -> None:
    system = system_with(3, group_protocol=protocol)
    assert system.experiment is not None
    system.experiment = msgspec.structs.replace(system.experiment, workload="groups")
    client = system._driver_at(Nowhere()).open_client(NodeName("n1"), Address("127.0.0.1", 1))
    assert isinstance(client, GroupClient)
    assert client._coordinator.group.protocol == protocol
    assert "groups" in system.workloads(None)
    found = configuration(tmp_path, system, "n1")
    assert int(found["group.min.session.timeout.ms"]) <= SESSION_MS
    assert found["group.consumer.session.timeout.ms"] == str(SESSION_MS)


def test_each_release_is_an_image_of_its_own_with_its_locks() -> None:
    found = [registry.system(f"kafka@{version}") for version in KafkaSystem.offered_versions]
    sources = [source for system in found for source in system.images()]
    assert len({source.name for source in sources}) == len(found) == 8
    for system, source in zip(found, sources, strict=True):
        assert source.jars == system.version == system.versions()["kafka"]
        lock = ROOT / "docker/kafka" / str(source.jars) / jars.LOCK
        assert f"kafka_2.13-{system.version}.jar" in jars.read_lock(lock.read_text())
    assert registry.system("kafka").images()[0].name == sources[0].name


@pytest.mark.parametrize(
    ("version", "words", "has_verification", "advertises"),
    [
        (
            "4.1.2",
            ["eligible.leader.replicas.version=1", "transaction.version=2", "share.version=1"],
            *(True, True),
        ),
        ("4.0.2", ["eligible.leader.replicas.version=0", "transaction.version=2"], True, True),
        ("3.9.2", [], True, True),
        ("3.6.2", [], True, False),
        ("3.4.1", [], False, False),
    ],
)
def test_a_node_is_told_what_its_release_knows(
    tmp_path: Path, version: str, words: list[str], has_verification: bool, advertises: bool
) -> None:
    system = system_with(version=version)
    found = configuration(tmp_path, system, "n1")
    assert ("transaction.partition.verification.enable" in found) is has_verification
    assert ("CONTROLLER" in found["advertised.listeners"]) is advertises
    assert system.experiment is not None
    spec = system.deployment(RunId("r"), tmp_path, system.experiment, pod_place)
    assert [word for word in spec.nodes[0].command[3:] if word != "--feature"] == words
    assert system.driver_options()["transaction.version"] == ("2" if version > "4" else "1")


@pytest.mark.parametrize("version", ["4.3.1", "3.7.2"])
def test_controllers_may_be_nodes_of_their_own(tmp_path: Path, version: str) -> None:
    system = system_with(2, version, controllers="3")
    broker = configuration(tmp_path, system, "n2")
    controller = configuration(tmp_path, system, "c2")
    assert (broker["process.roles"], broker["node.id"]) == ("broker", "2")
    assert (controller["process.roles"], controller["node.id"]) == ("controller", "4")
    for found in (broker, controller):
        assert found["controller.quorum.voters"] == "3@c1:9093,4@c2:9093,5@c3:9093"
    assert broker["listeners"] == "PLAINTEXT://0.0.0.0:9092,INTERNAL://0.0.0.0:9093"
    assert controller["listeners"] == "CONTROLLER://0.0.0.0:9093"
    assert ("advertised.listeners" in controller) is (version == "4.3.1")
    assert controller["min.insync.replicas"] == "2"


def test_brokers_live_on_zookeeper(tmp_path: Path) -> None:
    system = system_with(3, "3.9.2", controllers="1", metadata="zookeeper")
    assert system.experiment is not None
    spec = system.deployment(RunId("r"), tmp_path, system.experiment, pod_place)
    assert [node.name for node in spec.nodes] == ["n1", "n2", "n3", "c1"]
    assert [node.command[0] for node in spec.nodes] == ["kafka-node"] * 3 + ["zookeeper-node"]
    assert {node.image for node in spec.nodes} == {source.name for source in system.images()}
    # Without a cluster id nothing is formatted.
    assert spec.nodes[0].command == ("kafka-node", "/config/server.properties")
    found = configuration(tmp_path, system, "n3")
    assert (found["broker.id"], found["zookeeper.connect"]) == ("3", "c1:2181")
    assert not {"process.roles", "node.id", "controller.quorum.voters"} & found.keys()


def test_brokers_live_under_our_controllers(tmp_path: Path) -> None:
    system = system_with(2, controllers="3", metadata="splitbrain")
    assert system.experiment is not None
    spec = system.deployment(RunId("r"), tmp_path, system.experiment, pod_place)
    assert [node.image for node in spec.nodes] == ["splitbrain-kafka-4.3.1"] * 2 + [
        "splitbrain-kraft"
    ] * 3
    found = configuration(tmp_path, system, "n1")
    assert found["controller.quorum.voters"] == "3@c1:9193,4@c2:9193,5@c3:9193"
    told = read_configuration(tmp_path / "nodes/c1/config/node.json")
    assert (told.node_id, told.state_machine, told.is_broker) == (3, "metadata", False)
    assert told.cluster_id == spec.nodes[0].command[2]
    assert [voter.host for voter in told.voters] == ["c1", "c2", "c3"]
    assert told.settings["broker.session.timeout.ms"] == found["broker.session.timeout.ms"]


@pytest.mark.parametrize(
    ("version", "settings", "problem"),
    [
        (None, {"metadata": "splitbrain"}, "kept by nodes that are no brokers"),
        ("3.9.2", {"metadata": "zookeeper"}, "kept by nodes that are no brokers"),
        (None, {"metadata": "zookeeper", "controllers": "1"}, "does not know 'zookeeper'"),
        ("4.1.2", {"metadata": "splitbrain", "controllers": "1"}, "does not know 'splitbrain'"),
        (
            None,
            {
                "metadata": "splitbrain",
                "controllers": "1",
                "eligible_leader_replicas_version": "1",
            },
            "does not know '1' as eligible",
        ),
        ("3.9.2", {"eligible_leader_replicas_version": "1"}, "has no setting 'eligible"),
        ("3.9.2", {"transaction_version": "2"}, "does not know '2' as transaction.version"),
        ("3.5.2", {"transaction_partition_verification_enable": "true"}, "has no setting"),
        ("3.9.2", {"group_protocol": "consumer"}, "does not know 'consumer' as group.protocol"),
        (
            None,
            {"metadata": "splitbrain", "controllers": "1", "group_protocol": "consumer"},
            "does not know 'consumer' as group.protocol",
        ),
    ],
)
def test_what_a_release_lacks_is_refused(
    version: str | None, settings: dict[str, str], problem: str
) -> None:
    system = system_with(3, version, **settings)
    assert system.experiment is not None
    with pytest.raises(UsageError, match=problem):
        system.check_options(system.experiment)


def test_nodes_beside_the_brokers_are_not_asked_by_clients() -> None:
    system = system_with(2, controllers="1")
    assert system.experiment is not None
    assert system.observers(system.experiment) == ("c1",)
    assert not system.observers_serve
    assert set(system._driver_at(NowhereWithControllers()).targets) == {"n1", "n2"}


@pytest.mark.parametrize(
    ("workload", "main"), [("log", "splitbrain-0"), ("groups", "__consumer_offsets-2")]
)
def test_roles_are_those_of_the_partition_by_which_faults_are_aimed(
    workload: str, main: str
) -> None:
    system = system_with()
    assert system.experiment is not None
    system.experiment = msgspec.structs.replace(system.experiment, workload=workload)
    lines = [
        f"[Broker id=1] Follower {name} starts at leader epoch 4 from offset 0. Current leader is 2"
        for name in ("splitbrain-0", "__consumer_offsets-2")
    ]
    told = [*system.events_printed(NodeName("n1"), enumerate(lines))]
    parts = {event.detail.get("part", main): event.kind for event in told}
    assert parts == {name: "role" if name == main else "part" for name in parts}
    assert len(parts) == 2
    assert (system.declares_state_events, system.tells_events_at_once) == (True, False)


def test_of_programs_that_are_none_of_kafkas_it_is_known_that_they_started() -> None:
    system = system_with(3, "3.9.2", controllers="1", metadata="zookeeper")
    told = [*system.events_printed(NodeName("c1"), [(7, "ZooKeeper here"), (8, "again")])]
    assert [(event.node, event.kind, event.time) for event in told] == [("c1", "started", 7)]
    assert [*system.events_printed(NodeName("c1"), [])] == []


@pytest.mark.parametrize(
    ("version", "settings", "shares"),
    [
        ("4.3.1", {}, True),
        ("4.1.2", {}, True),
        ("4.3.1", {"share_version": "0"}, False),
        ("4.3.1", {"controllers": "1", "metadata": "splitbrain"}, False),
        ("4.0.2", {}, False),
        ("3.9.2", {}, False),
    ],
)
def test_share_groups_are_those_of_releases_that_have_them(
    tmp_path: Path, version: str, settings: dict[str, str], shares: bool
) -> None:
    system = system_with(3, version, **settings)
    assert ("share-groups" in system.workloads(None)) is shares
    found = configuration(tmp_path, system, "n1")
    of_release = version in ("4.3.1", "4.1.2")
    assert ("group.share.record.lock.duration.ms" in found) is of_release
    if of_release:
        assert found["share.coordinator.state.topic.replication.factor"] == "3"
        assert found["share.coordinator.state.topic.min.isr"] == "2"


@pytest.mark.parametrize(
    ("version", "settings", "within_ms"),
    [
        ("4.3.1", {}, 10_000),
        ("3.7.2", {"controller_quorum_fetch_timeout_ms": "3000"}, 15_000),
        ("3.7.2", {"deposed_controllers": "stay"}, None),
        ("3.6.2", {}, None),
        ("3.6.2", {"deposed_controllers": "resign"}, 10_000),
        ("3.9.2", {"metadata": "zookeeper", "controllers": "1"}, None),
        ("4.3.1", {"metadata": "splitbrain", "controllers": "3"}, None),
    ],
)
def test_controllers_that_are_cut_off_resign_from_3_7_on_or_where_that_is_asked_for(
    version: str, settings: dict[str, str], within_ms: int | None
) -> None:
    promised = system_with(3, version, **settings).resigning
    assert promised == (None if within_ms is None else Resigning(within_ms, "__cluster_metadata"))
