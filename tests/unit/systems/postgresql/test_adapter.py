"""The adapter: configuration, what its settings promise, and its reading of servers' views."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from splitbrain.contracts.errors import HarnessError, UsageError
from splitbrain.contracts.experiment import Experiment
from splitbrain.contracts.names import NodeName, RunId
from splitbrain.contracts.runtime import Address
from splitbrain.contracts.system import Route
from splitbrain.systems.postgresql import adapter
from splitbrain.systems.postgresql.adapter import PostgresSystem
from splitbrain.systems.postgresql.client import ReadsHereClient
from splitbrain.systems.postgresql.status import NodeView
from splitbrain.workloads.transactions import LEVELS
from tests.unit.systems.pod_place import pod_place

NODES = tuple(NodeName(f"n{number}") for number in (1, 2, 3))
PRIMARY = NodeView(is_standby=False, timeline_id=1, position=900, streams=2, sync_streams=1)
STANDBY = NodeView(is_standby=True, timeline_id=1, position=900, streams=0, sync_streams=0)


class Anywhere:
    """A runtime of which nothing but the names is asked."""

    def nodes(self) -> tuple[NodeName, ...]:
        return NODES

    def endpoint(self, node: NodeName, port: str) -> Address:
        return Address(node, 1)


def system_of(nodes: int, settings: dict[str, str]) -> PostgresSystem:
    system = PostgresSystem()
    system.experiment = Experiment(system="postgresql", nodes=nodes, settings=settings)
    return system


def system_with(**settings: str) -> PostgresSystem:
    return system_of(3, settings)


def shown(monkeypatch: pytest.MonkeyPatch, **views: NodeView | None) -> PostgresSystem:
    """An adapter whose servers see themselves so; those that are not named are well."""
    found = {"n1": PRIMARY, "n2": STANDBY, "n3": STANDBY, **views}
    monkeypatch.setattr(adapter, "ask", lambda there, timeout_s: found[there.host])
    monkeypatch.setattr(adapter, "make_tables", lambda there, tables, timeout_s: True)
    return system_with()


def configuration(folder: Path, system: PostgresSystem, node: str) -> dict[str, str]:
    assert system.experiment is not None
    system.deployment(RunId("r"), folder, system.experiment, pod_place)
    text = (folder / f"nodes/{node}/config/postgresql.conf").read_text()
    return dict(line.split(" = ", 1) for line in text.splitlines())


def test_the_others_are_standbys_of_the_first(tmp_path: Path) -> None:
    system = system_with()
    assert system.experiment is not None
    spec = system.deployment(RunId("r"), tmp_path, system.experiment, pod_place)
    start = ("postgresql-node", "/config", "/data")
    assert [node.command for node in spec.nodes] == [
        start,
        (*start, "n1", "5432", "n2"),
        (*start, "n1", "5432", "n3"),
    ]


@pytest.mark.parametrize(
    ("nodes", "settings", "names"),
    [
        (3, {}, "'*'"),
        (1, {}, "''"),
        (3, {"synchronous_standby_names": "none"}, "''"),
        (3, {"synchronous_standby_names": "ANY 1 (n2, n3)"}, "'ANY 1 (n2, n3)'"),
    ],
)
def test_commits_wait_for_standbys_where_there_are_some(
    tmp_path: Path, nodes: int, settings: dict[str, str], names: str
) -> None:
    found = configuration(tmp_path, system_of(nodes, settings), "n1")
    assert found["synchronous_standby_names"] == names
    assert (found["fsync"], found["synchronous_commit"]) == ("on", "on")


def test_settings_reach_the_servers(tmp_path: Path) -> None:
    found = configuration(tmp_path, system_with(fsync="off", synchronous_commit="local"), "n2")
    assert (found["fsync"], found["synchronous_commit"]) == ("off", "local")
    found = configuration(tmp_path, system_with(synchronous_commit="mixed"), "n2")
    assert found["synchronous_commit"] == "on"


@pytest.mark.parametrize(
    ("settings", "level"),
    [
        ({}, "serializable"),
        ({"isolation": "repeatable-read"}, "snapshot-isolation"),
        ({"isolation": "read-committed"}, "read-committed"),
        ({"reads": "any"}, "snapshot-isolation"),
        ({"reads": "any", "isolation": "repeatable-read"}, "snapshot-isolation"),
        ({"reads": "any", "isolation": "read-committed"}, "read-committed"),
    ],
)
def test_a_level_is_promised_by_the_settings(settings: dict[str, str], level: str) -> None:
    system = system_with(**settings)
    assert level in LEVELS
    assert system.workload_options("list-append") == {"level": level}
    assert system.workload_options("rw-register") == {"level": level}
    assert system.workload_options("set") == {}


def test_a_cluster_that_streams_is_ready_and_has_converged(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    system = shown(monkeypatch)
    system.ready(Anywhere())
    system.converged(Anywhere())
    view = system.leader(Anywhere(), 1.0)
    assert (view.leader, view.epoch) == ("n1", 1)


@pytest.mark.parametrize(
    ("views", "problem"),
    [
        ({"n3": None}, "n3 does not serve"),
        ({"n1": STANDBY}, "nobody leads"),
        ({"n2": PRIMARY}, "n1 and n2 lead"),
        ({"n1": msgspec.structs.replace(PRIMARY, streams=1)}, "1 standbys stream from n1"),
    ],
)
def test_a_cluster_that_is_not_whole(
    monkeypatch: pytest.MonkeyPatch, views: dict[str, Any], problem: str
) -> None:
    system = shown(monkeypatch, **views)
    for ask in (system.ready, system.converged):
        with pytest.raises(HarnessError, match=problem):
            ask(Anywhere())


def test_a_standby_that_lags_has_not_converged(monkeypatch: pytest.MonkeyPatch) -> None:
    system = shown(monkeypatch, n2=msgspec.structs.replace(STANDBY, position=899))
    system.ready(Anywhere())
    with pytest.raises(HarnessError, match="n2 is at 899, n1 was at 900"):
        system.converged(Anywhere())


def test_tables_that_cannot_be_made_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    system = shown(monkeypatch)
    monkeypatch.setattr(adapter, "make_tables", lambda there, tables, timeout_s: False)
    with pytest.raises(HarnessError, match="n1 did not make the tables"):
        system.ready(Anywhere())


def test_figures_of_a_server(monkeypatch: pytest.MonkeyPatch) -> None:
    system = shown(monkeypatch, n2=None)
    assert system.metrics(Anywhere(), NODES[1], 1.0) is None
    assert system.metrics(Anywhere(), NODES[0], 1.0) == {
        "leads": 1,
        "position": 900,
        "streams": 2,
        "sync_streams": 1,
    }


def test_clients_are_of_one_node_or_of_it_before_all_others() -> None:
    pinned, leader = Route("pinned", NODES[1]), Route("leader", NODES[1])
    client: Any = system_with().open_client(Anywhere(), pinned)
    assert [node for node, _ in client._nodes] == ["n2"]
    client = system_with().open_client(Anywhere(), leader)
    assert [node for node, _ in client._nodes] == ["n2", "n1", "n3"]
    client = system_with(reads="any").open_client(Anywhere(), pinned)
    assert type(client) is ReadsHereClient


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"runtime": "local"}, "postgresql does not run on the runtime local"),
        ({"settings": {"isolation": "none"}}, "postgresql does not know 'none' as isolation"),
        (
            {"settings": {"synchronous_standby_names": "';"}},
            "the setting synchronous_standby_names of postgresql cannot be",
        ),
        ({"settings": {"max_connections": "9"}}, "max_connections of postgresql cannot be '9'"),
        (
            {"settings": {"think_time_ms": "\u0661"}},
            "the setting think_time_ms of postgresql cannot",
        ),
        ({"settings": {"think_time_ms": "-1"}}, "the setting think_time_ms of postgresql cannot"),
        ({"settings": {"synchronous_mode": "on"}}, "synchronous_mode is Patroni's"),
        ({"settings": {"etcd_asked": "others"}}, "etcd_asked is Patroni's"),
        (
            {"settings": {"failover": "patroni", "synchronous_standby_names": "*"}},
            "synchronous_standby_names is Patroni's own",
        ),
        ({"nodes": 2, "settings": {"failover": "patroni"}}, "does not fail over on 2 nodes"),
    ],
)
def test_options_that_cannot_be_had(options: dict[str, Any], problem: str) -> None:
    with pytest.raises(UsageError, match=problem):
        PostgresSystem().check_options(Experiment(system="postgresql", **options))


@pytest.mark.parametrize("version", PostgresSystem.offered_versions)
def test_each_version_has_an_image_and_a_server_that_knows_its_settings(
    tmp_path: Path, version: str
) -> None:
    system = system_of(1, {})
    system.chosen_version = version
    (source,) = system.images()
    is_packaged = version == "15"
    assert source.name == "splitbrain-postgresql" + ("" if is_packaged else f"-{version}")
    assert (source.has_packages, source.jars) == (is_packaged, None if is_packaged else version)
    assert version in system.versions()["postgresql"]
    # Each name is an error to the versions that do not have it.
    kept = {"wal_keep_size", "wal_keep_segments"} & configuration(tmp_path, system, "n1").keys()
    assert kept == {"wal_keep_segments" if version == "12.3" else "wal_keep_size"}


def test_only_the_packaged_version_has_standbys() -> None:
    system = PostgresSystem()
    system.chosen_version = "12.3"
    system.check_options(Experiment(system="postgresql@12.3", nodes=1))
    with pytest.raises(UsageError, match="no program that copies a primary"):
        system.check_options(Experiment(system="postgresql@12.3", nodes=2))


@pytest.mark.parametrize(
    ("settings", "asked", "modes"),
    [
        ({}, ["n2", "n1", "n3"], {"synchronous_mode": False}),
        (
            {"etcd_asked": "others", "synchronous_mode": "strict"},
            ["n1", "n3"],
            {"synchronous_mode": True, "synchronous_mode_strict": True},
        ),
    ],
)
def test_with_failover_each_node_has_patroni_and_a_member_of_etcd(
    tmp_path: Path, settings: dict[str, str], asked: list[str], modes: dict[str, bool]
) -> None:
    system = system_with(failover="patroni", fsync="off", **settings)
    assert system.experiment is not None
    spec = system.deployment(RunId("r"), tmp_path, system.experiment, pod_place)
    urls = [f"http://{each}:2379" for each in asked]
    assert spec.nodes[1].command == ("patroni-node", "/config", "/data", *urls)
    folder = tmp_path / "nodes/n2/config"
    member = msgspec.json.decode((folder / "etcd.yml").read_bytes())
    assert member["initial-cluster"] == "n1=http://n1:2380,n2=http://n2:2380,n3=http://n3:2380"
    patroni = msgspec.json.decode((folder / "patroni.yml").read_bytes())
    assert patroni["etcd3"] == {
        "hosts": [f"{each}:2379" for each in asked],
        "use_proxies": "etcd_asked" in settings,
    }
    dcs = patroni["bootstrap"]["dcs"]
    assert modes.items() <= dcs.items()
    # Patroni's rule; it sets others silently where they break it.
    assert dcs["loop_wait"] + 2 * dcs["retry_timeout"] <= dcs["ttl"]
    parameters = dcs["postgresql"]["parameters"]
    assert (parameters["fsync"], parameters["lc_messages"]) == ("off", "C")


def test_with_a_synchronous_mode_a_cluster_is_whole_once_commits_wait_for_a_standby(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    alone = msgspec.structs.replace(PRIMARY, sync_streams=0)
    shown(monkeypatch, n1=alone)
    system_with(failover="patroni").ready(Anywhere())
    with pytest.raises(HarnessError, match="n1 has no synchronous standby yet"):
        system_with(failover="patroni", synchronous_mode="on").ready(Anywhere())


def test_a_failover_takes_as_long_as_the_key_lives() -> None:
    assert system_with().tempo().failover_s is None
    tempo = system_with(failover="patroni").tempo()
    assert tempo.notices_s is not None
    assert tempo.failover_s is not None
    assert tempo.notices_s < tempo.failover_s
