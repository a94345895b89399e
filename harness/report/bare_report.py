"""Writer of a bare history's page: verdict, violation, operations.

A bare history has no faults, leaders or latencies, so the page has none. It is drawn in a worker
that can be killed: a defect in it must not cost the verdict.
"""

import shlex
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from splitbrain.contracts.budget import Budget
from splitbrain.contracts.errors import UsageError
from splitbrain.harness.folder.atomic_file import write_atomically
from splitbrain.harness.folder.results import Results
from splitbrain.harness.pool.limits import Limits
from splitbrain.harness.pool.workers import Part, run_parts
from splitbrain.history.records import PairedOperation
from splitbrain.history.run_folder import RunFolder

_FUNCTION = f"{__name__}:write_page"
_LIMITS = Limits(time_budget_s=180.0, memory_budget_mib=8192, jobs=1)


def page_at(report: Path, history: Path) -> Callable[[Results, Sequence[PairedOperation]], Results]:
    """Return the writer of the page; it adds its problems to the results.

    Raises:
        UsageError: the page cannot be written there; nothing is judged then.
    """
    if report.is_dir() or not report.parent.is_dir():
        why = "it is a folder" if report.is_dir() else f"there is no folder {report.parent}"
        raise UsageError(
            f"--report {shlex.quote(str(report))} cannot be written: {why}",
            "Name a file in a folder that exists",
        )
    if report.exists() and history.exists() and report.samefile(history):
        raise UsageError(
            "--report names the history itself", "Name another file, it would be replaced"
        )
    return partial(_with_page, report)


def _with_page(report: Path, results: Results, operations: Sequence[PairedOperation]) -> Results:
    # Modules about runs are loaded only where a page is drawn.
    from splitbrain.harness.judge.evidence_loader import RunRecord

    record = RunRecord(RunFolder(Path(results.run_folder)), operations=list(operations))
    (outcome,) = run_parts([Part(_FUNCTION, (record, results, report))], _LIMITS)
    if outcome.failure is None:
        return results
    return results.with_problem(f"{report} could not be made: its writer {outcome.failure}.")


def write_page(payload: tuple[Any, Results, Path], _budget: Budget) -> None:
    """Draw the page and write it, in a worker."""
    from splitbrain.harness.report.page import report_page

    record, results, report = payload
    write_atomically(report, report_page(record, results, None).encode())
