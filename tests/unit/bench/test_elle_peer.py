"""Elle is given the history that we judge, and its answer is read as it is; without a JVM."""

import json
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from bench import elle_peer, transactions
from bench.elle_peer import ElleAnswer, ElleError, Question, edn_line, questions_of, write_edn
from bench.transaction_histories import STEP_NS, USUAL, history
from bench.transactions import Row, beside, measure, rows_of
from splitbrain.checker.transactions.levels import Kind
from splitbrain.history.records import Event

ANSWER = (
    '{"verdict": "invalid", "anomalies": ["G1a"], "reading_cpu_s": 0.5, "runs_cpu_s": [3, 2, 1]}'
)


def read_edn(line: str) -> dict[str, Any]:
    """Return an operation of Jepsen's, its keywords as texts."""
    text = re.sub(r":([a-z]+)", r'"\1"', line.strip()[1:-1]).replace("nil", "null")
    parts = json.loads(f"[{re.sub('[ ,]+', ',', text)}]")
    return dict(zip(parts[::2], parts[1::2], strict=True))


def fake_java(folder: Path, monkeypatch: pytest.MonkeyPatch, output: str, code: int = 0) -> Path:
    """Put a program in the place of java; return the file that tells its arguments."""
    arguments = folder / "arguments"
    java = folder / "java"
    tell = f"printf '%s\\n' \"$@\" > {arguments}\npwd >> {arguments}"
    java.write_text(f"#!/bin/sh\n{tell}\necho '{output}'\nexit {code}\n")
    java.chmod(0o755)
    monkeypatch.setenv("PATH", str(folder))
    return arguments


def test_an_operation_is_one_line() -> None:
    value = [["r", 3, None], ["append", 3, 7], ["r", 4, [1, 2]]]
    assert edn_line(Event(5, 42, 1, "ok", "txn", value=value)) == (
        "{:index 5 :time 42 :process 1 :type :ok :f :txn"
        " :value [[:r 3 nil] [:append 3 7] [:r 4 [1,2]]]}\n"
    )


@pytest.mark.parametrize("kind", ["list-append", "rw-register"])
def test_the_file_holds_the_whole_history(kind: Kind, tmp_path: Path) -> None:
    shape = USUAL._replace(open_share=0.1, failed_share=0.1)
    operations = history(kind, shape, 200, 1)
    write_edn(transactions.events_of(operations), tmp_path / "history.edn")
    lines = [*map(read_edn, (tmp_path / "history.edn").read_text().splitlines())]
    assert [line["index"] for line in lines] == list(range(400))
    assert {line["type"] for line in lines} == {"invoke", "ok", "fail", "info"}
    open_ones: dict[int, dict[str, Any]] = {}
    found: list[tuple[Any, ...]] = []
    for line in lines:
        if line["type"] == "invoke":
            assert line["process"] not in open_ones
            open_ones[line["process"]] = line
        else:
            began = open_ones.pop(line["process"])
            found.append((began["time"], line["type"], began["value"], line["value"]))
    assert not open_ones
    assert sorted(found) == [
        (number * STEP_NS, o.type, o.argument, o.result if o.type == "ok" else o.argument)
        for number, o in enumerate(operations)
    ]


def test_elle_is_asked_for_the_level_of_the_row() -> None:
    strict = ":consistency-models [:strict-serializable]"
    assert questions_of("list-append", "strict-serializable", 100) == [
        Question("elle.list-append", f"{{{strict}}}")
    ]
    assert questions_of("rw-register", "strict-serializable", 100) == [
        Question("elle.rw-register", f"{{{strict} :wfr-keys? true}}"),
        Question("elle.rw-register", f"{{{strict} :wfr-keys? true :linearizable-keys? true}}"),
    ]
    # In real time versions may be in another order than a snapshot's.
    (snapshot,) = questions_of("rw-register", "snapshot-isolation", 100)
    assert "linearizable" not in snapshot.options


def test_large_histories_of_registers_are_asked_about_in_one_way() -> None:
    count = elle_peer.BY_TIME_MAX
    assert len(questions_of("rw-register", "strict-serializable", count)) == 2
    (one,) = questions_of("rw-register", "strict-serializable", count + 1)
    assert "linearizable" not in one.options


