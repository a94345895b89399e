"""The adapter: its configuration and versions, and its reading of servers' words."""

import asyncio
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
from splitbrain.systems.nats import adapter, status
from splitbrain.systems.nats.adapter import NatsSystem
from splitbrain.systems.nats.status import (
    Redelivery,
    ServerView,
    StreamState,
    ask_cluster,
    ask_digest,
    ask_figures,
    ask_state,
    ask_view,
    problem_with_stream,
)
from splitbrain.systems.nats.streams import ACK_WAIT_S, configuration
from tests.unit.systems.nats.fake_server import FakeServer, error
from tests.unit.systems.pod_place import pod_place

N1, N2, N3 = NODES = tuple(NodeName(f"n{number}") for number in (1, 2, 3))
THERE = Address("127.0.0.1", 1)

#: As a server of 2.15.2 answers, shortened.
GROUPS = {
    "$G": {
        "C-R3F-1": {"state": "LEADER", "term": 7, "applied": 3},
        "S-R3F-2": {"state": "FOLLOWER", "term": 4, "applied": 18, "committed": 18},
    }
}
TOLD = {
    "server_id": "X",
    "memory": 1,
    "storage": 2,
    "messages": 3,
    "bytes": 4,
    "api": {"level": 2, "total": 5, "errors": 6},
    "meta_cluster": {"name": "splitbrain", "leader": "n2", "cluster_size": 3},
    "account_details": [
        {
            "name": "$G",
            "stream_detail": [
                {
                    "name": "sets",
                    "state": {"messages": 3, "bytes": 120, "first_seq": 1, "last_seq": 3},
                    "stream_raft_group": "S-R3F-2",
                }
            ],
        }
    ],
}


class Anywhere:
    """A runtime of which nothing but the names is asked; a node's number is its port."""

    def nodes(self) -> tuple[NodeName, ...]:
        return NODES

    def endpoint(self, node: NodeName, port: str) -> Address:
        return Address("127.0.0.1", int(node[1:]))


def view(term: int, *, leads: bool = False, applied: int = 5) -> ServerView:
    return ServerView(leads, term, applied)


def shown(
    monkeypatch: pytest.MonkeyPatch,
    views: Mapping[NodeName, ServerView | None],
    *,
    clusters: Mapping[NodeName, tuple[str, int] | None] | None = None,
    states: Mapping[NodeName, StreamState | None] | None = None,
    problem: str | None = None,
    out: str | None = None,
) -> NatsSystem:
    def told(of: Mapping[NodeName, Any]) -> Any:
        return lambda there, *words: of.get(NodeName(f"n{there.port}"))

    monkeypatch.setattr(adapter, "ask_view", told(views))
    one = dict.fromkeys(NODES, ("n2", 3))
    monkeypatch.setattr(adapter, "ask_cluster", told({**one, **(clusters or {})}))
    same = dict.fromkeys(NODES, StreamState(3, 120, 1, 3))
    monkeypatch.setattr(adapter, "ask_state", told({**same, **(states or {})}))
    monkeypatch.setattr(adapter, "problem_with_stream", lambda *words: problem)
    monkeypatch.setattr(Redelivery, "problem", lambda *words: out)
    return NatsSystem()


def answered(monkeypatch: pytest.MonkeyPatch, answer: object) -> None:
    body = None if answer is None else json.dumps(answer).encode()
    monkeypatch.setattr(status, "ask_by_http", lambda *words, **options: body)


