"""Scripted worlds: the one order of events that a rare bug needs, instead of thousands of seeds.

Each order is gone through by the correct nodes, with every invariant watching, and by nodes with
the bug, where the one invariant whose business it is must see it.
"""

from collections.abc import Callable

import pytest

from splitbrain.contracts.names import NodeName
from splitbrain.contracts.operations import Completion, Operation
from splitbrain.contracts.scenario import ViolationError
from splitbrain.contracts.system import Route
from splitbrain.nodes.quorum.identifiers import NO_EPOCH, CorrelationId, Epoch, Offset
from splitbrain.nodes.quorum.messages import VoteRequest
from splitbrain.nodes.quorum.persistent import EpochStart, QuorumState
from splitbrain.nodes.registers.commands import Write, encode_command
from splitbrain.nodes.storage.epoch_checkpoint import write_epochs
from splitbrain.nodes.storage.layout import EPOCH_CHECKPOINT, log_folder, segment_name
from splitbrain.nodes.storage.quorum_state import QuorumStateFile
from splitbrain.nodes.wire.batches import encode_payloads
from splitbrain.simulation.kraft.client import SimulatedKraftClient
from splitbrain.simulation.kraft.cluster import directory_of
from splitbrain.simulation.kraft.host import CLUSTER_ID, Host
from splitbrain.simulation.kraft.messages import PeerRequest
from tests.planted import with_bug
from tests.unit.simulation.kraft.calm_quorums import MS, SECOND, CalmQuorum, links

READ = Operation(f="read", key="k", value=None)
WRITE = Operation(f="write", key="k", value=1)


class Bystander:
    """A connection's end that nobody listens at."""

    def answered(self, message: object) -> None:
        pass

    def lost(self, reason: str, *, refused: bool) -> None:
        pass


def client_of(quorum: CalmQuorum, host: Host) -> SimulatedKraftClient:
    """One that asks this node alone."""
    return quorum.cluster.open_client(int(host.node_id), Route("pinned", host.name))


def ask(client: SimulatedKraftClient, operation: Operation) -> list[Completion]:
    """Where the answer will be."""
    done: list[Completion] = []
    client.invoke(operation, 10 * SECOND, done.append)
    return done


def await_ok(quorum: CalmQuorum, answer: list[Completion]) -> None:
    quorum.wait_us(lambda: answer != [], 100 * MS)
    assert [completion.type for completion in answer] == ["ok"]


def ask_for_vote(
    quorum: CalmQuorum, voter: Host, candidate: Host, *, last_epoch: int, end_offset: int
) -> None:
    """A candidate of epoch 90 whose log ends there asks for a vote."""
    request = VoteRequest(
        cluster_id=CLUSTER_ID,
        voter_id=voter.node_id,
        voter_directory_id=directory_of(voter.node_id),
        epoch=Epoch(90),
        candidate_id=candidate.node_id,
        candidate_directory_id=directory_of(candidate.node_id),
        last_epoch=Epoch(last_epoch),
        end_offset=Offset(end_offset),
        pre_vote=False,
    )
    connection = quorum.world.network.connect(candidate.name, voter.name, Bystander())
    connection.send(PeerRequest(CorrelationId(0), request))
    quorum.run(20 * MS)
    assert voter.node.replica.epoch == 90


def stalled_count(quorum: CalmQuorum, source: Host, destination: Host) -> int:
    """How many messages of the one wait on their way to the other."""
    return quorum.world.network.waiting_count(links(source, [destination]))


def put_disk(host: Host, epoch: int, *epochs: int) -> None:
    """A node in this epoch, with records of these epochs, each a batch of its own, all flushed."""
    folder = log_folder(host.folder)
    file = host.disk.open(folder / segment_name(0), create=True)
    for offset, of in enumerate(epochs):
        payload = encode_command(Write(f"{of}-{offset}", "k", of))
        raw = encode_payloads(Offset(offset), Epoch(of), 0, [(None, payload)])
        file.write_at(file.size(), raw)
    file.sync()
    file.close()
    host.disk.sync_folder(folder)
    starts = tuple(EpochStart(Epoch(of), Offset(epochs.index(of))) for of in dict.fromkeys(epochs))
    write_epochs(host.disk, folder / EPOCH_CHECKPOINT, starts)
    state = QuorumState(Epoch(epoch), None, None, None)
    QuorumStateFile(host.disk, host.folder).write(state)


def a_fetch_of_the_past_reaches_a_deposed_leader(quorum: CalmQuorum) -> None:
    """A deposed leader has a read to confirm when a fetch arrives that was sent long before it.

    1. The leader hears nobody any more: the next fetches of its followers are stalled on their
       way. Then it is cut off altogether.
    2. One of them is elected, with the other one's vote, and commits a write.
    3. The old leader, which has not noticed yet, is asked to read.
    4. The voter's stalled fetch arrives. It says nothing about who leads now.
    """
    quorum.start()
    old = quorum.await_leader()
    followers = quorum.followers
    for follower in followers:
        quorum.cut(follower, [old])
    quorum.wait_us(
        lambda: all(stalled_count(quorum, follower, old) for follower in followers), SECOND
    )
    quorum.cut(old, followers)
    quorum.wait_us(lambda: quorum.leader is not old, SECOND)
    elected = quorum.leader
    (voter,) = (host for host in followers if host is not elected)
    await_ok(quorum, ask(client_of(quorum, elected), WRITE))
    read = ask(client_of(quorum, old), READ)
    quorum.run(10 * MS)
    assert old.node.replica.role == "leader", "it must not have noticed"
    assert read == []
    quorum.restore(voter, [old])
    quorum.run(50 * MS)


