"""Snapshots of one node: written from its state, taken in chunks, served, given up."""

import pytest

from splitbrain.nodes.quorum.effects import (
    AbandonSnapshot,
    AnswerFetchSnapshot,
    FreezeSnapshot,
    WriteSnapshotChunk,
)
from splitbrain.nodes.quorum.events import Event, SnapshotFrozen, SnapshotWritten
from splitbrain.nodes.quorum.identifiers import ConnectionId, CorrelationId, Epoch, NodeId, Offset
from splitbrain.nodes.quorum.messages import ErrorCode, FetchSnapshotAnswer
from splitbrain.nodes.quorum.persistent import SnapshotId
from splitbrain.nodes.registers.commands import Write, encode_command
from splitbrain.nodes.registers.machine import RegisterMachine
from splitbrain.nodes.server.host.snapshot_files import SnapshotFiles
from splitbrain.nodes.server.host.state_machine import FrozenState
from splitbrain.nodes.storage.layout import log_folder
from splitbrain.nodes.storage.snapshots import list_snapshots, snapshot_path
from splitbrain.nodes.wire.snapshots import encode_snapshot
from tests.unit.nodes.server.hand_made_world import FOLDER, Lines, World

ID = SnapshotId(Offset(3), Epoch(2))
LATER = SnapshotId(Offset(9), Epoch(2))


class Desk:
    """The snapshots of a node that is not there; disk jobs run when the test says so."""

    def __init__(self) -> None:
        self.world = World()
        self.machine = RegisterMachine()
        self.machine.apply(2, 2, encode_command(Write("o", "k", "v")))
        self.lines: list[str] = []
        self.events: list[Event] = []
        self.failures: list[Exception] = []
        self.files = SnapshotFiles(
            self.world, self.world.filesystem, FOLDER, self.machine, Lines(self.lines)
        )
        self.files.attach(self.events.append, self.failures.append)

    def state(self, snapshot_id: SnapshotId = ID) -> FrozenState:
        return FrozenState(snapshot_id, 5, self.machine.freeze())

    def bytes_of(self, snapshot_id: SnapshotId = ID) -> bytes:
        return b"".join(encode_snapshot(snapshot_id, 5, self.machine.freeze()()))

    def settle(self) -> int:
        """Runs all that is to be done; how many jobs of the disk that were."""
        count = 0
        while self.world.jobs or self.world.turns:
            count += bool(self.world.jobs and not self.world.turns)
            self.world.turn()
        return count

    def fetched(self, data: bytes, snapshot_id: SnapshotId = ID, size: int = 50) -> None:
        for start in range(0, len(data), size):
            chunk = data[start : start + size]
            self.files.write_chunk(WriteSnapshotChunk(snapshot_id, start, chunk))
        self.files.freeze(FreezeSnapshot(snapshot_id))

    def names(self) -> list[str]:
        names = self.world.filesystem.list(log_folder(FOLDER))
        return [name for name in names if "checkpoint" in name and name[0] == "0"]

    def ask(
        self, position: int, max_bytes: int = 1_000, snapshot_id: SnapshotId = ID
    ) -> FetchSnapshotAnswer:
        answers: list[FetchSnapshotAnswer] = []
        blank = FetchSnapshotAnswer(
            ErrorCode.NONE, NodeId(1), Epoch(4), snapshot_id, 0, position, b""
        )
        effect = AnswerFetchSnapshot(
            ConnectionId(1), CorrelationId(1), blank, snapshot_id, position, max_bytes
        )
        self.files.answer(effect, answers.append)
        assert not answers
        self.settle()
        return answers[0]


def test_an_own_snapshot_is_told_of_once_its_name_is_durable() -> None:
    desk = Desk()
    desk.files.write(desk.state())
    assert desk.files.is_writing
    assert desk.settle() > 4
    assert desk.events == [SnapshotWritten(ID)]
    assert not desk.files.is_writing
    desk.world.crash()
    assert desk.world.filesystem.read(snapshot_path(FOLDER, ID)) == desk.bytes_of()


