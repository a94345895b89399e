"""Each invariant of the simulated world turns red when what it forbids is put before it."""

from collections.abc import Callable
from typing import Any

import pytest

from nodes.quorum.effects import (
    AdvanceHighWatermark,
    AppendBatches,
    Halt,
    PersistQuorumState,
    ReportState,
    SendAnswer,
    SendRequest,
    TruncateLog,
)
from nodes.quorum.errors import InvariantViolation
from nodes.quorum.events import RequestReceived
from nodes.quorum.identifiers import ConnectionId, CorrelationId, Epoch, NodeId, Offset
from nodes.quorum.messages import ErrorCode, VoteAnswer, VoteRequest
from nodes.quorum.persistent import QuorumState
from nodes.quorum.replica import Replica
from tests.simulation.clients import Operation
from tests.simulation.disk import Entry
from tests.simulation.host import Host
from tests.simulation.invariants import INVARIANTS, Invariant
from tests.simulation.registers import Command
from tests.simulation.swarm import Swarm
from tests.simulation.world import World, directory_of
from tests.transcripts import message_defaults

X, Y = b"x", b"y"


def entries(*records: tuple[int, bytes]) -> list[Entry]:
    return [Entry(Epoch(epoch), payload, True) for epoch, payload in records]


@pytest.fixture
def world() -> World:
    made = World(1, Swarm())
    for host in made.hosts.values():
        host.start()
    return made


def host_of(world: World, number: int = 1) -> Host:
    return world.hosts[NodeId(number)]


def put_log(host: Host, *records: tuple[int, bytes]) -> None:
    host.disk.log = entries(*records)
    host.disk.durable_log = entries(*records)


def commit(world: World, *records: tuple[int, bytes]) -> None:
    world.oracle.ghost.committed = entries(*records)
    world.oracle.ghost.commit_epochs = [Epoch(epoch) for epoch, _ in records]


class Leading(Replica):
    """What the invariants ask of a leader, and nothing else."""

    def __init__(self, epoch: int) -> None:
        self._epoch = Epoch(epoch)

    @property
    def role(self) -> str:
        return "leader"

    @property
    def epoch(self) -> Epoch:
        return self._epoch


def make_leader(world: World, epoch: int = 2) -> Host:
    """Node 1 leads, as far as its replica says."""
    host = host_of(world)
    host.replica = Leading(epoch)
    return host


def led(epoch: int) -> ReportState:
    return ReportState("role", Epoch(epoch), 1, "leader", NodeId(1))


def vote_request(world: World, candidate: int, epoch: int, connection: int) -> SendAnswer:
    """A granted vote, as node 1 would send it."""
    request = message_defaults.request(
        "VoteRequest", NodeId(1), {"candidate_id": candidate, "epoch": epoch}
    )
    world.oracle.asked(RequestReceived(ConnectionId(connection), CorrelationId(0), request))
    answer = VoteAnswer(ErrorCode.NONE, None, Epoch(epoch), granted=True)
    return SendAnswer(ConnectionId(connection), CorrelationId(0), answer)


def put_state(host: Host, epoch: int, voted: int | None = None) -> None:
    host.disk.durable_state = QuorumState(
        Epoch(epoch),
        None,
        None if voted is None else NodeId(voted),
        None if voted is None else directory_of(voted),
    )


def before(world: World, host: Host, effect: Any) -> None:
    world.oracle.before(host, effect)


def two_leaders(world: World) -> None:
    before(world, host_of(world, 1), led(3))
    before(world, host_of(world, 2), led(3))


def leader_without_committed(world: World) -> None:
    commit(world, (1, X))
    before(world, host_of(world), led(3))


def same_place_other_record(world: World) -> None:
    for number, payload in ((1, X), (2, Y)):
        put_log(host_of(world, number), (1, payload))
        append = AppendBatches(1, Offset(0), Offset(1), (), b"", ())
        world.oracle.after(host_of(world, number), append)


def two_votes(world: World) -> None:
    host = host_of(world)
    put_state(host, 3, 2)
    before(world, host, vote_request(world, 2, 3, 1))
    put_state(host, 3, 3)
    before(world, host, vote_request(world, 3, 3, 2))


def vote_taken_back(world: World) -> None:
    put_state(host_of(world), 3, 2)
    state = QuorumState(Epoch(3), None, NodeId(3), directory_of(3))
    before(world, host_of(world), PersistQuorumState(1, state))


def epoch_taken_back(world: World) -> None:
    put_state(host_of(world), 3)
    state = QuorumState(Epoch(2), None, None, None)
    before(world, host_of(world), PersistQuorumState(1, state))


def vote_not_on_disk(world: World) -> None:
    put_state(host_of(world), 3)
    before(world, host_of(world), vote_request(world, 2, 3, 1))


def epoch_not_on_disk(world: World) -> None:
    put_state(host_of(world), 2)
    request = message_defaults.request("BeginQuorumEpochRequest", NodeId(2), {"epoch": 3})
    before(world, host_of(world), SendRequest(NodeId(2), CorrelationId(0), request, 1))


