"""The deployment for every runtime, its configurations, and settings by their own names."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from splitbrain.contracts.errors import UsageError
from splitbrain.contracts.experiment import Experiment
from splitbrain.contracts.names import NodeName, RunId
from splitbrain.contracts.runtime import DeploymentSpec, Placement
from splitbrain.systems.redis import run_node
from splitbrain.systems.redis.adapter import RedisSystem
from splitbrain.systems.redis.deployment import IMAGE
from splitbrain.systems.redis.run_node import servers_named_in
from splitbrain.systems.redis.settings import settings
from tests.unit.systems.pod_place import pod_place

RUN = RunId("20261121T000000-7")


def shared_place(node: NodeName, host_folder: Path, ports: Mapping[str, int]) -> Placement:
    """All nodes on one host, with ports of their own."""
    number = int(node[1:])
    return Placement(
        listen_host="127.0.0.1",
        peer_host="127.0.0.1",
        ports={name: 20_000 + 10 * number + place for place, name in enumerate(ports)},
        config_path=str(host_folder / "config"),
        state_path=str(host_folder / "state"),
        data_path=str(host_folder / "data"),
        python="/usr/bin/some-python",
    )


def deployed(folder: Path, place: object = pod_place, **given: str) -> DeploymentSpec:
    options = Experiment(
        system="redis",
        nodes=3,
        settings={name.replace("_", "-"): value for name, value in given.items()},
    )
    return RedisSystem().deployment(RUN, folder, options, place)  # type: ignore[arg-type]


def configuration(spec: DeploymentSpec, number: int, name: str) -> list[str]:
    return (spec.nodes[number - 1].mounts[0].host_path / name).read_text().splitlines()


def test_a_pod_deployment_is_complete(tmp_path: Path) -> None:
    spec = deployed(tmp_path)
    assert [node.name for node in spec.nodes] == ["n1", "n2", "n3"]
    for node in spec.nodes:
        assert node.image == IMAGE.name
        assert node.ports == {"client": 6379, "peer": 26379}
        assert node.command == ("python3", "/config/run_node.py", "/config", "/data")
        (config,) = node.mounts
        assert (config.node_path, config.read_only) == ("/config", True)
        program = (config.host_path / "run_node.py").read_text()
        assert program == Path(run_node.__file__).read_text()


def test_the_first_node_is_primary_and_the_others_are_its_replicas(tmp_path: Path) -> None:
    spec = deployed(tmp_path)
    assert not [line for line in configuration(spec, 1, "redis.conf") if "replicaof" in line]
    for number in (2, 3):
        lines = configuration(spec, number, "redis.conf")
        assert "replicaof n1 6379" in lines
        assert f"replica-announce-ip n{number}" in lines


def test_sentinels_know_each_other_and_all_replicas_from_the_start(tmp_path: Path) -> None:
    spec = deployed(tmp_path)
    ids: list[str] = []
    for number in (1, 2, 3):
        lines = configuration(spec, number, "sentinel.conf")
        assert "sentinel monitor splitbrain n1 6379 2" in lines
        assert {"sentinel known-replica splitbrain n2 6379"} <= set(lines)
        own = next(line.split()[2] for line in lines if line.startswith("sentinel myid"))
        ids.append(own)
        others = [line.split()[3] for line in lines if line.startswith("sentinel known-sentinel")]
        assert others == [f"n{other}" for other in (1, 2, 3) if other != number]
        # Names must be allowed before anything is known by its name.
        assert lines.index("sentinel resolve-hostnames yes") < lines.index(
            "sentinel monitor splitbrain n1 6379 2"
        )
    assert len({*ids}) == 3
    assert all(len(own) == 40 and set(own) <= set("0123456789abcdef") for own in ids)


def test_nodes_that_share_a_host_are_told_apart_by_their_ports(tmp_path: Path) -> None:
    spec = deployed(tmp_path, shared_place)
    node = spec.nodes[1]
    folder = tmp_path / "nodes" / "n2"
    assert node.command == (
        "/usr/bin/some-python",
        *(f"{folder}/config/run_node.py", f"{folder}/config", f"{folder}/data"),
    )
    assert "replicaof 127.0.0.1 20010" in configuration(spec, 2, "redis.conf")
    assert {"port 20020", "bind 127.0.0.1", f"dir {folder}/data"} <= set(
        configuration(spec, 2, "redis.conf")
    )
    assert "port 20021" in configuration(spec, 2, "sentinel.conf")
    text = "\n".join(configuration(spec, 3, "sentinel.conf"))
    assert servers_named_in(text) == [("127.0.0.1", 20_010 + 10 * place) for place in range(3)]


def test_settings_reach_the_file_of_their_program(tmp_path: Path) -> None:
    spec = deployed(
        tmp_path, appendfsync="always", down_after_milliseconds="700", replica_reads="yes"
    )
    server = configuration(spec, 1, "redis.conf")
    sentinel = configuration(spec, 1, "sentinel.conf")
    assert "appendfsync always" in server
    assert "sentinel down-after-milliseconds splitbrain 700" in sentinel
    assert "replica-reads" not in "\n".join(server + sentinel)


def test_the_same_run_gives_the_same_configuration(tmp_path: Path) -> None:
    one, other = deployed(tmp_path / "a"), deployed(tmp_path / "b")
    assert configuration(one, 2, "sentinel.conf") == configuration(other, 2, "sentinel.conf")


def test_a_wrong_setting_makes_nothing(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="speed"):
        deployed(tmp_path, speed="1")
    assert list(tmp_path.iterdir()) == []


def test_the_defaults_keep_data_and_fail_over_within_seconds() -> None:
    found = settings({}, 3)
    assert (found.server["appendonly"], found.server["appendfsync"]) == ("yes", "everysec")
    assert found.server["min-replicas-to-write"] == "0"
    assert found.sentinel["down-after-milliseconds"] == "2000"
    assert (found.replica_reads, found.follow_switches) == (False, True)


@pytest.mark.parametrize(("nodes", "quorum"), [(1, "1"), (2, "2"), (3, "2"), (5, "3")])
def test_the_quorum_is_a_majority_unless_chosen(nodes: int, quorum: str) -> None:
    assert settings({}, nodes).sentinel["quorum"] == quorum
    assert settings({"quorum": "1"}, nodes).sentinel["quorum"] == "1"


def test_each_setting_goes_to_the_part_that_knows_it() -> None:
    found = settings(
        {"min-replicas-to-write": "1", "down-after-milliseconds": "500", "replica-reads": "yes"}, 3
    )
    assert found.server["min-replicas-to-write"] == "1"
    assert found.sentinel["down-after-milliseconds"] == "500"
    assert found.replica_reads
    assert "replica-reads" not in {**found.server, **found.sentinel}


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("appendfsnyc", "always", "appendfsnyc"),
        ("appendfsync", "sometimes", "always, everysec, no"),
        ("appendonly", "true", "yes, no"),
        ("down-after-milliseconds", "0", "between 1 and"),
        ("down-after-milliseconds", "-5", "between 1 and"),
        ("failover-timeout", "2.5", "whole number"),
        ("repl-timeout", "٣", "whole number"),
        ("quorum", "4", "between 1 and 3"),
        ("min-replicas-to-write", "3", "between 0 and 2"),
        ("min-replicas-max-lag", "99999999999", "between 0 and"),
        ("appendonly", "yes\nrename-command SET x", "yes, no"),
    ],
)
def test_a_wrong_setting_is_refused_with_what_would_fit(name: str, value: str, told: str) -> None:
    with pytest.raises(UsageError, match=told):
        RedisSystem().check_options(Experiment(system="redis", nodes=3, settings={name: value}))


@pytest.mark.parametrize("count", [0, 10])
def test_an_impossible_number_of_nodes_is_refused(count: int) -> None:
    with pytest.raises(UsageError, match=str(count)):
        RedisSystem().check_options(Experiment(system="redis", nodes=count))


def test_there_is_no_planted_bug() -> None:
    assert not RedisSystem().planted_bugs
    with pytest.raises(UsageError, match="no planted bug"):
        RedisSystem().check_options(Experiment(system="redis", nodes=3, bugs=("ack-before-fsync",)))