@pytest.mark.parametrize("jobs_done", range(6))
def test_nothing_has_the_name_before_all_is_done(jobs_done: int) -> None:
    desk = Desk()
    desk.files.write(desk.state())
    for _ in range(2 * jobs_done):
        desk.world.turn()
    assert not desk.events
    desk.world.crash()
    assert list_snapshots(desk.world.filesystem, FOLDER) == ()


def test_a_fetched_snapshot_is_checked_named_and_its_state_kept_ready() -> None:
    desk, other = Desk(), RegisterMachine()
    other.apply(7, 2, encode_command(Write("p", "k", "w")))
    data = b"".join(encode_snapshot(LATER, 77, other.freeze()()))
    desk.fetched(data, LATER)
    desk.settle()
    assert desk.events == [SnapshotFrozen(LATER)]
    assert desk.machine.read("k") == "v"
    loaded = desk.files.take_loaded(LATER)
    loaded.loading.install(9)
    assert (loaded.timestamp_ms, desk.machine.read("k"), desk.machine.end_offset) == (77, "w", 9)
    assert desk.world.filesystem.read(snapshot_path(FOLDER, LATER)) == data


@pytest.mark.parametrize("damage", ["cut", "flipped", "renamed"])
def test_bytes_that_are_no_snapshot_are_refused_and_end_nobody(damage: str) -> None:
    desk = Desk()
    data = desk.bytes_of(LATER if damage == "renamed" else ID)
    if damage == "cut":
        data = data[:-1]
    elif damage == "flipped":
        data = data[:70] + bytes((data[70] ^ 1,)) + data[71:]
    elif damage == "renamed":
        data = b"".join(encode_snapshot(SnapshotId(Offset(3), Epoch(1)), 5, []))
    desk.fetched(data)
    desk.settle()
    assert len(desk.events) == 1
    event = desk.events[0]
    assert isinstance(event, SnapshotFrozen)
    assert event.problem
    assert (desk.names(), desk.failures) == ([], [])
    assert desk.lines == ["warning fetched snapshot refused"]


def test_an_abandoned_snapshot_leaves_nothing_and_is_not_told_of() -> None:
    desk = Desk()
    desk.fetched(desk.bytes_of())
    desk.files.abandon(AbandonSnapshot(ID))
    desk.settle()
    assert (desk.events, desk.names(), desk.failures) == ([], [], [])


def test_a_fetched_snapshot_ends_the_one_that_is_being_written() -> None:
    desk = Desk()
    desk.files.write(desk.state())
    desk.world.turn()
    desk.fetched(desk.bytes_of(LATER), LATER)
    desk.settle()
    assert desk.events == [SnapshotFrozen(LATER)]
    assert list_snapshots(desk.world.filesystem, FOLDER) == (LATER,)


def test_the_same_snapshot_can_be_begun_anew() -> None:
    desk = Desk()
    data = desk.bytes_of()
    desk.files.write_chunk(WriteSnapshotChunk(ID, 0, data[:40]))
    desk.files.write_chunk(WriteSnapshotChunk(ID, 40, b"rubbish"))
    desk.fetched(data)
    desk.settle()
    assert desk.events == [SnapshotFrozen(ID)]


def test_peers_get_the_bytes_from_where_they_ask() -> None:
    desk = Desk()
    desk.files.write(desk.state())
    desk.settle()
    data = desk.bytes_of()
    answer = desk.ask(10, 20)
    assert (answer.error, answer.data, answer.size_bytes) == (0, data[10:30], len(data))
    assert (answer.snapshot_id, answer.position, answer.epoch) == (ID, 10, 4)
    assert desk.ask(len(data) - 3).data == data[-3:]
    for position, snapshot_id, error in (
        (len(data), ID, ErrorCode.POSITION_OUT_OF_RANGE),
        (0, LATER, ErrorCode.SNAPSHOT_NOT_FOUND),
    ):
        answer = desk.ask(position, snapshot_id=snapshot_id)
        assert (answer.error, answer.snapshot_id, answer.data) == (error, None, b"")


def test_a_disk_that_refuses_ends_the_node() -> None:
    desk = Desk()
    desk.world.filesystem.fail_next("sync", 5)
    desk.files.write(desk.state())
    desk.settle()
    assert len(desk.failures) == 1
    assert desk.events == []
