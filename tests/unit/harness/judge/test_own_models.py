"""Models that users wrote, through the real command line."""

import json
from pathlib import Path
from typing import Any

import pytest

from splitbrain.harness.cli import main as cli
from tests.unit.checker.models_page import OWN_MODEL


def recorded(path: Path, *events: tuple[int, str, str, Any]) -> Path:
    rows = [
        {"process": process, "type": type_, "f": f, "value": value}
        for process, type_, f, value in events
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def written_twice_and_read(path: Path, read: int) -> Path:
    return recorded(
        path,
        *[(0, type_, "write", value) for value in (5, 3) for type_ in ("invoke", "ok")],
        *[(1, "invoke", "read", None), (1, "ok", "read", read)],
    )


@pytest.mark.parametrize(("read", "code"), [(5, 0), (3, 1)])
def test_the_model_of_the_documentation_judges_in_the_workers(
    tmp_path: Path, read: int, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    history = written_twice_and_read(tmp_path / "h.jsonl", read)
    name = f"{OWN_MODEL}:MaxRegister"
    assert cli.run(["check", str(history), "--model", name, "--json"]) == code
    results = json.loads(capsys.readouterr().out)
    assert results["checkers"][0]["checker"] == f"linearizability:{name}"
    assert " --model max_register.py:MaxRegister --made-by " in results["reproduce"]
    assert results["reproduce"].endswith("  # takes the files h.jsonl, max_register.py")
    # A register that forgets nothing but the latest value would say the opposite.
    assert cli.run(["check", str(history), "--model", "register", "--json"]) == 1 - code


def test_a_queue_with_a_capacity_refuses(tmp_path: Path) -> None:
    def queue(name: str, *answers: bool) -> int:
        events = [
            event
            for number, answer in enumerate(answers)
            for event in ((0, "invoke", "enqueue", number), (0, "ok", "enqueue", answer))
        ]
        history = recorded(tmp_path / name, *events)
        return cli.run(["check", str(history), "--model", f"{OWN_MODEL}:QueueOfThree", "--json"])

    assert queue("full.jsonl", True, True, True, False) == 0
    assert queue("not-full.jsonl", True, True, False) == 1


def test_a_file_that_prints_does_not_spoil_the_json(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = tmp_path / "loud.py"
    model.write_text(f"print('loud')\n{OWN_MODEL.read_text()}")
    history = written_twice_and_read(tmp_path / "h.jsonl", 5)
    assert cli.run(["check", str(history), "--model", f"{model}:MaxRegister", "--json"]) == 0
    captured = capsys.readouterr()
    assert json.loads(captured.out)["verdict"] == "valid"
    assert "loud" in captured.err


def test_a_model_that_fails_amid_the_search_is_unknown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = tmp_path / "broken.py"
    model.write_text(OWN_MODEL.read_text().replace("max(state, call.argument)", "state.highest"))
    history = written_twice_and_read(tmp_path / "h.jsonl", 5)
    assert cli.run(["check", str(history), "--model", f"{model}:MaxRegister", "--json"]) == 2
    reason = json.loads(capsys.readouterr().out)["checkers"][0]["reason"]
    assert "AttributeError: 'int' object has no attribute 'highest'" in reason


HEAD = "from splitbrain.checker.models.model import Model, NondeterministicModel\n"
UNHASHABLE = f"{HEAD}class Mine(Model):\n    functions, initial = {{'read'}}, []"
NO_SET = f"{HEAD}class Mine(NondeterministicModel):\n    functions, initial = {{'read'}}, 0"
REFUSED = [
    ("", "mine.py:Name", "mine.py holds no Name. It holds no model at all; `splitbrain docs "),
    (f"{HEAD}class Mine(Model): pass", "mine.py:Name", "Its models are: Mine"),
    (f"{HEAD}class Mine(Model): pass", "mine.py:", "mine.py holds no nameless model."),
    ("class Mine: pass", "mine.py:Mine", "'mine.py:Mine' is no model but another class. Derive"),
    ("Mine = 3", "mine.py:Mine", "is no model but of type int. Derive"),
    ("class (", "mine.py:Mine", "mine.py cannot be run: SyntaxError: "),
    ("raise SystemExit(3)", "mine.py:Mine", "mine.py cannot be run: SystemExit: 3. Repair"),
    ("import no_such_module", "mine.py:Mine", "cannot be run: ModuleNotFoundError: No module"),
    ("", "other.py:Mine", "there is no file other.py. Name a Python file that holds a model"),
    (f"{HEAD}class Mine(Model): pass", "mine.py:Mine", "lacks functions, the kinds of"),
    (
        f"{HEAD}class Mine(Model):\n    functions = frozenset({{'read'}})",
        "mine.py:Mine",
        "lacks step, what an operation does",
    ),
    (
        f"{HEAD}class Mine(NondeterministicModel):\n    functions = frozenset({{'read'}})",
        "mine.py:Mine",
        "lacks steps, what an operation does",
    ),
    (
        f"{UNHASHABLE}\n    def step(self, state, call): return True, state",
        "mine.py:Mine",
        "lacks a hashable initial state, such as a tuple",
    ),
    (
        f"{NO_SET}\n    def steps(self, state, call): return [state]",
        "mine.py:Mine",
        "lacks a frozenset of states as its initial one",
    ),
    (
        f"{HEAD}class Mine(Model):\n    def __init__(self, size): pass",
        "mine.py:Mine",
        "cannot be made without arguments: TypeError: ",
    ),
]


@pytest.mark.parametrize(("text", "name", "sentence"), REFUSED)
def test_what_is_no_model_is_refused_in_one_sentence(
    text: str,
    name: str,
    sentence: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(text)
    written_twice_and_read(tmp_path / "h.jsonl", 5)
    assert cli.run(["check", "h.jsonl", "--model", name]) == 64
    captured = capsys.readouterr()
    assert sentence in captured.err
    assert captured.err.count("\n") == 1
    assert captured.out == ""
