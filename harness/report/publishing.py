"""Writer of a judgement's files: JSON, JUnit, SARIF, Markdown and a page.

A problem with one is a sentence in the results and never costs another file, let alone the verdict.
A verdict that could not be written is printed, and the exit code says that the harness failed.
"""

from collections.abc import Callable
from functools import partial
from pathlib import Path

from splitbrain.contracts.analysis.run import RunAnalysis
from splitbrain.harness.folder.atomic_file import write_atomically
from splitbrain.harness.folder.results import Results, write_verdict
from splitbrain.harness.judge.analysis_process import read_analysis
from splitbrain.harness.judge.evidence_loader import RunRecord
from splitbrain.harness.judge.judge import judge
from splitbrain.harness.report.alarms import alarms_of, file_in_repository, files_of
from splitbrain.harness.report.junit import to_junit
from splitbrain.harness.report.page_writer import draw_page
from splitbrain.harness.report.sarif import to_sarif
from splitbrain.harness.report.summary import to_markdown


def publish(record: RunRecord, results: Results, *, with_analysis: bool) -> Results:
    """Write all files; return the results with the problems of any of them."""
    results = write_verdict(results, record.folder.results)
    analysis: RunAnalysis | None = None
    if with_analysis:
        analysis, problem = read_analysis(record.folder.root)
        if problem is not None:
            results = results.with_problem(problem)
    folder, before = record.folder, results
    problem = draw_page(record, results, analysis, folder.report)
    if problem is not None:
        results = results.with_problem(f"{folder.report.name} {problem}")
        _forget(folder.report)
    makers: tuple[tuple[str, Path, Callable[[Results], bytes]], ...] = (
        ("summary.md", folder.summary, lambda given: to_markdown(given, analysis).encode()),
        ("junit.xml", folder.junit, to_junit),
        ("results.sarif", folder.sarif, lambda given: _sarif(given, record)),
    )
    for name, path, make in makers:
        try:
            write_atomically(path, make(results))
        # They show anything that a system said; a defect in showing must not cost the verdict.
        except Exception as error:  # noqa: BLE001
            results = results.with_problem(
                f"{name} could not be made: {type(error).__name__}: {error}."
            )
            _forget(path)
    return results if results == before else write_verdict(results, record.folder.results)


def _sarif(results: Results, record: RunRecord) -> bytes:
    file = file_in_repository(*files_of(record.plan))
    return to_sarif(alarms_of(results), results.test, file, results.exit_code)


#: Judges a run folder and writes all files of it; see ``harness.judge.judge.judge``.
judge_and_publish = partial(judge, publish=publish)


def _forget(path: Path) -> None:
    """Remove the file of an earlier judgement: an old verdict must not stand beside the new one."""
    try:
        path.unlink(missing_ok=True)
    except OSError:
        return
