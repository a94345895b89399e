"""Each invariant of the simulated quorum turns red when what it forbids is put before it.

The quorum is real: three nodes, a leader, some committed records; what is forged is one effect, one
answer, or what the ghost state remembers. It is longer than 400 lines because every invariant has
its cases in the one table that a test holds against the oracle's.
"""

import re
from collections.abc import Callable
from typing import Any

import pytest

from splitbrain.contracts.operations import Operation
from splitbrain.contracts.scenario import ViolationError
from splitbrain.contracts.system import Route
from splitbrain.nodes.quorum.effects import (
    AdvanceHighWatermark,
    AnswerFetch,
    AppendBatches,
    AppendRecords,
    Halt,
    PersistQuorumState,
    ReportState,
    SendAnswer,
    SendRequest,
    TruncateLog,
)
from splitbrain.nodes.quorum.events import RequestReceived, SnapshotWritten
from splitbrain.nodes.quorum.identifiers import ConnectionId, CorrelationId, Epoch, NodeId, Offset
from splitbrain.nodes.quorum.messages import ErrorCode, FetchAnswer, VoteAnswer, VoteRequest
from splitbrain.nodes.quorum.persistent import QuorumState, SnapshotId
from splitbrain.nodes.registers.machine import RegisterMachine
from splitbrain.nodes.storage.layout import log_folder, segment_name
from splitbrain.nodes.storage.snapshots import write_snapshot
from splitbrain.nodes.transport.client_protocol import ClientRequest
from splitbrain.nodes.wire.batches import encode_payloads
from splitbrain.nodes.wire.snapshots import encode_snapshot
from splitbrain.simulation.kraft.all_invariants import INVARIANTS
from splitbrain.simulation.kraft.cluster import directory_of
from splitbrain.simulation.kraft.ghost import Machine
from splitbrain.simulation.kraft.invariants import Invariant
from splitbrain.simulation.kraft.ledger import Ledger
from splitbrain.simulation.kraft.mirrored_log import Entry
from tests.transcripts import message_defaults
from tests.unit.simulation.kraft.small_quorum import Quorum
from tests.unit.simulation.kraft.test_invariants_brokers import CASES as BROKER_CASES
from tests.unit.simulation.kraft.test_invariants_leavers import CASES as LEAVER_CASES
from tests.unit.simulation.kraft.test_invariants_metadata import CASES as METADATA_CASES
from tests.unit.simulation.kraft.test_invariants_partitions import CASES as PARTITION_CASES
from tests.unit.simulation.kraft.test_invariants_sessions import CASES as SESSION_CASES

X, Y = b"x", b"y"


def log_of(machine: Machine) -> list[Entry]:
    assert machine.log is not None
    return machine.log.entries


def forget(machine: Machine, end: int) -> None:
    """The machine's log is shorter, as far as the oracle knows."""
    assert machine.log is not None
    machine.log.truncate(end)


def led(epoch: int) -> ReportState:
    return ReportState("role", Epoch(epoch), 1, "leader", NodeId(1))


def advance(offset: int) -> AdvanceHighWatermark:
    return AdvanceHighWatermark(Offset(offset))


def batch(base: int, epoch: int, payload: bytes) -> AppendBatches:
    raw = encode_payloads(Offset(base), Epoch(epoch), 0, [(None, payload)])
    return AppendBatches(1, Offset(base), Offset(base + 1), (), raw, ())


def grant(quorum: Quorum, machine: Machine, epoch: int, candidate: int, **fields: Any) -> None:
    """The machine grants a vote, to a candidate whose log is like its own."""
    connection = ConnectionId(1_000_000 + candidate)
    last_epoch, end_offset = fields.get("log", machine.last_of_log())
    request = VoteRequest(
        cluster_id=None,
        voter_id=machine.host.node_id,
        voter_directory_id=machine.key.directory_id,
        epoch=Epoch(epoch),
        candidate_id=NodeId(candidate),
        candidate_directory_id=directory_of(candidate),
        last_epoch=Epoch(last_epoch),
        end_offset=Offset(end_offset),
        pre_vote=fields.get("pre_vote", False),
    )
    quorum.oracle.taking(machine.host, RequestReceived(connection, CorrelationId(1), request))
    answer = VoteAnswer(ErrorCode.NONE, None, Epoch(epoch), granted=True)
    quorum.before(machine, SendAnswer(connection, CorrelationId(1), answer))


def fetch_from(offset: int, **fields: Any) -> SendRequest:
    given = {"fetch_offset": offset, "high_watermark": -1, **fields}
    request = message_defaults.request("FetchRequest", NodeId(2), given)
    return SendRequest(NodeId(2), CorrelationId(9), request, 1)


