"""Equal keys and values, through the real command line: as objects and as columns.

The table says of pairs of values whether they are equal; every way in which a history can show
that must agree with it.

It is longer than 400 lines because a quarter of it is that table, which wants to be read at once.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from splitbrain.checker.models.model import Call, Model
from splitbrain.harness.cli import main as cli
from splitbrain.harness.judge import bare_judging

pytestmark = pytest.mark.usefixtures("in_process")

#: Two values of JSON, and whether they are one.
JSON_VALUES = [
    ("1", "1", True),
    ("1", "true", False),
    ("0", "false", False),
    ("1.0", "true", False),
    ("-0.0", "false", False),
    ("[1, 2]", "[true, 2]", False),
    ("[[0]]", "[[false]]", False),
    ('{"a": 1}', '{"a": true}', False),
    ('{"a": {"b": [0, true]}}', '{"a": {"b": [0, true]}}', True),
    ("1", "1.0", True),
    ("[1, [2]]", "[1.0, [2.0]]", True),
    ("100", "1e2", True),
    ("-0.0", "0", True),
    ("9007199254740992", "9007199254740992.0", True),
    ("9007199254740993", "9007199254740992.0", False),
    ("123456789012345678901", "123456789012345678902", False),
    ("1", '"1"', False),
    ("true", '"true"', False),
    ("true", '"True"', False),
    ('"a"', '":a"', False),
    ('"\\u0061"', '"a"', True),
    ('"null"', '"nil"', False),
    ("[]", "{}", False),
    ("[[]]", "[{}]", False),
    ("[null]", "[]", False),
    ('[["a", 1]]', '{"a": 1}', False),
    ('{"a": 1, "b": 2}', '{"b": 2, "a": 1}', True),
    ('["a", "b"]', '["b", "a"]', False),
    ('{"1": 2}', '{"1": 2.0}', True),
]

#: The same for EDN.
EDN_VALUES = [
    ("1", "1N", True),
    ("1", "+1", True),
    ("1", "1.0", False),
    ("1", "1M", False),
    ("1.0", "1.0M", False),
    ("1.0M", "1.00M", True),
    ("0.1M", "0.1000000000000000000000000000001M", False),
    ("1.5", "15e-1", True),
    ("1/2", "2/4", True),
    ("1/2", "0.5", False),
    ("1/2", "0.5M", False),
    ("4/2", "2", True),
    ("-0.0", "0.0", True),
    ("0.0", "0", False),
    ("##NaN", "##NaN", True),
    ("[##NaN]", "[##NaN]", True),
    ("##Inf", "##-Inf", False),
    ("##Inf", '"##Inf"', False),
    ("9007199254740993", "9007199254740992.0", False),
    ("9007199254740992", "9007199254740992.0", False),
    ("1", "true", False),
    ("0.0", "false", False),
    ("[1 {:a 0}]", "[true {:a false}]", False),
    ("#{1 true}", "#{true 1N}", True),
    ("#{1}", "#{true}", False),
    (":x", ":x", True),
    (":x", '"x"', False),
    (":x", "x", False),
    (":x", '":x"', False),
    ('":x"', '"x"', False),
    ("x", '"x"', False),
    ("\\x", '"x"', False),
    ("\\x", "x", False),
    ("\\x", ":x", False),
    ("\\newline", '"\\n"', False),
    ("\\newline", "\\u000a", True),
    ("\\space", "\\newline", False),
    ("\\(", "\\)", False),
    ('"\\u0061b"', '"ab"', True),
    ('"\\b"', '"b"', False),
    (":nil", '"nil"', False),
    (":true", "true", False),
    ("(1 [2] 3)", "[1 (2) 3]", True),
    ("[]", "()", True),
    ("[]", "#{}", False),
    ("[]", "{}", False),
    ("#{}", "{}", False),
    ("[nil]", "[]", False),
    ("#{1 2 3}", "#{3 2 1}", True),
    ("#{1 2 3}", "[1 2 3]", False),
    ("#{[1 2] :a}", "#{:a (1 2)}", True),
    ("#{#{1} #{2}}", "#{#{2} #{1}}", True),
    ("{:a 1, :b 2}", "{:b 2, :a 1}", True),
    ("{:a 1}", '{"a" 1}', False),
    ('{1 :a, "1" :b}', '{"1" :b, 1 :a}', True),
    ('{1 :a, "1" :b}', '{1 :b, "1" :a}', False),
    ("{[1 2] #{3}}", "{(1 2) #{3}}", True),
    ("{[1 2] 3}", "{#{1 2} 3}", False),
    ("{1 2}", "[[1 2]]", False),
    ('#inst "2026"', '#inst "2026"', True),
    ('#inst "2026"', '"2026"', False),
    ('#inst "2026"', '#uuid "2026"', False),
    ("[1 #_ 9 2]", "[1 2 #_ #_ 8 9]", True),
]

#: An event: type, kind, value, and the key where there is one.
Event = tuple[str, str, str, str | None]
#: How a history shows whether two values are one: model, events, and the exit code where they are;
#: it is the other one where they are two. ``NIL`` is each format's own.
Way = Callable[[str, str], tuple[str, list[Event], int]]


def done(f: str, asked: str, answered: str, key: str | None = None) -> list[Event]:
    return [("invoke", f, asked, key), ("ok", f, answered, key)]


WAYS: dict[str, Way] = {
    "register": lambda a, b: ("register", [*done("write", a, a), *done("read", "NIL", b)], 0),
    "key": lambda a, b: (
        "register",
        [*done("write", "5", "5", a), *done("read", "NIL", "5", b)],
        0,
    ),
    "cas": lambda a, b: (
        "cas-register",
        [*done("write", a, a), *done("cas", f"[{b}, 7]", f"[{b}, 7, true]")],
        0,
    ),
    "set": lambda a, b: ("set", [*done("add", a, a), *done("read", "NIL", f"[{b}]")], 0),
    "contains": lambda a, b: ("set", [*done("add", a, a), *done("contains", b, "true")], 0),
    "set-full": lambda a, b: ("set-full", [*done("add", a, a), *done("read", "NIL", f"[{b}]")], 0),
    "ids": lambda a, b: (
        "unique-ids",
        [*done("generate", "NIL", a), *done("generate", "NIL", b)],
        1,
    ),
    "queue": lambda a, b: ("fifo-queue", [*done("enqueue", a, a), *done("dequeue", "NIL", b)], 0),
    "bag": lambda a, b: (
        "unordered-queue",
        [*done("enqueue", a, a), *done("dequeue", "NIL", b)],
        0,
    ),
    "drain": lambda a, b: (
        "queue-totals",
        [*done("enqueue", a, a), *done("drain", "NIL", f"[{b}]")],
        0,
    ),
    "txn": lambda a, b: (
        "multi-register",
        [
            *done("txn", f'[["w", {a}, 7]]', f'[["w", {a}, 7]]'),
            *done("txn", f'[["r", {b}, NIL]]', f'[["r", {b}, 7]]'),
        ],
        0,
    ),
    "sessions": lambda a, b: ("sessions", [*done("add", a, a), *done("read", "NIL", f"[{b}]")], 0),
    "own": lambda a, b: (
        f"{__file__}:OwnRegister",
        [*done("put", a, a), *done("get", "NIL", b)],
        0,
    ),
}


class OwnRegister(Model):
    """A model as a user writes it, who knows nothing of kinds of numbers."""

    name = "own"
    functions = frozenset({"put", "get"})
    initial = 7

    def step(self, state: Any, call: Call) -> tuple[bool, Any]:
        if call.f == "get":
            return not call.known or state == call.result, state
        return True, call.argument


def as_json(events: list[Event]) -> str:
    """Lines of one process."""
    return "".join(
        f'{{"process": 0, "type": "{type_}", "f": "{f}", "value": {value}'
        + ("" if key is None else f', "key": {key}')
        + "}\n"
        for type_, f, value, key in events
    ).replace("NIL", "null")


def as_edn(events: list[Event]) -> str:
    """The same as EDN."""
    return "".join(
        f"{{:process 0, :type :{type_}, :f :{f}, "
        + ("" if key is None else f":key {key}, ")
        + f":value {value}}}\n"
        for type_, f, value, key in events
    ).replace("NIL", "nil")


def codes_of(path: Path, model: str, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Exit codes as objects and as columns."""
    codes: list[int] = []
    for threshold in (1 << 60, 0):
        monkeypatch.setattr(bare_judging, "COLUMNS_FROM_BYTES", threshold)
        codes.append(cli.run(["check", str(path), "--model", model, "--json"]))
    return codes


