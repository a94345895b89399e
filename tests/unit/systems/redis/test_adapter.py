"""The adapter's reading of what servers and Sentinels believe."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from splitbrain.contracts.errors import HarnessError
from splitbrain.contracts.names import NodeName
from splitbrain.contracts.runtime import Address
from splitbrain.contracts.system import LeaderView
from splitbrain.systems.redis import adapter
from splitbrain.systems.redis.adapter import RedisSystem
from splitbrain.systems.redis.status import (
    NodeView,
    SentinelView,
    ServerView,
    sentinel_view,
    server_view,
)
from tests.unit.systems.redis.fake_servers import MEMBERSHIP, N1, N2, N3, NODES


class Anywhere:
    """A runtime of which nothing but the names is asked."""

    def nodes(self) -> Sequence[NodeName]:
        return NODES

    def endpoint(self, node: NodeName, port: str) -> Address:
        return Address("127.0.0.1", 1)


def primary(offset: int = 100, replicas: int = 2) -> ServerView:
    return ServerView(True, offset, replicas, "", "", False, 1_000_000)


def replica_of(node: str, offset: int = 100, *, link: bool = True) -> ServerView:
    return ServerView(False, offset, 0, node, "6379", link, 1_000_000)


def names(node: str, epoch: int, **fields: Any) -> SentinelView:
    usable = fields.pop("quorum", "OK 3 usable Sentinels. Quorum can be reached")
    return SentinelView(
        node, "6379", epoch, fields.get("fine", True), fields.get("fine_replicas", 2), usable
    )


def healthy() -> dict[NodeName, NodeView]:
    return {
        N1: NodeView(primary(), names("n1", 0)),
        N2: NodeView(replica_of("n1"), names("n1", 0)),
        N3: NodeView(replica_of("n1"), names("n1", 0)),
    }


Asked = Callable[[dict[NodeName, NodeView]], RedisSystem]


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Asked:
    """An adapter whose nodes say this."""

    def make(views: dict[NodeName, NodeView]) -> RedisSystem:
        def ask_all(
            _nodes: object, _ask: object, enough: Any = None
        ) -> Mapping[NodeName, NodeView]:
            told: dict[NodeName, NodeView] = {}
            for node, view in views.items():
                told[node] = view
                if enough is not None and enough(told):
                    break
            return told

        monkeypatch.setattr(adapter, "ask_all", ask_all)
        system = RedisSystem()
        system._membership = MEMBERSHIP
        return system

    return make


def test_a_healthy_cluster_is_ready_and_of_one_mind(asked: Asked) -> None:
    asked(healthy()).ready(Anywhere())
    asked(healthy()).converged(Anywhere())


def without(node: NodeName) -> dict[NodeName, NodeView]:
    return {other: view for other, view in healthy().items() if other != node}


UNREADY: dict[str, tuple[dict[NodeName, NodeView], str]] = {
    "no-answer": (without(N2), "no answer from the server of n2"),
    "no-sentinel": (
        healthy() | {N3: NodeView(replica_of("n1"), None)},
        "no answer from the Sentinel of n3",
    ),
    "two-primaries": (
        healthy() | {N2: NodeView(primary(), names("n1", 0))},
        "n1, n2 claims to be primary",
    ),
    "no-primary": (healthy() | {N1: NodeView(replica_of("n2"), names("n1", 0))}, "nobody claims"),
    "two-opinions": (
        healthy() | {N2: NodeView(replica_of("n1"), names("n2", 1))},
        "n2 \\(epoch 1\\)",
    ),
    "replica-elsewhere": (
        healthy() | {N2: NodeView(replica_of("n3"), names("n1", 0))},
        "n2 is a replica of n3",
    ),
    "link-down": (
        healthy() | {N2: NodeView(replica_of("n1", link=False), names("n1", 0))},
        "n2 has no link",
    ),
    "replica-missing": (
        healthy() | {N1: NodeView(primary(replicas=1), names("n1", 0))},
        "n1 has 1 replicas",
    ),
}


@pytest.mark.parametrize("name", UNREADY)
def test_what_is_missing_is_told(asked: Asked, name: str) -> None:
    views, told = UNREADY[name]
    for question in (asked(views).ready, asked(views).converged):
        with pytest.raises(HarnessError, match=told):
            question(Anywhere())


@pytest.mark.parametrize(
    "unsure",
    [
        names("n1", 0, quorum="NOQUORUM 1 usable Sentinels."),
        names("n1", 0, quorum="OK 2 usable Sentinels."),
        names("n1", 0, fine_replicas=1),
        names("n1", 0, fine=False),
    ],
    ids=["no quorum", "a Sentinel short", "a replica short", "primary down"],
)
def test_ready_means_that_every_sentinel_can_fail_over(asked: Asked, unsure: SentinelView) -> None:
    views = healthy() | {N3: NodeView(replica_of("n1"), unsure)}
    with pytest.raises(HarnessError, match="Sentinel of n3"):
        asked(views).ready(Anywhere())


def test_replicas_that_lag_have_not_converged(asked: Asked) -> None:
    views = healthy() | {N3: NodeView(replica_of("n1", offset=90), names("n1", 0))}
    with pytest.raises(HarnessError, match="n3 at 90"):
        asked(views).converged(Anywhere())
    asked(views).ready(Anywhere())


def test_the_primary_of_the_highest_configuration_epoch_leads(asked: Asked) -> None:
    # n1 is cut off and goes on; the others have failed over.
    views = {
        N1: NodeView(primary(), names("n1", 0)),
        N2: NodeView(primary(replicas=1), names("n2", 1)),
        N3: NodeView(replica_of("n2"), names("n2", 1)),
    }
    assert asked(views).leader(Anywhere(), 1.0) == LeaderView(N2, 1)


def test_an_isolated_primary_leads_until_another_was_chosen(asked: Asked) -> None:
    views = {
        N1: NodeView(primary(replicas=0), names("n1", 0)),
        N2: NodeView(replica_of("n1", link=False), names("n1", 0, fine=False)),
        N3: NodeView(replica_of("n1", link=False), names("n1", 0, fine=False)),
    }
    assert asked(views).leader(Anywhere(), 1.0) == LeaderView(N1, 0)


def test_a_dead_primary_does_not_lead_though_all_name_it(asked: Asked) -> None:
    assert asked(without(N1)).leader(Anywhere(), 1.0) == LeaderView(None, 0)


def test_nobody_leads_where_nobody_answers(asked: Asked) -> None:
    assert asked({}).leader(Anywhere(), 1.0) == LeaderView(None, None)


def test_a_restarted_old_primary_does_not_lead(asked: Asked) -> None:
    # Its server still takes writes: that is how they get lost.
    views = {
        N1: NodeView(primary(replicas=0), names("n2", 1)),
        N3: NodeView(replica_of("n2"), names("n2", 1)),
    }
    assert asked(views).leader(Anywhere(), 1.0).leader is None


def test_there_is_no_log_to_judge(tmp_path: Path) -> None:
    system = RedisSystem()
    assert not system.declares_state_events
    assert not system.declares_committed_logs
    assert system.state_event_file(tmp_path, N1) is None
    with pytest.raises(HarnessError, match="no log that the nodes agree on"):
        system.committed_log(N1, tmp_path)


def test_nodes_are_read_as_they_describe_themselves() -> None:
    info = (
        b"# Replication\r\nrole:master\r\nconnected_slaves:2\r\n"
        b"slave0:ip=n2,port=6379,state=online,offset=42,lag=0\r\n"
        b"slave1:ip=n3,port=6379,state=wait_bgsave,offset=0,lag=0\r\nmaster_repl_offset:42\r\n"
    )
    view = server_view([info, b"# Memory\r\nused_memory:1048576\r\n"])
    assert view == ServerView(True, 42, 1, "", "", False, 1_048_576)
    replica = (
        b"role:slave\r\nmaster_host:n1\r\nmaster_port:6379\r\nmaster_link_status:up\r\n"
        b"slave_repl_offset:40\r\nmaster_repl_offset:42\r\n"
    )
    view = server_view([replica, b"used_memory:5\r\n"])
    assert view == ServerView(False, 40, 0, "n1", "6379", True, 5)


def test_sentinels_are_read_as_they_describe_the_group() -> None:
    def flat(text: str) -> list[Any]:
        return [word.encode() for word in text.split()]

    group = flat("ip n1 port 6379 flags master config-epoch 3")
    replicas: list[Any] = [
        flat("flags slave master-link-status ok"),
        flat("flags slave,s_down master-link-status ok"),
        flat("flags slave master-link-status err"),
    ]
    view = sentinel_view([group, replicas, "OK 3 usable Sentinels."])
    assert view == SentinelView("n1", "6379", 3, True, 1, "OK 3 usable Sentinels.")


# --- mutants ---------------------------------------------------------------------------------


def test_believing_the_first_claim_is_seen(asked: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    def first(_self: object, views: Mapping[NodeName, NodeView], **_: object) -> Any:
        claims = ((0, n) for n, view in views.items() if view.server and view.server.is_primary)
        return next(claims, None)

    monkeypatch.setattr(RedisSystem, "_claim", first)
    with pytest.raises(AssertionError):
        test_the_primary_of_the_highest_configuration_epoch_leads(asked)