def test_elle_is_not_asked_about_rows_and_commit_orders() -> None:
    assert not questions_of("rows", "strict-serializable", 100)
    assert not questions_of("rw-register", "causal", 100)


def test_the_answer_is_the_last_line() -> None:
    assert elle_peer.answer_of(f"INFO [1] :unexplored!\n{ANSWER}\n") == ElleAnswer(
        "invalid", ("G1a",), 0.5, (3.0, 2.0, 1.0)
    )


def test_an_answer_with_other_fields_is_refused() -> None:
    with pytest.raises(msgspec.ValidationError, match="wall_s"):
        elle_peer.answer_of(ANSWER.replace("reading_cpu_s", "wall_s"))


def test_the_script_names_the_fields_that_are_read() -> None:
    named = re.findall(r'\\"(\w+)\\":', elle_peer.SCRIPT.read_text())
    assert {*named} == {"error", *ElleAnswer.__struct_fields__}


def test_a_row_has_the_figures_of_elle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    arguments = fake_java(tmp_path, monkeypatch, ANSWER)
    row = Row("list-append", lambda: history("list-append", USUAL, 20, 1))
    assert measure(row, "some/classes")["elle"] == [
        {
            "options": "{:consistency-models [:strict-serializable]}",
            "verdict": "invalid",
            "anomalies": ("G1a",),
            "reading_cpu_s": 0.5,
            "first_cpu_s": 3.0,
            "warm_cpu_s": 1.0,
        }
    ]
    told = arguments.read_text().splitlines()
    *_, class_path, main, script, checker, options, path, runs, folder = told
    assert class_path == str(Path("some/classes").absolute())
    assert (main, script) == ("clojure.main", str(elle_peer.SCRIPT))
    assert (checker, options) == questions_of("list-append", "strict-serializable", 100)[0]
    assert (Path(path).name, runs) == ("history.edn", str(elle_peer.RUNS))
    # Elle leaves files where it runs.
    assert Path(folder) != Path.cwd()
    assert not Path(folder).exists()
    assert "elle" not in measure(row)


def test_a_row_without_answer_has_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_java(tmp_path, monkeypatch, "Terminating due to java.lang.OutOfMemoryError", code=3)
    row = Row("list-append", lambda: history("list-append", USUAL, 20, 1))
    (answer,) = measure(row, "some/classes")["elle"]
    assert answer["verdict"] == "none"
    assert answer["error"].endswith(
        "without an answer: Terminating due to java.lang.OutOfMemoryError"
    )


def test_further_answers_are_below_the_first() -> None:
    answer = {"reading_cpu_s": 1.5, "first_cpu_s": 3.0, "warm_cpu_s": 2.0, "options": "{}"}
    lines = beside(
        "ours",
        [
            {**answer, "verdict": "valid"},
            {"verdict": "none", "options": "{:b 1}", "error": "It ended"},
        ],
    )
    assert [line.split() for line in lines] == [
        ["ours", "1.5", "3.0", "2.0", "valid", "{}"],
        ["none", "{:b", "1}", "It", "ended"],
    ]
    assert lines[0].index("  {}") == lines[1].index("  {:b 1}")
    assert beside("ours", []) == ["ours"]


def test_small_rows_are_added_for_elle_alone() -> None:
    without, with_elle = rows_of(1, 0), rows_of(1, 0, with_elle=True)
    assert [*with_elle] == [*without, "registers 4,000", "registers 8,000"]


@pytest.mark.parametrize(
    ("output", "reason"),
    [
        (
            '{"error": "Could not locate elle/list_append.clj"}',
            "Could not locate elle/list_append.clj",
        ),
        ("Error: Could not find or load main class", "Error: Could not find or load main class"),
        ("", "it gave no reason, and exit code 1"),
    ],
)
def test_a_wrong_class_path_is_one_sentence(
    output: str,
    reason: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    fake_java(tmp_path, monkeypatch, output, code=1)
    monkeypatch.setattr("sys.argv", ["transactions", "--elle", "/nowhere"])
    with pytest.raises(SystemExit) as caught:
        transactions.main()
    assert caught.value.code == 2
    told = capsys.readouterr()
    assert not told.out
    assert told.err.splitlines()[-1] == (
        f"python -m bench.transactions: error: Elle cannot be loaded from the class path: {reason}"
    )


def test_without_java_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ElleError, match="Elle needs java"):
        elle_peer.load("/nowhere")
