"""Limits of what a file may ask of its reader: depth, packed bytes, time and memory."""

import gzip
import json
import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from splitbrain.contracts.budget import Budget
from splitbrain.harness.judge.bare_history import judge_history
from splitbrain.harness.pool.limits import Limits
from splitbrain.history import process_budget
from splitbrain.history.errors import HistoryError
from splitbrain.history.json_problems import DEPTH_MAX, is_too_deep
from splitbrain.history.opening import opened, reading_within
from splitbrain.history.process_budget import (
    PartClock,
    ProcessBudget,
    processor_seconds,
    resident_mib,
)
from tests.unit.harness.in_process import run_parts_here

LIMITS = Limits(30, 1024, 1)


@pytest.fixture(params=[0, 1 << 60], ids=["columns", "objects"])
def _both_ways(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("splitbrain.harness.judge.bare_judging.COLUMNS_FROM_BYTES", request.param)
    monkeypatch.setattr("splitbrain.harness.pool.workers.run_parts", run_parts_here)


def nested(depth: int, inner: str = "") -> str:
    return "[" * depth + inner + "]" * depth


def write(value: str, *, own: bool) -> str:
    rest = '"key": null, "node": null, "error": null, "position": null, "final": false, '
    return "".join(
        "{"
        + (f'"index": {index}, "time": {index}, {rest}' if own else "")
        + f'"process": 0, "type": "{type_}", "f": "write", "value": {value}}}\n'
        for index, type_ in enumerate(("invoke", "ok"))
    )


@pytest.mark.parametrize("depth", [1, 2, DEPTH_MAX, DEPTH_MAX + 1, 900])
@pytest.mark.parametrize("inner", ["", "1", '{"a": 1}'])
def test_depth_counts_collections(depth: int, inner: str) -> None:
    value = json.loads(nested(depth, inner))
    assert is_too_deep(value) == (depth + inner.startswith("{") > DEPTH_MAX)


def test_what_is_wide_is_not_deep() -> None:
    assert not is_too_deep([[[number]] for number in range(1000)])
    assert not is_too_deep({str(number): {"a": [number]} for number in range(1000)})


@pytest.mark.usefixtures("_both_ways")
@pytest.mark.parametrize("own", [True, False])
@pytest.mark.parametrize("depth", [DEPTH_MAX + 1, 400, 900, 5000])
def test_values_that_nobody_can_look_at_are_refused(tmp_path: Path, depth: int, own: bool) -> None:
    path = tmp_path / "h.jsonl"
    before = "" if own else write("1", own=False)
    path.write_text(before + write(nested(depth), own=own))
    with pytest.raises(HistoryError, match="it is nested too deeply") as caught:
        judge_history(path, "cas-register", None, LIMITS)
    assert caught.value.line == (1 if own else 3)


@pytest.mark.usefixtures("_both_ways")
@pytest.mark.parametrize("own", [True, False])
def test_values_as_deep_as_may_be_are_judged(tmp_path: Path, own: bool) -> None:
    path = tmp_path / "h.jsonl"
    path.write_text(write(nested(DEPTH_MAX), own=own))
    assert judge_history(path, "cas-register", None, LIMITS).exit_code == 0


@pytest.mark.usefixtures("_both_ways")
@pytest.mark.parametrize("depth", [DEPTH_MAX, DEPTH_MAX + 1, 900, 5000])
def test_values_in_tables_and_edn_are_bounded_alike(tmp_path: Path, depth: int) -> None:
    table = {"process": [0], "f": ["write"], "type": ["ok"], "start_ns": [1], "end_ns": [2]}
    pq.write_table(pa.table({**table, "argument": [nested(depth)]}), tmp_path / "h.parquet")
    edn = "{:process 0 :type :%s :f :write :value %s}\n"
    # The map around it is one, too.
    value = nested(depth - 1)
    (tmp_path / "h.edn").write_text("".join(edn % (type_, value) for type_ in ("invoke", "ok")))
    for name in ("h.parquet", "h.edn"):
        if depth <= DEPTH_MAX:
            assert judge_history(tmp_path / name, "cas-register", None, LIMITS).exit_code == 0
            continue
        with pytest.raises(HistoryError, match="nested too deeply"):
            judge_history(tmp_path / name, "cas-register", None, LIMITS)


def packed(path: Path, parts: Iterable[bytes]) -> Path:
    with gzip.open(path, "wb", compresslevel=1) as file:
        for part in parts:
            file.write(part)
    return path


EVENTS = write("1", own=False).encode()
BOMBS = {
    "h.jsonl.gz": (EVENTS, b'{"process": 0, "value": "'),
    "h.edn.gz": (b"{:process 0 :type :invoke :f :write :value 1}\n", b'{:process 0 :value "'),
    "h.log.gz": (b"x - 0\t:invoke\t:write\t1\n", b'x - 0\t:ok\t:write\t"'),
    "h.json.gz": (
        b'{"ClientId": 1, "Input": {"Type": "x"}, "Call": 3, "Output": {}, "Return": 9}\n',
        b'{"a',
    ),
}


@pytest.fixture
def blocks_read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Each block that is unpacked takes a mebibyte, which a busy process may have at hand."""
    blocks: list[int] = []

    def resident(process_id: int) -> float:
        blocks.append(process_id)
        return len(blocks)

    monkeypatch.setattr("splitbrain.history.opening.resident_mib", resident)
    return blocks


@pytest.mark.usefixtures("_both_ways")
@pytest.mark.parametrize("in_one_line", [True, False])
@pytest.mark.parametrize("name", BOMBS)
def test_a_packed_file_is_read_no_further_than_memory_lasts(
    tmp_path: Path, name: str, in_one_line: bool, blocks_read: list[int]
) -> None:
    line, beginning = BOMBS[name]
    many = line * ((1 << 20) // len(line))
    endless = [line, beginning, *[b"x" * (1 << 20)] * 40] if in_one_line else [many] * 40
    with pytest.raises(HistoryError, match="unpacked, it takes more than the memory budget of 8"):
        judge_history(packed(tmp_path / name, endless), "cas-register", None, Limits(30, 8, 1))
    assert len(blocks_read) == 9


_JUDGE = """
import re, sys
from pathlib import Path
from splitbrain.harness.judge.bare_history import judge_history
from splitbrain.harness.pool.limits import Limits
try:
    judge_history(Path(sys.argv[1]), "cas-register", None, Limits(30, 400, 1))
except Exception as error:
    print(error)
# Not what getrusage says: that of a child begins with what its parent had taken.
print(int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) // 1024)
"""


@pytest.mark.slow
def test_a_bomb_takes_no_more_memory_than_it_may(tmp_path: Path) -> None:
    # Packed, it is three megabytes.
    path = packed(tmp_path / "h.jsonl.gz", [EVENTS, b'{"a": "', *[b"x" * (1 << 20)] * 700])
    done = subprocess.run(
        [sys.executable, "-c", _JUDGE, str(path)],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])},
        capture_output=True,
        text=True,
        check=True,
    )
    said, memory_mib = done.stdout.strip().split("\n")
    assert "unpacked, it takes more than the memory budget of 400 MiB" in said
    assert int(memory_mib) < 450


def test_a_packed_file_that_fits_is_read_and_the_bound_ends_with_its_context(
    tmp_path: Path,
) -> None:
    path = packed(tmp_path / "h.jsonl.gz", [EVENTS])
    with reading_within(1), opened(path) as file, pytest.raises(HistoryError):
        file.read()
    with opened(path) as file:
        assert file.read() == EVENTS


class Clocks:
    """Readings in seconds, which the test sets: wall clock, this process's and another's use."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.wall, self.used = 100.0, 7.0
        monkeypatch.setattr(process_budget.time, "monotonic", lambda: self.wall)
        monkeypatch.setattr(process_budget.time, "process_time", lambda: self.used)
        monkeypatch.setattr(process_budget, "processor_seconds", lambda _: self.used)

    def run(self, wall: float, used: float) -> None:
        self.wall += wall
        self.used += used


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clocks:
    return Clocks(monkeypatch)


def test_time_is_used_up_at_its_end_and_not_before(clock: Clocks) -> None:
    budget: Budget = ProcessBudget(5, 1 << 20)
    clock.run(5, 5)
    assert budget.exhausted() is None
    clock.run(0.01, 0.01)
    assert budget.exhausted() == "time budget of 5 s used up"


def test_time_that_a_busy_machine_gave_to_others_is_not_used_up(clock: Clocks) -> None:
    budget, part = ProcessBudget(5, 1 << 20), PartClock(1)
    clock.run(90, 4.9)
    assert budget.exhausted() is None
    assert not part.is_used_up(5)
    clock.run(4, 0.2)
    assert budget.exhausted() == "time budget of 5 s used up"
    assert part.is_used_up(5)


def test_a_part_that_waits_has_its_budget_by_the_wall_clock(clock: Clocks) -> None:
    part = PartClock(1)
    clock.run(5, 0.05)
    assert not part.is_used_up(5)
    clock.run(0.1, 0)
    assert part.is_used_up(5)


def test_a_part_that_gets_next_to_nothing_of_a_processor_ends_too(clock: Clocks) -> None:
    budget, part = ProcessBudget(5, 1 << 20), PartClock(1)
    clock.run(101, 4)
    assert budget.exhausted() == "time budget of 5 s used up"
    assert part.is_used_up(5)


def test_the_processor_time_of_another_process_is_seen_until_it_is_gone() -> None:
    burning = (
        "import time\nwhile time.process_time() < 0.5: pass\nprint('burnt', flush=True)\ninput()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", burning], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:
        assert other.stdout is not None
        other.stdout.readline()
        assert 0.4 < processor_seconds(other.pid) < 5
    assert processor_seconds(other.pid) == 0.0


def test_memory_is_looked_at_now_and_then(clock: Clocks) -> None:
    budget = ProcessBudget(60, 1)
    assert budget.exhausted() is None
    clock.run(0.2, 0)
    assert budget.exhausted() == "memory budget of 1 MiB used up"


def test_another_process_has_memory_until_it_is_gone() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as other:
        assert resident_mib(other.pid) > 0
    assert resident_mib(other.pid) == 0.0
    assert resident_mib(os.getpid()) > 1