def test_a_server_tells_its_place_in_the_group_of_the_stream(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answered(monkeypatch, GROUPS)
    assert ask_view(THERE, 1.0) == view(4, applied=18)
    GROUPS["$G"]["S-R3F-2"] |= {"state": "LEADER"}
    answered(monkeypatch, GROUPS)
    assert ask_view(THERE, 1.0) == view(4, leads=True, applied=18)
    GROUPS["$G"]["S-R3F-2"] |= {"committed": 20}
    answered(monkeypatch, GROUPS)
    assert ask_view(THERE, 1.0) == ServerView(True, 4, 18, is_settled=False)
    answered(monkeypatch, {})
    assert ask_view(THERE, 1.0) == view(0, applied=0)
    for nothing in (None, [], {"$G": {"S-1": {}}}):
        answered(monkeypatch, nothing)
        assert ask_view(THERE, 1.0) is None


#: A server that has applied all, one that has not, and one that has applied more.
STANDS, BEHIND, AHEAD = view(4), ServerView(False, 4, 5, is_settled=False), view(4, applied=6)


@pytest.mark.parametrize(
    ("workload", "views", "is_told"),
    [
        ("register", (STANDS, STANDS), True),
        ("register", (STANDS, AHEAD), False),
        ("register", (STANDS, BEHIND), False),
        ("register", (BEHIND, BEHIND), False),
        ("register", (None, STANDS), False),
        ("register", (STANDS, None), False),
        ("set", (), True),
    ],
)
def test_a_bucket_is_compared_where_a_server_lacks_nothing_that_it_knows_of(
    monkeypatch: pytest.MonkeyPatch,
    workload: str,
    views: tuple[ServerView | None, ...],
    *,
    is_told: bool,
) -> None:
    digest = MemberDigest(3, "3 messages, 120 bytes from 1", "S-R3F-2")
    told = iter(views)
    monkeypatch.setattr(adapter, "ask_view", lambda there, timeout_s: next(told))
    monkeypatch.setattr(adapter, "ask_digest", lambda *words: digest)
    system = NatsSystem()
    system.experiment = Experiment(system="nats", workload=workload)
    found = system.digest(Anywhere(), N1, 1.0)
    assert found == (digest if is_told else None)


def test_a_server_tells_its_cluster_its_part_and_its_figures(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answered(monkeypatch, TOLD)
    assert ask_cluster(THERE, 1.0) == ("n2", 3)
    assert ask_state(THERE, "sets", 1.0) == StreamState(3, 120, 1, 3)
    assert ask_state(THERE, "KV_registers", 1.0) is None
    wanted = MemberDigest(3, "3 messages, 120 bytes from 1", "S-R3F-2")
    assert ask_digest(THERE, "sets", 1.0) == wanted
    figures = {"messages": 3, "bytes": 4, "storage": 2, "memory": 1}
    assert ask_figures(THERE, 1.0) == {**figures, "api_total": 5, "api_errors": 6}
    for first in (0, 1):
        empty = {"messages": 0, "bytes": 0, "first_seq": first, "last_seq": 0}
        stream = {"name": "sets", "state": empty, "stream_raft_group": "S"}
        answered(monkeypatch, {"account_details": [{"stream_detail": [stream]}]})
        assert ask_digest(THERE, "sets", 1.0) == MemberDigest(0, "0 messages, 0 bytes", "S")
    answered(monkeypatch, {"disabled": True})
    assert ask_cluster(THERE, 1.0) == ("", 0)
    answered(monkeypatch, None)
    assert ask_cluster(THERE, 1.0) is ask_digest(THERE, "sets", 1.0) is None
    assert ask_figures(THERE, 1.0) is None


def test_of_several_that_lead_the_newest_term_wins(monkeypatch: pytest.MonkeyPatch) -> None:
    views = {N1: view(3, leads=True), N2: view(4, leads=True), N3: view(4)}
    assert shown(monkeypatch, views).leader(Anywhere(), 1.0) == LeaderView(N2, 4)


IN_STEP = {N1: view(3, leads=True), N2: view(3), N3: view(3)}


@pytest.mark.parametrize(
    ("changed", "others", "problem"),
    [
        ({N2: None}, {}, "n2 does not serve"),
        ({N2: view(3, applied=4)}, {}, "n2 at entry 4 of term 3"),
        ({N2: view(3, leads=True)}, {}, "n1 and n2 lead"),
        ({N1: view(3)}, {}, "nobody leads"),
        ({N3: view(2)}, {}, "n3 at entry 5 of term 2"),
        ({}, {"states": {N3: StreamState(2, 80, 1, 2)}}, "n3 at entry 5 of term 3, message 2"),
        ({}, {"states": {N3: None}}, "n3 has no part of the stream"),
        ({}, {"clusters": {N1: ("", 3)}}, "n1 sees 3 servers led by nobody"),
        ({}, {"clusters": {N1: ("n2", 2)}}, "n1 sees 2 servers led by n2"),
        ({}, {"clusters": {N1: None}}, "n1 does not serve"),
        ({}, {"problem": "error-10058"}, "the stream was not made: error-10058"),
    ],
)
def test_servers_that_have_not_converged(
    monkeypatch: pytest.MonkeyPatch,
    changed: dict[NodeName, ServerView | None],
    others: dict[str, Any],
    problem: str,
) -> None:
    with pytest.raises(HarnessError, match=problem):
        shown(monkeypatch, IN_STEP | changed, **others).converged(Anywhere())


def test_servers_that_have_converged(monkeypatch: pytest.MonkeyPatch) -> None:
    # Those that differ in their messages are found by their digests.
    system = shown(monkeypatch, IN_STEP, states={N3: StreamState(2, 80, 1, 3)})
    system.ready(Anywhere())
    system.converged(Anywhere())


def test_queues_have_converged_once_nothing_is_out(monkeypatch: pytest.MonkeyPatch) -> None:
    system = shown(monkeypatch, IN_STEP, out="2 elements are out")
    assert system.declares_digests
    system.converged(Anywhere())
    system.experiment = Experiment(system="nats", workload="queue")
    assert not system.declares_digests
    with pytest.raises(HarnessError, match="consumers are not through: 2 elements are out"):
        system.converged(Anywhere())


def test_elements_are_out_until_nothing_was_handed_out_for_their_time() -> None:
    server, now_s = FakeServer(), 100.0
    redelivery = Redelivery(lambda: now_s)

    async def look() -> str | None:
        async with server.listening() as there:
            return await asyncio.to_thread(redelivery.problem, there, "queues", 2.0)

    assert asyncio.run(look()) is None
    server.consumers, server.out, server.handed = {"k"}, [4, 5], 2
    assert asyncio.run(look()) == "2 elements are out"
    now_s += ACK_WAIT_S
    assert asyncio.run(look()) == "2 elements are out"
    server.handed = 3
    now_s += ACK_WAIT_S
    assert asyncio.run(look()) == "2 elements are out"
    now_s += ACK_WAIT_S + 1.1
    assert asyncio.run(look()) is None
    # The fake lists one alone.
    server.consumers = {"k", "l"}
    assert asyncio.run(look()) == "silent-consumers"


@pytest.mark.parametrize("workload", ["register", "set", "queue"])
def test_a_stream_is_made_with_a_replica_on_each_node(workload: str) -> None:
    async def make(server: FakeServer) -> str | None:
        async with server.listening() as there:
            return await asyncio.to_thread(
                problem_with_stream, there, configuration(workload, 3), 2.0
            )

    server = FakeServer()
    assert asyncio.run(make(server)) is None
    ((subject, body),) = server.asked
    wanted = json.loads(body)
    assert subject == f"$JS.API.STREAM.CREATE.{wanted['name']}"
    assert (wanted["num_replicas"], wanted["storage"]) == (3, "file")
    server.before = lambda subject: error(10074)
    assert asyncio.run(make(server)) == "error-10074"
    assert "onnect" in str(problem_with_stream(THERE, wanted, 2.0))


def test_a_server_is_started(tmp_path: Path) -> None:
    system = NatsSystem()
    for sync in ("default", "always"):
        system.experiment = Experiment(system="nats", settings={"sync_interval": sync})
        spec = system.deployment(RunId("r"), tmp_path, system.experiment, pod_place)
        assert spec.nodes[1].command == ("nats-server", "-c", "/config/nats.conf")
        written = next(tmp_path.rglob("n2/config/nats.conf"))
        told = json.loads(written.read_text())
        assert told["server_name"] == "n2"
        assert told["cluster"]["routes"] == ["nats://n1:6222", "nats://n3:6222"]
        assert told["jetstream"].get("sync_interval", "default") == sync
        assert told["jetstream"]["store_dir"] == "/data/nats"


def test_each_version_is_an_image_of_its_own_with_its_locks() -> None:
    found = [registry.system(f"nats@{version}") for version in NatsSystem.offered_versions]
    sources = [source for system in found for source in system.images()]
    assert len({source.name for source in sources}) == len(sources) == 2
    for system, source in zip(found, sources, strict=True):
        assert f"-modfile={system.version}.mod" in source.build
        assert system.versions() == {"nats": system.version}
        module = (ROOT / "docker/nats" / f"{system.version}.mod").read_text()
        assert f"github.com/nats-io/nats-server/v2 v{system.version} " in module
        assert (ROOT / "docker/nats" / f"{system.version}.sum").is_file()
    assert registry.system("nats").images()[0].name == sources[0].name


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"settings": {"sync_interval": "2h"}}, "nats does not know '2h' as sync_interval"),
        ({"settings": {"reads": "dirty"}}, "nats does not know 'dirty' as reads"),
        ({"nodes": 1}, "nats does not run on 1 nodes"),
        ({"nodes": 6}, "nats does not run on 6 nodes"),
    ],
)
def test_options_that_cannot_be_had(options: dict[str, Any], problem: str) -> None:
    with pytest.raises(UsageError, match=problem):
        NatsSystem().check_options(Experiment(system="nats", **options))


def test_a_version_cannot_be_chosen_where_there_are_no_images() -> None:
    options = Experiment(system="nats@2.12.1", runtime="local")
    with pytest.raises(UsageError, match=r"whichever nats-server is on PATH, not 2\.12\.1"):
        registry.system("nats@2.12.1").check_options(options)
    registry.system("nats").check_options(Experiment(system="nats", runtime="local"))
