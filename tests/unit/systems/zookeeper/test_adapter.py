"""The adapter: its configuration, and its reading of servers' words."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from splitbrain.contracts.errors import HarnessError, UsageError
from splitbrain.contracts.experiment import Experiment
from splitbrain.contracts.member_digest import MemberDigest
from splitbrain.contracts.names import NodeName, RunId
from splitbrain.contracts.runtime import Address
from splitbrain.contracts.system import LeaderView
from splitbrain.runtimes.docker import jars
from splitbrain.runtimes.docker.images import ROOT
from splitbrain.systems import registry
from splitbrain.systems.zookeeper import adapter
from splitbrain.systems.zookeeper.adapter import ZooKeeperSystem
from splitbrain.systems.zookeeper.status import ServerView, digests_of, figures_of, view_of
from tests.unit.systems.pod_place import pod_place

N1, N2, N3 = NODES = tuple(NodeName(f"n{number}") for number in (1, 2, 3))

#: As a server of 3.9.5 answers.
SRVR = """Zookeeper version: 3.9.5-0b1e3c1f, built on 2026-02-11 20:14 UTC
Latency min/avg/max: 0/2.5/30
Received: 10
Sent: 9
Connections: 1
Outstanding: 0
Zxid: 0x20000001a
Mode: leader
Node count: 12
Proposal sizes last/min/max: 36/32/48
"""


class Anywhere:
    """A runtime of which nothing but the names is asked; a node's number is its port."""

    def nodes(self) -> tuple[NodeName, ...]:
        return NODES

    def endpoint(self, node: NodeName, port: str) -> Address:
        return Address("127.0.0.1", int(node[1:]))


def view(mode: str, epoch: int, count: int = 5) -> ServerView:
    return ServerView(mode, (epoch << 32) + count)


def shown(monkeypatch: pytest.MonkeyPatch, views: Mapping[NodeName, ServerView]) -> ZooKeeperSystem:
    by_port = {int(node[1:]): seen for node, seen in views.items()}
    monkeypatch.setattr(adapter, "ask_view", lambda there, timeout_s: by_port.get(there.port))
    return ZooKeeperSystem()


def test_a_server_that_serves_tells_role_and_transaction() -> None:
    assert view_of(SRVR) == ServerView("leader", 0x20000001A)
    assert view_of("This ZooKeeper instance is not currently serving requests\n") is None


def test_figures_are_the_numbers() -> None:
    answer = "zk_version\t3.9.5\nzk_znode_count\t12\nzk_server_state\tleader\n"
    assert figures_of(answer) == {"znode_count": 12.0}


def test_digests_are_told_with_their_transactions() -> None:
    assert digests_of("100000080:-12\n100000100:7\n") == [
        MemberDigest(0x100000080, "-12"),
        MemberDigest(0x100000100, "7"),
    ]
    assert digests_of("This ZooKeeper instance is not currently serving requests\n") == []


def test_of_several_that_lead_the_newest_epoch_wins(monkeypatch: pytest.MonkeyPatch) -> None:
    views = {N1: view("leader", 3), N2: view("leader", 4), N3: view("follower", 4)}
    assert shown(monkeypatch, views).leader(Anywhere(), 1.0) == LeaderView(N2, 4)


def test_followers_alone_have_an_epoch_and_no_leader(monkeypatch: pytest.MonkeyPatch) -> None:
    views = {N1: view("follower", 3), N2: view("follower", 3)}
    assert shown(monkeypatch, views).leader(Anywhere(), 1.0) == LeaderView(None, 3)


IN_STEP = {N1: view("leader", 3), N2: view("follower", 3), N3: view("follower", 3)}


@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        ({N2: None}, "n2 does not serve"),
        ({N2: view("follower", 3, 4)}, "n2 at 0x300000004"),
        ({N2: view("leader", 2)}, "n1 and n2 lead"),
        ({N1: view("follower", 3)}, "nobody leads"),
    ],
)
def test_servers_that_have_not_converged(
    monkeypatch: pytest.MonkeyPatch, changed: dict[NodeName, ServerView | None], problem: str
) -> None:
    views = {node: seen for node, seen in (IN_STEP | changed).items() if seen is not None}
    with pytest.raises(HarnessError, match=problem):
        shown(monkeypatch, views).converged(Anywhere())


def test_servers_that_have_converged(monkeypatch: pytest.MonkeyPatch) -> None:
    system = shown(monkeypatch, IN_STEP)
    system.ready(Anywhere())
    system.converged(Anywhere())


def test_an_ensemble_is_configured(tmp_path: Path) -> None:
    system = ZooKeeperSystem()
    system.experiment = Experiment(system="zookeeper", settings={"syncLimit": "6"})
    spec = system.deployment(RunId("r"), tmp_path, system.experiment, pod_place)
    lines = (tmp_path / "nodes/n2/config/zoo.cfg").read_text().splitlines()
    assert {"syncLimit=6", "tickTime=500", "server.3=n3:2888:3888", "clientPort=2181"} <= {*lines}
    assert spec.nodes[1].command[:4] == ("zookeeper-node", "/config/zoo.cfg", "2", "flushed")
    assert "-Dzookeeper.forceSync=yes" in spec.nodes[1].command
    assert system.tempo().notices_s == 3.0


def test_each_version_is_an_image_of_its_own_with_its_locks() -> None:
    versions = ZooKeeperSystem.offered_versions
    found = [registry.system(f"zookeeper@{version}") for version in versions]
    sources = [source for system in found for source in system.images()]
    assert len({source.name for source in sources}) == len(sources) == len(versions) >= 2
    for system, source in zip(found, sources, strict=True):
        assert source.jars == system.version
        assert system.versions() == {"zookeeper": system.version}
        locked = jars.read_lock(
            (ROOT / "docker/zookeeper" / str(source.jars) / jars.LOCK).read_text()
        )
        assert f"zookeeper-{system.version}.jar" in locked
    assert registry.system("zookeeper").images()[0].name == sources[0].name


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"runtime": "local"}, "zookeeper does not run on the runtime local"),
        ({"settings": {"tickTime": "soon"}}, "the setting tickTime of zookeeper cannot be 'soon'"),
        ({"settings": {"syncLimit": "0"}}, "the setting syncLimit of zookeeper cannot be '0'"),
        ({"settings": {"reads": "dirty"}}, "zookeeper does not know 'dirty' as reads"),
        ({"settings": {"synclimit": "3"}}, "zookeeper has no setting 'synclimit'"),
    ],
)
def test_options_that_cannot_be_had(options: dict[str, Any], problem: str) -> None:
    with pytest.raises(UsageError, match=problem):
        ZooKeeperSystem().check_options(Experiment(system="zookeeper", **options))
