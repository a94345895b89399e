"""A bare history of any origin is judged, and nothing that it does not have is shown of it."""

import io
import json
import subprocess
import sys
from pathlib import Path

import pytest
from rich.console import Console

from splitbrain.checker.verdict import Verdict
from splitbrain.contracts.errors import UsageError
from splitbrain.harness.folder.results import leading_sentence
from splitbrain.harness.judge.bare_history import judge_history
from splitbrain.harness.pool.limits import Limits
from splitbrain.harness.report.summary import show, to_markdown

LIMITS = Limits(30, 1024, 1)
NEMESIS = '{"process": "nemesis", "type": "info", "f": "start"}\n'


def bare_history(path: Path, read: int) -> Path:
    events = [
        {"process": 0, "type": "invoke", "f": "write", "value": 1},
        {"process": 0, "type": "ok", "f": "write", "value": 1},
        {"process": 1, "type": "invoke", "f": "read", "value": None},
        {"process": 1, "type": "ok", "f": "read", "value": read},
    ]
    path.write_text("".join(json.dumps(event) + "\n" for event in events))
    return path


@pytest.mark.parametrize(("read", "code"), [(1, 0), (2, 1)])
def test_a_bare_history_is_judged_and_nothing_is_written(
    tmp_path: Path, read: int, code: int
) -> None:
    history = bare_history(tmp_path / "h.jsonl", read)
    found = judge_history(history, "cas-register", None, LIMITS)
    assert found.exit_code == code
    assert list(tmp_path.iterdir()) == [history]


def test_a_history_without_operations_proves_nothing(tmp_path: Path) -> None:
    (tmp_path / "h.jsonl").write_text(NEMESIS)
    assert judge_history(tmp_path / "h.jsonl", "cas-register", None, LIMITS).exit_code == 2


def test_an_unknown_model_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        judge_history(bare_history(tmp_path / "h.jsonl", 1), "no-such-model", None, LIMITS)


def test_what_a_bare_history_does_not_have_is_not_shown(tmp_path: Path) -> None:
    found = judge_history(bare_history(tmp_path / "h.jsonl", 1), "cas-register", None, LIMITS)
    output = io.StringIO()
    show(found, Console(file=output))
    for text in (output.getvalue(), to_markdown(found)):
        assert "unknown system" not in text
        assert "Cluster" not in text
        assert "not known" not in text
    assert "cas-register, history of format jsonl" in output.getvalue()


def test_a_bare_history_is_not_called_a_run_and_claims_nothing_of_faults(tmp_path: Path) -> None:
    history = bare_history(tmp_path / "h.jsonl", 1)
    found = judge_history(history, "cas-register", None, LIMITS)
    output = io.StringIO()
    show(found, Console(file=output))
    printed = output.getvalue()
    assert f"History     {history}" in printed
    assert printed.lstrip().startswith("h.jsonl: cas-register")
    assert f"- History: `{history}`" in to_markdown(found)
    for text in (printed, to_markdown(found)):
        assert "Run folder" not in text
        assert "fault" not in text
    assert leading_sentence(found) == "2 operations succeeded, no checker found a violation."


def test_a_history_without_operations_is_no_run_that_proves_nothing(tmp_path: Path) -> None:
    (tmp_path / "h.jsonl").write_text(NEMESIS)
    found = judge_history(tmp_path / "h.jsonl", "cas-register", None, LIMITS)
    assert leading_sentence(found) == ("The history proves nothing: The history has no operation.")


@pytest.mark.parametrize(
    ("kinds", "told"),
    [
        (("put", "get"), "Choose --model kv, which knows all operations of the history."),
        (("read", "add"), "Choose --model counter or set, which knows"),
        (("enqueue", "read"), "No --model knows all operations of the history; there are register"),
    ],
)
def test_operations_that_do_not_fit_name_the_models_that_do(
    tmp_path: Path, kinds: tuple[str, str], told: str
) -> None:
    events = [
        {"process": 0, "type": type_, "f": kind, "value": "a"}
        for kind in kinds
        for type_ in ("invoke", "ok")
    ]
    (tmp_path / "h.jsonl").write_text("".join(json.dumps(event) + "\n" for event in events))
    found = judge_history(tmp_path / "h.jsonl", "cas-register", None, LIMITS)
    assert found.headline == "UNKNOWN"
    assert told in found.checkers[0].reason


def test_a_judgement_that_was_given_up_is_not_valid(tmp_path: Path) -> None:
    found = judge_history(
        bare_history(tmp_path / "h.jsonl", 1), "cas-register", None, LIMITS, lambda: "interrupted"
    )
    assert (found.headline, found.exit_code) == ("INTERRUPTED", 2)


