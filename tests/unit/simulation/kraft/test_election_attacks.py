"""What is preferred in an election, and what a refusal is taken for, must not hold up the others.

Each test is a second fault at the worst moment, at the default settings.
"""

from collections.abc import Callable
from typing import Any

import pytest

from splitbrain.contracts.names import NodeName
from splitbrain.nodes.quorum.election_timing import ElectionTiming
from splitbrain.nodes.quorum.identifiers import Microseconds
from splitbrain.simulation.kraft.host import Host
from splitbrain.simulation.world.network import SimulatedConnection, SimulatedNetwork
from tests.unit.simulation.kraft.calm_quorums import (
    DEFAULTS,
    MS,
    SECOND,
    CalmQuorum,
    started,
)


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
