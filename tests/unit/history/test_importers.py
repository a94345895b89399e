import gzip
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from splitbrain.contracts.errors import UsageError
from splitbrain.history.edn import EdnError, parse, parse_all
from splitbrain.history.edn_values import EdnMap, EdnSet, Name, Number, Tagged
from splitbrain.history.errors import HistoryError
from splitbrain.history.importers import guess_format, load
from splitbrain.history.pairing import pair
from splitbrain.history.records import PairedOperation


def written(folder: Path, text: str, name: str = "history.txt") -> Path:
    path = folder / name
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("nil", None),
        ("true", True),
        ("-12", -12),
        ("12N", 12),
        ("1.5e3", Number("double", 1500.0)),
        (":timed-out", Name("keyword", "timed-out")),
        ('"a \\"b\\" \\n\\u0041"', 'a "b" \nA'),
        ("[1 [2, 3] ()]", [1, [2, 3], []]),
        ('{"b" {[1] nil} "a" 1}', EdnMap((("a", 1), ("b", EdnMap((([1], None),)))))),
        ("#{1 2}", EdnSet((2, 1))),
        ('#inst "2026"', Tagged("inst", "2026")),
        ("[1 #_ #inst [2] 3 #_ #_ 4 5]", [1, 3]),
        ("[1/2 2/4 4/2]", [Number("ratio", Fraction(1, 2))] * 2 + [2]),
        ("[1.50M -0.0]", [Number("decimal", Fraction(3, 2)), Number("double", 0.0)]),
        ("[1 ; a comment\n 2]", [1, 2]),
        ("[\\c \\newline \\( \\u0041]", [Name("character", c) for c in "c\n(A"]),
        ("", None),
    ],
)
def test_edn_values_are_read(text: str, value: Any) -> None:
    assert (parse_all(text)[0] if text else None) == value


def test_edn_without_recursion() -> None:
    depth = 5000
    value = parse("[" * depth + "]" * depth)
    for _ in range(depth - 1):
        (value,) = value
    assert value == []


@pytest.mark.parametrize(
    "text", ["[1", "1]", "{:a}", "1 2", "", '"open', "1x", "#_", "#{1 1N}", "{:a 1 :a 2}", ":"]
)
def test_broken_edn_is_refused(text: str) -> None:
    with pytest.raises(EdnError):
        parse(text)


JEPSEN_LOG = """INFO  jepsen.core - begins
INFO  jepsen.util - 0\t:invoke\t:cas\t[1 2]
INFO  jepsen.util - :nemesis\t:info\t:start\tnil
INFO  jepsen.util - 0\t:fail\t:cas\t[1 2]
2026-11-02 10:00:00,1{GMT}\tINFO\t[jepsen worker 1] jepsen.util: 1\t:invoke\t:write\t3
2026-11-02 10:00:00,2{GMT}\tINFO\t[jepsen worker 1] jepsen.util: 1\t:info\t:write\t3\t:timed-out
"""


def test_a_jepsen_log_is_read_and_its_refused_cas_is_an_observation(tmp_path: Path) -> None:
    history = load(written(tmp_path, JEPSEN_LOG))
    assert history.format == "jepsen-log"
    cas, write = pair(history.events)
    assert (cas.type, cas.argument, cas.result) == ("ok", [1, 2], [1, 2, False])
    assert (write.type, write.argument, write.error) == ("info", 3, "timed-out")


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        ("", "ok"),
        (", :error :did-not-succeed", "ok"),
        (", :error [:precondition-failed 3]", "ok"),
        (", :error :connection-refused", "fail"),
    ],
)
def test_only_a_cas_refused_for_its_precondition_is_an_observation(
    tmp_path: Path, error: str, outcome: str
) -> None:
    text = (
        "{:process 4, :type :invoke, :f :cas, :value [1 2]}\n"
        f"{{:process 4, :type :fail, :f :cas, :value [1 2]{error}}}\n"
    )
    history = load(written(tmp_path, text))
    assert history.format == "edn"
    (cas,) = pair(history.events)
    assert cas.type == outcome


def test_a_failed_read_stays_a_failure(tmp_path: Path) -> None:
    text = (
        "{:process 4, :type :invoke, :f :read, :value nil}\n"
        "{:process 4, :type :fail, :f :read, :value nil}\n"
    )
    (read,) = pair(load(written(tmp_path, text)).events)
    assert read.type == "fail"


def test_an_edn_vector_of_operations_is_read(tmp_path: Path) -> None:
    text = (
        "[#jepsen.history.Op{:index 0, :time 7, :process 0, :type :invoke, :f :read}\n"
        "{:index 1, :time 9, :process 0, :type :ok, :f :read, :value 5}]\n"
    )
    (read,) = pair(load(written(tmp_path, text)).events)
    assert (read.start, read.end, read.result) == (7, 9, 5)


def test_a_broken_edn_line_is_named(tmp_path: Path) -> None:
    text = "{:process 0, :type :invoke, :f :read}\n{:process 0, :type :gone, :f :read}\n"
    with pytest.raises(HistoryError, match="line 2") as raised:
        load(written(tmp_path, text))
    assert raised.value.line == 2


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"process": 0}\n', "jsonl"),
        ("{:process 0}\n", "edn"),
        ("[{:process 0}\n", "edn"),
        ("noise\nINFO  jepsen.util - 0\t:invoke\t:read\tnil\n", "jepsen-log"),
    ],
)
def test_the_format_is_guessed_from_the_beginning(tmp_path: Path, text: str, expected: str) -> None:
    assert guess_format(written(tmp_path, text)) == expected