# Violations of each invariant.


def two_leaders(quorum: Quorum) -> None:
    for machine in quorum.followers:
        quorum.before(machine, led(99))


def leader_without_committed(quorum: Quorum) -> None:
    forget(quorum.followers[0], 1)
    quorum.before(quorum.followers[0], led(99))


def late_commit_that_a_later_leader_lacks(quorum: Quorum) -> None:
    quorum.ghost.highest_led = 99
    forget(quorum.leader, 1)
    quorum.ghost.commit_epochs[1:] = [0] * (quorum.end - 1)
    quorum.after(quorum.leader, advance(quorum.end))


def same_place_other_record(quorum: Quorum) -> None:
    for machine, payload in zip(quorum.followers, (X, Y), strict=True):
        quorum.after(machine, batch(len(log_of(machine)), 1, payload))


def two_votes(quorum: Quorum) -> None:
    for candidate in (2, 3):
        grant(quorum, quorum.leader, 0, candidate)


def vote_taken_back(quorum: Quorum) -> None:
    other = quorum.followers[0].host.node_id
    state = QuorumState(Epoch(quorum.epoch), None, other, directory_of(other))
    quorum.before(quorum.leader, PersistQuorumState(1, state))


def epoch_taken_back(quorum: Quorum) -> None:
    state = QuorumState(Epoch(0), None, None, None)
    quorum.before(quorum.leader, PersistQuorumState(1, state))


def epoch_not_on_disk(quorum: Quorum) -> None:
    request = message_defaults.request("BeginQuorumEpochRequest", NodeId(2), {"epoch": 99})
    quorum.before(quorum.leader, SendRequest(NodeId(2), CorrelationId(9), request, 1))


def vote_not_on_disk(quorum: Quorum) -> None:
    grant(quorum, quorum.leader, quorum.epoch, quorum.followers[0].host.node_id)


def high_watermark_falls(quorum: Quorum) -> None:
    quorum.before(quorum.followers[0], advance(1))


def high_watermark_passes_the_log(quorum: Quorum) -> None:
    quorum.before(quorum.followers[0], advance(99))


def commit_on_one_disk(quorum: Quorum) -> None:
    leader = quorum.leader
    base = Offset(len(log_of(leader)))
    quorum.after(leader, AppendRecords(1, base, Epoch(quorum.epoch), (X,)))
    quorum.before(leader, advance(base + 1))


def fetch_of_the_unsynced(quorum: Quorum) -> None:
    follower = quorum.followers[0]
    end = len(log_of(follower))
    quorum.after(follower, batch(end, quorum.epoch, X))
    assert follower.log is not None
    follower.log.append([Entry(quorum.epoch, X)], 0, 1 << 20)
    quorum.before(follower, fetch_from(end + 2))


def committed_record_cut(quorum: Quorum) -> None:
    quorum.followers[0].high_watermark = -1
    quorum.before(quorum.followers[0], TruncateLog(1, Offset(1)))


def cut_below_high_watermark(quorum: Quorum) -> None:
    quorum.followers[0].high_watermark = 99
    quorum.before(quorum.followers[0], TruncateLog(1, Offset(98)))


def commit_of_an_earlier_epoch(quorum: Quorum) -> None:
    log_of(quorum.leader).append(Entry(0, X))
    quorum.before(quorum.leader, advance(quorum.end + 1))


READ = ClientRequest(1, "read", "k")


def unreadable_state_on_disk(quorum: Quorum) -> None:
    host = quorum.leader.host
    file = host.disk.open(log_folder(host.folder) / "quorum-state")
    file.truncate(5)
    file.sync()
    quorum.run(1_000_000)


def read_of_the_past(quorum: Quorum) -> None:
    floor = quorum.oracle.asked(quorum.leader.host, READ)
    assert isinstance(floor, int)
    quorum.reply(READ, floor, result=None, offset=1)


def read_of_the_uncommitted(quorum: Quorum) -> None:
    quorum.reply(READ, result=7, offset=quorum.end + 1)


def committed_record_changed(quorum: Quorum) -> None:
    follower = quorum.followers[0]
    log_of(follower)[1] = Entry(1, X)
    assert follower.log is not None
    follower.log.agreed = 0
    follower.high_watermark = -1
    quorum.before(follower, advance(quorum.end))


def commit_of_what_nobody_committed(quorum: Quorum) -> None:
    log_of(quorum.followers[0]).append(Entry(1, X))
    quorum.before(quorum.followers[0], advance(quorum.end + 1))


