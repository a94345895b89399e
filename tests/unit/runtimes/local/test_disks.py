"""Changes to folders of nodes that are down, power cuts too, and nothing else."""

import itertools
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random

import pytest

from splitbrain.contracts.arms import FileChange
from splitbrain.contracts.errors import CapabilityError, HarnessError
from splitbrain.contracts.names import NodeName
from splitbrain.contracts.runtime import NodeSpec, NodeStatus
from splitbrain.nodes.quorum.identifiers import DirectoryId, Epoch, NodeId, Offset
from splitbrain.nodes.quorum.persistent import QuorumState, Voter
from splitbrain.nodes.storage.disk import DiskFileSystem
from splitbrain.nodes.storage.durable_lengths import CountingFileSystem, DurableLengths
from splitbrain.nodes.storage.identity import StorageIdentity, format_storage
from splitbrain.nodes.storage.log import LogStore
from splitbrain.nodes.storage.quorum_state import QuorumStateFile
from splitbrain.runtimes.local import disks as local_disks
from splitbrain.runtimes.local import power
from splitbrain.runtimes.local.disks import LocalDisks
from splitbrain.runtimes.local.power import in_words, lose_unflushed

N1 = NodeName("n1")


class Nodes:
    """One node, whose status the test settles."""

    def __init__(self, folder: Path, durable_lengths: str | None = None) -> None:
        self.data = folder / "data"
        self.data.mkdir()
        self.status: NodeStatus = "exited"
        self.killed: list[NodeName] = []
        self.disks = LocalDisks(self._spec, lambda _: self.status, self._kill_all)
        self._durable_lengths = durable_lengths

    def _spec(self, node: NodeName) -> NodeSpec:
        return NodeSpec(
            node, "none", ("true",), {}, {}, str(self.data),
            durable_lengths_path=self._durable_lengths,
        )  # fmt: skip

    def _kill_all(self, nodes: Sequence[NodeName]) -> None:
        self.killed.extend(nodes)


@pytest.fixture
def nodes(tmp_path: Path) -> Nodes:
    return Nodes(tmp_path)


@pytest.mark.parametrize("act", [LocalDisks.fill, LocalDisks.stall, LocalDisks.fail])
def test_disk_faults_are_refused_by_name(
    nodes: Nodes, act: Callable[[LocalDisks, NodeName], object]
) -> None:
    with pytest.raises(CapabilityError, match=r"disk of n1.*folders, not disks.*--runtime docker"):
        act(nodes.disks, N1)


def test_undoing_what_was_never_done_does_nothing(nodes: Nodes) -> None:
    for undo in (nodes.disks.drain, nodes.disks.unstall, nodes.disks.repair):
        undo(N1)


@pytest.mark.parametrize("status", ["running", "paused"])
def test_files_of_a_node_that_is_not_down_are_left_alone(nodes: Nodes, status: NodeStatus) -> None:
    (nodes.data / "a").write_bytes(b"a")
    nodes.status = status
    with pytest.raises(HarnessError, match=f"the node is {status}"):
        nodes.disks.change(N1, FileChange("flip", "a", 1))
    with pytest.raises(HarnessError, match=f"the node is {status}"):
        nodes.disks.wipe(N1)
    assert (nodes.data / "a").read_bytes() == b"a"


def test_a_wiped_folder_is_there_and_empty(nodes: Nodes) -> None:
    (nodes.data / "log").mkdir()
    (nodes.data / "log" / "a").write_bytes(b"four")
    (nodes.data / "link").symlink_to("log")
    assert nodes.disks.wipe(N1) == "1 files with 4 bytes"
    assert list(nodes.data.iterdir()) == []


def test_what_was_kept_can_be_put_back_after_a_wipe(nodes: Nodes) -> None:
    (nodes.data / "a").write_bytes(b"old")
    nodes.status = "running"
    nodes.disks.keep(N1)
    nodes.status = "exited"
    nodes.disks.wipe(N1)
    assert nodes.disks.change(N1, FileChange("restore", "a", 1)) is not None
    assert nodes.disks.read(N1, "a", 0, 99) == b"old"


