"""The parts of a run on their own: store, state events, display, the small ones."""

import io
import re
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from rich.console import Console

from splitbrain.contracts.errors import HarnessError, UsageError
from splitbrain.contracts.fault import FaultEvent
from splitbrain.contracts.names import NodeName
from splitbrain.contracts.state_event import StateEvent
from splitbrain.harness.console.stop import NotYetError, Stop
from splitbrain.harness.console.waiting import Waiting
from splitbrain.harness.folder.store import create_run, find_run, is_alive
from splitbrain.harness.run.down_nodes import DownNodes
from splitbrain.harness.run.live import LiveDisplay
from splitbrain.harness.run.load.routes import reader_slots, routes
from splitbrain.harness.run.load.seat import Processes
from splitbrain.harness.run.progress import Progress
from splitbrain.harness.run.run_clock import RunClock
from splitbrain.harness.run.state_tailer import StateEventTailer
from splitbrain.harness.run.traffic import Traffic
from splitbrain.history.course import Phase, read_phases
from splitbrain.history.run_folder import RunFolder
from splitbrain.history.writer import LineWriter
from tests.unit.harness.ended_operations import ended

N1 = NodeName("n1")
NODES = tuple(NodeName(f"n{number}") for number in (1, 2, 3))


@pytest.fixture
def progress(tmp_path: Path) -> Iterator[Progress]:
    with LineWriter(tmp_path / "phases.jsonl") as lines:
        yield Progress(RunClock(), lines, Traffic())


# --- store ------------------------------------------------------------------------------------


def test_runs_of_one_second_get_folders_of_their_own_and_the_latest_is_linked(
    tmp_path: Path,
) -> None:
    with create_run(tmp_path, "t", 7) as first, create_run(tmp_path, "t", 7) as second:
        assert first.folder.root != second.folder.root
        assert first.run_id.split("-")[1] == "7"
        assert (tmp_path / "latest").resolve() == second.folder.root
        assert not (tmp_path / "latest").readlink().is_absolute()
        assert is_alive(first.folder)
    assert not is_alive(first.folder)


def test_a_folder_without_a_lock_is_not_alive(tmp_path: Path) -> None:
    assert not is_alive(RunFolder(tmp_path))