def acknowledged_and_not_committed(quorum: Quorum) -> None:
    quorum.reply(ClientRequest(1, "write", "k", 8, "op-8"), result=True, offset=quorum.end - 1)


def acknowledged_and_lost(quorum: Quorum) -> None:
    quorum.oracle.healed([machine.host.node_id for machine in quorum.machines])
    forget(quorum.followers[0], 1)
    quorum.oracle.finished()


def node_halts(quorum: Quorum) -> None:
    quorum.before(quorum.leader, Halt("two leaders"))


def node_ends_by_itself(quorum: Quorum) -> None:
    quorum.leader.host.ended = "exit code 5: halted"
    quorum.oracle.ended(quorum.leader.host)


def node_does_not_start(quorum: Quorum) -> None:
    host = quorum.followers[0].host
    quorum.cluster.kill(host.name, 0)
    host.disk.remove(host.folder / "incarnation")
    host.disk.open(host.folder / "incarnation", create=True).write_at(0, b"many")
    quorum.cluster.start(host.name)


def flushed_record_gone_at_start(quorum: Quorum) -> None:
    follower = quorum.followers[0]
    log_of(follower).append(Entry(1, X))
    follower.promised += 1
    quorum.restart(follower.host.name)


def spoken_state_gone_at_start(quorum: Quorum) -> None:
    follower = quorum.followers[0]
    quorum.cluster.power_off([follower.host.name], 0)
    follower.said = QuorumState(Epoch(99), None, None, None)
    quorum.cluster.start(follower.host.name)
    quorum.run(100_000)


def uncommitted_high_watermark_told(quorum: Quorum) -> None:
    answer = FetchAnswer(
        error=ErrorCode.NONE,
        leader_id=NodeId(1),
        epoch=Epoch(1),
        high_watermark=Offset(quorum.end + 1),
        log_start_offset=Offset(0),
        diverging=None,
        batches=(),
        records=b"",
    )
    effect = AnswerFetch(ConnectionId(1), CorrelationId(1), answer, Offset(0), Offset(0), 1)
    quorum.before(quorum.leader, effect)


def read_of_a_value_never_written(quorum: Quorum) -> None:
    quorum.reply(READ, result=8, offset=quorum.end)


def set_with_an_element_too_many(quorum: Quorum) -> None:
    quorum.reply(ClientRequest(1, "read-set", "k"), result=[1], offset=quorum.end)


def write_that_failed_and_is_told_to_have_succeeded(quorum: Quorum) -> None:
    offset = quorum.end - 1
    assert isinstance(quorum.ghost.ledger, Ledger)
    quorum.ghost.ledger.succeeded[offset] = False
    operation = quorum.ghost.ledger.operation_at[offset]
    request = ClientRequest(1, "write", "k", 7, operation)
    quorum.reply(request, result=True, offset=offset)


def states_differ(quorum: Quorum) -> None:
    machine = quorum.followers[0].host.node.parts.applier.machine
    assert isinstance(machine, RegisterMachine)
    machine._registers["another"] = b"\x01"
    machine._digest = None
    quorum.oracle.finished()


def bytes_differ(quorum: Quorum) -> None:
    host = quorum.followers[0].host
    file = host.disk.open(log_folder(host.folder) / segment_name(0))
    file.write_at(30, b"?")
    file.sync()
    quorum.oracle.healed([machine.host.node_id for machine in quorum.machines])
    quorum.oracle.finished()


def refused_and_committed(quorum: Quorum) -> None:
    operation = quorum.ghost.ledger.operation_at[quorum.end - 1]
    request = ClientRequest(1, "write", "k", 7, operation)
    quorum.reply(request, outcome="not-leader")


def refused_and_committed_later(quorum: Quorum) -> None:
    request = ClientRequest(1, "write", "k", 8, "late")
    quorum.reply(request, outcome="not-leader")
    quorum.ghost.ledger.operation_at[quorum.end] = "late"
    quorum.ghost.committed.append(Entry(1, X))
    log_of(quorum.leader).append(Entry(1, X))
    quorum.after(quorum.leader, advance(quorum.end))


def leader_without_a_majority(quorum: Quorum) -> None:
    quorum.before(quorum.followers[0], led(99))


def leader_by_votes_of_an_observer(quorum: Quorum) -> None:
    leader, wiped = quorum.leader, quorum.followers[0]
    quorum.wipe(wiped.host.name)
    grant(quorum, wiped, 0, leader.host.node_id)
    quorum.before(leader, led(0))