def test_reading_what_is_not_there_says_so(nodes: Nodes) -> None:
    with pytest.raises(HarnessError, match="read a file of n1"):
        nodes.disks.read(N1, "nothing", 0, 1)


def test_the_state_of_a_folder_is_seen(nodes: Nodes, monkeypatch: pytest.MonkeyPatch) -> None:
    assert nodes.disks.state(N1, 5.0) == "writable"
    assert list(nodes.data.iterdir()) == []
    nodes.data.rmdir()
    assert nodes.disks.state(N1, 5.0) == "failing"
    import threading

    held = threading.Event()
    monkeypatch.setattr(local_disks, "state_of", lambda _: held.wait(10) and "writable")
    assert nodes.disks.state(N1, 0.01) == "stalled"
    held.set()


def test_power_is_told_by_the_nodes_own_table(tmp_path: Path) -> None:
    table = tmp_path / "table"
    table.write_text('{"path": "a", "length": 2, "named": true}\n')
    nodes = Nodes(tmp_path, str(table))
    (nodes.data / "a").write_bytes(b"abcd")
    (loss,) = nodes.disks.power_off([N1], 1)
    assert nodes.killed == [N1]
    assert loss.lost.startswith("lost ")
    assert "of 2 unflushed bytes of a" in loss.lost
    assert loss.lost.endswith("by the node's own table")
    assert (loss.synced_is_there, loss.unsynced_is_there) == (True, False)
    # Neither the node nor the next cut finds anything of them.
    assert [path.name for path in nodes.data.iterdir()] == ["a"]
    assert table.read_text() == '{"path": "a", "length": 2, "named": true}\n'


def test_canaries_tell_of_wrong_power_cuts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = tmp_path / "table"
    table.write_text('{"path": "a", "length": 2, "named": true}\n')
    nodes = Nodes(tmp_path, str(table))
    (nodes.data / "a").write_bytes(b"abcd")

    def take_all(data: Path, *_words: object) -> list[power.Loss]:
        for path in data.iterdir():
            path.unlink()
        return []

    monkeypatch.setattr(power, "lose_unflushed", lambda *_words: [])
    (loss,) = nodes.disks.power_off([N1], 1)
    assert (loss.synced_is_there, loss.unsynced_is_there) == (True, True)
    monkeypatch.setattr(power, "lose_unflushed", take_all)
    (loss,) = nodes.disks.power_off([N1], 1)
    assert (loss.synced_is_there, loss.unsynced_is_there) == (False, False)


@pytest.mark.parametrize("draw", range(20))
def test_no_luck_saves_the_canary_that_nobody_synced(tmp_path: Path, draw: int) -> None:
    table = tmp_path / "table"
    table.write_text("")
    (loss,) = Nodes(tmp_path, str(table)).disks.power_off([N1], draw)
    assert (loss.synced_is_there, loss.unsynced_is_there) == (True, False)


DRAWS = range(60)


def write_table(path: Path, **lengths: tuple[int, bool]) -> Path:
    lines = [
        json.dumps({"path": name, "length": length, "named": named}).ljust(511)
        for name, (length, named) in lengths.items()
    ]
    path.write_text("\n".join([" " * 511, *lines]) + "\n")
    return path


@pytest.mark.parametrize("draw", DRAWS)
def test_flushed_bytes_stay_and_others_are_cut_or_zeroed(tmp_path: Path, draw: int) -> None:
    content = Random(draw).randbytes(2_000)
    (tmp_path / "log").write_bytes(content)
    losses = lose_unflushed(tmp_path, write_table(tmp_path / "table", log=(700, True)), draw)
    left = (tmp_path / "log").read_bytes()
    assert left[:700] == content[:700]
    assert 700 <= len(left) <= 2_000
    bounds = [700, 1_024, 1_536, 2_000]
    for start, end in itertools.pairwise(bounds):
        piece = left[start:end]
        assert piece in (content[start : start + len(piece)], bytes(len(piece)))
    (loss,) = losses
    kept = sum(left[at : at + 1] == content[at : at + 1] for at in range(700, len(left)))
    assert loss.unflushed == 1_300
    assert loss.kept <= kept  # a zero may have been written there anyway


