"""Writer of a page, in a worker that can be killed: a defect in it must not cost the verdict."""

from pathlib import Path

from splitbrain.contracts.analysis.run import RunAnalysis
from splitbrain.contracts.budget import Budget
from splitbrain.harness.folder.atomic_file import write_atomically
from splitbrain.harness.folder.results import Results
from splitbrain.harness.judge.evidence_loader import RunRecord
from splitbrain.harness.pool.limits import Limits
from splitbrain.harness.pool.workers import Part, run_parts

_FUNCTION = f"{__name__}:write_page"
#: A page of a million operations takes seconds.
_LIMITS = Limits(time_budget_s=180.0, memory_budget_mib=8192, jobs=1)
_Payload = tuple[RunRecord, Results, RunAnalysis | None, Path]


def draw_page(
    record: RunRecord, results: Results, analysis: RunAnalysis | None, path: Path
) -> str | None:
    """Have the page drawn and written; return the problem, as the end of a sentence, or None."""
    (outcome,) = run_parts([Part(_FUNCTION, (record, results, analysis, path))], _LIMITS)
    failure = outcome.failure
    return None if failure is None else f"could not be made: its writer {failure}."


def write_page(payload: _Payload, _budget: Budget) -> None:
    """Draw the page and write it, in a worker."""
    from splitbrain.harness.report.page import report_page

    record, results, analysis, path = payload
    write_atomically(path, report_page(record, results, analysis).encode())
