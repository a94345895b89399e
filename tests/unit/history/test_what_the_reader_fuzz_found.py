"""Files by which ``bench.reader_fuzz`` told the readers from the plain ones, made small."""

import json
from pathlib import Path
from typing import Any

import pytest

from splitbrain.history.column_reader import read_columns
from splitbrain.history.edn import EdnError, parse_all
from splitbrain.history.errors import HistoryError
from splitbrain.history.formats import guess_format
from splitbrain.history.importers import load
from splitbrain.history.operations_table import pa, pq

INVOKE = b'{"index":0,"time":1,"process":0,"type":"invoke","f":"read","value":null}\n'
OK = b'{"index":1,"time":2,"process":0,"type":"ok","f":"read","value":1}\n'


def written(tmp_path: Path, content: bytes) -> Path:
    path = tmp_path / "history"
    path.write_bytes(content)
    return path


@pytest.mark.parametrize("foreign", [False, True])
def test_bytes_that_are_no_utf8_are_refused_in_the_name_of_a_field_too(
    tmp_path: Path, foreign: bool
) -> None:
    # The decoder passes over a field that it does not know, and the value would be lost.
    content = INVOKE + OK.replace(b'"value"', b'"v\xe1lue"')
    path = written(tmp_path, content.replace(b'"time":1,', b"").replace(b'"time":2,', b""))
    path = path if foreign else written(tmp_path, content)
    with pytest.raises(HistoryError, match="not UTF-8"):
        load(path)
    assert read_columns(path) is None


@pytest.mark.parametrize("end", [b"  ", b"\t", b"\r\n \r\n\t"])
def test_blanks_at_the_end_are_no_torn_line(tmp_path: Path, end: bytes) -> None:
    history = load(written(tmp_path, INVOKE + OK + end), "jsonl")
    assert (len(history.operations), history.torn_bytes) == (1, None)


@pytest.mark.parametrize("field", ["key", "value"])
@pytest.mark.parametrize("opening", ["[", '{"a":'])
def test_values_nested_deeper_than_programs_go_are_refused(
    tmp_path: Path, field: str, opening: str
) -> None:
    deep = opening * 200 + "1" + {"[": "]"}.get(opening, "}") * 200
    line = f'{{"index":0,"time":1,"process":0,"type":"invoke","f":"write","{field}":{deep}}}\n'
    path = written(tmp_path, line.encode())
    with pytest.raises(HistoryError, match="nested too deeply"):
        load(path, "jsonl")
    assert read_columns(path, "jsonl") is None


def test_names_among_processes_below_zero_are_told_with_the_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Blocks of our own format are read at once, the others line by line.
    monkeypatch.setattr("splitbrain.history.reader._BLOCK_BYTES", 1)
    content = INVOKE.replace(b":0,", b':"a",', 2).replace(b'"index":"a"', b'"index":0')
    content += OK.replace(b'"process":0', b'"process":-1')
    with pytest.raises(HistoryError, match=r"line 2.*names"):
        load(written(tmp_path, content), "jsonl")


@pytest.mark.parametrize("text", ["1 ; 2", "1;2\n", "1 ,; 2 ; 3\n", "; 2\n1", '1 ; a } ] " #_'])
def test_nothing_of_a_comment_is_a_value(text: str) -> None:
    assert parse_all(text) == [1]


@pytest.mark.parametrize("answer", ["[1 3]", "[2 1]", "[1 3 true]", ":done", "[1]"])
@pytest.mark.parametrize("tail", ["", "\n"])
def test_a_compare_and_set_that_answers_to_another_question_is_refused(
    tmp_path: Path, answer: str, tail: str
) -> None:
    lines = "{:process 0, :type :invoke, :f :cas, :value [1 2]}\n"
    lines += f"{{:process 0, :type :ok, :f :cas, :value {answer}}}{tail}"
    with pytest.raises(HistoryError, match="answers"):
        load(written(tmp_path, lines.encode()), "edn")


