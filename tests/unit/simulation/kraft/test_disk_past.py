"""An end of a node is explained by what its disk still suffers from, and by nothing else."""

import errno
from pathlib import Path

import pytest

from splitbrain.contracts.names import NodeName
from splitbrain.contracts.scenario import ViolationError
from splitbrain.nodes.quorum.identifiers import Epoch
from splitbrain.nodes.quorum.persistent import QuorumState
from splitbrain.nodes.storage.layout import log_folder, segment_name
from splitbrain.simulation.disk.file_system import MemoryFileSystem
from splitbrain.simulation.kraft.disk_past import DiskPast
from splitbrain.simulation.kraft.ghost import Machine
from splitbrain.simulation.kraft.mirrored_log import Entry
from tests.unit.simulation.kraft.small_quorum import Quorum

FAILED, CORRUPT = "exit code 74: disk failed: a sync", "exit code 75: 0.log is corrupt"
NOT_STARTED, HALTED = "could not start: 0.log is corrupt", "exit code 71: two leaders"
ENDS = (FAILED, CORRUPT, NOT_STARTED, HALTED, "exit code 70: defect", "exit code 78: no place")
FILE = Path("/f")


def disk_with(content: bytes) -> MemoryFileSystem:
    disk = MemoryFileSystem()
    file = disk.open(FILE, create=True)
    file.write_at(0, content)
    file.sync()
    disk.sync_folder(Path("/"))
    return disk


def explained(past: DiskPast) -> tuple[str, ...]:
    return tuple(end for end in ENDS if past.explains(end))


def sync_fails(disk: MemoryFileSystem) -> None:
    disk.fail_next("sync", errno.EIO)
    with pytest.raises(OSError, match="EIO"):
        disk.open(FILE).sync()


def test_a_sound_disk_explains_no_end() -> None:
    assert explained(DiskPast(disk_with(b"abc"))) == ()


def test_what_is_armed_and_has_not_struck_explains_nothing() -> None:
    disk = disk_with(b"abc")
    disk.fail_next("sync", errno.EIO)
    disk.capacity_bytes = 1
    assert explained(DiskPast(disk)) == ()


def test_a_call_that_failed_explains_the_end_of_this_life_alone() -> None:
    disk = disk_with(b"abc")
    past = DiskPast(disk)
    sync_fails(disk)
    assert explained(past) == (FAILED, NOT_STARTED)
    past.life_ended()
    assert explained(past) == ()


def test_a_full_disk_explains_an_end_each_time_it_has_no_room() -> None:
    disk = disk_with(b"abc")
    past = DiskPast(disk)
    disk.capacity_bytes = 3
    for _ in range(2):
        assert explained(past) == ()
        with pytest.raises(OSError, match="ENOSPC"):
            disk.open(FILE).write_at(3, b"d")
        assert explained(past) == (FAILED, NOT_STARTED)
        disk.kill()
        past.life_ended()


def test_rot_explains_ends_for_as_long_as_it_is_there() -> None:
    disk = disk_with(b"abc")
    past = DiskPast(disk)
    disk.rot(FILE, 1)
    past.look()
    for _ in range(2):
        assert explained(past) == (CORRUPT, NOT_STARTED)
        past.life_ended()
    file = disk.open(FILE)
    file.write_at(1, b"x")
    assert explained(past) == (CORRUPT, NOT_STARTED), "not yet overwritten on the disk"
    file.sync()
    assert explained(past) == ()
    assert past.has_rotted("f"), "what was lost by it may be gone all the same"


def test_rot_that_was_truncated_explains_nothing() -> None:
    disk = disk_with(b"abc")
    past = DiskPast(disk)
    disk.rot(FILE, 1)
    past.look()
    file = disk.open(FILE)
    file.truncate(1)
    file.sync()
    assert explained(past) == ()


