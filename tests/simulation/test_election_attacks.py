"""What is preferred in an election, and what a refusal is taken for, must not hold up the others.

Each test is a second fault at the worst moment, at the default settings.
"""

from collections.abc import Callable

import pytest

from nodes.quorum.election_timing import ElectionTiming
from nodes.quorum.events import Event
from nodes.quorum.identifiers import CorrelationId, Microseconds
from nodes.quorum.messages import Request
from nodes.quorum.settings import QuorumSettings
from tests.simulation.host import Host
from tests.simulation.network import Connection, Network
from tests.simulation.swarm import Swarm
from tests.simulation.world import MS, World

DEFAULTS = QuorumSettings()
SECOND = 1_000 * MS


def idle_world(seed: int, voter_count: int) -> World:
    """Voters that hear their leader, 1 ms apart, without clients and faults."""
    swarm = Swarm(
        voter_count=voter_count,
        client_count=0,
        fault_interval_us=0,
        delay_us_min=1 * MS,
        delay_us_max=1 * MS,
    )
    world = World(seed, swarm, settings=DEFAULTS)
    world.start()
    world.run_until(20 * SECOND, lambda: world.leader() is not None)
    world.run_until(world.now + SECOND)
    return world


def leader_of(world: World) -> Host:
    leader = world.leader()
    assert leader is not None
    return leader


def preferred_of(world: World) -> Host:
    """The follower that the others let go first."""
    followers = [host for host in world.hosts.values() if host is not leader_of(world)]
    return min(followers, key=lambda host: host.node_id)


def stop_after_it_asked(world: World, host: Host) -> None:
    """Freezes a node once its requests for pre-votes have arrived, before any answer has."""
    step = host.step

    def watched(event: Event) -> None:
        step(event)
        if host.replica.role == "prospective" and not host.is_paused:
            world.after(MS + MS // 2, host.pause)

    host.step = watched


def cut_off_but_for_the_next(world: World, host: Host) -> None:
    """The node and the one that comes next see each other; to all others it is cut."""
    followers = sorted(
        other.node_id for other in world.hosts.values() if other not in (host, leader_of(world))
    )
    for other in followers[1:]:
        world.network.cut(host.node_id, other)
        world.network.cut(other, host.node_id)


def next_leader_us(seed: int, fault: Callable[[World, Host], None]) -> int:
    """From the moment that the leader of five freezes; the fault is done to the next in line."""
    world = idle_world(seed, 5)
    fault(world, preferred_of(world))
    leader_of(world).pause()
    began = world.now
    world.run_until(began + 10 * SECOND, lambda: world.leader() is not None)
    return world.now - began


@pytest.mark.parametrize("fault", [stop_after_it_asked, cut_off_but_for_the_next])
def test_nobody_waits_long_for_a_preferred_voter_that_cannot_win(
    fault: Callable[[World, Host], None],
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
    world = idle_world(1, voter_count)
    leader = leader_of(world)
    epoch = leader.replica.epoch
    refused = [host for host in world.hosts.values() if host is not leader][:refused_count]
    send = Network.send_request

    def firewall(
        network: Network, connection: Connection, correlation: CorrelationId, request: Request
    ) -> None:
        if connection.client in refused and connection.server is leader:
            network.reset(connection, refused=True)
        else:
            send(network, connection, correlation, request)

    world.trace = []
    with monkeypatch.context() as patch:
        patch.setattr(Network, "send_request", firewall)
        world.run_until(world.now + 20 * SECOND)
    assert any("nobody listens at leader" in line for line in world.trace)
    assert leader_of(world) is leader
    assert {host.replica.epoch for host in world.hosts.values()} == {epoch}
    world.run_until(world.now + 2 * SECOND)
    assert all(host.replica.leader_id == leader.node_id for host in world.hosts.values())
