"""The ghost state: what Raft's promise covers, bytes that change, logs that snapshots replace."""

from collections.abc import Callable

import pytest

from splitbrain.contracts.names import NodeName
from splitbrain.contracts.scenario import ViolationError
from splitbrain.nodes.quorum.identifiers import Epoch, Offset
from splitbrain.nodes.quorum.persistent import QuorumState
from splitbrain.nodes.storage.layout import log_folder, segment_name
from splitbrain.nodes.storage.quorum_state import QuorumStateFile
from splitbrain.nodes.storage.snapshots import snapshot_name
from splitbrain.nodes.wire.batches import encode_payloads
from splitbrain.simulation.kraft.disk_faults import DiskFaults
from splitbrain.simulation.kraft.ghost import Machine
from splitbrain.simulation.kraft.mirrored_log import Entry, segments_of
from tests.unit.simulation.kraft.small_quorum import Quorum

N1, N2, N3, N4, N5 = (NodeName(f"n{number}") for number in range(1, 6))


def test_one_of_three_may_forget_what_the_others_hold() -> None:
    quorum = Quorum()
    assert all(quorum.cluster.may_forget(node) for node in quorum.cluster.nodes)


def test_no_second_voter_of_three_may_forget() -> None:
    quorum = Quorum()
    quorum.wipe(N3)
    assert not quorum.cluster.may_forget(N1)
    assert not quorum.cluster.may_forget(N2)


def test_a_wiped_machine_is_no_voter_and_may_forget_again() -> None:
    quorum = Quorum()
    quorum.wipe(N3)
    quorum.write(8)
    assert quorum.cluster.may_forget(N3)


def test_a_wiped_machine_that_is_still_down_is_no_voter_either() -> None:
    quorum = Quorum()
    quorum.cluster.kill(N3, 0)
    quorum.cluster.disk(N3).wipe()
    assert not quorum.cluster.may_forget(N1)


def test_two_of_five_may_forget_and_no_third() -> None:
    quorum = Quorum(voters=5)
    quorum.wipe(N5)
    assert quorum.cluster.may_forget(N4)
    quorum.wipe(N4)
    assert not quorum.cluster.may_forget(N3)


def test_an_observer_may_always_forget() -> None:
    quorum = Quorum(observers=1)
    quorum.wipe(N3)
    assert quorum.cluster.may_forget(N4)


def test_rotten_bytes_are_no_copy() -> None:
    quorum = Quorum()
    host = quorum.cluster.hosts[N3]
    host.disk.rot(log_folder(host.folder) / segment_name(0), 70)
    assert not quorum.cluster.may_forget(N1)


def test_a_disk_may_not_rot_above_its_durable_mark() -> None:
    quorum = Quorum()
    host = quorum.cluster.hosts[N3]
    machine = quorum.cluster.oracle.ghost.machines[host.node_id]
    assert machine.mark() == len(machine.read_log().entries)
    path = log_folder(host.folder) / "durable-length"
    file = host.disk.open(path)
    slots = [file.read_at(start, 512) for start in (0, 512)]
    # Both slots say what the older one said.
    older = min(slots, key=lambda slot: slot[4:12])
    file.write_at(0, older + older)
    file.sync()
    assert not quorum.cluster.may_forget(N3)
    assert quorum.cluster.may_forget(N2)


def test_a_lie_beyond_the_promise_silences_what_follows_from_it() -> None:
    quorum = Quorum(beyond_promise=True)
    oracle = quorum.cluster.oracle
    quorum.wipe(N3)
    assert oracle.ghost.broken is None
    assert quorum.cluster.disk(N1).rot(1, "log") is not None
    assert oracle.ghost.broken is not None
    # Nobody demands of n2 any more what only the promise gives it.
    quorum.cluster.hosts[N2].ended = "exit code 5: halted"
    oracle.ended(quorum.cluster.hosts[N2])


@pytest.mark.parametrize(
    "fault",
    [
        lambda disk: disk.fail_calls("sync", 1),
        lambda disk: disk.fill(0),
        lambda disk: disk.fail_calls("read", None),
        lambda disk: disk.slow_down(8),
    ],
    ids=["fsync-fails", "disk-full", "read-errors", "slow-disk"],
)
def test_a_fault_that_forgets_nothing_silences_nobody(fault: Callable[[DiskFaults], str]) -> None:
    quorum = Quorum(beyond_promise=True)
    quorum.wipe(N3)
    assert not quorum.cluster.may_forget(N1)
    fault(quorum.cluster.disk(N1))
    assert quorum.cluster.oracle.ghost.broken is None
    halted = quorum.cluster.hosts[N2]
    halted.ended = "exit code 71: two leaders"
    with pytest.raises(ViolationError):
        quorum.cluster.oracle.ended(halted)