def assert_told(
    path: Path,
    number: int,
    row: tuple[str, str, bool],
    lines: Callable[[list[Event]], str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Ask a row in two ways, and in one of the others, so that each is asked many times."""
    a, b, are_one = row
    others = [*WAYS][2:]
    for way in ("register", "key", others[number % len(others)]):
        for first, second in ((a, b), (b, a)):
            model, events, code = WAYS[way](first, second)
            path.write_text(lines(events))
            expected = code if are_one else 1 - code
            assert codes_of(path, model, monkeypatch) == [expected, expected], path.read_text()


@pytest.mark.parametrize(("number", "row"), [*enumerate(JSON_VALUES)])
def test_json_says_which_values_are_one(
    tmp_path: Path, number: int, row: tuple[str, str, bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert_told(tmp_path / "h.jsonl", number, row, as_json, monkeypatch)


@pytest.mark.parametrize(("number", "row"), [*enumerate(EDN_VALUES)])
def test_edn_says_which_values_are_one(
    tmp_path: Path, number: int, row: tuple[str, str, bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert_told(tmp_path / "h.edn", number, row, as_edn, monkeypatch)


def judged(
    path: Path, model: str, capsys: pytest.CaptureFixture[str], *options: str
) -> tuple[int, dict[str, Any]]:
    code = cli.run(["check", str(path), "--model", model, "--json", *options])
    return code, json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("threshold", [0, 1 << 60])
@pytest.mark.parametrize(("read", "told"), [("1.0", "invalid"), ("1", None), ("2.0", None)])
def test_a_number_written_in_both_ways_is_said_where_it_decides(
    tmp_path: Path,
    threshold: int,
    read: str,
    told: str | None,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(bare_judging, "COLUMNS_FROM_BYTES", threshold)
    path = tmp_path / "h.jsonl"
    path.write_text(as_json([*done("write", "1", "1"), *done("read", "NIL", read)]))
    code, results = judged(path, "register", capsys)
    assert code == (1 if read == "2.0" else 0)
    notes = [sentence for sentence in results["problems"] if "1.0" in sentence]
    assert bool(notes) == (told is not None)
    assert all(sentence.endswith(f"the verdict would be {told}.") for sentence in notes)


@pytest.mark.parametrize(
    ("written", "read", "code"),
    [
        ("[1 5]", '["1" 5]', 1),
        ("[:x 5]", '["x" 5]', 1),
        ("[:x 5]", "[:x 5]", 0),
        ("[[1 2] 5]", "[(1 2) 5]", 0),
        ("[[1 2] 5]", "[#{1 2} 5]", 1),
        ("[1 5]", "[1.0 5]", 1),
        ("[true 5]", '["true" 5]', 1),
        ("[1 :x]", '[1 "x"]', 1),
    ],
)
def test_keys_within_values_are_told_apart_too(
    tmp_path: Path, written: str, read: str, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "h.edn"
    asked = read.rsplit(" ", 1)[0] + " nil]"
    path.write_text(as_edn([*done("write", written, written), *done("read", asked, read)]))
    assert codes_of(path, "register", monkeypatch) == [code, code]


@pytest.mark.parametrize(("read", "code"), [("7", 0), ("7.0", 0), ("0", 1), ("true", 1)])
def test_what_a_users_model_begins_with_is_no_truth(
    tmp_path: Path, read: str, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "h.jsonl"
    path.write_text(as_json(done("get", "NIL", read)))
    assert codes_of(path, f"{__file__}:OwnRegister", monkeypatch) == [code, code]
    path.write_text(as_json(done("get", "NIL", "true")))
    assert codes_of(path, f"{__file__}:BeginsWithOne", monkeypatch) == [1, 1]


@pytest.mark.parametrize(
    ("model", "events"),
    [
        ("counter", [*done("add", "true", "true"), *done("read", "NIL", "1")]),
        ("counter", [*done("add", "1", "1"), *done("read", "NIL", "true")]),
        ("topics", done("create", "true", "[true, true]")),
        ("fenced-register", done("write", "[true, 5]", "[true, 5, true]")),
        ("kv", done("append", "1", "1")),
    ],
)
def test_a_truth_is_no_number_and_a_number_no_text(
    tmp_path: Path, model: str, events: list[Event], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "h.jsonl"
    path.write_text(as_json(events))
    assert codes_of(path, model, monkeypatch) == [64, 64]


@pytest.mark.parametrize(
    ("model", "events", "code"),
    [
        # Sums go by size, whatever the kinds; exact ones stay exact.
        ("counter", [*done("add", "0.1M", "0.1M")] * 3 + done("read", "NIL", "0.3M"), 0),
        ("counter", [*done("add", "1/3", "1/3")] * 3 + done("read", "NIL", "1"), 0),
        ("counter", [*done("add", "1.5", "1.5")] * 2 + done("read", "NIL", "3"), 0),
        ("counter", [*done("read", "NIL", "0.0")], 0),
        ("counter", [*done("add", "0.1M", "0.1M"), *done("read", "NIL", "0.2M")], 1),
        ("counter-bounds", [*done("add", "0.1M", "0.1M"), *done("read", "NIL", "0.1M")], 0),
        ("bank:total=10", done("read", "NIL", '{1 4, "1" 6}'), 0),
        ("bank:total=10", done("read", "NIL", "{:a 4.0, :b 6}"), 0),
        ("bank:total=10", done("read", "NIL", "{:a 4, :b true}"), 1),
        # Texts that are put together are no names.
        ("kv", [*done("append", ":a", ":a"), *done("get", "NIL", '"a"')], 64),
        ("kv", [*done("append", '":"', '":"'), *done("append", '"a"', '"a"')], 0),
        (
            "kv",
            [
                *done("append", '":"', '":"'),
                *done("append", '"a"', '"a"'),
                *done("get", "NIL", '":a"'),
            ],
            0,
        ),
        # A transaction writes w as such, also where a value is a text that is written so.
        (
            "multi-register",
            [
                *done("txn", '[[:w :x "w"]]', '[[:w :x "w"]]'),
                *done("txn", "[[:r :x nil]]", '[[:r :x "w"]]'),
            ],
            0,
        ),
        ("multi-register", done("txn", "[[:r :x nil]]", '[[:r :x "w"]]'), 1),
        # Reads of sets answer sets.
        ("set", [*done("add", "[1 2]", "[1 2]"), *done("read", "NIL", "#{(1 2)}")], 0),
        ("set-full", [*done("add", ":a", ":a"), *done("read", "NIL", '#{"a"}')], 1),
        ("sessions", [*done("add", "1", "1"), *done("read", "NIL", "#{1 true}")], 0),
        ("queue-totals", [*done("enqueue", ":a", ":a"), *done("drain", "NIL", "#{:a}")], 0),
    ],
)
def test_models_and_checkers_go_on_with_the_values_of_edn(
    tmp_path: Path, model: str, events: list[Event], code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "h.edn"
    path.write_text(as_edn(events))
    assert codes_of(path, model, monkeypatch) == [code, code]


@pytest.mark.parametrize("value", ["#{1 1N}", "{:a 1 :a 2}", "{0.0 1 -0.0 2}", "#_", "[#_]", "1/0"])
def test_what_is_no_edn_is_refused_with_its_line(
    tmp_path: Path, value: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "h.edn"
    path.write_text(as_edn([("invoke", "write", "1", None), ("ok", "write", value, None)]))
    assert codes_of(path, "register", monkeypatch) == [64, 64]
    assert "line 2" in capsys.readouterr().err


def test_an_operation_behind_a_discard_never_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = as_edn([*done("write", "1", "1"), *done("write", "2", "2"), *done("read", "NIL", "1")])
    first, second, third, fourth, *rest = lines.splitlines()
    path = tmp_path / "h.edn"
    path.write_text("\n".join([first, second, f"#_{third}", f"#_ #x {fourth}", *rest, "#_ 5", ""]))
    assert codes_of(path, "register", monkeypatch) == [0, 0]


def test_values_of_edn_cross_to_workers_into_results_and_into_the_page(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    value = '[#{1 true {[1] :a}} {1 "x", "1" x} \\a 1.0M 1/2 ##NaN #inst "2026"]'
    path = tmp_path / "h.edn"
    path.write_text(as_edn([*done("write", value, value), *done("read", "NIL", ":x")]))
    page = tmp_path / "page.html"
    code, results = judged(path, "register", capsys, "--report", str(page))
    assert code == 1
    (check,) = results["checkers"]
    assert "read -> :x" in check["reason"]
    assert '#inst "2026"' in check["reason"]
    assert page.stat().st_size > 10_000


class BeginsWithOne(OwnRegister):
    """A model whose author begins with a number that Python takes for a truth."""

    initial = 1
