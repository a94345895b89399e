"""Parts of the page: links to each, what is folded, what is left out, and the nodes' own logs."""

from datetime import datetime, timedelta
from pathlib import Path

import pytest

from splitbrain.checker.verdict import CheckResult, Verdict
from splitbrain.harness.folder.coverage_cells import CoverageCell
from splitbrain.harness.folder.results import FaultResult
from splitbrain.harness.judge.evidence_loader import load_run
from splitbrain.harness.report.page import report_page
from tests.synthetic_runs import HOSTILE, write_run
from tests.unit.harness.report.made_pages import operation, outline, page_of, violation
from tests.unit.harness.small_results import results_with


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_run(tmp_path_factory.mktemp("page") / "run", operations_per_second=40)


def test_each_link_leads_to_the_one_part_of_its_name(run: Path) -> None:
    core = (operation(1, 0, 1), operation(3, 2, 9))
    shown = tuple(
        CheckResult(name, Verdict.INVALID, "r", violations=(violation(*core), violation(*core)))
        for name in "ab"
    )
    parts = outline(page_of(run, shown))
    ids = [attributes["id"] for _, attributes in parts if "id" in attributes]
    assert len(ids) == len(set(ids))
    links = {attributes["href"] for tag, attributes in parts if tag == "a"}
    assert links <= {f"#{identifier}" for identifier in ids}
    wanted = {f"violation-{number}" for number in range(1, 5)}
    wanted |= {f"violation-{number}-operation-3" for number in range(1, 5)}
    wanted |= {"fault-0", "fault-1", "fault-2", "violations", "checkers", "faults", "operations"}
    assert wanted <= {str(link)[1:] for link in links}


def test_a_checker_that_found_something_comes_first_and_silent_ones_are_folded(run: Path) -> None:
    found = CheckResult("loud", Verdict.INVALID, "r", violations=(violation(operation(1, 0, 1)),))
    page = page_of(run, (CheckResult("still", Verdict.VALID, "nothing"), found))
    checkers = page[page.index('id="checkers"') :]
    assert checkers.index("loud") < checkers.index("<details><summary>1 found no violation: still")
    assert "found no violation: still" not in page_of(
        run, (CheckResult("still", Verdict.VALID, ""),)
    )


def test_what_did_not_happen_is_folded(run: Path) -> None:
    record = load_run(run)
    faults = (
        FaultResult(0, "kill", "leader", ("n1",), applied=True, at_ms=5, evidence="x " * 100),
        FaultResult(1, "pause", "leader"),
    )
    cells = (CoverageCell("kill", "leader", "settled", "register", 1, 1),)
    results = results_with(faults=faults, coverage=cells)
    page = report_page(record, results, None)
    table, folded = page[page.index('id="faults"') :].split("1 that did not happen", 1)
    assert "kill:leader" in table
    assert "pause:leader" not in table
    assert "pause:leader" in folded
    assert '<details class="cell"><summary>x x' in table
    coverage = page[page.index('id="coverage"') :]
    met, unmet = coverage.split("without a fault", 1)
    assert '<th scope="row">kill</th><td class="">leader' in met
    assert "pause" not in met
    assert "pause" in unmet


def test_charts_without_content_are_not_drawn(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", operations_per_second=40)
    for node in ("n1", "n2", "n3"):
        (run / "nodes" / node / "state_events.jsonl").unlink()
    page = page_of(run)
    assert 'id="plot-latency"' in page
    assert 'id="plot-leaders"' not in page
    (run / "history.jsonl").write_text("")
    page = page_of(run)
    assert 'id="timeline"' not in page
    assert 'href="#timeline"' not in page


def test_the_nodes_logs_stand_with_the_violation_and_with_each_fault(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", operations_per_second=40)
    record = load_run(run)
    assert record.plan is not None
    start = datetime.fromisoformat(record.plan.started_at)
    lines = [(0.5, "before"), (5.1, "cut off"), (8.4, HOSTILE), (30, "much later")]
    (run / "nodes" / "n1" / "output.log").write_text(
        "".join(f"{(start + timedelta(seconds=at)).isoformat()} {text}\n" for at, text in lines)
    )
    shown = CheckResult(
        "c", Verdict.INVALID, "r", violations=(violation(operation(1, 8_000, 8_005)),)
    )
    page = page_of(run, (shown,))
    near = page[page.index('id="violation-1-logs"') :]
    near = near[: near.index("</table>")]
    assert near.index("the violation") < near.index("window.hacked")
    assert "<script>window" not in near
    assert "cut off" not in near
    assert "cut off" in page[page.index('id="fault-0-logs"') :]
    assert 'href="#fault-0-logs"' in page
    assert 'id="fault-1-logs"' not in page
    assert "The lines of n2 have no times, so none is shown." in page
    for log in run.glob("nodes/*/*.log"):
        log.unlink()
    assert 'id="node-logs"' not in page_of(run)