def test_records_that_rot_under_a_recovery_keep_their_places() -> None:
    """Else nothing could say later whether they are on disk, nor what was hit."""
    for draw in range(6):
        quorum = Quorum(beyond_promise=True)
        for value in range(3):
            quorum.write(value)
        machine = quorum.followers[0]
        host = machine.host
        quorum.cluster.kill(host.name, 0)
        quorum.cluster.start(host.name)
        assert machine.log is None, "it boots"
        assert quorum.cluster.disk(host.name).rot(draw, "log") is not None
        while machine.log is None:
            quorum.run(1_000)
        log = machine.log
        assert log.entries
        size_bytes = sum(len(raw) for _, _, raw in segments_of(host.disk, log.folder))
        assert log.position_of(len(log.entries)) == size_bytes
        assert log.is_durable(host.disk, 0, len(log.entries))


def test_a_mark_that_rots_while_its_machine_is_down_promises_less() -> None:
    quorum = Quorum(beyond_promise=True)
    for value in range(3):
        quorum.write(value)
    machine = quorum.followers[0]
    quorum.cluster.kill(machine.host.name, 0)
    before = machine.promised_below_mark
    assert before == machine.mark() > 0
    for draw in range(40):
        quorum.cluster.disk(machine.host.name).rot(draw, "mark")
        assert machine.promised_below_mark == min(before, machine.mark())
        if machine.mark() < before:
            return
    raise AssertionError("no draw hits the newest slot")


#: More than the others commit meanwhile: the log ends behind the snapshot.
_NEVER_COMMITTED = 40


def diverge(machine: Machine) -> None:
    """Leave a machine that is down with records of its epoch that nobody else has."""
    disk, left = machine.host.disk, machine.left
    _, path, content = segments_of(disk, log_folder(machine.host.folder))[-1]
    epoch = left[-1].epoch
    batch = encode_payloads(
        Offset(len(left)), Epoch(epoch), 0, [(None, b"lost")] * _NEVER_COMMITTED
    )
    file = disk.open(path)
    file.write_at(len(content), batch)
    file.sync()
    left += [Entry(epoch, b"lost")] * _NEVER_COMMITTED
    machine.promised = machine.promised_below_mark = len(left)


def give_snapshot(source: Machine, target: Machine) -> int:
    """Let the newest snapshot and the epoch of one machine lie on another's, which is down."""
    newest = source.host.node.replica.newest_snapshot
    assert newest is not None
    name = snapshot_name(newest)
    content = source.host.disk.durable_content(log_folder(source.host.folder) / name)
    assert content is not None
    disk, folder = target.host.disk, log_folder(target.host.folder)
    file = disk.open(folder / name, create=True)
    file.write_at(0, content)
    file.sync()
    disk.sync_folder(folder)
    epoch = source.host.node.replica.epoch
    QuorumStateFile(disk, target.host.folder).write(QuorumState(epoch, None, None, None))
    return newest.end_offset


def quorum_with_a_diverged_voter() -> tuple[Quorum, Machine, int]:
    """A voter is down, its log longer than a snapshot of a later epoch that came in between."""
    quorum = Quorum(settings={"snapshot_max_new_record_bytes": "300"})
    machine = quorum.followers[0]
    quorum.cluster.kill(machine.host.name, 0)
    diverge(machine)
    old = machine.left[-1].epoch
    quorum.restart(quorum.leader.host.name)
    quorum.run(3_000_000)
    for value in range(8):
        quorum.write(value)
    leader = next(one for one in quorum.machines if one.host.name == quorum.cluster.leader().leader)
    end = give_snapshot(leader, machine)
    assert old < quorum.ghost.committed[end - 1].epoch
    assert end < quorum.end < len(machine.left)
    return quorum, machine, end


def test_records_that_the_snapshot_does_not_stand_for_may_go() -> None:
    quorum, machine, end = quorum_with_a_diverged_voter()
    quorum.cluster.start(machine.host.name)
    while machine.log is None:
        quorum.run(1_000)
    assert machine.log.first_offset == end
    quorum.write(9)
    assert machine.host.node.replica.log_end_offset == quorum.end


def test_a_committed_record_may_not_go_with_them() -> None:
    quorum, machine, end = quorum_with_a_diverged_voter()
    machine.left[end] = quorum.ghost.committed[end]
    quorum.cluster.start(machine.host.name)
    with pytest.raises(ViolationError, match=f"without the committed record that it had at {end}"):
        quorum.run(1_000_000)


def test_a_log_that_goes_on_from_the_snapshot_may_not_be_dropped() -> None:
    quorum, machine, end = quorum_with_a_diverged_voter()
    machine.left[:end] = quorum.ghost.committed[:end]
    quorum.cluster.start(machine.host.name)
    with pytest.raises(ViolationError, match=f"begins without what it had at {end}"):
        quorum.run(1_000_000)
