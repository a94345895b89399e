"""The plain readers of the fuzz read what the formats' definitions say, and nothing else."""

from fractions import Fraction
from pathlib import Path

import pytest

from bench.reader_fuzz import fuzzing
from bench.reader_fuzz.comparison import Compared, Finding
from bench.reader_fuzz.drawn import DrawnFile, drawn
from bench.reader_fuzz.plain_edn import read_edn
from bench.reader_fuzz.plain_json import plain_of, read_json
from bench.reader_fuzz.plain_judgement import is_linearizable
from bench.reader_fuzz.plain_lines import read_plainly
from bench.reader_fuzz.plain_values import PlainError
from bench.reader_fuzz.spellings import EDN, JSON, TEXTS, Family


def json_value(text: str) -> object:
    return plain_of(read_json(text.encode()))


def edn_value(text: str) -> object:
    (value,) = read_edn(text)
    return value


def legible(family: Family) -> Family:
    """Without what is too large for every reader."""
    return [spellings for spellings in family if len(spellings[0]) < 1_000]


@pytest.mark.parametrize("family", [legible(family) for family in JSON])
def test_json_values_are_equal_in_every_spelling_and_to_no_other(family: Family) -> None:
    read = [{json_value(spelling) for spelling in spellings} for spellings in family]
    assert [len(values) for values in read] == [1] * len(family)
    assert len(set.union(*read)) == len(family)


@pytest.mark.parametrize("family", [legible(family) for family in [*EDN, *TEXTS]])
def test_edn_values_are_equal_in_every_spelling_and_to_no_other(family: Family) -> None:
    read = [{edn_value(spelling) for spelling in spellings} for spellings in family]
    assert [len(values) for values in read] == [1] * len(family)
    assert len(set.union(*read)) == len(family)


@pytest.mark.parametrize(
    "text",
    ["", "NaN", "1 2", "[1,]", '{"a" 1}', "01", "1e400", '"\\ud800"', '"\n"', "\x0c", "tru", "-"],
)
def test_what_is_no_json_is_refused(text: str) -> None:
    with pytest.raises(PlainError):
        json_value(text)


@pytest.mark.parametrize(
    "text",
    [
        "[",
        "{:a}",
        "]",
        "#{1 1}",
        "{:a 1 :a 2}",
        '"\\q"',
        '"\\ud800"',
        "007",
        "1/2",
        ":",
        "\\xy",
        "#",
        "[1 #_]",
        '"',
        "a@b",
        "::a",
        "#inst",
    ],
)
def test_what_is_no_edn_is_refused(text: str) -> None:
    with pytest.raises(PlainError):
        read_edn(text)


def test_what_is_discarded_is_no_value() -> None:
    assert read_edn("#_ #_ 1 2 3 ; 4\n#_[5 {:a #_6 7}]") == [("whole", 3)]


INVOKE = b'{"process":0,"type":"invoke","f":"write","value":1,"time":1.5}\n'
OK = b'{"process":0,"type":"ok","f":"write","value":1,"time":1.75}\n'


def test_times_keep_every_digit() -> None:
    (operation,) = read_plainly(INVOKE + OK, "jsonl").operations
    assert (operation.start, operation.end) == (Fraction(3, 2), Fraction(7, 4))


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (OK + INVOKE, "an answer to nothing"),
        (INVOKE + INVOKE, "two things at a time"),
        (INVOKE + OK.replace(b"1.75", b"1.25"), "before its question"),
        (INVOKE + OK + INVOKE, "goes on before"),
        (INVOKE + OK.replace(b"write", b"read"), "something else"),
        (INVOKE + OK.replace(b',"time":1.75', b""), "only some lines"),
        (INVOKE + b"{}\n" + OK, "line 2"),
        (INVOKE.replace(b'"time"', b'"index":3,"time"') * 2, "does not grow"),
        (INVOKE.replace(b"write", b"cas"), "no pair"),
    ],
)
def test_what_breaks_the_rules_is_refused(content: bytes, why: str) -> None:
    assert why in (read_plainly(content, "jsonl").refused or "")


def test_a_process_goes_on_after_its_info() -> None:
    lines = INVOKE + OK.replace(b'"ok"', b'"info"') + INVOKE.replace(b"1.5", b"2.5")
    first, second = read_plainly(lines, "jsonl").operations
    assert (first.end, second.end) == (None, None)


@pytest.mark.parametrize(
    ("history_format", "line"),
    [
        ("jsonl", INVOKE.rstrip()),
        ("edn", b"{:process 0, :type :invoke, :f :write, :value 1}"),
        ("kv", b'{:process 0, :type :invoke, :f :put, :key 1, :value "1"}'),
        ("jepsen-log", b"INFO jepsen.util - 0\t:invoke\t:write\t[1 2]"),
    ],
)
def test_a_last_line_is_torn_wherever_it_is_cut(history_format: str, line: bytes) -> None:
    assert not read_plainly(line, history_format).torn
    for length in range(1, len(line)):
        reading = read_plainly(line[:length], history_format)
        assert reading.torn, line[:length]
        assert not reading.operations


def test_keys_stand_in_the_values_of_independent_histories() -> None:
    lines = b"{:process 0 :type :invoke :f :read :value [:a nil]}\n"
    lines += b"{:process 0 :type :ok :f :read :value (:a 1)}\n"
    (operation,) = read_plainly(lines, "edn").operations
    assert (operation.key, operation.result) == (("keyword", "a"), ("whole", 1))


@pytest.mark.parametrize(("read", "fits"), [(b"1", True), (b"true", False), (b"1.0", True)])
def test_tiny_histories_are_judged_by_trying_every_order(read: bytes, fits: bool) -> None:
    lines = INVOKE + OK + INVOKE.replace(b"1.5", b"2").replace(b"write", b"read")
    lines += OK.replace(b"1.75", b"3").replace(b"write", b"read").replace(b":1,", b":%s," % read)
    assert is_linearizable(read_plainly(lines, "jsonl").operations, "cas-register") is fits


def test_a_number_is_one_file_on_every_machine() -> None:
    assert [drawn(7, n) for n in range(50)] == [drawn(7, n) for n in range(50)]
    assert drawn(7, 1) != drawn(8, 1)


def test_a_difference_is_shrunk_to_the_lines_that_show_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    finding = Finding("values", "objects", "")

    def shows(file: DrawnFile, _path: Path) -> Compared:
        found = (finding,) if b"3\n" in file.content and b"5\n" in file.content else ()
        return Compared(found, read=True, as_columns=False, linearizable=None, doubts=frozenset())

    monkeypatch.setattr(fuzzing, "compared", shows)
    content = b"".join(b"%d\n" % n for n in range(9))
    file = DrawnFile(content, "jsonl", "cas-register", packed=True, block_bytes=40)
    small = fuzzing.shrunk(file, finding, tmp_path / "h")
    assert (small.content, small.packed, small.block_bytes) == (b"3\n5\n", False, 1 << 20)
