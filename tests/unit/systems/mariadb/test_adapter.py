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
from splitbrain.systems.mariadb import adapter
from splitbrain.systems.mariadb.adapter import MariadbSystem
from splitbrain.systems.mariadb.status import NodeView
from splitbrain.workloads.transactions import LEVELS
from tests.unit.systems.pod_place import pod_place

NODES = tuple(NodeName(f"n{number}") for number in (1, 2, 3))
#: As a server tells it.
TOLD = {
    "wsrep_ready": "ON",
    "wsrep_cluster_status": "Primary",
    "wsrep_cluster_size": "3",
    "wsrep_local_state_comment": "Synced",
    "wsrep_last_committed": "900",
    "wsrep_local_cert_failures": "4",
    "wsrep_local_bf_aborts": "2",
    "wsrep_provider_name": "Galera",
}
MEMBER = msgspec.convert(TOLD, NodeView, strict=False)


class Anywhere:
    """A runtime of which nothing but the names is asked."""

    def nodes(self) -> tuple[NodeName, ...]:
        return NODES

    def endpoint(self, node: NodeName, port: str) -> Address:
        return Address(node, 1)


def system_with(**settings: str) -> MariadbSystem:
    system = MariadbSystem()
    system.experiment = Experiment(system="mariadb", nodes=3, settings=settings)
    return system


def shown(monkeypatch: pytest.MonkeyPatch, **views: NodeView | None) -> MariadbSystem:
    """An adapter whose servers see themselves so; those that are not named are well."""
    found = {**dict.fromkeys(NODES, MEMBER), **views}
    monkeypatch.setattr(adapter, "ask", lambda there, timeout_s: found[there.host])
    monkeypatch.setattr(adapter, "make_tables", lambda there, tables, timeout_s: True)
    return system_with()


def configuration(folder: Path, system: MariadbSystem, node: str) -> dict[str, str]:
    assert system.experiment is not None
    system.deployment(RunId("r"), folder, system.experiment, pod_place)
    text = (folder / f"nodes/{node}/config/server.cnf").read_text()
    first, *lines = text.splitlines()
    assert first == "[mysqld]"
    return dict(line.split(" = ", 1) for line in lines)


def test_the_first_makes_the_cluster_and_all_know_each_other(tmp_path: Path) -> None:
    system = system_with()
    assert system.experiment is not None
    spec = system.deployment(RunId("r"), tmp_path, system.experiment, pod_place)
    start = ("mariadb-node", "/config", "/data")
    assert [node.command for node in spec.nodes] == [(*start, "first"), start, start]
    found = configuration(tmp_path, system, "n2")
    assert found["wsrep_cluster_address"] == "gcomm://n1,n2,n3"
    assert (found["wsrep_node_name"], found["wsrep_node_address"]) == ("n2", "n2")
    assert (found["datadir"], found["port"]) == ("/data/data", "3306")
    assert "pc.recovery=true;" in found["wsrep_provider_options"]


def test_settings_reach_the_servers(tmp_path: Path) -> None:
    names = ("innodb_snapshot_isolation", "innodb_flush_log_at_trx_commit", "wsrep_sync_wait")
    found = configuration(tmp_path / "usual", system_with(), "n1")
    assert [found[name] for name in names] == ["OFF", "1", "0"]
    given = dict(zip(names, ("ON", "0", "15"), strict=True))
    found = configuration(tmp_path / "given", system_with(**given), "n3")
    assert {name: found[name] for name in names} == given


@pytest.mark.parametrize(
    ("settings", "level"),
    [
        ({}, "read-committed"),
        ({"innodb_snapshot_isolation": "ON"}, "snapshot-isolation"),
        ({"innodb_snapshot_isolation": "ON", "clients": "one"}, "snapshot-isolation"),
        ({"isolation": "serializable"}, "read-committed"),
        ({"isolation": "serializable", "innodb_snapshot_isolation": "ON"}, "snapshot-isolation"),
        ({"isolation": "serializable", "clients": "one"}, "serializable"),
        ({"isolation": "read-committed", "innodb_snapshot_isolation": "ON"}, "read-committed"),
    ],
)
def test_a_level_is_promised_by_the_settings(settings: dict[str, str], level: str) -> None:
    system = system_with(**settings)
    assert level in LEVELS
    assert system.workload_options("list-append") == {"level": level}
    assert system.workload_options("rw-register") == {"level": level}
    assert system.workload_options("set") == {}


def test_a_cluster_in_step_is_ready_and_has_converged(monkeypatch: pytest.MonkeyPatch) -> None:
    system = shown(monkeypatch)
    system.ready(Anywhere())
    system.converged(Anywhere())


@pytest.mark.parametrize(
    ("view", "problem"),
    [
        (None, "n3 does not serve"),
        ({"cluster_status": "non-Primary"}, "n3 is in a component that is non-Primary"),
        ({"local_state_comment": "Joined"}, "n3 is Joined"),
        ({"ready": "OFF"}, "n3 is Synced, and not ready"),
        ({"cluster_size": 2}, "n3 sees 2 of 3"),
    ],
)
def test_a_cluster_that_is_not_whole(
    monkeypatch: pytest.MonkeyPatch, view: dict[str, Any] | None, problem: str
) -> None:
    seen = None if view is None else msgspec.structs.replace(MEMBER, **view)
    system = shown(monkeypatch, n3=seen)
    for ask in (system.ready, system.converged):
        with pytest.raises(HarnessError, match=problem):
            ask(Anywhere())


def test_a_node_that_lags_has_not_converged(monkeypatch: pytest.MonkeyPatch) -> None:
    system = shown(monkeypatch, n2=msgspec.structs.replace(MEMBER, last_committed=899))
    system.ready(Anywhere())
    with pytest.raises(HarnessError, match="n2 is at 899, another was at 900"):
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
        "cluster_size": 3,
        "last_committed": 900,
        "local_cert_failures": 4,
        "local_bf_aborts": 2,
    }


@pytest.mark.parametrize(
    ("kind", "clients", "asks"),
    [
        ("pinned", "all", ["n2"]),
        ("leader", "all", ["n2", "n1", "n3"]),
        ("pinned", "one", ["n1"]),
        ("leader", "one", ["n1"]),
    ],
)
def test_clients_are_of_one_node_of_it_before_others_or_of_the_first(
    kind: Any, clients: str, asks: list[str]
) -> None:
    client: Any = system_with(clients=clients).open_client(Anywhere(), Route(kind, NODES[1]))
    assert [node for node, _ in client._nodes] == asks


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"runtime": "local"}, "mariadb does not run on the runtime local"),
        ({"settings": {"isolation": "none"}}, "mariadb does not know 'none' as isolation"),
        ({"settings": {"wsrep_sync_wait": "16"}}, "mariadb does not know '16' as wsrep_sync_wait"),
    ],
)
def test_options_that_cannot_be_had(options: dict[str, Any], problem: str) -> None:
    with pytest.raises(UsageError, match=problem):
        MariadbSystem().check_options(Experiment(system="mariadb", **options))
