"""The means to change the membership, against servers that are made up."""

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from splitbrain.contracts.errors import HarnessError
from splitbrain.contracts.experiment import Experiment
from splitbrain.contracts.names import NodeName, RunId
from splitbrain.contracts.runtime import Address
from splitbrain.systems.nats import members
from splitbrain.systems.nats.adapter import NatsSystem
from splitbrain.systems.nats.members import NatsMembers
from splitbrain.systems.nats.status import ask_members, problem_with_removal
from tests.unit.systems.nats.fake_server import FakeServer, error
from tests.unit.systems.nats.test_adapter import N1, N2, N3, THERE, Anywhere, answered
from tests.unit.systems.pod_place import pod_place


def told_by(monkeypatch: pytest.MonkeyPatch, seen: Mapping[NodeName, Any]) -> list[NodeName]:
    """Have servers tell their members; those that are asked."""
    asked: list[NodeName] = []

    def tell(there: Address, timeout_s: float) -> Any:
        node = NodeName(f"n{there.port}")
        asked.append(node)
        return seen.get(node)

    monkeypatch.setattr(members, "ask_members", tell)
    return asked


def arm(tmp_path: Path) -> NatsMembers:
    system = NatsSystem()
    system.experiment = Experiment(system="nats")
    system.deployment(RunId("r"), tmp_path, system.experiment, pod_place)
    return system.members(Anywhere())


def settings_of(tmp_path: Path, node: str) -> dict[str, Any]:
    return json.loads(next(tmp_path.rglob(f"{node}/config/nats.conf")).read_text())


def test_the_leader_of_a_cluster_knows_its_members_and_the_others_know_the_leader(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    replicas = [{"name": "n1", "peer": "x"}, {"name": "n3", "peer": "y"}]
    meta: dict[str, Any] = {"leader": "n2", "cluster_size": 3}
    answered(monkeypatch, {"meta_cluster": meta | {"replicas": replicas}})
    assert ask_members(THERE, 1.0) == {"n1", "n2", "n3"}
    replicas[1]["name"] = "Server name unknown at this time (peerID: y)"
    answered(monkeypatch, {"meta_cluster": meta | {"replicas": replicas}})
    assert ask_members(THERE, 1.0) == {"n1", "n2", None}
    answered(monkeypatch, {"meta_cluster": meta})
    assert ask_members(THERE, 1.0) == {"n2", None}
    answered(monkeypatch, {"meta_cluster": {"leader": "n2", "cluster_size": 1}})
    assert ask_members(THERE, 1.0) == {"n2"}
    answered(monkeypatch, {"meta_cluster": {"cluster_size": 3}})
    assert ask_members(THERE, 1.0) is None
    answered(monkeypatch, None)
    assert ask_members(THERE, 1.0) is None


def test_a_server_is_a_member_if_another_one_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    changing = arm(tmp_path)
    asked = told_by(monkeypatch, {N2: {"n1", "n2", "n3"}, N3: None})
    assert changing.is_member(N3)
    assert N3 not in asked
    told_by(monkeypatch, {N2: {"n1", "n2"}, N3: {"n3"}})
    assert changing.is_member(N3) is False
    told_by(monkeypatch, {N1: None, N3: {"n1", "n2", "n3"}})
    assert changing.is_member(N3) is None
    told_by(monkeypatch, {N2: {"n1", "n2", None}})
    assert changing.is_member(N3) is None
    assert changing.is_member(N1)
    told_by(monkeypatch, {N1: {"n3", None}, N2: {"n3", None}})
    assert changing.is_member(N3)


def test_the_operator_asks_for_a_removal_in_the_account_of_the_system(tmp_path: Path) -> None:
    server = FakeServer()

    async def remove() -> str | None:
        async with server.listening() as there:
            return await asyncio.to_thread(problem_with_removal, there, "n3", 2.0)

    assert asyncio.run(remove()) is None
    assert server.asked == [("$JS.API.SERVER.REMOVE", b'{"peer":"n3"}')]
    (login,) = ({key: told[key] for key in ("user", "pass")} for told in server.logins)
    arm(tmp_path)
    told = settings_of(tmp_path, "n2")
    assert told["accounts"]["$SYS"]["users"] == [{"user": login["user"], "password": login["pass"]}]
    assert told["no_auth_user"] in {user["user"] for user in told["authorization"]["users"]}
    server.before = lambda subject: error(10044)
    assert asyncio.run(remove()) == "error-10044"


def test_the_next_server_is_asked_where_one_refuses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    changing = arm(tmp_path)
    problems: dict[int, str | None] = {1: "nobody answers in time", 2: None}
    monkeypatch.setattr(
        members, "problem_with_removal", lambda there, server, timeout_s: problems[there.port]
    )
    changing.remove(N3)
    problems[2] = "error-10044"
    with pytest.raises(HarnessError, match="n1: nobody answers in time; n2: error-10044"):
        changing.remove(N3)


def test_another_server_comes_in_the_place_of_a_removed_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    changing = arm(tmp_path)
    told_by(monkeypatch, {N2: {"n1", "n2", "n3"}})
    assert changing.is_member(N3)
    before = settings_of(tmp_path, "n3")
    changing.add(N3)
    assert settings_of(tmp_path, "n3") == before | {"server_name": "n3-1"}
    assert changing.is_member(N3) is False
    told_by(monkeypatch, {N2: {"n1", "n2", "n3-1"}})
    assert changing.is_member(N3)
    removed: list[str] = []

    def remove(there: Address, server: str, timeout_s: float) -> None:
        removed.append(server)

    monkeypatch.setattr(members, "problem_with_removal", remove)
    changing.remove(N3)
    changing.add(N3)
    assert removed == ["n3-1"]
    assert settings_of(tmp_path, "n3")["server_name"] == "n3-2"
    assert settings_of(tmp_path, "n2")["server_name"] == "n2"