def test_what_is_no_run_folder_is_told(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is no run folder"):
        find_run(tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(HarnessError, match="could not make the run folder"):
        create_run(tmp_path / "file", "t", 1)


# --- small parts ------------------------------------------------------------------------------


def test_processes_keep_their_slot_and_never_come_back() -> None:
    processes = Processes(3)
    handed = [processes.fresh(slot) for slot in (0, 1, 2, 1, 1, 4)]
    assert handed == [0, 1, 2, 4, 7, 10]


def test_slots_follow_and_are_pinned_in_turn() -> None:
    kinds = [(route.kind, route.node) for route in routes(NODES, 7)]
    assert kinds == [
        *(("leader", "n1"), ("pinned", "n1"), ("leader", "n2"), ("pinned", "n2")),
        *(("leader", "n3"), ("pinned", "n3"), ("leader", "n1")),
    ]


def test_one_pinned_slot_of_each_node_only_reads_where_others_write_too() -> None:
    assert reader_slots(NODES, 10) == {1, 3, 5}
    assert reader_slots(NODES, 6) == frozenset()
    # Further slots that only read change nothing about the others.
    assert reader_slots(NODES, 14, readers=4) == {1, 3, 5, 10, 11, 12, 13}
    assert reader_slots(NODES, 10, readers=4) == {6, 7, 8, 9}
    further = routes(NODES, 10, readers=4)
    assert further[:6] == routes(NODES, 6)
    assert [(route.kind, route.node) for route in further[6:]] == [
        *(("pinned", node) for node in NODES),
        ("pinned", NODES[0]),
    ]


def test_slots_are_pinned_to_nodes_that_do_not_vote_where_there_are_such() -> None:
    brokers = (NodeName("n4"), NodeName("n5"))
    found = [(route.kind, route.node) for route in routes(NODES, 6, brokers)]
    assert found == [
        *(("leader", "n1"), ("pinned", "n4"), ("leader", "n2")),
        *(("pinned", "n5"), ("leader", "n3"), ("pinned", "n4")),
    ]
    assert reader_slots(NODES, 6, brokers) == {1, 3, 5}


def test_a_change_during_the_look_excuses_an_exit() -> None:
    down = DownNodes()
    before = down.excuse(N1)
    assert before == down.excuse(N1)
    down.expect([N1])
    assert down.all() == (N1,)
    assert down.excuse(N1)[0]
    down.back([N1])
    assert not down.excuse(N1)[0]
    assert before != down.excuse(N1)


def test_waiting_ends_with_patience_or_with_the_run() -> None:
    stop = Stop()

    def never() -> None:
        raise NotYetError("nothing yet")

    with pytest.raises(NotYetError, match="nothing yet"):
        stop.retrying(0.05, 0.01, NotYetError)(never)
    threading.Timer(0.05, stop.interrupt).start()
    with pytest.raises(NotYetError):
        stop.retrying(60.0, 0.01, NotYetError)(never)
    assert stop.interrupted


def test_the_first_failure_is_kept() -> None:
    stop = Stop()
    first = HarnessError("a", "b", "c", "d")
    stop.fail(first)
    stop.fail(HarnessError("e", "f", "g", "h"))
    assert stop.failure is first
    assert stop.is_set()
    assert not stop.interrupted


def test_traffic_knows_since_when_it_flows() -> None:
    traffic = Traffic()
    traffic.completed(ended("fail", "n1"), 50)
    assert not traffic.acknowledged_since(10)
    traffic.completed(ended("ok", "n1"), 20)
    traffic.completed(ended("ok", "n2"), 15)
    assert traffic.acknowledged_since(19)
    assert not traffic.acknowledged_since(20)
    assert not traffic.acknowledged_since(15, "n2")
    counts = traffic.counts()
    assert (counts.ok, counts.fail, counts.total, counts.ok_by_node) == (
        2,
        1,
        3,
        {"n1": 1, "n2": 1},
    )


def test_phases_are_read_back_without_a_torn_last_line(tmp_path: Path) -> None:
    assert read_phases(tmp_path) == []
    with LineWriter(RunFolder(tmp_path).phases) as lines:
        lines.append(Phase(1, "deploying"))
    with RunFolder(tmp_path).phases.open("ab") as file:
        file.write(b'{"time":2,"pha')
    assert read_phases(tmp_path) == [Phase(1, "deploying")]


# --- state events -----------------------------------------------------------------------------


def line(sequence: int, **fields: Any) -> bytes:
    event = StateEvent("n1", sequence, 0, fields.pop("kind", "commit"), 3, **fields)
    return msgspec.json.encode(event) + b"\n"


def tail(tmp_path: Path, progress: Progress, stop: Stop) -> tuple[StateEventTailer, Path]:
    raw = tmp_path / "raw.jsonl"
    tailer = StateEventTailer({N1: raw}, RunFolder(tmp_path), RunClock(), progress, stop)
    return tailer, raw


def test_state_events_are_stamped_in_order_and_whole(tmp_path: Path, progress: Progress) -> None:
    tailer, raw = tail(tmp_path, progress, Stop())
    tailer.start()
    torn = line(1, kind="role", role="leader")
    with raw.open("ab", buffering=0) as file:
        file.write(line(0) + torn[:10])
        file.write(torn[10:] + line(2)[:15])
    tailer.finish()
    stamped = RunFolder(tmp_path).state_events(N1).read_bytes().splitlines()
    events = [msgspec.json.decode(text, type=StateEvent) for text in stamped]
    # The third was never finished: its writer died in the middle.
    assert [event.sequence for event in events] == [0, 1]
    times = [event.time for event in events]
    assert None not in times
    assert times == sorted(times)  # type: ignore[type-var]
    assert (progress.leader, progress.epoch) == ("n1", 3)


def test_a_line_that_is_no_state_event_fails_the_harness(
    tmp_path: Path, progress: Progress
) -> None:
    stop = Stop()
    tailer, raw = tail(tmp_path, progress, stop)
    raw.write_bytes(b'{"kind": "lunch"}\n')
    tailer.start()
    assert stop.wait(5)
    assert "could not read a state event" in str(stop.failure)
    tailer.finish()


def test_a_node_without_state_events_leaves_an_empty_file(
    tmp_path: Path, progress: Progress
) -> None:
    tailer, _ = tail(tmp_path, progress, Stop())
    tailer.start()
    tailer.finish()
    assert RunFolder(tmp_path).state_events(N1).read_bytes() == b""


# --- display ----------------------------------------------------------------------------------


def show(progress: Progress, *, terminal: bool) -> str:
    output = io.StringIO()
    console = Console(file=output, force_terminal=terminal, width=100)
    with LiveDisplay(console, progress, "splitbrain kraft-register, seed 7") as display:
        progress.reached("load-started")
        progress.led_by("n2", 4)
        progress.fault_event(FaultEvent(1, 0, "kill", "verified", "leader", (N1,), evidence="gone"))
        progress.say("strange \x1b[31m text")
        if terminal:
            console.print(display._panel())
    return output.getvalue()


def test_without_a_terminal_each_event_is_a_plain_line(progress: Progress) -> None:
    text = show(progress, terminal=False)
    assert "kill:leader on n1 verified (gone)" in text
    assert "n2 leads epoch 4" in text
    assert "strange \\x1b[31m text" in text
    assert "\x1b" not in text


def test_on_a_terminal_a_panel_shows_leader_fault_and_figures(progress: Progress) -> None:
    progress.traffic.completed(ended("ok", "n2"), 1)
    text = show(progress, terminal=True)
    assert "n2, epoch 4" in text
    assert "kill:leader on n1" in text
    assert "1 ok, 0 fail, 0 info" in text


def test_a_terminal_shows_all_that_is_waited_for_and_keeps_how_long_it_took() -> None:
    output = io.StringIO()
    waiting = Waiting(Console(file=output, force_terminal=True, width=80))
    with waiting.during("judging"), waiting.during("analysing with Spark"):
        assert re.fullmatch(
            r"judging, \d+ s; analysing with Spark, \d+ s "
            r"\(Spark takes its time to start; --no-analyze leaves it out\)",
            waiting._line().plain,
        )
    assert re.search(r"judging took \d+\.\d s", output.getvalue())
    assert re.search(r"analysing with Spark took \d+\.\d s", output.getvalue())
    assert waiting._drawn is None


def test_what_failed_is_not_said_to_be_done_and_leaves_no_display() -> None:
    output = io.StringIO()
    waiting = Waiting(Console(file=output, force_terminal=True, width=80))
    with pytest.raises(UsageError), waiting.during("judging"):
        raise UsageError("a", "b")
    assert "took" not in output.getvalue()
    assert waiting._drawn is None


def test_an_older_epoch_does_not_replace_a_newer_one(progress: Progress) -> None:
    progress.led_by("n2", 4)
    progress.led_by("n1", 3)
    assert (progress.leader, progress.epoch) == ("n2", 4)