def high_watermark_falls(world: World) -> None:
    host = host_of(world)
    put_log(host, (1, X), (1, Y))
    commit(world, (1, X), (1, Y))
    before(world, host, AdvanceHighWatermark(Offset(2)))
    before(world, host, AdvanceHighWatermark(Offset(1)))


def commit_on_one_disk(world: World) -> None:
    host = make_leader(world, 1)
    put_log(host, (1, X))
    before(world, host, AdvanceHighWatermark(Offset(1)))


def fetch_of_the_unsynced(world: World) -> None:
    host = host_of(world)
    put_state(host, 1)
    host.disk.log = entries((1, X))
    request = message_defaults.request("FetchRequest", NodeId(2), {"fetch_offset": 1})
    before(world, host, SendRequest(NodeId(2), CorrelationId(0), request, 1))


def committed_record_cut(world: World) -> None:
    put_log(host_of(world), (1, X))
    commit(world, (1, X))
    before(world, host_of(world), TruncateLog(1, Offset(0)))


def cut_below_high_watermark(world: World) -> None:
    world.oracle.ghost.high_watermarks[NodeId(1)] = 2
    before(world, host_of(world), TruncateLog(1, Offset(1)))


def commit_of_an_earlier_epoch(world: World) -> None:
    host = make_leader(world, 2)
    for other in world.hosts.values():
        put_log(other, (1, X))
    before(world, host, AdvanceHighWatermark(Offset(1)))


def operation(world: World, command: Command | None) -> Operation:
    return Operation(world.clients[0], 1, 0, command)


def read_of_the_past(world: World) -> None:
    commit(world, (1, X), (1, Y))
    world.oracle.ghost.raise_floor(0, 1)
    world.oracle.read(operation(world, None), (7, 0))


def read_of_the_uncommitted(world: World) -> None:
    world.oracle.read(operation(world, None), (7, 0))


def committed_record_changed(world: World) -> None:
    put_log(host_of(world), (1, Y))
    commit(world, (1, X))
    before(world, host_of(world), AdvanceHighWatermark(Offset(1)))


def acknowledged_and_not_committed(world: World) -> None:
    world.oracle.acknowledged(operation(world, Command(1, 0, 5)), 0)


def acknowledged_and_lost(world: World) -> None:
    write = operation(world, Command(1, 0, 5))
    commit(world, (1, write.payload))
    world.oracle.acknowledged(write, 0)
    world.oracle.finished(0)


def nothing_after_healing(world: World) -> None:
    world.oracle.finished(0)


def node_halts(world: World) -> None:
    before(world, host_of(world), Halt("two leaders"))


CASES: list[tuple[str, Callable[[World], None]]] = [
    ("INV-01", two_leaders),
    ("INV-02", leader_without_committed),
    ("INV-03", same_place_other_record),
    ("INV-04", two_votes),
    ("INV-04", vote_taken_back),
    ("INV-04", epoch_taken_back),
    ("INV-05", vote_not_on_disk),
    ("INV-05", epoch_not_on_disk),
    ("INV-06", high_watermark_falls),
    ("INV-07", commit_on_one_disk),
    ("INV-07", fetch_of_the_unsynced),
    ("INV-08", committed_record_cut),
    ("INV-08", cut_below_high_watermark),
    ("INV-09", commit_of_an_earlier_epoch),
    ("INV-10", read_of_the_past),
    ("INV-10", read_of_the_uncommitted),
    ("INV-11", committed_record_changed),
    ("INV-12", acknowledged_and_not_committed),
    ("INV-12", acknowledged_and_lost),
    ("INV-13", nothing_after_healing),
    ("INV-14", node_halts),
]


@pytest.mark.parametrize(("invariant", "break_it"), CASES, ids=[case[1].__name__ for case in CASES])
def test_an_invariant_turns_red_when_it_is_broken(
    world: World, invariant: str, break_it: Callable[[World], None]
) -> None:
    with pytest.raises(InvariantViolation) as caught:
        break_it(world)
    assert caught.value.invariant == invariant


def test_every_invariant_has_an_id_of_its_own_and_a_case() -> None:
    ids = [invariant.id for invariant in INVARIANTS]
    assert ids == sorted(set(ids))
    assert set(ids) == {invariant for invariant, _ in CASES}


def test_a_granted_pre_vote_binds_nobody(world: World) -> None:
    host = host_of(world)
    for connection, candidate in ((1, 2), (2, 3)):
        answer = vote_request(world, candidate, 0, connection)
        request = world.oracle.ghost.asked[ConnectionId(connection)]
        assert isinstance(request, VoteRequest)
        pre_vote = message_defaults.request(
            "VoteRequest", NodeId(1), {"candidate_id": candidate, "epoch": 0, "pre_vote": True}
        )
        world.oracle.asked(RequestReceived(ConnectionId(connection), CorrelationId(0), pre_vote))
        before(world, host, answer)


def test_a_leader_of_an_epoch_that_is_over_need_not_have_what_came_later(world: World) -> None:
    commit(world, (5, X))
    before(world, host_of(world), led(3))


def test_every_invariant_says_what_it_demands() -> None:
    for invariant in INVARIANTS:
        assert issubclass(invariant, Invariant)
        assert invariant.__doc__
