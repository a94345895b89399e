"""Scripted worlds: the one order of events that a rare mutant needs, instead of thousands of seeds.

Each returns after it has happened; a broken rule raises InvariantViolation on the way.
"""

from nodes.quorum.bugs import NO_BUGS, PlantedBugs
from nodes.quorum.identifiers import NO_EPOCH, CorrelationId, Epoch, Offset
from nodes.quorum.messages import VoteRequest
from nodes.quorum.persistent import QuorumState
from tests.simulation.clients import Operation
from tests.simulation.disk import Entry
from tests.simulation.host import Host
from tests.simulation.registers import Command
from tests.simulation.swarm import Swarm
from tests.simulation.world import CLUSTER_ID, MS, World

_SWARM = Swarm(client_count=1, fault_interval_us=0)


def a_fetch_of_the_past_reaches_a_deposed_leader(seed: int = 1) -> None:
    """A deposed leader has a read to confirm when a fetch arrives that was sent long before it.

    1. The leader is cut off; a fetch of one follower is stalled on its way to it.
    2. The other follower is elected, with that one's vote, and commits a write.
    3. The old leader, which has not noticed yet, is asked to read.
    4. The stalled fetch arrives. It says nothing about who leads now.
    """
    world = _world(seed)
    _start(world, *world.hosts.values())
    old = _acting_leader(world)
    elected, voter = (host for host in world.hosts.values() if host is not old)
    network = world.network
    network.cut(voter.node_id, old.node_id)
    network.cut(elected.node_id, old.node_id)
    network.cut(old.node_id, elected.node_id)
    world.run_until(world.now + 1_000 * MS, lambda: world.leader() is not old)
    assert world.leader() is elected
    write = _operation(world, 1, Command(1, 0, 1))
    elected.submit(write)
    world.run_until(world.now + 100 * MS, lambda: write.is_over)
    assert write.is_over
    assert old.leads, "it must not have noticed"
    old.submit(_operation(world, 2, None))
    network.heal()
    network.cut(elected.node_id, old.node_id)
    world.run_until(world.now + 50 * MS)


def a_diverging_answer_leaves_foreign_records(seed: int = 1) -> None:
    """The first of two answers that cut a follower's log back leaves records that the leader lacks.

    1. Two voters have records of epochs 1, 3, 3; the third has 1, 2, 2, 4 from leaders that failed.
    2. One of the two leads epoch 5 and commits. The third starts and fetches: cut to offset 3.
    3. Its records of epoch 2 lie below the leader's high watermark, and are not committed.
    """
    world = _world(seed)
    first, second, third = world.hosts.values()
    for host in (first, second):
        _put_log(host, 1, 3, 3)
    _put_log(third, 1, 2, 2, 4)
    _start(world, first, second)
    assert _acting_leader(world).replica.high_watermark == 4
    _start(world, third)
    world.run_until(world.now + 1_000 * MS)
    assert third.replica.high_watermark == 4


def a_voter_crashes_between_two_votes_of_one_epoch(
    bugs: PlantedBugs, muted: frozenset[str]
) -> None:
    """It grants its vote, crashes, and is asked by another candidate of the same epoch."""
    world = _world(1, bugs, muted)
    *candidates, voter = world.hosts.values()
    for candidate in candidates:
        voter.start()
        request = VoteRequest(
            cluster_id=CLUSTER_ID,
            voter_id=voter.node_id,
            voter_directory_id=voter.key.directory_id,
            epoch=Epoch(90),
            candidate_id=candidate.node_id,
            candidate_directory_id=candidate.key.directory_id,
            last_epoch=NO_EPOCH,
            end_offset=Offset(0),
            pre_vote=False,
        )
        connection = world.network.connect(candidate, voter)
        world.network.send_request(connection, CorrelationId(0), request)
        world.run_until(world.now + 20 * MS)
        assert voter.replica.epoch == 90
        voter.crash()


def _world(seed: int, bugs: PlantedBugs = NO_BUGS, muted: frozenset[str] = frozenset()) -> World:
    world = World(seed, _SWARM, bugs, muted)
    world.clients_rest = True
    return world


def _start(world: World, *hosts: Host) -> None:
    for host in hosts:
        host.start()
    world.run_until(world.now + 5_000 * MS)


def _acting_leader(world: World) -> Host:
    leader = world.leader()
    assert leader is not None
    return leader


def _operation(world: World, number: int, command: Command | None) -> Operation:
    return Operation(world.clients[0], number, 0, command)


def _put_log(host: Host, *epochs: int) -> None:
    """Records of these epochs on its disk, each a batch of its own."""
    log = [
        Entry(Epoch(epoch), _operation(host.world, epoch, Command(offset, 0, epoch)).payload, True)
        for offset, epoch in enumerate(epochs)
    ]
    host.disk.log = list(log)
    host.disk.durable_log = list(log)
    host.disk.durable_state = QuorumState(Epoch(4), None, None, None)