def test_the_tail_is_lost_whole_kept_in_part_and_torn() -> None:
    # Each fate must come up, or the fault shows only one kind of recovery.
    fates: set[str] = set()
    for draw in DRAWS:
        fate = Random(f"{draw} log")
        fate.random()
        fates.add(("whole", "cut", "torn")[int(fate.random() * 3)])
    assert fates == {"whole", "cut", "torn"}


def test_the_same_draw_takes_the_same_bytes(tmp_path: Path) -> None:
    left: list[bytes] = []
    for _ in range(2):
        (tmp_path / "log").write_bytes(bytes(range(250)) * 8)
        lose_unflushed(tmp_path, write_table(tmp_path / "table", log=(0, True)), 7)
        left.append((tmp_path / "log").read_bytes())
    assert left[0] == left[1]


def test_a_name_that_was_not_flushed_may_vanish_and_another_never_does(tmp_path: Path) -> None:
    seen: set[bool] = set()
    for draw in DRAWS:
        for name in ("safe", "new"):
            (tmp_path / name).write_bytes(b"12345")
        table = write_table(tmp_path / "table", safe=(5, True), new=(5, False))
        losses = lose_unflushed(tmp_path, table, draw)
        assert (tmp_path / "safe").read_bytes() == b"12345"
        seen.add((tmp_path / "new").exists())
        assert bool(losses) != (tmp_path / "new").exists()
    assert seen == {False, True}


def test_nothing_is_taken_where_all_is_flushed(tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(b"12345")
    table = write_table(tmp_path / "table", log=(5, True), gone=(5, True))
    assert lose_unflushed(tmp_path, table, 1) == []
    (tmp_path / "empty").mkdir()
    assert lose_unflushed(tmp_path / "empty", tmp_path / "none", 1) == []
    assert in_words([]) == "lost nothing unflushed"


def test_a_cut_without_a_table_never_passes_for_one(tmp_path: Path) -> None:
    """It would be a kill, after which nothing is lost, and be told as a power cut."""
    (tmp_path / "log").write_bytes(b"12345")
    with pytest.raises(HarnessError, match="it never told what it has flushed"):
        lose_unflushed(tmp_path, tmp_path / "none", 1)


def test_a_table_that_cannot_be_read_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "table").write_bytes(b"{not json\n")
    with pytest.raises(HarnessError, match=r"cut the power of a node.*durable lengths"):
        lose_unflushed(tmp_path, tmp_path / "table", 1)


@pytest.mark.parametrize("draw", range(8))
def test_a_node_s_storage_keeps_what_it_called_flushed(tmp_path: Path, draw: int) -> None:
    random = Random(draw)
    data, table = tmp_path / "data", tmp_path / "table"
    data.mkdir()
    lengths = DurableLengths(table, data)
    disk = CountingFileSystem(lengths)
    voter = Voter(NodeId(1), DirectoryId("01" * 16), "n1", 9093)
    format_storage(
        disk, data, StorageIdentity("test-cluster_1", NodeId(1), voter.directory_id, (voter,))
    )
    log, _ = LogStore.open(disk, data, segment_bytes=700)
    flushed = 0
    state = QuorumState(Epoch(0), None, None, None)
    for step in range(40):
        log.append_records(Offset(step), Epoch(step // 10), 0, [(None, random.randbytes(90))])
        if random.random() < 0.4:
            flushed = log.flush()
        if random.random() < 0.2:
            state = QuorumState(Epoch(step), None, None, None)
            QuorumStateFile(disk, data).write(state)
    log.close()
    lengths.close()
    lose_unflushed(data, table, draw)
    again, shape = LogStore.open(DiskFileSystem(), data)
    assert flushed <= shape.end_offset <= 40
    assert QuorumStateFile(DiskFileSystem(), data).read() in (state, None)
    again.close()