@pytest.mark.parametrize(("read", "provisional"), [(1, "valid"), (2, "invalid")])
def test_where_lines_are_left_out_the_verdict_is_unknown_and_a_provisional_one_is_shown(
    tmp_path: Path, read: int, provisional: str
) -> None:
    history = bare_history(tmp_path / "h.jsonl", read)
    whole = judge_history(history, "cas-register", None, LIMITS, skip_broken=True)
    assert (whole.verdict.value, whole.provisional) == (provisional, None)
    history.write_text(history.read_text() + "???\n")
    found = judge_history(history, "cas-register", None, LIMITS, skip_broken=True)
    assert (found.headline, found.exit_code) == ("UNKNOWN", 2)
    assert found.provisional is not None
    assert found.provisional.value == provisional
    assert leading_sentence(found).startswith(
        f"1 broken line or event was left out, so nothing is proven; what is left is {provisional}."
    )
    assert " --skip-broken --made-by " in found.reproduce


@pytest.mark.parametrize(
    ("model", "read", "verdict", "provisional"),
    [
        ("cas-register", 1, "unknown", "valid"),
        ("cas-register", 2, "invalid", None),
        ("sessions", 1, "unknown", "valid"),
    ],
)
@pytest.mark.parametrize("size", [0, 1 << 60])
def test_a_file_that_ends_in_the_middle_of_a_line_proves_violations_alone(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    model: str,
    read: int,
    verdict: str,
    provisional: str | None,
    size: int,
) -> None:
    monkeypatch.setattr("splitbrain.harness.judge.bare_judging.COLUMNS_FROM_BYTES", size)
    history = bare_history(tmp_path / "h.jsonl", read)
    history.write_text(history.read_text() + '{"process": 1, "ty')
    for skip_broken in (False, True):
        found = judge_history(history, model, None, LIMITS, skip_broken=skip_broken)
        assert (found.verdict.value, found.provisional) == (verdict, provisional)
        assert found.exit_code == (1 if verdict == "invalid" else 2)
        record = found.checkers[-1]
        assert (record.checker, record.figures) == ("record", {"torn-bytes": 18})
        assert "The file ends in the middle of a line: 18 bytes were left out" in record.reason


#: A room that is loaded without need brings dozens: 173 when rooms of runs came along, 122 since.
MODULES_MAX = 147
COUNT = """
import json, sys
from splitbrain.harness.cli.main import run

code = run(sys.argv[1:])
print(json.dumps([code, [name for name in sys.modules if name.startswith("splitbrain.")]]))
"""


def test_a_history_of_four_lines_is_judged_without_what_runs_and_systems_need(
    tmp_path: Path,
) -> None:
    history = bare_history(tmp_path / "h.jsonl", 1)
    command = [sys.executable, "-c", COUNT, "check", str(history)]
    said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    code, modules = json.loads(said.splitlines()[-1])
    assert code == 0
    rooms = (
        *("nemesis", "runtimes", "systems", "simulation", "nodes", "workloads", "spark_analysis"),
        *("harness.run", "harness.campaign"),
    )
    unwanted = tuple(f"splitbrain.{room}" for room in rooms)
    # The command line is made of the records of all commands' options.
    campaign = "splitbrain.harness.campaign"
    options = {f"{campaign}{way}" for way in ("", ".replaying", ".shrinking", ".sweep")}
    options |= {f"{way}.options" for way in options}
    assert [name for name in modules if name.startswith(unwanted) and name not in options] == []
    assert len(modules) <= MODULES_MAX


@pytest.mark.parametrize(
    ("failed", "read", "explained"),
    [
        # The read shows a change that its client called failed.
        (("write", 7), 7, True),
        (("write", 7), 8, False),
        (("read", None), 7, False),
        (("write", 7), 1, None),
    ],
)
def test_a_failed_change_that_explains_the_violation_is_named(
    tmp_path: Path, failed: tuple[str, int | None], read: int, explained: bool | None
) -> None:
    f, value = failed
    events = [
        {"process": 0, "type": "invoke", "f": "write", "value": 1, "key": "r0"},
        {"process": 0, "type": "ok", "f": "write", "value": 1, "key": "r0"},
        {"process": 3, "type": "invoke", "f": f, "value": value, "key": "r0"},
        {"process": 3, "type": "fail", "f": f, "value": value, "key": "r0"},
        {"process": 1, "type": "invoke", "f": "read", "value": None, "key": "r0"},
        {"process": 1, "type": "ok", "f": "read", "value": read, "key": "r0"},
    ]
    path = tmp_path / "h.jsonl"
    path.write_text("".join(json.dumps(event) + "\n" for event in events))
    found = judge_history(path, "cas-register", None, LIMITS)
    assert found.verdict is (Verdict.VALID if explained is None else Verdict.INVALID)
    output = io.StringIO()
    show(found, Console(file=output))
    sentence = (
        "Taken for unknown, the change that its client called failed, write 7 to r0 of process 3, "
        "explains it: look whether its client may say fail there."
    )
    for text in (output.getvalue(), to_markdown(found)):
        assert (sentence in text) is bool(explained)
