"""Files of others: who did what, when, and where the file ends.

Each is tried as columns, as a large file is read, and as objects.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from splitbrain.harness.cli import main as cli
from splitbrain.harness.judge.bare_history import judge_history
from splitbrain.harness.pool.limits import Limits
from splitbrain.history.errors import HistoryError
from tests.unit.harness.in_process import run_parts_here

LIMITS = Limits(30, 1024, 1)


class Said(NamedTuple):
    """Exit code, results where there are any, and the error."""

    code: int
    results: dict[str, Any]
    error: str

    @property
    def problems(self) -> str:
        return " ".join(self.results["problems"])


@pytest.fixture(params=[0, 1 << 60], ids=["columns", "objects"])
def check(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Said]:
    """Writes a file and judges it."""
    monkeypatch.setattr("splitbrain.harness.judge.bare_judging.COLUMNS_FROM_BYTES", request.param)
    monkeypatch.setattr("splitbrain.harness.pool.workers.run_parts", run_parts_here)

    def checked(name: str, text: str = "", model: str = "cas-register") -> Said:
        path = tmp_path / name
        if text:
            path.write_text(text, encoding="utf-8")
        try:
            results = judge_history(path, model, None, LIMITS)
        except HistoryError as error:
            return Said(64, {}, str(error))
        return Said(results.exit_code, msgspec.to_builtins(results), "")

    return checked


def jsonl(*events: tuple[Any, str, str, Any, Any]) -> str:
    names = ("process", "type", "f", "value", "time")
    return "".join(json.dumps(dict(zip(names, event, strict=True))) + "\n" for event in events)


def edn(*events: tuple[Any, str, str, Any, Any]) -> str:
    return "".join(
        f"{{:process {process}, :type :{type_}, :f :{f}, "
        f":value {'nil' if value is None else value}, :time {time}}}\n"
        for process, type_, f, value, time in events
    )


def stale(one: Any, other: Any, times: tuple[Any, ...] = (1, 2, 3, 4)) -> Any:
    """A read that misses a write which was over before it began, by two processes."""
    return (
        (one, "invoke", "write", 1, times[0]),
        (one, "ok", "write", 1, times[1]),
        (other, "invoke", "read", None, times[2]),
        (other, "ok", "read", None, times[3]),
    )


@pytest.mark.parametrize("times", [(0.1, 0.2, 0.3, 0.4), (1, 1.5, 2, 3), (1e-3, 1, 2, 3)])
def test_times_in_seconds_are_refused_with_their_line(check: Any, times: tuple[Any, ...]) -> None:
    for said in (
        check("h.jsonl", jsonl(*stale(0, 1, times))),
        check("h.edn", edn(*stale(0, 1, times))),
    ):
        assert said.code == 64
        assert "which is no whole number. Write all times as whole numbers" in said.error
        assert ", line " in said.error


@pytest.mark.parametrize("times", [(1.0, 2.0, 3.0, 4.0), (1e3, 2e3, 3e3, 4e3), (-4, -3, -2.0, -1)])
def test_whole_times_are_whole_however_they_are_written(check: Any, times: tuple[Any, ...]) -> None:
    assert check("h.jsonl", jsonl(*stale(0, 1, times))).code == 1
    assert check("h.edn", edn(*stale(0, 1, times))).code == 1


@pytest.mark.parametrize("number", ["10000000000000000000000000", "1e25", "-1e25"])
@pytest.mark.parametrize("field", ["time", "index", "process"])
def test_numbers_beyond_any_clock_are_refused(check: Any, field: str, number: str) -> None:
    event = {"index": 0, "process": 0, "type": "invoke", "f": "read", "key": None, "value": 1}
    whole = {**event, "time": 0, "node": None, "error": None, "position": None, "final": False}
    text = json.dumps({**whole, field: "#"}).replace('"#"', number)
    said = check("h.jsonl", text + "\n")
    assert (said.code, ", line 1 at byte 0): " in said.error) == (64, True)


@pytest.mark.parametrize("names", [("client-7", "client-8"), ("", " "), ("7a", 7), ("a", "\u0663")])
def test_a_process_with_a_name_is_a_client(check: Any, names: tuple[Any, Any]) -> None:
    said = check("h.jsonl", jsonl(*stale(*names)))
    assert said.code == 1
    assert f"-1 is {names[0]}" in said.problems
    one, other = (json.dumps(name) for name in names)
    assert check("h.edn", edn(*stale(one, other))).code == 1


@pytest.mark.parametrize("names", [(":client-7", ":b"), ("client-7", 3), (":a", "b")])
def test_a_process_with_a_keyword_or_symbol_is_a_client(check: Any, names: Any) -> None:
    assert check("h.edn", edn(*stale(*names))).code == 1
    log = [
        f"INFO jepsen.util - {process}\t:{type_}\t:{f}\t{'nil' if value is None else value}\n"
        for process, type_, f, value, _ in stale(*names)
    ]
    assert check("h.log", "".join(log)).code == 1
    assert check("h.log", "".join(log).replace("\t", " ")).code == 1


def test_a_name_in_a_log_may_hold_blanks(check: Any) -> None:
    # Both end with the same number, and work at the same time.
    log = "".join(
        f"12:00:00\tINFO\t[worker 0] jepsen.util: {name}\t:{type_}\t:{f}\t{value}\n"
        for name, type_, f, value in (
            ("a 7", "invoke", "write", 1),
            ("b 7", "invoke", "read", "nil"),
            ("a 7", "ok", "write", 1),
            ("b 7", "ok", "read", 1),
        )
    )
    said = check("h.log", log)
    assert said.code == 0
    assert "-1 is a 7, -2 is b 7" in said.problems


def test_a_name_in_a_kv_file_is_a_client(check: Any) -> None:
    text = (
        '{:process :a, :type :invoke, :f :put, :key "0", :value "x"}\n'
        '{:process :a, :type :ok, :f :put, :key "0", :value "x"}\n'
        '{:process "b", :type :invoke, :f :get, :key "0", :value nil}\n'
        '{:process "b", :type :ok, :f :get, :key "0", :value ""}\n'
    )
    assert check("h.txt", text, "kv").code == 1


def test_the_nemesis_is_left_out_by_either_name(check: Any) -> None:
    for name in ("nemesis", ":nemesis"):
        assert check("h.jsonl", jsonl(*stale(name, 1))).code == 0
    for name in ('"nemesis"', ":nemesis", "nemesis"):
        assert check("h.edn", edn(*stale(name, 1))).code == 0


def test_a_number_in_a_text_or_with_a_point_is_that_process(check: Any) -> None:
    for process in ("7", 7.0):
        events = list(stale(7, 1))
        events[1] = (process, *events[1][1:])
        said = check("h.jsonl", jsonl(*events))
        assert (said.code, said.problems) == (1, "")
    # Not by its looks alone.
    events = list(stale(7, 1))
    events[1] = ("07", *events[1][1:])
    assert "completes write but has invoked nothing" in check("h.jsonl", jsonl(*events)).error


@pytest.mark.parametrize("process", [True, None, [1], {"a": 1}])
def test_no_process_at_all_is_refused(check: Any, process: Any) -> None:
    assert check("h.jsonl", jsonl(*stale(process, 1))).code == 64


def test_a_process_that_begins_before_it_was_done_is_refused(check: Any) -> None:
    back = stale(0, 0, (1, 9, 5, 10))
    for said in (check("h.jsonl", jsonl(*back)), check("h.edn", edn(*back))):
        assert said.code == 64
        assert "line 3 at byte" in said.error
        assert "at 5 ns, and its last operation was over at 9 ns" in said.error
    # At the very moment is no earlier.
    assert check("h.jsonl", jsonl(*stale(0, 0, (1, 9, 9, 10)))).code == 1


def test_a_process_that_goes_on_after_its_info_leaves_it_open(check: Any) -> None:
    for answer, code in ((1, 0), (None, 0), (2, 1)):
        events = (
            (0, "invoke", "write", 1, 1),
            (0, "info", "write", 1, 20),
            (0, "invoke", "read", None, 21),
            (0, "ok", "read", answer, 25),
        )
        assert check("h.jsonl", jsonl(*events)).code == code
        assert check("h.edn", edn(*events)).code == code
    late = (*events[:2], (0, "ok", "write", 1, 30))
    assert "completes write but has invoked nothing" in check("h.jsonl", jsonl(*late)).error


def parquet(folder: Path, **columns: Any) -> None:
    table = {
        "process": [0, 1],
        "f": ["write", "read"],
        "type": ["ok", "ok"],
        "start_ns": [1, 3],
        "end_ns": [2, 4],
        "argument": ["1", None],
        **columns,
    }
    pq.write_table(pa.table(table), folder / "h.parquet")


@pytest.mark.parametrize(
    ("columns", "code"),
    [
        ({}, 1),
        ({"start_ns": [1.0, 3.0], "end_ns": [2.0, 4.0]}, 1),
        ({"start_ns": [0.1, 0.3], "end_ns": [0.2, 0.4]}, 64),
        ({"end_ns": [2.0, 1.7e18]}, 64),
        ({"end_ns": [2.0, float("nan")]}, 64),
        # A microsecond is later than four nanoseconds.
        ({"start_ns": pa.array([1, 1], pa.timestamp("us")), "end_ns": [999, 2000]}, 64),
        ({"start_ns": [True, True]}, 64),
        ({"process": ["client-7", "b"]}, 1),
        ({"process": pa.array(["client-7", "b"]).dictionary_encode()}, 1),
        ({"process": ["nemesis", ":nemesis"]}, 2),
        ({"process": ["nemesis", None]}, 64),
        ({"process": [0, 0]}, 1),
        ({"process": [0, 0], "end_ns": [4, 4]}, 64),
        # An open operation stays so while its process goes on.
        ({"process": [0, 0], "type": ["info", "ok"], "end_ns": [None, 4]}, 0),
        ({"process": [0, 0], "type": ["info", "ok"], "end_ns": [None, 4], "result": ["1", "2"]}, 1),
    ],
)
def test_tables_tell_times_and_processes_as_lines_do(
    check: Any, tmp_path: Path, columns: dict[str, Any], code: int
) -> None:
    parquet(tmp_path, **columns)
    assert check("h.parquet").code == code


def test_a_row_is_told_by_its_own_number_beside_the_nemesis(check: Any, tmp_path: Path) -> None:
    parquet(tmp_path, process=["nemesis", "b"], end_ns=[2, 1])
    assert "row 2: it ends before it starts" in check("h.parquet").error


LOG = "INFO jepsen.util - 0\t:invoke\t:write\t12\nINFO jepsen.util - 0\t:ok\t:write\t12\n"
MAPS = (
    "{:process 0 :type :invoke :f :write :value 12}\n{:process 0 :type :ok :f :write :value 12}\n"
)
KV = (
    '{:process 0 :type :invoke :f :put :key "0" :value "x"}\n'
    '{:process 0 :type :ok :f :put :key "0" :value "x"}\n'
)
ETCD = (
    '{"ClientId": 1, "Input": {"Type": "range", "Range": {"Start": "k"}}, "Call": 3, '
    '"Output": {"Range": {"KVs": null, "Count": 0}, "Revision": 1}, "Return": 9}\n'
)


@pytest.mark.parametrize(
    ("name", "before", "last"),
    [
        ("h.log", LOG, "INFO jepsen.util - 1\t:invoke\t:write\t12"),
        ("h.log", LOG, "INFO jepsen.util - 1\t:in"),
        ("h.log", LOG, "INFO jepsen.util - 1\t:info\t:cas\t[1 2]"),
        ("h.log", LOG, "INFO jepsen.util - 1\t:fail\t:cas\t[1 2]\t:time"),
        ("h.log", LOG, "INFO jepsen.util - 1\t:invoke\t:cas\t[1 "),
        ("h.log", LOG, 'INFO jepsen.util - 1\t:invoke\t:write\t"a'),
        ("h.log", LOG, "INFO jepsen.util - 1\t"),
        ("h.log", LOG, "INFO jep"),
        ("h.log", "", LOG[:-2]),
        ("h.edn", MAPS, "{:process 1 :type :invoke :f :write :value 12"),
        ("h.edn", MAPS, '{:process 1 :type :invoke :f :write :value "}'),
        ("h.edn", MAPS, "{:process 1 :type :invoke :f :write :value {:a 1}"),
        ("h.edn", MAPS, "#jepsen.history.Op"),
        ("h.edn", MAPS, "{:process 1 :type :in"),
        ("h.edn", "[" + MAPS, ""),
        ("h.edn", "[" + MAPS, "{:process 1 :ty"),
        ("h.txt", KV, '{:process 1 :type :invoke :f :put :key "0" :value "y'),
        ("h.json", ETCD, ETCD[:-5]),
    ],
)
def test_a_torn_last_line_is_left_out_and_said(
    check: Any, name: str, before: str, last: str
) -> None:
    said = check(name, before + last, "kv" if name == "h.txt" else "cas-register")
    assert (said.code, said.results.get("verdict")) == (2, "unknown"), said.error
    record = said.results["checkers"][-1]
    assert record["checker"] == "record"
    left_out = last if before else last.rsplit("\n", maxsplit=1)[-1]
    assert record["figures"] == {"torn-bytes": len(left_out)}
    cut = "before the list of its operations does" if not left_out else "in the middle of a line"
    assert f"The file ends {cut}" in record["reason"]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("h.edn", MAPS[:-1]),
        ("h.edn", "[" + MAPS[:-1] + "]"),
        ("h.edn", "[" + MAPS + "]"),
        ("h.edn", MAPS + "; the end"),
        ("h.log", LOG + "INFO jepsen.util - 1\t:invoke\t:cas\t[1 2]"),
        ("h.log", LOG + 'INFO jepsen.util - 1\t:invoke\t:write\t"a"'),
        ("h.log", LOG + "   "),
        ("h.json", ETCD[:-1]),
    ],
)
def test_a_last_line_that_no_longer_one_begins_with_is_whole(
    check: Any, name: str, text: str
) -> None:
    said = check(name, text)
    assert (said.code, said.error) == (0, "")


def test_a_violation_before_a_torn_line_is_proven(check: Any) -> None:
    events = stale(0, 1)
    log = "".join(
        f"x - {process}\t:{type_}\t:{f}\t{'nil' if value is None else value}\n"
        for process, type_, f, value, _ in events
    )
    assert check("h.log", log + "x - 2\t:invoke\t:wri").code == 1
    assert check("h.edn", edn(*events) + "{:process 2 :type :in").code == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "text", "code", "says"),
    [
        ("h.jsonl", jsonl(*stale("client-7", "b")), 1, "-1 is client-7, -2 is b"),
        ("h.log", LOG + "x - 1\t:in", 2, "9 bytes were left out"),
        ("h.edn", "[" + MAPS, 2, "before the list of its operations does"),
    ],
)
def test_the_command_line_says_so(
    tmp_path: Path, name: str, text: str, code: int, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / name).write_text(text)
    assert cli.run(["check", str(tmp_path / name), "--json"]) == code
    assert says in capsys.readouterr().out