def a_diverging_answer_leaves_foreign_records(quorum: CalmQuorum) -> None:
    """The first of two answers that cut a follower's log back leaves records that the leader lacks.

    1. Two voters have records of epochs 1, 3, 3; the third has 1, 2, 2, 4 from leaders that failed.
    2. One of the two leads epoch 5 and commits. The third starts and fetches: cut to offset 3.
    3. Its records of epoch 2 lie below the leader's high watermark, and are not committed.
    """
    *pair, third = quorum.hosts
    for host in pair:
        put_disk(host, 4, 1, 3, 3)
    put_disk(third, 4, 1, 2, 2, 4)
    quorum.start(*pair)
    quorum.run(5 * SECOND)
    assert quorum.leader.node.replica.high_watermark == 4
    quorum.start(third)
    quorum.run(SECOND)
    assert third.node.replica.high_watermark == 4


def a_voter_crashes_between_two_votes_of_one_epoch(quorum: CalmQuorum) -> None:
    """It grants its vote, crashes, and is asked by another candidate of the same epoch."""
    *candidates, voter = quorum.hosts
    for candidate in candidates:
        quorum.start(voter)
        quorum.run(50 * MS)
        ask_for_vote(quorum, voter, candidate, last_epoch=NO_EPOCH, end_offset=0)
        quorum.cluster.power_off([voter.name], 0)


def a_voter_is_asked_again_by_a_candidate_with_a_longer_log(quorum: CalmQuorum) -> None:
    """It has granted its vote to another candidate of the same epoch."""
    *candidates, voter = quorum.hosts
    quorum.start(voter)
    quorum.run(50 * MS)
    ask_for_vote(quorum, voter, candidates[0], last_epoch=NO_EPOCH, end_offset=0)
    ask_for_vote(quorum, voter, candidates[1], last_epoch=1, end_offset=1)


def a_successor_is_asked_before_it_has_committed(quorum: CalmQuorum) -> None:
    """A leader dies when only its client knows what is committed, and its successor is asked.

    1. A write is committed and acknowledged; nothing of the leader reaches the followers any more.
    2. The leader dies, and one of the followers is elected. It has the write, but does not know
       that it is committed.
    3. It is asked to read, and the voter left confirms that it leads, before it has committed a
       record of its own: its disk is slow.
    """
    quorum.start()
    old = quorum.await_leader()
    followers = quorum.followers
    clients = {host.name: client_of(quorum, host) for host in followers}
    refused = [ask(client, READ) for client in clients.values()]
    writer = client_of(quorum, old)
    answers: list[list[Completion]] = []

    def commits(node: NodeName, _: str) -> None:
        if node == old.name and not quorum.world.network.is_cut(old.name, followers[0].name):
            quorum.cut(old, followers)

    def leads(node: NodeName, _: str) -> None:
        answers.append(ask(clients[node], READ))

    def persisted(node: NodeName, _: str) -> None:
        if answers and node == quorum.leader.name:
            quorum.cluster.disk(node).slow_down(100)

    quorum.run(100 * MS)
    assert all(answer[0].type == "fail" for answer in refused)
    quorum.world.watch("commits", commits)
    quorum.world.watch("leads", leads)
    quorum.world.watch("persisted", persisted)
    await_ok(quorum, ask(writer, WRITE))
    quorum.cluster.power_off([old.name], 0)
    quorum.run(SECOND)
    (read,) = answers
    assert [(completion.type, completion.value) for completion in read] == [("ok", 1)]


def the_power_fails_just_after_a_write_is_acknowledged(quorum: CalmQuorum) -> None:
    """All disks lose what they had not synced, and start again."""
    quorum.start()
    leader = quorum.await_leader()
    await_ok(quorum, ask(client_of(quorum, leader), WRITE))
    quorum.cluster.power_off(quorum.cluster.nodes, 0)
    quorum.start()
    quorum.await_leader()
    quorum.cluster.healed(quorum.cluster.nodes)
    quorum.cluster.finish()


Order = Callable[[CalmQuorum], None]

#: Order of events, bug, who does not watch (they see the mechanism before it does harm), who sees
#: the harm.
ORDERS: list[tuple[Order, str, frozenset[str], str]] = [
    (
        a_fetch_of_the_past_reaches_a_deposed_leader,
        "read-confirmed-by-old-fetch",
        frozenset(),
        "INV-10",
    ),
    (
        a_diverging_answer_leaves_foreign_records,
        "follower-high-watermark-ahead",
        frozenset(),
        "INV-11",
    ),
    (
        a_successor_is_asked_before_it_has_committed,
        "read-before-own-commit",
        frozenset(),
        "INV-10",
    ),
    (
        a_voter_is_asked_again_by_a_candidate_with_a_longer_log,
        "double-vote-same-epoch",
        frozenset(),
        "INV-04",
    ),
    (
        a_voter_crashes_between_two_votes_of_one_epoch,
        "vote-not-persisted",
        frozenset({"INV-05", "INV-15"}),
        "INV-04",
    ),
    (
        the_power_fails_just_after_a_write_is_acknowledged,
        "ack-before-fsync",
        frozenset({"INV-07", "INV-15"}),
        "INV-02",
    ),
]


@pytest.mark.parametrize("order", [order for order, *_ in ORDERS], ids=lambda order: order.__name__)
def test_the_correct_nodes_get_through(order: Order) -> None:
    order(CalmQuorum())


@pytest.mark.parametrize(
    ("order", "muted", "invariant"),
    [with_bug(bug, order, muted, invariant) for order, bug, muted, invariant in ORDERS],
)
def test_the_bug_does_its_harm_and_the_invariant_sees_it(
    order: Order, muted: frozenset[str], invariant: str
) -> None:
    with pytest.raises(ViolationError) as caught:
        order(CalmQuorum(muted=muted))
    assert caught.value.invariant == invariant