@pytest.mark.parametrize(
    ("answer", "done"), [("nil", True), ("(1 2)", True), ("[1 2 false]", False)]
)
def test_a_compare_and_set_is_done_unless_its_answer_says_no(
    tmp_path: Path, answer: str, done: bool
) -> None:
    lines = "{:process 0, :type :invoke, :f :cas, :value [1 2]}\n"
    lines += f"{{:process 0, :type :ok, :f :cas, :value {answer}}}\n"
    (operation,) = load(written(tmp_path, lines.encode()), "edn").operations
    assert operation.result == [1, 2, done]


def test_a_row_without_the_index_that_others_have_is_refused(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [
        {"index": index, "process": process, "f": "read", "type": "info", "start_ns": process}
        for process, index in enumerate((4, None, 2))
    ]
    path = tmp_path / "operations.parquet"
    pq.write_table(pa.Table.from_pylist(rows), path)
    with pytest.raises(HistoryError, match="index"):
        load(path)
    assert read_columns(path) is None


def test_a_deep_value_of_a_table_is_refused(tmp_path: Path) -> None:
    row = {"process": 0, "f": "write", "type": "info", "start_ns": 1, "end_ns": None}
    value: Any = 1
    for _ in range(200):
        value = [value]
    path = tmp_path / "operations.parquet"
    pq.write_table(pa.Table.from_pylist([row | {"argument": json.dumps(value)}]), path)
    with pytest.raises(HistoryError, match="nested too deeply"):
        load(path)
    assert read_columns(path) is None


@pytest.mark.parametrize("end", ["]", "{:process 1, :type :invoke, :f :read, :value nil}]"])
@pytest.mark.parametrize("history_format", ["edn", "kv"])
def test_the_end_of_a_list_that_never_began_is_refused(
    tmp_path: Path, end: str, history_format: str
) -> None:
    f, value = ("read", "nil") if history_format == "edn" else ("put", '"x"')
    lines = [
        f"{{:process 0, :type :{type_}, :f :{f}, :key 1, :value {value}}}"
        for type_ in ("invoke", "ok")
    ]
    path = written(tmp_path, "\n".join([*lines, end, ""]).encode())
    with pytest.raises(HistoryError, match="never began"):
        load(path, history_format)
    assert read_columns(path, history_format) is None
    whole = written(tmp_path, "\n".join(["[" + lines[0], lines[1] + "]", ""]).encode())
    assert len(load(whole, history_format).operations) == 1


@pytest.mark.parametrize("text", ["\\", "\\ 1", "[\\ ]", "[1 \\]"])
def test_a_character_without_a_letter_is_refused(text: str) -> None:
    with pytest.raises(EdnError):
        parse_all(text)


@pytest.mark.parametrize("blank", ["\x1c", "\x1d", "\x1e", "\x1f", "\u2003", "\u3000"])
def test_blanks_of_java_stand_between_values_of_edn(blank: str) -> None:
    assert parse_all(f"1{blank}2{blank}") == [1, 2]


@pytest.mark.parametrize("other", ["\x85", "\xa0", "\u2007", "\u202f"])
def test_what_only_python_takes_for_a_blank_is_refused(other: str) -> None:
    for text in (f"1{other}2", f"a{other}", f":a{other}", f"{other}"):
        with pytest.raises(EdnError):
            parse_all(text)


@pytest.mark.parametrize(
    "text", ["`a", ":`a", "a`b", ":a@b", "^a", "a\\b", "'a", ":'a", "a\x00", "-1a", ".5a", "~", ":"]
)
def test_what_a_flipped_bit_has_made_of_a_name_is_refused(text: str) -> None:
    with pytest.raises(EdnError):
        parse_all(text)


@pytest.mark.parametrize(
    "name", ["a", ":a", ":1", "a#b", "a:b", "a'", "-", "->", ".", "a/b", "é", ":a.b/c?"]
)
def test_names_of_edn_are_read(name: str) -> None:
    assert len(parse_all(name)) == 1


@pytest.mark.parametrize(
    "number", ["00", "007", "-07", "+01N", "01.5", "00e1", "01M", "01/2", "1/02"]
)
def test_numbers_of_edn_begin_with_no_needless_zero(number: str) -> None:
    with pytest.raises(EdnError):
        parse_all(number)


@pytest.mark.parametrize("number", ["0", "-0", "0N", "0.5", "0e1", "10", "0M", "1/2"])
def test_other_numbers_of_edn_are_read(number: str) -> None:
    assert len(parse_all(number)) == 1


EDN = (
    b"{:type :invoke, :f :read, :process 0, :value nil}\n"
    b"{:type :ok, :f :read, :process 0, :value nil}\n"
)


@pytest.mark.parametrize("begin", [b"[; a remark\n", b"[\n; a remark\n", b"[ ,"])
def test_a_vector_of_edn_begins_behind_remarks_and_commas(tmp_path: Path, begin: bytes) -> None:
    history = load(written(tmp_path, begin + EDN.rstrip() + b"]\n"), "edn")
    assert (len(history.operations), history.torn_bytes) == (1, None)


@pytest.mark.parametrize("begin", [b"", b"[\n", b",\n", b"; a remark\n", b"[; a remark\n", b",, "])
def test_edn_is_recognised_behind_remarks_brackets_and_commas(tmp_path: Path, begin: bytes) -> None:
    end = b"]\n" if b"[" in begin else b""
    assert guess_format(written(tmp_path, begin + EDN + end)) == "edn"


def test_a_list_whose_first_operation_is_left_out_is_one_all_the_same(tmp_path: Path) -> None:
    content = b"[{:type :ike, :f :read, :process 1, :value nil}\n" + EDN.rstrip() + b"]\n"
    history = load(written(tmp_path, content), "edn", skip_broken=True)
    assert (len(history.operations), history.broken_count) == (1, 1)


@pytest.mark.parametrize("end", [b"]\n]\n", b"]\n" + EDN + b"]\n"])
def test_a_list_ends_once(tmp_path: Path, end: bytes) -> None:
    with pytest.raises(HistoryError, match="never began"):
        load(written(tmp_path, b"[\n" + EDN + end), "edn")


@pytest.mark.parametrize("text", ["#jep\x17sen.Op {}", "#fo`o 1", "#foo@ 1"])
def test_tags_are_names_too(text: str) -> None:
    with pytest.raises(EdnError):
        parse_all(text)


def test_blanks_in_a_log_are_no_process(tmp_path: Path) -> None:
    begin = b"2020-01-01 INFO jepsen.util: "
    lines = [b" \t:invoke\t:read\tnil\n", b"7\t:invoke\t:read\tnil\n", b"7\t:ok\t:read\tnil\n"]
    history = load(written(tmp_path, b"".join(begin + line for line in lines)), "jepsen-log")
    assert [operation.process for operation in history.operations] == [7]


def test_a_broken_map_is_no_line_of_a_log(tmp_path: Path) -> None:
    # Its brace was taken for the name of a process, and its field for a function.
    broken = b"[\n{:type  :invoke :value  [1 2]] :process 0 :f  :cas\n" + EDN + b"]\n"
    path = written(tmp_path, broken)
    assert guess_format(path) == "edn"
    with pytest.raises(HistoryError):
        load(path)


def test_a_node_without_a_name_is_none(tmp_path: Path) -> None:
    invoke = INVOKE.replace(b'"value"', b'"node":"n1","value"')
    path = written(tmp_path, invoke + OK.replace(b'"value"', b'"node":"","value"'))
    columns = read_columns(path, "jsonl")
    assert columns is not None
    assert [one.node for one in load(path, "jsonl").operations] == ["n1"]
    assert [one.node for one in columns.operations()] == ["n1"]


def test_a_damaged_bracket_at_the_end_has_its_line_named(tmp_path: Path) -> None:
    with pytest.raises(HistoryError, match="line 4"):
        load(written(tmp_path, b"[\n" + EDN + b"\x10]\n"), "edn")
