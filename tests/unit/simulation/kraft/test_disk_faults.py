"""Faults of a simulated disk bite, and the node notices what its formats can tell."""

from collections.abc import Callable
from typing import Any

import pytest

from splitbrain.contracts.arms import FileChange
from splitbrain.contracts.errors import CapabilityError
from splitbrain.nodes.storage.durable_mark import read_mark
from splitbrain.nodes.storage.layout import DURABLE_LENGTH, log_folder
from splitbrain.runtimes.file_changes import change_file
from splitbrain.simulation.kraft.disk_faults import DiskFaults
from splitbrain.simulation.kraft.host import Host
from splitbrain.simulation.world.streams import DrawnStream
from tests.unit.simulation.kraft.unwatched_worlds import Quorum

DRAWS = range(40)


def faults_of(host: Host) -> DiskFaults:
    return DiskFaults(host, lambda *_: None, DrawnStream)


def written(quorum: Quorum) -> Host:
    """A leader with a few epochs and records on its disk, all of it below its mark."""
    quorum.start()
    for _ in range(2):
        leader = quorum.await_leader()
        leader.end_life(lose_unsynced=False, draw=1)
        leader.start()
    leader = quorum.await_leader()
    caller = quorum.caller(leader.name)
    for _ in range(5):
        caller.ask()
        quorum.run(100_000)
    return leader


def starts_after(what: str, look: Callable[[Host], Any]) -> list[tuple[str | None, Any]]:
    """For each draw: why a node with this rot could not start, or what is seen when it has."""
    quorum = Quorum()
    host = written(quorum)
    host.end_life(lose_unsynced=True, draw=1)
    before = host.disk.snapshot()
    seen: list[tuple[str | None, Any]] = []
    for draw in DRAWS:
        words = faults_of(host).rot(draw, what)
        assert words is not None
        assert host.disk.snapshot() != before
        rotten = look(host)
        host.start()
        seen.append((host.ended, rotten))
        host.end_life(lose_unsynced=True, draw=1)
        host.disk.restore(before)
    return seen


def test_where_epochs_begin_is_held_against_the_batches() -> None:
    seen = starts_after("checkpoint", lambda _: None)
    refused = [why for why, _ in seen if why is not None]
    assert all("leader-epoch-checkpoint" in why or "checkpoint" in why for why in refused)
    assert len(refused) > len(DRAWS) * 3 // 4, "the rest is white space that became other"


def test_rot_in_the_mark_leaves_the_one_before() -> None:
    def mark(host: Host) -> int:
        return read_mark(host.disk, log_folder(host.folder) / DURABLE_LENGTH).end_offset

    quorum = Quorum()
    whole = mark(written(quorum))
    seen = starts_after("mark", mark)
    assert [why for why, _ in seen if why is not None] == []
    lower = [end for _, end in seen if end < whole]
    assert 0 < len(lower) < len(DRAWS), "one slot of two is the newest"


def test_a_rotten_identity_is_never_taken_for_another_one() -> None:
    seen = starts_after("identity", lambda _: None)
    refused = [why for why, _ in seen if why is not None]
    assert len(refused) > len(DRAWS) // 2


@pytest.mark.parametrize("action", ["write", "rename"])
def test_a_call_that_fails_once_ends_the_node_which_starts_again(action: str) -> None:
    quorum = Quorum()
    host = written(quorum)
    assert faults_of(host).fail_calls(action, 1) == f"the next 1 {action}s fail"
    quorum.caller(host.name).ask()
    if action == "rename":
        # A new epoch is persisted by a rename.
        host.pause()
        quorum.run_until(lambda: quorum.leader() is not None)
        host.resume()
    quorum.run_until(lambda: not host.is_up)
    assert host.ended is not None
    assert host.ended.startswith("exit code 74:")
    assert [note.kind for note in host.disk.faults_done] == [f"{action}-failed"]
    host.start()
    quorum.run_until(lambda: host.serves)


@pytest.mark.parametrize("action", ["write", "rename"])
def test_where_each_call_fails_the_node_cannot_start_until_the_disk_is_healed(action: str) -> None:
    quorum = Quorum()
    host = written(quorum)
    host.end_life(lose_unsynced=False, draw=1)
    faults = faults_of(host)
    assert faults.fail_calls(action, None) == f"every {action} fails"
    for _ in range(3):
        host.start()
        assert not host.is_up
        assert host.ended is not None
        assert host.ended.startswith("could not start:")
    assert faults.mend() == "calls succeed again, 3 had failed"
    host.start()
    quorum.run_until(lambda: host.serves)


def test_rot_in_the_state_is_what_no_format_tells() -> None:
    seen = starts_after("state", lambda _: None)
    assert any(why is None for why, _ in seen), "so it is beyond the promise"


def test_a_flipped_file_is_refused_and_what_was_kept_of_it_makes_it_whole_again() -> None:
    quorum = Quorum()
    host = written(quorum)
    host.end_life(lose_unsynced=True, draw=1)
    before = host.disk.snapshot()
    refused = 0
    for draw in DRAWS:
        disk = faults_of(host)
        disk.remember()
        flipped = change_file(disk.files, FileChange("flip", "**/*.log", draw))
        assert flipped is not None
        assert host.disk.snapshot() != before
        assert host.disk.faults_done[-1].kind == "rot"
        host.start()
        if host.ended is not None:
            refused += 1
            assert "corrupt" in host.ended
            back = FileChange("restore", flipped.file, 0)
            assert change_file(disk.files, back) is not None
            host.start()
            assert host.ended is None
        host.end_life(lose_unsynced=True, draw=1)
        host.disk.restore(before)
    assert refused > len(DRAWS) * 3 // 4


def test_a_file_that_is_as_it_was_kept_is_not_put_back_and_none_is_cut_off() -> None:
    host = written(Quorum())
    host.end_life(lose_unsynced=True, draw=1)
    disk = faults_of(host)
    assert change_file(disk.files, FileChange("restore", "*", 1)) is None
    disk.remember()
    assert change_file(disk.files, FileChange("restore", "*", 1)) is None
    with pytest.raises(CapabilityError, match="lose bytes by crashes alone"):
        change_file(disk.files, FileChange("truncate", "*.log", 1))
