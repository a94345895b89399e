"""The adapter: its command line and versions, and its reading of members' words."""

import json
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
from splitbrain.runtimes.docker.images import ROOT
from splitbrain.systems import registry
from splitbrain.systems.etcd import adapter, status
from splitbrain.systems.etcd.adapter import EtcdSystem
from splitbrain.systems.etcd.status import MemberView, ask_digest, ask_view, figures_of
from tests.unit.systems.pod_place import pod_place

N1, N2, N3 = NODES = tuple(NodeName(f"n{number}") for number in (1, 2, 3))
THERE = Address("127.0.0.1", 1)

#: As a member of 3.5.2 answers.
STATUS = b"""{"header":{"cluster_id":"3249","member_id":"3319814642761637952","revision":"2",
"raft_term":"2"},"version":"3.5.2","dbSize":"20480","leader":"3319814642761637952",
"raftIndex":"5","raftTerm":"2","raftAppliedIndex":"5","dbSizeInUse":"16384"}"""
HASH = b'{"header":{"revision":9},"hash":2587454935,"compact_revision":-1}'


class Anywhere:
    """A runtime of which nothing but the names is asked; a node's number is its port."""

    def nodes(self) -> tuple[NodeName, ...]:
        return NODES

    def endpoint(self, node: NodeName, port: str) -> Address:
        return Address("127.0.0.1", int(node[1:]))


def view(term: int, *, member: str = "1", leader: str = "0", applied: int = 5) -> MemberView:
    return MemberView(member, leader, term, 3, applied)


def leading(term: int) -> MemberView:
    return view(term, leader="1")


def shown(monkeypatch: pytest.MonkeyPatch, views: Mapping[NodeName, MemberView]) -> EtcdSystem:
    by_port = {int(node[1:]): seen for node, seen in views.items()}
    monkeypatch.setattr(adapter, "ask_view", lambda there, timeout_s: by_port.get(there.port))
    return EtcdSystem()


def answered(monkeypatch: pytest.MonkeyPatch, answer: bytes | None) -> None:
    monkeypatch.setattr(status, "ask_by_http", lambda *words, **options: answer)


def test_a_member_tells_its_leader_and_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    answered(monkeypatch, STATUS)
    wanted = MemberView("3319814642761637952", "3319814642761637952", 2, 2, 5)
    assert wanted.leads
    assert ask_view(THERE, 1.0) == wanted
    answered(monkeypatch, None)
    assert ask_view(THERE, 1.0) is None


def test_a_member_without_a_leader_does_not_lead(monkeypatch: pytest.MonkeyPatch) -> None:
    answered(monkeypatch, STATUS.replace(b'"leader":"3319814642761637952",', b""))
    seen = ask_view(THERE, 1.0)
    assert seen is not None
    assert not seen.leads


def test_a_digest_stands_at_the_revision_that_was_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    answered(monkeypatch, HASH)
    assert ask_digest(THERE, 1.0) == MemberDigest(9, "2587454935")
    assert ask_digest(THERE, 1.0, 4) == MemberDigest(4, "2587454935")
    answered(monkeypatch, HASH.replace(b"-1", b"7"))
    assert ask_digest(THERE, 1.0) == MemberDigest(9, "2587454935", "compact revision 7")
    answered(monkeypatch, None)
    assert ask_digest(THERE, 1.0) is None


def test_figures_are_those_that_are_kept() -> None:
    text = '# HELP x\netcd_server_has_leader 1\netcd_server_id{server_id="2e"} 1\nother 3\n'
    assert figures_of(text) == {"server_has_leader": 1.0}


def test_of_several_that_lead_the_newest_term_wins(monkeypatch: pytest.MonkeyPatch) -> None:
    views = {N1: leading(3), N2: leading(4), N3: view(4)}
    assert shown(monkeypatch, views).leader(Anywhere(), 1.0) == LeaderView(N2, 4)


def test_followers_alone_have_a_term_and_no_leader(monkeypatch: pytest.MonkeyPatch) -> None:
    views = {N1: view(3), N2: view(3)}
    assert shown(monkeypatch, views).leader(Anywhere(), 1.0) == LeaderView(None, 3)


IN_STEP = {N1: leading(3), N2: view(3), N3: view(3)}


