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
        ({"runtime": "local"}, "postgresql is in images"),
        ({"settings": {"isolation": "none"}}, "postgresql does not know 'none' as isolation"),
        (
            {"settings": {"synchronous_standby_names": "';"}},
            "the setting synchronous_standby_names of postgresql cannot be",
        ),
    ],
)
def test_options_that_cannot_be_had(options: dict[str, Any], problem: str) -> None:
    with pytest.raises(UsageError, match=problem):
        PostgresSystem().check_options(Experiment(system="postgresql", **options))
