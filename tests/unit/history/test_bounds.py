"""What a file may ask of its reader: values nested so deep, packed bytes of so much memory."""

import gzip
import json
import os
from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from harness.bare_history import judge_history
from harness.limits import Limits
from history.errors import HistoryError
from history.json_problems import DEPTH_MAX, is_too_deep
from history.opening import opened, reading_within
from history.process_budget import resident_mib
from tests.unit.harness.in_process import run_parts_here

LIMITS = Limits(30, 1024, 1)


@pytest.fixture(params=[0, 1 << 60], ids=["columns", "objects"])
def _both_ways(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.bare_judging.COLUMNS_FROM_BYTES", request.param)
    monkeypatch.setattr("harness.workers.run_parts", run_parts_here)


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


@pytest.mark.usefixtures("_both_ways")
@pytest.mark.parametrize("name", BOMBS)
def test_a_packed_file_of_one_line_without_end_is_refused(tmp_path: Path, name: str) -> None:
    line, beginning = BOMBS[name]
    # Packed, it is a megabyte and a half.
    path = packed(tmp_path / name, [line, beginning, *[b"x" * (1 << 20)] * 320])
    limits = Limits(30, int(resident_mib(os.getpid())) + 100, 1)
    with pytest.raises(HistoryError, match="unpacked, it takes more than the memory budget"):
        judge_history(path, "cas-register", None, limits)
    assert resident_mib(os.getpid()) < limits.memory_budget_mib + 300


@pytest.mark.usefixtures("_both_ways")
def test_a_packed_file_of_very_many_lines_is_refused(tmp_path: Path) -> None:
    path = packed(tmp_path / "h.jsonl.gz", [EVENTS * 10_000] * 40)
    limits = Limits(30, int(resident_mib(os.getpid())) + 60, 1)
    with pytest.raises(HistoryError, match="unpacked, it takes more than the memory budget"):
        judge_history(path, "cas-register", None, limits)


def test_a_packed_file_that_fits_is_read_and_the_bound_ends_with_its_context(
    tmp_path: Path,
) -> None:
    path = packed(tmp_path / "h.jsonl.gz", [EVENTS])
    with reading_within(1), opened(path) as file, pytest.raises(HistoryError):
        file.read()
    with opened(path) as file:
        assert file.read() == EVENTS
