"""A life may begin with a snapshot instead of a log that the snapshot does not stand for."""

import pytest

from splitbrain.contracts.scenario import ViolationError
from splitbrain.nodes.quorum.identifiers import Epoch, Offset
from splitbrain.nodes.quorum.persistent import QuorumState
from splitbrain.nodes.storage.layout import log_folder
from splitbrain.nodes.storage.quorum_state import QuorumStateFile
from splitbrain.nodes.storage.snapshots import snapshot_name
from splitbrain.nodes.wire.batches import encode_payloads
from splitbrain.simulation.kraft.ghost import Machine
from splitbrain.simulation.kraft.shadow import Entry, segments_of
from tests.unit.simulation.kraft.small_quorum import Quorum

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
