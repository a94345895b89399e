"""State events: the shared shape, written at once, and whole after a torn end."""

from pathlib import Path

import msgspec

from splitbrain.contracts.state_event import StateEvent
from splitbrain.nodes.server.machine.state_events import StateEvent as NodeStateEvent
from splitbrain.nodes.server.machine.state_events import StateEventFile, last_incarnation


def read(path: Path) -> list[StateEvent]:
    return [msgspec.json.decode(line, type=StateEvent) for line in path.read_bytes().splitlines()]


def test_every_event_is_in_the_file_when_the_call_returns(tmp_path: Path) -> None:
    path = tmp_path / "state_events.jsonl"
    events = StateEventFile(path, "n1", 3)
    events.write("started", 0, role="unattached")
    assert len(read(path)) == 1
    events.write("append", 2, base_offset=4, offset=7)
    first, second = read(path)
    assert (first.kind, first.sequence, first.incarnation) == ("started", 0, 3)
    assert (second.sequence, second.base_offset, second.offset) == (1, 4, 7)
    assert first.node_time is not None
    assert second.node_time is not None
    assert first.node_time <= second.node_time


def test_a_later_life_appends_and_ends_a_torn_line(tmp_path: Path) -> None:
    path = tmp_path / "state_events.jsonl"
    StateEventFile(path, "n1", 0).write("started", 0)
    with path.open("ab") as file:
        file.write(b'{"node":"n1","seq')  # a kill in the middle of a write
    StateEventFile(path, "n1", 1).write("started", 5)
    lines = path.read_bytes().splitlines()
    assert len(lines) == 3
    assert msgspec.json.decode(lines[2], type=StateEvent).incarnation == 1


def test_the_last_life_is_read_past_a_torn_end(tmp_path: Path) -> None:
    path = tmp_path / "state_events.jsonl"
    assert last_incarnation(path) is None
    path.touch()
    assert last_incarnation(path) is None
    for incarnation in (0, 4):
        StateEventFile(path, "n1", incarnation).write("started", 0)
    with path.open("ab") as file:
        file.write(b'{"node":"n1","seq')
    assert last_incarnation(path) == 4


def test_the_node_writes_the_fields_of_the_shared_record() -> None:
    shared = set(StateEvent.__struct_fields__) - {"time"}
    assert set(NodeStateEvent.__struct_fields__) == shared


def test_without_a_file_nothing_is_written() -> None:
    events = StateEventFile(None, "n1", 0)
    events.write("started", 0)
    events.close()
