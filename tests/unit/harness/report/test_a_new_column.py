"""A column of the report is a field, its value and a row of the columns' table."""

import io
from pathlib import Path

import msgspec
import pytest
from rich.console import Console

from splitbrain.contracts.fault import Fault
from splitbrain.harness.folder.results import FaultResult
from splitbrain.harness.judge import fault_results
from splitbrain.harness.judge.evidence_loader import load_run
from splitbrain.harness.report import fault_columns, page, summary
from splitbrain.harness.report.fault_columns import FaultColumn
from tests.synthetic_runs import write_run
from tests.unit.harness.small_results import results_with


class Wider(FaultResult, frozen=True):
    """A fault's result with a field more."""

    lasted_ms: int | None = None


DUMMY = FaultColumn(
    "lasted", lambda fault: fault.lasted_ms if isinstance(fault, Wider) else "", is_figure=True
)
KILL = Wider(0, "kill", "leader", lasted_ms=12_345)


@pytest.fixture(autouse=True)
def dummy(monkeypatch: pytest.MonkeyPatch) -> None:
    columns = (*fault_columns.FAULT_COLUMNS, DUMMY)
    monkeypatch.setattr(summary, "SHORT_COLUMNS", columns)
    monkeypatch.setattr(page, "FAULT_COLUMNS", columns)
    monkeypatch.setattr(fault_results, "FaultResult", Wider)


def test_a_new_column_is_on_the_terminal_in_the_summary_and_on_the_page(tmp_path: Path) -> None:
    results = results_with(faults=(KILL,))
    output = io.StringIO()
    summary.render(results, Console(file=output, width=120))
    terminal = output.getvalue()
    assert "lasted" in terminal
    assert "12.3 s" in terminal
    assert "| lasted |" in summary.to_markdown(results)
    assert "| 12.3 s |" in summary.to_markdown(results)
    shown = page.report_page(load_run(write_run(tmp_path / "run")), results, None)
    assert '<th scope="col" class="number">Lasted</th>' in shown
    assert "12.345 s" in shown


def test_its_field_is_kept_and_results_of_before_lack_it() -> None:
    (made,) = fault_results.fault_results([Fault(0, "kill", "leader", 1, 2, 3)], [])
    assert isinstance(made, Wider)
    assert msgspec.json.decode(msgspec.json.encode(KILL), type=Wider) == KILL
    before = FaultResult(0, "kill", "leader")
    assert msgspec.json.decode(msgspec.json.encode(before), type=Wider).lasted_ms is None
