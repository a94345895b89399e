"""``splitbrain check`` of a bare history; the little that it needs is loaded alone.

A small history is judged in the time that it takes to start: nothing of runs, faults, systems and
graphs is imported, which a test holds.
"""

import os
import shlex
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from rich.console import Console

from splitbrain.contracts.errors import UsageError
from splitbrain.harness.cli.session import judging_session
from splitbrain.harness.console.waiting import JUDGING, Waiting, unseen
from splitbrain.harness.folder.results import Results
from splitbrain.harness.judge.bare_history import judge_history
from splitbrain.harness.pool.limits import JOBS_MAX, MEMORY_BUDGET_MIB, TIME_BUDGET_S, Limits
from splitbrain.harness.pool.warm_workers import processors, warm_workers
from splitbrain.harness.report.summary import show, to_markdown
from splitbrain.history.records import PairedOperation
from splitbrain.history.run_folder import RunFolder


def check_bare(
    path: Path,
    model: str,
    console: Console,
    *,
    history_format: str | None,
    skip_broken: bool,
    report: Path | None,
    jobs: int | None,
    as_json: bool,
) -> int:
    """Judge a bare history and print the verdict; returns the exit code.

    ``jobs`` are the parts at work at the same time, by default one for each processor.

    Raises:
        HarnessError: the history cannot be read.
        UsageError: there is no such file or model, or an option makes no sense.
    """
    if not path.exists():
        raise UsageError(f"there is no {path}", "Name a run folder or a history file")
    if jobs is not None and not 1 <= jobs <= JOBS_MAX:
        raise UsageError(f"--jobs cannot be {jobs}", f"Choose a number between 1 and {JOBS_MAX}")
    waiting = Waiting(console)
    took = waiting.pace(JUDGING, "operation").took
    read = waiting.pace(JUDGING, "MiB read", plural="MiB read").took_bytes
    limits = Limits(TIME_BUDGET_S, MEMORY_BUDGET_MIB, jobs or processors(), took, read)
    page = None if report is None else page_at(report, path)
    # Nothing but the results may stand beside JSON.
    during = unseen if as_json else waiting.during
    with warm_workers(path, limits) as warm, judging_session(console) as session, session.judging():
        with during(JUDGING):
            results = judge_history(
                path,
                model,
                history_format,
                limits,
                session.given_up,
                skip_broken=skip_broken,
                page=page,
                warm=warm,
            )
        if report is not None and report.is_file():
            session.say(f"report written to {report}")
    show(results, console, as_json=as_json)
    if "GITHUB_ACTIONS" in os.environ:
        # Elsewhere a small history would be judged before they are loaded.
        from splitbrain.harness.report.alarms import alarms_of
        from splitbrain.harness.report.github import tell_github

        tell_github(alarms_of(results), lambda: to_markdown(results), path)
    return results.exit_code


def page_at(report: Path, history: Path) -> Callable[[Results, Sequence[PairedOperation]], Results]:
    """Return the writer of the page; it adds its problems to the results.

    A bare history has no faults, leaders or latencies, so the page has none.

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
    from splitbrain.harness.report.page_writer import draw_page

    record = RunRecord(RunFolder(Path(results.run_folder)), operations=list(operations))
    problem = draw_page(record, results, None, report)
    return results if problem is None else results.with_problem(f"{report} {problem}")
