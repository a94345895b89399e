"""The means to change the membership, against members that are made up."""

import json
from pathlib import Path
from typing import Any

import pytest

from splitbrain.contracts.errors import HarnessError
from splitbrain.contracts.experiment import Experiment
from splitbrain.contracts.names import RunId
from splitbrain.contracts.runtime import Address
from splitbrain.systems.etcd import members
from splitbrain.systems.etcd.adapter import EtcdSystem
from splitbrain.systems.etcd.members import EtcdMembers
from tests.unit.systems.etcd.test_adapter import N1, N2, N3, NODES, Anywhere
from tests.unit.systems.pod_place import pod_place


class MadeUpCluster:
    """Three members by their numbers; the silent give no answer."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.members = {str(100 + int(node[1:])): f"http://{node}:2380" for node in NODES}
        self.silent: set[int] = set()
        self.refusal = ""
        self.asked: list[tuple[int, str]] = []
        monkeypatch.setattr(members, "ask_by_http", self._answer)

    def _answer(
        self,
        there: Address,
        method: str,
        path: str,
        timeout_s: float,
        body: bytes,
        *,
        refusals: bool,
    ) -> bytes | None:
        action, request = path.rpartition("/")[2], json.loads(body)
        self.asked.append((there.port, action))
        if there.port in self.silent:
            return None
        if self.refusal and action != "list":
            told = json.dumps({"code": 14, "message": self.refusal}).encode()
            return told if refusals else None
        if action == "remove":
            del self.members[request["ID"]]
        elif action == "add":
            self.members["200"] = request["peerURLs"][0]
        listed: list[Any] = [
            {"ID": number, "peerURLs": [url]} for number, url in self.members.items()
        ]
        return json.dumps({"header": {}, "members": listed}).encode()


def arm(tmp_path: Path) -> EtcdMembers:
    system = EtcdSystem()
    system.experiment = Experiment(system="etcd")
    system.deployment(RunId("r"), tmp_path, system.experiment, pod_place)
    return system.members(Anywhere())


def state_of(tmp_path: Path, node: str) -> str:
    written = next(tmp_path.rglob(f"{node}/config/etcd.conf"))
    return json.loads(written.read_text())["initial-cluster-state"]


def test_a_member_is_removed_and_comes_back_as_a_new_one_that_joins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster, changing = MadeUpCluster(monkeypatch), arm(tmp_path)
    assert changing.is_member(N3)
    changing.remove(N3)
    assert "103" not in cluster.members
    assert changing.is_member(N3) is False
    assert state_of(tmp_path, "n3") == "new"
    changing.add(N3)
    assert cluster.members["200"] == "http://n3:2380"
    assert (state_of(tmp_path, "n3"), state_of(tmp_path, "n2")) == ("existing", "new")
    assert changing.is_member(N3)
    changing.add(N3)
    assert [port for port, action in cluster.asked if action == "add"] == [1]


def test_the_next_one_is_asked_where_one_is_silent_and_never_the_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster, changing = MadeUpCluster(monkeypatch), arm(tmp_path)
    cluster.silent = {2}
    changing.remove(N1)
    assert {port for port, _ in cluster.asked} == {2, 3}
    cluster.silent = {2, 3}
    assert changing.is_member(N1) is None
    with pytest.raises(HarnessError, match="n2: no answer; n3: no answer"):
        changing.remove(N1)
    cluster.silent = {1, 3}
    with pytest.raises(HarnessError, match="n2"):
        changing.add(N2)


def test_a_refusal_is_told_in_the_words_of_the_members(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster, changing = MadeUpCluster(monkeypatch), arm(tmp_path)
    cluster.refusal = "etcdserver: unhealthy cluster"
    with pytest.raises(HarnessError, match="n1: etcdserver: unhealthy cluster; n2: etcdserver"):
        changing.remove(N3)
    assert changing.is_member(N3)
