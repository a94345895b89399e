"""The deployment, its configurations, and the planted bugs that it knows."""

import sys
from pathlib import Path
from typing import Any

import pytest

from splitbrain.contracts.errors import UsageError
from splitbrain.contracts.experiment import Experiment
from splitbrain.contracts.names import NodeName, RunId
from splitbrain.contracts.runtime import NodeSpec
from splitbrain.contracts.scenario import NODES_MAX
from splitbrain.nodes.server.machine.configuration import NodeConfiguration, read_configuration
from splitbrain.patched.loading import PatchedModules
from splitbrain.patched.patch import read_patch
from splitbrain.systems.kraft.adapter import KraftSystem
from splitbrain.systems.kraft.deployment import IMAGE
from splitbrain.systems.kraft.state_machines import node_settings
from tests.unit.systems.pod_place import pod_place

RUN = RunId("20261121T000000-7")


def deployed(folder: Path, nodes: int = 1, run_id: RunId = RUN, **options: Any) -> list[NodeSpec]:
    experiment = Experiment(system="kraft", nodes=nodes, **options)
    return list(KraftSystem().deployment(run_id, folder, experiment, pod_place).nodes)


def configuration_of(node: NodeSpec) -> NodeConfiguration:
    return read_configuration(node.mounts[0].host_path / "node.json")


def test_a_pod_deployment_is_complete(tmp_path: Path) -> None:
    nodes = deployed(tmp_path, 3)
    assert [node.name for node in nodes] == ["n1", "n2", "n3"]
    for node in nodes:
        assert node.image == IMAGE.name
        assert node.ports == {"client": 9190, "peer": 9193, "metrics": 9194}
        assert node.data_path == "/data"
        assert node.command[-2:] == ("/config/node.json", "--format-if-empty")
        config, state = node.mounts
        assert (config.node_path, config.read_only) == ("/config", True)
        assert (state.node_path, state.read_only) == ("/state", False)
        assert config.host_path.is_dir()
        assert state.host_path.is_dir()


def test_every_node_can_read_its_configuration(tmp_path: Path) -> None:
    settings = {"controller.quorum.fetch.timeout.ms": "500"}
    for number, node in enumerate(deployed(tmp_path, 3, settings=settings), 1):
        configuration = configuration_of(node)
        assert (configuration.name, configuration.node_id) == (node.name, number)
        assert [voter.host for voter in configuration.voters] == ["n1", "n2", "n3"]
        assert configuration.voters[number - 1].directory_id == configuration.directory_id
        assert configuration.settings == settings
        assert configuration.state_event_file == "/state/state_events.jsonl"
        # They tell their durable lengths where state is kept.
        assert node.durable_lengths_path == "/state/durable_lengths.jsonl"
        assert configuration.durable_length_file == node.durable_lengths_path


def test_the_same_run_gives_the_same_identities(tmp_path: Path) -> None:
    def identities(run_id: RunId, folder: Path) -> tuple[str, ...]:
        configuration = configuration_of(deployed(folder, run_id=run_id)[0])
        return configuration.cluster_id, configuration.directory_id

    first = identities(RUN, tmp_path / "a")
    assert identities(RUN, tmp_path / "b") == first
    assert set(identities(RunId("other"), tmp_path / "c")).isdisjoint(first)


def test_state_events_are_where_the_node_writes_them(tmp_path: Path) -> None:
    (node,) = deployed(tmp_path)
    path = KraftSystem().state_event_file(tmp_path, NodeName("n1"))
    assert path is not None
    assert path.parent == node.mounts[1].host_path


def test_nodes_have_this_process_patches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = KraftSystem().versions()
    text = "--- a/rooms.py\n+++ b/rooms.py\n@@ -1 +1 @@\n-a\n+b\n"
    (tmp_path / "rooms.py").write_text("a\n")
    finder = PatchedModules([read_patch("a-bug", text)], tmp_path)
    monkeypatch.setattr(sys, "meta_path", [finder, *sys.meta_path])
    (node,) = deployed(tmp_path)
    assert node.command[1:7] == (
        *("-m", "splitbrain.patched", f"{node.mounts[0].node_path}/patches/a-bug.patch", "--"),
        *("-m", "splitbrain.nodes"),
    )
    assert (node.mounts[0].host_path / "patches/a-bug.patch").read_text() == text
    versions = KraftSystem().versions()
    assert versions["kraft_patches"] == "a-bug"
    assert versions["kraft_source"] != plain["kraft_source"]