@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        ({N2: None}, "n2 does not serve"),
        ({N2: view(3, applied=4)}, "n2 at entry 4 of term 3"),
        ({N2: leading(2)}, "n1 and n2 lead"),
        ({N1: view(3)}, "nobody leads"),
        ({N3: view(2)}, "n3 at entry 5 of term 2"),
    ],
)
def test_members_that_have_not_converged(
    monkeypatch: pytest.MonkeyPatch, changed: dict[NodeName, MemberView | None], problem: str
) -> None:
    views = {node: seen for node, seen in (IN_STEP | changed).items() if seen is not None}
    with pytest.raises(HarnessError, match=problem):
        shown(monkeypatch, views).converged(Anywhere())


def test_members_that_have_converged(monkeypatch: pytest.MonkeyPatch) -> None:
    system = shown(monkeypatch, IN_STEP)
    system.ready(Anywhere())
    system.converged(Anywhere())


def test_keys_to_compare_are_put_once(monkeypatch: pytest.MonkeyPatch) -> None:
    system = shown(monkeypatch, IN_STEP)
    system.experiment = Experiment(system="etcd", settings={"write-compares": "300"})
    puts: list[tuple[int, int]] = []

    def put(there: Address, first: int, end: int, timeout_s: float) -> bool:
        puts.append((first, end))
        return True

    monkeypatch.setattr(adapter, "count_compared", lambda there, timeout_s: 100)
    monkeypatch.setattr(adapter, "put_compared", put)
    system.ready(Anywhere())
    assert puts == [(100, 300)]
    monkeypatch.setattr(adapter, "count_compared", lambda there, timeout_s: None)
    with pytest.raises(HarnessError, match="the keys to compare were not taken"):
        system.ready(Anywhere())


def test_a_member_is_started(tmp_path: Path) -> None:
    system = EtcdSystem()
    system.experiment = Experiment(system="etcd", settings={"fsync": "no"})
    spec = system.deployment(RunId("r"), tmp_path, system.experiment, pod_place)
    assert spec.nodes[1].command == ("etcd", "--config-file=/config/etcd.conf")
    told = json.loads(next(tmp_path.rglob("n2/config/etcd.conf")).read_text())
    assert told["initial-cluster"] == "n1=http://n1:2380,n2=http://n2:2380,n3=http://n3:2380"
    assert (told["name"], told["initial-cluster-state"]) == ("n2", "new")
    assert (told["unsafe-no-fsync"], told["snapshot-count"]) == (True, 1000)


def test_each_version_is_an_image_of_its_own_with_its_locks() -> None:
    found = [registry.system(f"etcd@{version}") for version in EtcdSystem.offered_versions]
    sources = [source for system in found for source in system.images()]
    assert len({source.name for source in sources}) == len(sources) == 3
    for system, source in zip(found, sources, strict=True):
        assert f"-modfile={system.version}.mod" in source.build
        assert system.versions() == {"etcd": system.version}
        module = (ROOT / "docker/etcd" / f"{system.version}.mod").read_text()
        assert f"require go.etcd.io/etcd/server/v3 v{system.version}\n" in module
        assert (ROOT / "docker/etcd" / f"{system.version}.sum").is_file()
    assert registry.system("etcd").images()[0].name == sources[0].name


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"settings": {"snapshot-count": "few"}}, "the setting snapshot-count of etcd cannot be"),
        ({"settings": {"write-compares": "-1"}}, "the setting write-compares of etcd cannot be"),
        ({"settings": {"reads": "dirty"}}, "etcd does not know 'dirty' as reads"),
        ({"settings": {"election-timeout": "400"}}, "etcd does not start with"),
        ({"settings": {"heartbeat-interval": "300"}}, "etcd does not start with"),
    ],
)
def test_options_that_cannot_be_had(options: dict[str, Any], problem: str) -> None:
    with pytest.raises(UsageError, match=problem):
        EtcdSystem().check_options(Experiment(system="etcd", **options))


def test_a_version_cannot_be_chosen_where_there_are_no_images() -> None:
    options = Experiment(system="etcd@3.5.2", runtime="local")
    with pytest.raises(UsageError, match=r"whichever etcd is on PATH, not 3\.5\.2"):
        registry.system("etcd@3.5.2").check_options(options)
    registry.system("etcd").check_options(Experiment(system="etcd", runtime="local"))