def test_a_wiped_disk_has_no_past() -> None:
    disk = disk_with(b"abc")
    past = DiskPast(disk)
    snapshot = disk.snapshot()
    disk.rot(FILE, 1)
    disk.restore(snapshot)
    assert past.was_restored
    assert explained(past) == (CORRUPT, NOT_STARTED)
    disk.wipe()
    assert not past.was_restored
    assert not past.has_rotted()
    assert explained(past) == ()


# With whole nodes.


def segment_of(machine: Machine) -> Path:
    return log_folder(machine.host.folder) / segment_name(0)


def replaced(quorum: Quorum) -> Machine:
    """A follower whose log and quorum state have rotted, and that came back on another disk."""
    machine = quorum.followers[0]
    disk = quorum.cluster.disk(machine.host.name)
    assert disk.rot(1, "log") is not None
    assert disk.rot(1, "state") is not None
    quorum.wipe(machine.host.name)
    return machine


def test_the_log_of_a_replaced_disk_is_compared_with_the_others() -> None:
    quorum = Quorum()
    machine = replaced(quorum)
    quorum.oracle.healed([each.host.node_id for each in quorum.machines])
    quorum.oracle.finished()
    file = machine.host.disk.open(segment_of(machine))
    file.write_at(30, b"?")
    file.sync()
    with pytest.raises(ViolationError) as caught:
        quorum.oracle.finished()
    assert caught.value.invariant == "INV-19"


def test_a_leader_that_has_not_flushed_is_compared_as_far_as_it_has() -> None:
    """Others hold what it committed: the log that knows most is not the longest on a disk."""
    quorum = Quorum()
    quorum.oracle.healed([each.host.node_id for each in quorum.machines])
    leader, follower = quorum.leader, quorum.followers[0]
    assert leader.log is not None
    file = leader.host.disk.open(segment_of(leader))
    file.truncate(leader.log.position_of(quorum.end - 1))
    file.sync()
    quorum.oracle.finished()
    file = follower.host.disk.open(segment_of(follower))
    file.write_at(30, b"?")
    file.sync()
    with pytest.raises(ViolationError) as caught:
        quorum.oracle.finished()
    assert caught.value.invariant == "INV-19"


def test_a_node_on_a_replaced_disk_keeps_what_it_promised_there() -> None:
    quorum = Quorum()
    machine = replaced(quorum)
    assert machine.log is not None
    assert machine.promised == len(machine.log.entries)
    machine.log.entries.append(Entry(1, b"x"))
    machine.promised += 1
    with pytest.raises(ViolationError) as caught:
        quorum.restart(machine.host.name)
    assert caught.value.invariant == "INV-15"


def test_a_node_on_a_replaced_disk_keeps_what_it_spoke_with_there() -> None:
    quorum = Quorum()
    machine = replaced(quorum)
    quorum.cluster.power_off([machine.host.name], 0)
    machine.said = QuorumState(Epoch(99), None, None, None)
    quorum.cluster.start(machine.host.name)
    with pytest.raises(ViolationError) as caught:
        quorum.run(100_000)
    assert caught.value.invariant == "INV-15"


def test_an_end_long_after_a_fault_that_is_over_is_a_finding() -> None:
    quorum = Quorum()
    host = quorum.followers[0].host
    sync_fails_at(quorum, host.name)
    quorum.cluster.start(host.name)
    quorum.run(20_000_000)
    host.ended = FAILED
    with pytest.raises(ViolationError) as caught:
        quorum.oracle.ended(host)
    assert (caught.value.invariant, caught.value.kind) == ("INV-14", "exit code 74")


def sync_fails_at(quorum: Quorum, name: NodeName) -> None:
    """The node's next sync fails, and it ends by itself."""
    quorum.cluster.disk(name).fail_calls("sync", 1)
    quorum.write(8)
    quorum.run(1_000_000)
    assert quorum.cluster.ended(name) is not None
    quorum.cluster.disk(name).mend()
