"""The operations view is bounded, holds all that contradicts, and says what it leaves out."""

import html
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from splitbrain.checker.linearizability.part.outcome import PRECONDITIONS, ZONES
from splitbrain.checker.verdict import CheckResult, Verdict
from splitbrain.contracts.errors import UsageError
from splitbrain.harness.cli.bare_command import page_at
from splitbrain.harness.judge.bare_history import judge_history
from splitbrain.harness.pool.limits import Limits
from splitbrain.harness.report.chart_data import Band, ShownReign
from splitbrain.harness.report.operations_view import (
    OPERATIONS_MAX,
    ROWS_MAX,
    OperationsView,
    operations_view,
)
from splitbrain.harness.report.violations import (
    VIEWS_MAX,
    ViolatedOperation,
    show_violations,
)
from splitbrain.history.records import PairedOperation

MS = 1_000_000
LIMITS = Limits(30, 1024, 1)


def operation(index: int, process: int, start: int, **changes: Any) -> PairedOperation:
    base = PairedOperation(
        index=index,
        process=process,
        f="read",
        key="r",
        argument=None,
        result=4,
        type="ok",
        start=start * MS,
        end=(start + 5) * MS,
    )
    return msgspec.structs.replace(base, **changes)


def found(*cores: list[PairedOperation]) -> CheckResult:
    violations = tuple(
        {
            "kind": "not-linearizable",
            "operation": msgspec.to_builtins(core[0]),
            "core": [msgspec.to_builtins(member) for member in core],
        }
        for core in cores
    )
    return CheckResult("linearizability:x", Verdict.INVALID, "", violations=violations)


def shown(
    operations: list[PairedOperation], *cores: list[PairedOperation], **bands: Any
) -> OperationsView:
    view = operations_view(
        operations, [found(*cores)], bands.get("faults", ()), bands.get("reigns", ())
    )
    assert view is not None
    return view


def test_without_an_answered_operation_there_is_no_view() -> None:
    assert operations_view([], [], (), ()) is None
    assert operations_view([operation(0, 0, 0, type="info", end=None)], [], (), ()) is None


def test_without_a_violation_the_view_begins_where_most_was_going_on() -> None:
    quiet = [operation(2 * n, 0, 10 * n) for n in range(3_000)]
    crowd = [operation(10_000 + n, 1 + n, 20_000 + n, key="r") for n in range(4)]
    spread = [operation(20_000 + n, 50 + n, 25_000 + n, key=f"other {n}") for n in range(5)]
    never = [operation(30_000 + n, 90 + n, n, type="info", end=None) for n in range(9)]
    fault = Band(0, "partition", "partition", 20.0, 20.1, verified=True, row=0)
    reign = ShownReign("n1", 3, 0.0, 30.0, clash=False)
    view = operations_view([*quiet, *spread, *crowd, *never], [], [fault], [reign])
    assert view is not None
    assert view.busiest
    (only,) = view.views
    # The four of the crowd and the quiet one that was open beside them.
    assert only.focus == (20.0, 20.008)
    assert only.key == "r"
    assert set(only.role) == {0}
    assert only.faults
    assert only.leaders
    assert len(only.row) == OPERATIONS_MAX
    assert only.left_out == 3_000 + 4 + 9 - OPERATIONS_MAX


@pytest.mark.parametrize("processes", [10, 50_000])
def test_the_view_is_bounded_and_holds_what_contradicts(processes: int) -> None:
    operations = [operation(2 * n, n % processes, n) for n in range(50_000)]
    core = [operations[49_000], operations[10]]
    view = shown(operations, core).views[0]
    assert len(view.start) <= OPERATIONS_MAX
    assert len(view.rows) <= ROWS_MAX
    assert view.left_out == 50_000 - len(view.start)
    roles = {view.index[place]: role for place, role in enumerate(view.role) if role}
    assert roles == {98_000: 2, 20: 1}
    assert len(msgspec.json.encode(view)) < 200_000