def vote_for_a_shorter_log(quorum: Quorum) -> None:
    epoch, end_offset = quorum.leader.last_of_log()
    grant(quorum, quorum.leader, 0, 2, log=(epoch, end_offset - 1))


def pre_vote_for_an_older_log(quorum: Quorum) -> None:
    epoch, end_offset = quorum.leader.last_of_log()
    log = (epoch - 1, end_offset + 1)
    grant(quorum, quorum.leader, 0, 2, pre_vote=True, log=log)


def snapshot_that_is_not_on_disk(quorum: Quorum) -> None:
    quorum.oracle.taking(quorum.leader.host, SnapshotWritten(SnapshotId(Offset(1), Epoch(1))))


def snapshot_of_another_state(quorum: Quorum) -> None:
    host, ghost = quorum.leader.host, quorum.ghost
    snapshot_id = SnapshotId(Offset(quorum.end), Epoch(ghost.committed[-1].epoch))
    write_snapshot(host.disk, host.folder, snapshot_id, encode_snapshot(snapshot_id, 1, []))
    quorum.oracle.taking(host, SnapshotWritten(snapshot_id))


#: Invariant, what breaks it, invariants that would see it first.
CASES: list[tuple[str, Callable[[Quorum], None], frozenset[str]]] = [
    ("INV-01", two_leaders, frozenset({"INV-26"})),
    ("INV-02", leader_without_committed, frozenset({"INV-26"})),
    ("INV-02", late_commit_that_a_later_leader_lacks, frozenset()),
    ("INV-03", same_place_other_record, frozenset()),
    ("INV-04", two_votes, frozenset()),
    ("INV-04", vote_taken_back, frozenset()),
    ("INV-04", epoch_taken_back, frozenset()),
    ("INV-05", epoch_not_on_disk, frozenset()),
    ("INV-05", vote_not_on_disk, frozenset({"INV-04"})),
    ("INV-05", unreadable_state_on_disk, frozenset()),
    ("INV-06", high_watermark_falls, frozenset()),
    ("INV-06", high_watermark_passes_the_log, frozenset()),
    ("INV-07", commit_on_one_disk, frozenset()),
    ("INV-07", fetch_of_the_unsynced, frozenset()),
    ("INV-08", committed_record_cut, frozenset()),
    ("INV-08", cut_below_high_watermark, frozenset()),
    ("INV-09", commit_of_an_earlier_epoch, frozenset({"INV-07"})),
    ("INV-10", read_of_the_past, frozenset()),
    ("INV-10", read_of_the_uncommitted, frozenset()),
    ("INV-11", committed_record_changed, frozenset()),
    ("INV-11", commit_of_what_nobody_committed, frozenset()),
    ("INV-12", acknowledged_and_not_committed, frozenset()),
    ("INV-12", acknowledged_and_lost, frozenset()),
    ("INV-14", node_halts, frozenset()),
    ("INV-14", node_ends_by_itself, frozenset()),
    ("INV-14", node_does_not_start, frozenset()),
    ("INV-15", flushed_record_gone_at_start, frozenset()),
    ("INV-15", spoken_state_gone_at_start, frozenset()),
    ("INV-16", uncommitted_high_watermark_told, frozenset()),
    ("INV-17", read_of_a_value_never_written, frozenset()),
    ("INV-17", set_with_an_element_too_many, frozenset()),
    ("INV-17", write_that_failed_and_is_told_to_have_succeeded, frozenset()),
    ("INV-18", states_differ, frozenset()),
    ("INV-19", bytes_differ, frozenset()),
    ("INV-25", refused_and_committed, frozenset()),
    ("INV-25", refused_and_committed_later, frozenset()),
    ("INV-26", leader_without_a_majority, frozenset()),
    ("INV-26", leader_by_votes_of_an_observer, frozenset()),
    ("INV-27", vote_for_a_shorter_log, frozenset({"INV-05"})),
    ("INV-27", pre_vote_for_an_older_log, frozenset()),
    ("INV-28", snapshot_that_is_not_on_disk, frozenset()),
    ("INV-28", snapshot_of_another_state, frozenset()),
]


@pytest.mark.parametrize(
    ("invariant", "break_it", "muted"), CASES, ids=[case[1].__name__ for case in CASES]
)
def test_an_invariant_turns_red_when_it_is_broken(
    invariant: str, break_it: Callable[[Quorum], None], muted: frozenset[str]
) -> None:
    quorum = Quorum(muted)
    with pytest.raises(ViolationError) as caught:
        break_it(quorum)
    assert caught.value.invariant == invariant


