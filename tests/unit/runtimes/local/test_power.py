"""A power cut takes what was not flushed and nothing else, as the draw settles."""

import itertools
import json
from pathlib import Path
from random import Random

import pytest

from splitbrain.contracts.errors import HarnessError
from splitbrain.nodes.quorum.identifiers import DirectoryId, Epoch, NodeId, Offset
from splitbrain.nodes.quorum.persistent import QuorumState, Voter
from splitbrain.nodes.storage.disk import DiskFileSystem
from splitbrain.nodes.storage.durable_lengths import CountingFileSystem, DurableLengths
from splitbrain.nodes.storage.identity import StorageIdentity, format_storage
from splitbrain.nodes.storage.log import LogStore
from splitbrain.nodes.storage.quorum_state import QuorumStateFile
from splitbrain.runtimes.local.power import in_words, lose_unflushed

DRAWS = range(60)


def write_table(path: Path, **lengths: tuple[int, bool]) -> Path:
    lines = [
        json.dumps({"path": name, "length": length, "named": named}).ljust(511)
        for name, (length, named) in lengths.items()
    ]
    path.write_text("\n".join([" " * 511, *lines]) + "\n")
    return path


@pytest.mark.parametrize("draw", DRAWS)
def test_flushed_bytes_stay_and_the_rest_is_cut_or_zeroed_by_sector(
    tmp_path: Path, draw: int
) -> None:
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
    disk = CountingFileSystem(DiskFileSystem(), lengths)
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
