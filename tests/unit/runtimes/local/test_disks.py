"""What can be done to folders is done on nodes that are down, and all else is refused by name."""

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from splitbrain.contracts.arms import FileChange
from splitbrain.contracts.errors import CapabilityError, HarnessError
from splitbrain.contracts.names import NodeName
from splitbrain.contracts.runtime import NodeSpec, NodeStatus
from splitbrain.runtimes.local import disks as local_disks
from splitbrain.runtimes.local import power
from splitbrain.runtimes.local.disks import LocalDisks

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
def test_what_needs_a_disk_is_refused_by_name(
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


def test_a_power_cut_that_takes_nothing_or_too_much_is_told_by_its_canaries(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
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