def test_what_contradicts_stands_in_the_first_rows_and_in_the_table() -> None:
    operations = [operation(2 * n, n, n) for n in range(9)]
    open_ = operation(40, 8, 30, type="info", end=None, f="write", argument=7)
    view = shown([*operations, open_], [open_, operations[3]]).views[0]
    assert view.rows[:2] == ["process 8", "process 3"]
    assert view.end[view.index.index(40)] is None
    (told,) = show_violations([*operations, open_], [found([open_, operations[3]])])
    assert told.operations == [
        ViolatedOperation(40, "write 7 ?", "process 8", "0.030000 s", "never answered"),
        ViolatedOperation(6, "read → 4", "process 3", "0.003000 s", "0.008000 s"),
    ]


def test_only_bands_in_sight_are_drawn() -> None:
    operations = [operation(2 * n, n, 1_000 + n) for n in range(4)]
    faults = [Band(n, "kill", f"kill n{n}", n, n + 0.5, True, 0) for n in range(5)]
    reigns = [ShownReign("n1", 1, 0.0, 0.9, False), ShownReign("n2", 2, 0.9, 9.0, False)]
    view = shown(operations, operations[:2], faults=faults, reigns=reigns).views[0]
    assert [label for label, _, _ in view.faults] == ["kill n1"]
    assert view.leaders == [("n2", 2, 0.9, 9.0)]


def test_a_history_without_times_is_drawn_in_its_order() -> None:
    operations = [msgspec.structs.replace(operation(n, n, 0), start=n, end=n + 3) for n in range(4)]
    view = shown(operations, operations[:1]).views[0]
    assert not view.timed
    assert view.span == (0, 6)
    (told,) = show_violations(operations, [found(operations[:1])])
    assert (told.operations[0].invoked, told.operations[0].answered) == ("event 0", "event 3")


def test_further_violations_are_bounded() -> None:
    operations = [operation(2 * n, n, n) for n in range(9)]
    cores = [[one] for one in operations]
    assert len(shown(operations, *cores).views) == VIEWS_MAX
    told = show_violations(operations, [found(*cores), found(*cores)])
    assert [one.view for one in told] == [*range(VIEWS_MAX), *[None] * (len(told) - VIEWS_MAX)]


def bare_history(path: Path, value: str, read: str) -> Path:
    events = [
        {"process": 0, "type": "invoke", "f": "write", "value": value},
        {"process": 0, "type": "ok", "f": "write", "value": value},
        {"process": 1, "type": "invoke", "f": "read", "value": None},
        {"process": 1, "type": "ok", "f": "read", "value": read},
    ]
    path.write_text("".join(json.dumps(event) + "\n" for event in events))
    return path


def test_a_page_of_a_bare_history_is_written_where_asked(tmp_path: Path) -> None:
    hostile = "</script><img src=x onerror=alert(1)>"
    history = bare_history(tmp_path / "h.jsonl", hostile, "other")
    report = tmp_path / "page.html"
    found = judge_history(history, "register", None, LIMITS, page=page_at(report, history))
    page = report.read_text()
    assert found.problems == ()
    assert "Operations around the violation" in page
    assert "in the order of events" in page
    assert "<img" not in page
    for absent in (
        "Faults that took effect",
        "Timeline",
        'id="chart-data"',
        "uPlot.iife",
        "The seed replays",
    ):
        assert absent not in page


def test_a_valid_bare_history_has_a_page_with_its_busiest_stretch(tmp_path: Path) -> None:
    history = bare_history(tmp_path / "h.jsonl", "a", "a")
    judge_history(history, "register", None, LIMITS, page=page_at(tmp_path / "page.html", history))
    page = (tmp_path / "page.html").read_text()
    assert "VALID" in page
    assert "Busiest moment" in page
    # Why the verdict may be trusted is said in whole, and nothing where there is nothing to say.
    assert f"{ZONES}: {PRECONDITIONS[ZONES]}" in html.unescape(page)
    assert "contradict" not in page[page.index("<body") : page.index("<script")]


@pytest.mark.parametrize("report", ["none/page.html", ".", "h.jsonl"])
def test_a_page_that_cannot_be_written_is_refused_before_anything_is_judged(
    tmp_path: Path, report: str
) -> None:
    history = bare_history(tmp_path / "h.jsonl", "a", "a")
    before = history.read_bytes()
    with pytest.raises(UsageError, match="--report"):
        judge_history(history, "register", None, LIMITS, page=page_at(tmp_path / report, history))
    assert history.read_bytes() == before
