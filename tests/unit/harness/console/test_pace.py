"""How far something is: n of m, a rate, and the time that is left."""

import json
import re
import threading
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from splitbrain.harness.cli.main import run as splitbrain
from splitbrain.harness.console.pace import Pace, pace_words, time_words
from splitbrain.harness.console.waiting import JUDGING, Waiting
from splitbrain.harness.judge import bare_columns, bare_judging
from splitbrain.harness.pool import workers
from splitbrain.harness.pool.limits import Limits


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0.4, "0 s"), (119, "119 s"), (420, "7 min"), (7_500, "2 h 5 min")],
)
def test_a_time_is_told_as_one_waits_for_it(seconds: float, words: str) -> None:
    assert time_words(seconds) == words


@pytest.mark.parametrize(
    ("done", "total", "elapsed_s", "of_this_time", "words"),
    [
        (0, 1, 9.0, None, "0 of 1 run"),
        (120, 300, 5.0, None, "120 of 300 runs, 24.0 a second, 8 s left"),
        (2, 20, 240.0, None, "2 of 20 runs, 0.5 a minute, 36 min left"),
        # A night that goes on: ten are of another day.
        (12, 20, 240.0, 2, "12 of 20 runs, 0.5 a minute, 16 min left"),
        (12, 20, 240.0, 0, "12 of 20 runs"),
        (20, 20, 40.0, None, "20 of 20 runs, 30.0 a minute"),
    ],
)
def test_a_pace_is_of_what_was_done_in_its_time(
    done: int, total: int, elapsed_s: float, of_this_time: int | None, words: str
) -> None:
    assert pace_words(done, total, "run", elapsed_s, of_this_time=of_this_time) == words


def test_bytes_are_told_in_mebibytes() -> None:
    pace = Pace("MiB read", plural="MiB read")
    pace.took_bytes((3 << 20) + 5, 9 << 20)
    assert pace.words == "3 of 9 MiB read"
    pace.took_bytes((9 << 20) + 7, (9 << 20) + 7)
    assert pace.words is None


def test_each_round_has_a_pace_of_its_own() -> None:
    now_s = 0.0
    pace = Pace("operation", lambda: now_s)
    assert pace.words is None
    pace.took(0, 1000)
    now_s = 10.0
    pace.took(200, 1000)
    assert pace.words == "200 of 1,000 operations, 20.0 a second, 40 s left"
    pace.took(1000, 1000)
    assert pace.words is None
    pace.took(0, 10)
    now_s = 11.0
    pace.took(5, 10)
    assert pace.words == "5 of 10 operations, 5.0 a second, 1 s left"


def test_workers_tell_the_weight_of_what_is_done() -> None:
    told: list[tuple[int, int]] = []
    limits = Limits(30.0, 4096, 1, lambda done, total: told.append((done, total)))
    parts = [workers.Part("operator:neg", weight, weight) for weight in (3, 2, 1)]
    workers.run_parts(parts, limits)
    assert told[-1] == (6, 6)
    assert [done for done, _ in told] == sorted(done for done, _ in told)


class Read(StringIO):
    """A text, and whether a reader has seen what it waits for."""

    def __init__(self, wanted: str) -> None:
        super().__init__()
        self._wanted, self.is_there = wanted, threading.Event()

    def write(self, text: str, /) -> int:
        if self._wanted in text:
            self.is_there.set()
        return super().write(text)


def test_what_is_no_terminal_gets_a_line_now_and_then() -> None:
    text = Read("300 of 1,000")
    waiting = Waiting(Console(file=text, width=200), interval_s=0.01)
    pace = waiting.pace(JUDGING, "operation")
    with waiting.during(JUDGING):
        pace.took(0, 1000)
        pace.took(300, 1000)
        assert text.is_there.wait(30)
    assert re.search(r"judging, 0 s, 300 of 1,000 operations", text.getvalue())
    assert text.getvalue().splitlines()[-1].startswith("judging took ")


@pytest.mark.parametrize("large", [True, False])
def test_a_bare_history_tells_how_much_is_read_and_how_many_operations_are_judged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, large: bool
) -> None:
    told: list[tuple[int, int]] = []
    read: list[tuple[int, int]] = []
    monkeypatch.setattr(Pace, "took", lambda _, done, total: told.append((done, total)))
    monkeypatch.setattr(Pace, "took_bytes", lambda _, done, total: read.append((done, total)))
    monkeypatch.setattr(bare_judging, "COLUMNS_FROM_BYTES", 0 if large else 1 << 40)
    lines = [
        {"process": key, "type": kind, "f": "write", "key": str(key), "value": 1, "time": time}
        for key in range(3)
        for time, kind in enumerate(("invoke", "ok"))
    ]
    path = tmp_path / "history.jsonl"
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    assert splitbrain(["check", str(path)]) == 0
    assert (3, 3) in told
    assert (path.stat().st_size, path.stat().st_size) in read


def test_workers_that_share_a_file_tell_its_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bare_columns, "SHARED_FROM_BYTES", 1)
    path = tmp_path / "history.jsonl"
    event = '"process":1,"f":"write","key":"a","value":1'
    path.write_text(
        "".join(
            f'{{"index":{index},"time":{index},"type":"{kind}",{event}}}\n'
            for index, kind in enumerate(("invoke", "ok") * 50)
        )
    )
    monkeypatch.setattr(bare_columns, "_RANGE_BYTES", path.stat().st_size // 3)
    read: list[tuple[int, int]] = []
    # One worker: two may end at the same moment, so that no step between is told.
    limits = Limits(30.0, 4096, 1, read=lambda done, total: read.append((done, total)))
    assert bare_columns.read_shared(path, None, limits, lambda: None, []) is not None
    size = path.stat().st_size
    assert read[-1] == (size, size)
    assert {0 < done < size for done, _ in read} == {True, False}
