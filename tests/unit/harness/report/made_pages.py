"""Pages of reports with made-up violations, and their outline, for tests of the page."""

from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import msgspec

from splitbrain.checker.verdict import CheckResult, Verdict
from splitbrain.harness.judge.evidence_loader import load_run
from splitbrain.harness.judge.fault_results import fault_results
from splitbrain.harness.judge.outcome_counts import outcome_counts
from splitbrain.harness.report.page import report_page
from splitbrain.history.plan import reproduce_command
from splitbrain.history.records import PairedOperation
from tests.unit.harness.small_results import results_with

MS = 1_000_000


def operation(index: int, start: int, end: int | None, **changes: object) -> PairedOperation:
    base = PairedOperation(
        index=index,
        process=index % 3,
        f="read",
        key="r",
        argument=None,
        result=4,
        type="ok" if end is not None else "info",
        start=start * MS,
        end=None if end is None else end * MS,
    )
    return msgspec.structs.replace(base, **changes)


def violation(*core: PairedOperation, **more: Any) -> dict[str, Any]:
    return {
        "kind": "not-linearizable",
        "sentence": "It has no place.",
        "operation": msgspec.to_builtins(core[0]),
        "core": [msgspec.to_builtins(member) for member in core],
        **more,
    }


def page_of(
    run: Path, checkers: tuple[CheckResult, ...] = (), analysis: Any = None, **options: Any
) -> str:
    record = load_run(run)
    assert record.plan is not None
    results = results_with(
        run=record.plan.run_id,
        verdict=checkers[0].verdict if checkers else Verdict.VALID,
        checkers=checkers,
        operations=outcome_counts(record.operations),
        faults=fault_results(record.scheduled, record.faults),
        elections=3,
        epochs=(1, 3),
        longest_unavailability_ms=12,
        run_folder="runs/kraft-register/x",
        reproduce=reproduce_command(record.plan),
    )
    return report_page(record, results, analysis, **options)


class _Outline(HTMLParser):
    """Parts of a page that could load or run something, and its headings."""

    def __init__(self) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))


def outline(page: str) -> list[tuple[str, dict[str, str | None]]]:
    parser = _Outline()
    parser.feed(page)
    return parser.elements