@pytest.mark.parametrize(
    ("invariant", "break_it", "muted"), CASES, ids=[case[1].__name__ for case in CASES]
)
def test_a_muted_invariant_does_not_watch(
    invariant: str, break_it: Callable[[Quorum], None], muted: frozenset[str]
) -> None:
    quorum = Quorum(muted | {invariant})
    try:
        break_it(quorum)
    except ViolationError as error:
        assert error.invariant != invariant  # noqa: PT017 - others may see the same


def test_every_invariant_has_an_id_of_its_own_a_sentence_and_a_case() -> None:
    ids = [invariant.id for invariant in INVARIANTS]
    assert len(ids) == len(set(ids))
    of_brokers = (*BROKER_CASES, *SESSION_CASES, *LEAVER_CASES)
    of_metadata = (*METADATA_CASES, *PARTITION_CASES, *of_brokers)
    assert set(ids) == {case[0] for case in (*CASES, *of_metadata)}
    for invariant in INVARIANTS:
        assert issubclass(invariant, Invariant)
        assert invariant.__doc__


def test_a_granted_pre_vote_binds_nobody() -> None:
    quorum = Quorum()
    for candidate in (2, 3):
        grant(quorum, quorum.leader, 0, candidate, pre_vote=True)


def test_a_leader_of_an_epoch_that_is_over_need_not_have_what_came_later() -> None:
    quorum = Quorum(frozenset({"INV-26"}))
    forget(quorum.followers[0], 0)
    quorum.before(quorum.followers[0], led(0))


def test_a_follower_of_a_deposed_leader_may_cut_what_was_committed_without_it() -> None:
    # Seed 123010: a late answer of a leader that was deposed meanwhile cuts a log back whose cut
    # records a later leader has committed with a majority of others.
    quorum = Quorum()
    follower, ghost = quorum.followers[0], quorum.ghost
    follower.high_watermark = -1
    later = follower.host.node.replica.epoch + 1
    ghost.commit_epochs[1:] = [later] * (len(ghost.commit_epochs) - 1)
    quorum.before(follower, TruncateLog(1, Offset(1)))
    ghost.commit_epochs[-1] = later - 1
    with pytest.raises(ViolationError, match="truncates the committed record"):
        quorum.before(follower, TruncateLog(1, Offset(1)))


def test_the_only_voter_elects_itself() -> None:
    quorum = Quorum(voters=1)
    assert len(quorum.ghost.leaders) == 1


def test_a_node_whose_disk_failed_may_end_by_itself() -> None:
    quorum = Quorum()
    host = quorum.followers[0].host
    quorum.cluster.disk(host.name).fail_calls("sync", 1)
    client = quorum.cluster.open_client(0, Route("leader", quorum.cluster.nodes[0]))
    client.invoke(Operation(f="write", key="k", value=8), 1_000_000, lambda _: None)
    quorum.run(2_000_000)
    assert host.ended is not None
    assert host.ended.startswith("exit code 74:")


def test_an_answer_without_an_offset_is_refused() -> None:
    quorum = Quorum()
    for request in (READ, ClientRequest(1, "write", "k", 8, "op-8")):
        with pytest.raises(ViolationError) as caught:
            quorum.reply(request, result=True)
        assert caught.value.invariant == "INV-17"


#: Absent from sentences for people: an object's source text, bytes, Python's None, "us".
SOURCE_TEXT = re.compile(r"\b[A-Z]\w*\(|\w+=|\bb'|\bNone\b|<\w+|\d us\b|'")


@pytest.mark.parametrize(
    ("invariant", "break_it", "muted"), CASES, ids=[case[1].__name__ for case in CASES]
)
def test_a_violation_is_told_in_words(
    invariant: str, break_it: Callable[[Quorum], None], muted: frozenset[str]
) -> None:
    quorum = Quorum(muted)
    with pytest.raises(ViolationError) as caught:
        break_it(quorum)
    assert SOURCE_TEXT.search(caught.value.problem) is None, caught.value.problem


def test_a_quorum_that_works_alarms_nobody() -> None:
    quorum = Quorum()
    for machine in quorum.machines:
        quorum.restart(machine.host.name)
    quorum.run(3_000_000)
    quorum.oracle.healed([machine.host.node_id for machine in quorum.machines])
    quorum.oracle.finished()
    assert quorum.ghost.figures()["lives"] == 6


def test_what_the_oracle_knows_of_a_log_is_what_its_disk_holds() -> None:
    quorum = Quorum()
    for machine in quorum.machines:
        assert machine.read_log().entries == log_of(machine)
        assert machine.holds(0, log_of(machine))
        state = machine.quorum_state()
        assert state is not None
        assert state.epoch == quorum.epoch