def test_a_planted_bug_reaches_the_nodes_by_the_launcher(tmp_path: Path) -> None:
    (node,) = deployed(tmp_path, bugs=("ack-before-commit",))
    assert node.command[1:5] == (
        *("-m", "splitbrain.patched", "/config/patches/ack-before-commit.patch", "--"),
    )
    text = (node.mounts[0].host_path / "patches/ack-before-commit.patch").read_text()
    assert read_patch("x", text).preamble.startswith(
        KraftSystem().planted_bugs["ack-before-commit"]
    )


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"nodes": 0}, "0"),
        ({"nodes": NODES_MAX + 1}, str(NODES_MAX + 1)),
        ({"bugs": ("no-such-bug",)}, "no-such-bug"),
        ({"settings": {"speed": "1"}}, "speed"),
    ],
)
def test_unfit_options_are_refused(tmp_path: Path, options: dict[str, Any], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        deployed(tmp_path, **options)


# --- controllers and brokers ------------------------------------------------------------------


def metadata(nodes: int = 3, **options: Any) -> Experiment:
    return Experiment(system="kraft", nodes=nodes, state_machine="metadata", **options)


def test_brokers_come_behind_the_controllers_and_vote_not(tmp_path: Path) -> None:
    kraft = KraftSystem()
    settings = {"brokers": "3", "broker.session.timeout.ms": "2000"}
    options = metadata(settings=settings)
    spec = kraft.deployment(RUN, tmp_path, options, pod_place)
    assert [node.name for node in spec.nodes] == ["n1", "n2", "n3", "n4", "n5", "n6"]
    assert list(kraft.observers(options)) == ["n4", "n5", "n6"]
    for number, node in enumerate(spec.nodes, 1):
        configuration = configuration_of(node)
        assert (configuration.node_id, configuration.state_machine) == (number, "metadata")
        assert [voter.node_id for voter in configuration.voters] == [1, 2, 3]
        # How many brokers there are is no business of a node's, but for what follows from it.
        assert configuration.settings == {
            "broker.session.timeout.ms": "2000",
            "default.replication.factor": "3",
        }


@pytest.mark.parametrize(
    ("settings", "replicas"),
    [
        ({}, "2"),
        ({"brokers": "1"}, "1"),
        ({"brokers": "5"}, "3"),
        ({"brokers": "5", "default.replication.factor": "4"}, "4"),
        ({"brokers": "5", "default_replication_factor": "4"}, "4"),
    ],
)
def test_replicas_follow_from_the_intended_cluster(settings: dict[str, str], replicas: str) -> None:
    told = node_settings(metadata(settings=settings))
    assert [told[name] for name in told if name.startswith("default")] == [replicas]


def test_there_are_two_brokers_where_nobody_says_how_many() -> None:
    assert list(KraftSystem().observers(metadata(nodes=5))) == ["n6", "n7"]
    assert list(KraftSystem().observers(Experiment(system="kraft", nodes=5))) == []


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (metadata(settings={"brokers": "0"}), "'brokers' is '0'"),
        (metadata(settings={"brokers": "two"}), "'brokers' is 'two'"),
        (metadata(settings={"brokers": "7"}), "Choose between 1 and 6 brokers"),
        (
            metadata(settings={"default.replication.factor": "3"}),
            "default.replication.factor 3 cannot be met by 2 brokers",
        ),
        (metadata(nodes=9), "Choose at most 8 nodes that vote"),
        (metadata(settings={"broker.session.timeout.ms": "soon"}), "not a whole number"),
        (metadata(settings={"speed": "1"}), "speed"),
        (
            Experiment(system="kraft", nodes=3, settings={"brokers": "2"}),
            "unknown setting 'brokers'",
        ),
        (
            Experiment(system="kraft", nodes=3, bugs=("unfenced-too-early",)),
            "state machine metadata",
        ),
    ],
)
def test_what_fits_no_state_machine_is_refused(options: Experiment, says: str) -> None:
    with pytest.raises(UsageError) as refusal:
        KraftSystem().check_options(options)
    assert says in str(refusal.value)


def test_each_state_machine_has_its_workloads() -> None:
    kraft = KraftSystem()
    assert list(kraft.state_machines) == ["registers", "metadata"]
    assert list(kraft.workloads(None)) == list(kraft.workloads("registers")) == ["register", "set"]
    assert list(kraft.workloads("metadata")) == ["topics"]
