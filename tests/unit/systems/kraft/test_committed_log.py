"""The neutral dump: what is in it, and how far it goes."""

from pathlib import Path

import msgspec
import pytest

from splitbrain.contracts.errors import HarnessError
from splitbrain.contracts.names import NodeName
from splitbrain.contracts.state_event import StateEvent
from splitbrain.nodes.quorum.identifiers import DirectoryId, Epoch, NodeId, Offset
from splitbrain.nodes.registers.commands import Add, CompareAndSet, Write, encode_command
from splitbrain.nodes.storage.disk import DiskFileSystem
from splitbrain.nodes.storage.identity import StorageIdentity, format_storage
from splitbrain.nodes.storage.log import LogStore
from splitbrain.nodes.wire.control import LeaderChange
from splitbrain.systems.kraft.adapter import KraftSystem
from splitbrain.systems.kraft.committed_log import committed_end, committed_log

N1 = NodeName("n1")
COMMANDS = [Write("o1", "r", 1), CompareAndSet("o2", "r", 1, 2), Add("o3", "s", 5)]


def make_log(folder: Path, timestamp_ms: int = 1) -> Path:
    """A folder with a leader change and three commands."""
    filesystem = DiskFileSystem()
    folder.mkdir()
    identity = StorageIdentity("c", NodeId(1), DirectoryId("ab" * 16), ())
    format_storage(filesystem, folder, identity)
    log, _ = LogStore.open(filesystem, folder)
    log.append_control(Offset(0), Epoch(1), 1, LeaderChange(NodeId(1), (), ()))
    payloads = [(None, encode_command(command)) for command in COMMANDS]
    log.append_records(Offset(1), Epoch(1), timestamp_ms, payloads)
    log.flush()
    log.close()
    return folder


def write_events(path: Path, *events: StateEvent) -> Path:
    path.write_bytes(b"".join(msgspec.json.encode(event) + b"\n" for event in events))
    return path


def event(kind: str, offset: int, incarnation: int = 0) -> StateEvent:
    return StateEvent("n1", 0, incarnation, kind, 1, offset=offset)  # type: ignore[arg-type]


def test_records_are_told_in_neutral_form(tmp_path: Path) -> None:
    log = committed_log(N1, make_log(tmp_path / "data"), None, converged_end=4)
    assert (log.node, log.start_offset, log.end_offset) == ("n1", 0, 4)
    told = [(r.offset, r.epoch, r.f, r.key, r.value) for r in log.records]
    assert told == [
        (0, 1, None, None, None),
        (1, 1, "write", "r", 1),
        (2, 1, "cas", "r", [1, 2]),
        (3, 1, "add", "s", 5),
    ]


def test_what_the_node_never_called_committed_is_left_out(tmp_path: Path) -> None:
    events = write_events(tmp_path / "events", event("high-watermark", 1), event("append", 4))
    log = committed_log(N1, make_log(tmp_path / "data"), events, converged_end=-1)
    assert log.end_offset == 1


def test_the_highest_claim_of_any_life_and_of_the_status_counts(tmp_path: Path) -> None:
    events = write_events(
        tmp_path / "events",
        event("commit", 3),
        event("high-watermark", 2, incarnation=1),
    )
    data = make_log(tmp_path / "data")
    assert committed_log(N1, data, events, converged_end=1).end_offset == 3
    assert committed_log(N1, data, events, converged_end=4).end_offset == 4


def test_a_log_that_ends_below_its_claim_is_dumped_as_it_is(tmp_path: Path) -> None:
    log = committed_log(N1, make_log(tmp_path / "data"), None, converged_end=9)
    assert log.end_offset == 4


def test_equal_bytes_have_equal_digests_and_others_do_not(tmp_path: Path) -> None:
    logs = [
        committed_log(N1, make_log(tmp_path / str(number), timestamp_ms), None, 4)
        for number, timestamp_ms in enumerate((1, 1, 2))
    ]
    first, same, other = ([record.digest for record in log.records] for log in logs)
    assert first == same
    assert first[0] == other[0]
    assert set(first[1:]).isdisjoint(other[1:])


def test_torn_and_foreign_lines_are_passed_over(tmp_path: Path) -> None:
    path = write_events(tmp_path / "events", event("high-watermark", 2))
    with path.open("ab") as file:
        file.write(b'{"node":"n1","se\n')
    assert committed_end(path) == 2
    assert committed_end(tmp_path / "missing") == -1


def test_the_folder_of_a_dead_run_is_enough(tmp_path: Path) -> None:
    state = tmp_path / "n1" / "state"
    state.mkdir(parents=True)
    write_events(state / "state_events.jsonl", event("high-watermark", 2))
    log = KraftSystem().committed_log(N1, make_log(tmp_path / "n1" / "data"))
    assert log.end_offset == 2


def test_without_any_claim_nothing_is_guessed(tmp_path: Path) -> None:
    with pytest.raises(HarnessError, match="neither state events"):
        committed_log(N1, make_log(tmp_path / "data"), None, converged_end=-1)


def test_an_unreadable_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(HarnessError, match="nowhere"):
        committed_log(N1, tmp_path / "nowhere", None, converged_end=1)
