"""How soon a leader is replaced, that none is for nothing, that no refusal holds others up."""

from collections.abc import Callable
from typing import Any

import pytest

from splitbrain.contracts.names import NodeName
from splitbrain.nodes.quorum.election_timing import ElectionTiming
from splitbrain.nodes.quorum.identifiers import Microseconds, NodeId
from splitbrain.nodes.quorum.messages import Request
from splitbrain.nodes.quorum.prospective import Prospective
from splitbrain.nodes.quorum.request_ledger import RequestLedger
from splitbrain.nodes.quorum.role import Role
from splitbrain.simulation.kraft.host import Host
from splitbrain.simulation.world.network import SimulatedConnection, SimulatedNetwork
from tests.unit.simulation.kraft.calm_quorums import (
    DEFAULTS,
    MS,
    SECOND,
    CalmQuorum,
    started,
)


def failover_us(quorum: CalmQuorum) -> int:
    """From the leader's kill to the next leader."""
    old = quorum.leader
    quorum.cluster.kill(old.name, 0)
    wait_us = quorum.wait_for_leader_us()
    assert quorum.leader is not old
    return wait_us


def test_an_idle_minute_with_50_ms_one_way_has_no_election() -> None:
    assert started(one_way_us=50 * MS).roles_taken(60 * SECOND) == []


def test_without_the_parked_time_in_a_fetch_s_timeout_an_idle_leader_is_lost(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The mutant, and how it was: 165 ms for a way of 80 ms and a parked fetch of 100 ms.

    On a new connection two ways fit in: the question for versions, and an answer at once.
    """
    send = RequestLedger.send

    def mutant(self: RequestLedger, peer: NodeId, request: Request, wait_ms: int = 0) -> None:
        send(self, peer, request)

    monkeypatch.setattr(RequestLedger, "send", mutant)
    quorum = started(one_way_us=40 * MS, settings={"request_timeout_ms": "165"})
    assert quorum.roles_taken(60 * SECOND) != []


def test_a_killed_leader_is_replaced_long_before_the_fetch_timeout() -> None:
    """Its followers see their connections reset."""
    waits = [failover_us(started(seed)) for seed in range(21)]
    assert max(waits) < DEFAULTS.fetch_timeout_ms * MS / 5


def test_as_in_kafka_a_killed_leader_is_missed_only_after_the_fetch_timeout() -> None:
    wait_us = (DEFAULTS.fetch_timeout_ms - DEFAULTS.fetch_max_wait_ms) * MS
    for seed in range(5):
        quorum = started(seed, settings={"stands_when_leader_is_gone": "false"})
        assert failover_us(quorum) > wait_us


def test_a_frozen_leader_is_replaced_after_one_fetch_timeout_and_no_vote_is_split() -> None:
    for seed in range(21):
        quorum = started(seed)
        quorum.leader.pause()
        assert quorum.wait_for_leader_us() < (DEFAULTS.fetch_timeout_ms + 100) * MS


def test_without_yielding_votes_are_split(monkeypatch: pytest.MonkeyPatch) -> None:
    """The mutant: two that time out together both stand."""
    monkeypatch.setattr(Prospective, "pre_vote_requested", Role.pre_vote_requested)
    with pytest.raises(AssertionError):
        test_a_frozen_leader_is_replaced_after_one_fetch_timeout_and_no_vote_is_split()


def stop_after_it_asked(quorum: CalmQuorum, host: Host) -> None:
    """Freezes a node once its requests for pre-votes have arrived, before any answer has."""

    def changes_role(node: NodeName, _: str) -> None:
        if node == host.name and host.node.replica.role == "prospective":
            quorum.world.after(MS + MS // 2, host.pause)

    quorum.world.watch("changes-role", changes_role)


def cut_off_but_for_the_next(quorum: CalmQuorum, host: Host) -> None:
    """The node and the one that comes next see each other; to all others it is cut."""
    _, *others = (other for other in quorum.followers if other is not host)
    quorum.cut(host, others)
    for other in others:
        quorum.cut(other, [host])


def next_leader_us(seed: int, fault: Callable[[CalmQuorum, Host], None]) -> int:
    """From the moment that the leader of five freezes; the fault is done to the next in line."""
    quorum = started(seed, voters=5)
    fault(quorum, quorum.followers[0])
    quorum.leader.pause()
    return quorum.wait_for_leader_us()


@pytest.mark.parametrize("fault", [stop_after_it_asked, cut_off_but_for_the_next])
def test_nobody_waits_long_for_a_preferred_voter_that_cannot_win(
    fault: Callable[[CalmQuorum, Host], None],
) -> None:
    """The leader freezes, and so all stand at once and yield to one that is lost, too.

    Those that yielded used to give up and to try the frozen leader for a fetch timeout more.
    """
    limit_ms = DEFAULTS.fetch_timeout_ms + DEFAULTS.election_timeout_ms_max
    assert max(next_leader_us(seed, fault) for seed in range(10)) < limit_ms * MS


def test_who_yields_for_ever_waits_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """The mutant, and how it was."""
    monkeypatch.setattr(ElectionTiming, "yield_time", lambda _: Microseconds(3_600 * SECOND))
    with pytest.raises(AssertionError):
        test_nobody_waits_long_for_a_preferred_voter_that_cannot_win(stop_after_it_asked)


@pytest.mark.parametrize(("voter_count", "refused_count"), [(3, 1), (5, 2)])
def test_a_firewall_that_refuses_a_minority_deposes_no_leader(
    monkeypatch: pytest.MonkeyPatch, voter_count: int, refused_count: int
) -> None:
    quorum = started(voters=voter_count)
    leader = quorum.leader
    epoch = leader.node.replica.epoch
    refused = [host.name for host in quorum.followers[:refused_count]]
    send = SimulatedNetwork.send
    turned_away: dict[str, int] = {}

    def firewall(network: SimulatedNetwork, connection: SimulatedConnection, message: Any) -> None:
        client = connection.client
        if connection.place != leader.name or connection.source not in refused or client is None:
            send(network, connection, message)
            return
        turned_away[connection.source] = turned_away.get(connection.source, 0) + 1
        quorum.world.after(MS, lambda: client.lost("refused", refused=True))

    with monkeypatch.context() as patch:
        patch.setattr(SimulatedNetwork, "send", firewall)
        quorum.run(20 * SECOND)
    assert sorted(turned_away) == refused
    assert quorum.leader is leader
    assert {host.node.replica.epoch for host in quorum.hosts} == {epoch}
    quorum.run(2 * SECOND)
    assert all(host.node.replica.leader_id == leader.node_id for host in quorum.hosts)
