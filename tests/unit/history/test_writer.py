"""Promises of the writer to a reader after a crash."""

import errno
import os
import signal
import subprocess
import sys
import threading
from itertools import count
from pathlib import Path

import msgspec
import pytest

from splitbrain.contracts.errors import HarnessError
from splitbrain.history.reader import HistoryReader
from splitbrain.history.records import Event
from splitbrain.history.writer import HistoryWriter, LineWriter, stamped_line

CHILD = """
import os, signal, sys
from pathlib import Path
from splitbrain.history.writer import HistoryWriter

writer = HistoryWriter(Path(sys.argv[1]), iter(range(10**9)).__next__, sync_interval_s=3600)
for process in range(500):
    event = writer.append(process, "invoke", "write", key="r0-0", value=process, node="n1")
    print(event.index, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "history.jsonl"


@pytest.fixture
def history(path: Path) -> HistoryWriter:
    return HistoryWriter(path, count().__next__)


def test_events_come_back_as_they_were_written(history: HistoryWriter, path: Path) -> None:
    written = [
        history.append(0, "invoke", "cas", key="r0-0", value=[1, 2], node="n1"),
        history.append(0, "ok", "cas", key="r0-0", value=[1, 2, True], position=(3, 17)),
        history.append(1, "invoke", "read", key="r0-0", final=True),
        history.append(1, "fail", "read", key="r0-0", error="not-leader", final=True),
    ]
    history.close()
    assert list(HistoryReader(path)) == written
    assert [event.index for event in written] == [0, 1, 2, 3]
    assert history.count == 4


def test_an_event_is_in_the_file_before_append_returns(history: HistoryWriter, path: Path) -> None:
    for number in range(1, 20):
        history.append(0, "invoke", "write", value=number)
        assert path.read_bytes().count(b"\n") == number
    history.close()


def test_a_killed_writer_leaves_every_event_that_it_had_told_of(path: Path) -> None:
    child = subprocess.run(
        [sys.executable, "-c", CHILD, str(path)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry)},
    )
    assert child.returncode == -signal.SIGKILL, child.stderr
    told = [int(line) for line in child.stdout.splitlines()]
    assert told == list(range(500))
    assert [event.index for event in HistoryReader(path)] == told


def test_threads_get_indexes_without_gaps_and_times_that_never_decrease(
    history: HistoryWriter, path: Path
) -> None:

    def work(process: int) -> None:
        for _ in range(200):
            history.append(process, "invoke", "read")
            history.append(process, "ok", "read")

    threads = [threading.Thread(target=work, args=(process,)) for process in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    history.close()
    events = list(HistoryReader(path))
    assert [event.index for event in events] == list(range(3200))
    times = [event.time for event in events]
    assert times == sorted(times)


def test_the_file_is_synced_regularly_and_at_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[int] = []
    arrived = threading.Event()
    real = os.fsync

    def fsync(descriptor: int) -> None:
        real(descriptor)
        synced.append(os.fstat(descriptor).st_size)
        arrived.set()

    monkeypatch.setattr(os, "fsync", fsync)
    lines = LineWriter(tmp_path / "lines.jsonl", sync_interval_s=0.01)
    lines.append({"a": 1})
    assert arrived.wait(5)
    assert synced[0] == len(b'{"a":1}\n')
    lines.append({"b": 2})
    lines.close()
    assert synced[-1] == 2 * len(b'{"a":1}\n')


def test_short_writes_are_completed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.write
    monkeypatch.setattr(os, "write", lambda descriptor, data: real(descriptor, bytes(data)[:3]))
    with LineWriter(tmp_path / "lines.jsonl") as lines:
        lines.append({"key": "value"})
    assert msgspec.json.decode((tmp_path / "lines.jsonl").read_bytes()) == {"key": "value"}


def test_a_full_disk_is_told_in_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = LineWriter(tmp_path / "lines.jsonl")

    def refuse(descriptor: int, data: bytes) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "write", refuse)
        with pytest.raises(HarnessError, match=r"write to the file .*No space left"):
            lines.append({})
    lines.close()


class FullDisk:
    """Takes so many bytes, then nothing."""

    def __init__(self, room: int) -> None:
        self.room = room
        self._write = os.write

    def write(self, descriptor: int, data: bytes) -> int:
        taken = bytes(data)[: self.room]
        if not taken:
            raise OSError(errno.ENOSPC, "No space left on device")
        self.room -= len(taken)
        return self._write(descriptor, taken)


def test_a_line_that_does_not_fit_leaves_no_half_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = FullDisk(room=15)
    monkeypatch.setattr(os, "write", disk.write)
    with LineWriter(tmp_path / "lines.jsonl") as lines:
        lines.append({"a": 1})
        with pytest.raises(HarnessError, match="No space left"):
            lines.append({"b": 22})
        disk.room = 100
        lines.append({"c": 3})
    assert (tmp_path / "lines.jsonl").read_bytes() == b'{"a":1}\n{"c":3}\n'


def test_a_history_ends_before_the_first_event_that_was_refused(
    history: HistoryWriter, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = history.append(0, "invoke", "write", value=1)
    disk = FullDisk(room=10)
    with monkeypatch.context() as patched:
        patched.setattr(os, "write", disk.write)
        with pytest.raises(HarnessError, match="No space left"):
            history.append(0, "ok", "write", value=1)
    # There is room again, but what was refused is missing: nothing may follow it.
    with pytest.raises(HarnessError, match="No space left"):
        history.append(1, "invoke", "read")
    with pytest.raises(HarnessError, match="No space left"):
        history.append_stamped([stamped_line(written)])
    history.close()
    assert list(HistoryReader(path)) == [written]
    assert history.count == 1


def test_of_several_lines_at_once_the_whole_ones_that_fit_stay(
    history: HistoryWriter, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    events = [Event(index, 7, index, "invoke", "read") for index in range(3)]
    size = len(msgspec.json.encode(events[0])) + 1
    with monkeypatch.context() as patched:
        patched.setattr(os, "write", FullDisk(room=2 * size + 5).write)
        with pytest.raises(HarnessError, match="No space left"):
            history.append_stamped([stamped_line(event) for event in events])
    history.close()
    assert list(HistoryReader(path)) == events[:2]


def append_often(lines: LineWriter) -> None:
    for _ in range(100_000):  # the syncing thread may not have noted yet what it met
        lines.append({})


def test_a_failed_sync_is_told_by_the_next_append(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    failed = threading.Event()

    def refuse(descriptor: int) -> None:
        failed.set()
        raise OSError(errno.EIO, "Input/output error")

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", refuse)
        lines = LineWriter(tmp_path / "lines.jsonl", sync_interval_s=0.01)
        lines.append({})
        assert failed.wait(5)
        with pytest.raises(HarnessError, match=r"sync the file .*Input/output error"):
            append_often(lines)
    lines.close()


def test_stamped_events_get_their_index_and_look_like_all_others(
    history: HistoryWriter, path: Path
) -> None:
    first = history.append(0, "invoke", "cas", key="r0-0", value=[1, 2], node="n1")
    stamped = [
        Event(0, 7, 3, "invoke", "read", "r1-0"),
        Event(0, 8, 3, "ok", "read", "r1-0", {"quote": '"}'}, "n2", None, (3, 17), final=True),
    ]
    history.append_stamped([])
    history.append_stamped([stamped_line(event) for event in stamped])
    last = history.append(0, "ok", "cas", key="r0-0", value=[1, 2, True])
    history.close()
    assert list(HistoryReader(path)) == [
        first,
        *(msgspec.structs.replace(event, index=1 + n) for n, event in enumerate(stamped)),
        last,
    ]
    assert last.index == 3


def test_a_place_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(HarnessError, match="could not open the file"):
        LineWriter(tmp_path / "file" / "lines.jsonl")


def test_a_closed_writer_takes_nothing_and_closes_again_in_peace(tmp_path: Path) -> None:
    lines = LineWriter(tmp_path / "lines.jsonl")
    lines.close()
    lines.close()
    with pytest.raises(RuntimeError, match="closed"):
        lines.append({})