def test_what_looks_like_nothing_known_is_refused_with_the_known_formats(tmp_path: Path) -> None:
    with pytest.raises(HistoryError, match="jsonl, edn, jepsen-log, kv, parquet, etcd-robustness"):
        load(written(tmp_path, "what is this\n"))


def test_an_unknown_format_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no history format"):
        load(written(tmp_path, ""), "csv")


def test_a_run_folder_is_read_by_its_history(tmp_path: Path) -> None:
    written(
        tmp_path, '{"process": 0, "type": "invoke", "f": "read", "index": 0}\n', "history.jsonl"
    )
    history = load(tmp_path)
    assert history.path == tmp_path / "history.jsonl"
    assert len(history.events) == 1


def test_a_torn_line_and_skipped_lines_are_reported(tmp_path: Path) -> None:
    text = '{"process": 0, "type": "invoke", "f": "read"}\n???\n{"proc'
    history = load(written(tmp_path, text), skip_broken=True)
    assert (history.torn_bytes, [line.line for line in history.broken]) == (6, [2])


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(HistoryError, match="absent"):
        load(tmp_path / "absent")


def test_a_packed_history_is_read_and_its_lines_are_counted_unpacked(tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl.gz"
    line = b'{"process": 0, "type": "invoke", "f": "read"}\n'
    path.write_bytes(gzip.compress(line))
    assert len(load(path).operations) == 1
    path.write_bytes(gzip.compress(line + b"???\n" + line))
    with pytest.raises(HistoryError, match="line 2 at byte 46"):
        load(path)


INDEPENDENT = """{:process 0, :type :invoke, :f :write, :value [7 1]}
{:process 0, :type :ok, :f :write, :value [7 1]}
{:process 1, :type :invoke, :f :cas, :value [8 [1 2]]}
{:process 1, :type :fail, :f :cas, :value [8 [1 2]]}
{:process 2, :type :invoke, :f :read, :value [7 nil]}
{:process 2, :type :info, :f :read, :value nil, :error :timed-out}
{:process :nemesis, :type :info, :f :start, :value nil}
"""


def test_independent_keys_are_taken_out_of_the_values(tmp_path: Path) -> None:
    history = load(written(tmp_path, INDEPENDENT))
    write, cas, read = history.operations
    assert (write.key, write.argument, write.result) == ("7", 1, 1)
    assert (cas.key, cas.type, cas.result) == ("8", "ok", [1, 2, False])
    assert (read.key, read.type, read.error) == ("7", "info", "timed-out")
    assert "jepsen.independent" in history.notes[0]


def test_values_that_are_pairs_are_no_keys(tmp_path: Path) -> None:
    text = (
        "{:process 0, :type :invoke, :f :write, :value [7 1]}\n"
        "{:process 1, :type :invoke, :f :read, :value nil}\n"
    )
    write, _ = load(written(tmp_path, text)).operations
    assert (write.key, write.argument) == (None, [7, 1])


def test_in_older_logs_the_error_stands_where_the_value_was(tmp_path: Path) -> None:
    text = "jepsen.util - 4\t:invoke\t:write\t3\njepsen.util - 4\t:info\t:write\t:timed-out\n"
    (write,) = load(written(tmp_path, text)).operations
    assert (write.argument, write.error) == (3, "timed-out")


@pytest.mark.parametrize(
    ("text", "left", "count"),
    [
        # A broken invocation takes its completion along.
        ("???\n{:process 0, :type :ok, :f :write, :value 1}\n", [], 2),
        # A broken completion leaves its operation open.
        (
            (
                "{:process 0, :type :invoke, :f :write, :value 1}\n???\n"
                "{:process 0, :type :invoke, :f :read}\n"
                "{:process 0, :type :ok, :f :read, :value 1}\n"
            ),
            [("write", "info"), ("read", "ok")],
            2,
        ),
        ("{:process 0, :type :invoke, :f :cas, :value 1}\n", [], 1),
    ],
)
def test_what_is_left_out_is_counted_and_the_rest_is_paired(
    tmp_path: Path, text: str, left: list[tuple[str, str]], count: int
) -> None:
    history = load(written(tmp_path, text), "edn", skip_broken=True)
    assert [(one.f, one.type) for one in history.operations] == left
    assert history.broken_count == count
    with pytest.raises(HistoryError):
        load(written(tmp_path, text), "edn")


def test_what_the_judge_cannot_make_sense_of_is_named_by_its_line(tmp_path: Path) -> None:
    path = written(tmp_path, "{:process 0, :type :invoke, :f :write, :value 1}\n\n")
    with path.open("a") as file:
        file.write("{:process 0, :type :ok, :f :write, :value 1}\n")
        file.write("{:process 1, :type :invoke, :f :add, :value 2}\n")

    def problem_with(operation: PairedOperation) -> str | None:
        return "adds are not known" if operation.f == "add" else None

    with pytest.raises(HistoryError, match="line 4 at byte 95") as raised:
        load(path, problem_with=problem_with)
    assert raised.value.problem == "the add of process 1, event 2: adds are not known"
    history = load(path, problem_with=problem_with, skip_broken=True)
    assert [one.f for one in history.operations] == ["write"]
    assert history.broken_count == 1
