"""Before a disk is harmed the ghost state says whether Raft's promise covers it."""

from collections.abc import Callable

import pytest

from splitbrain.contracts.names import NodeName
from splitbrain.contracts.scenario import ViolationError
from splitbrain.nodes.storage.layout import log_folder, segment_name
from splitbrain.simulation.kraft.disk_faults import DiskFaults
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
