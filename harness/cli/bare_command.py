"""``splitbrain check`` of a bare history; the little that it needs is loaded alone.

A small history is judged in the time that it takes to start: nothing of runs, faults, systems and
graphs is imported, which a test holds.
"""

from pathlib import Path

import msgspec
from rich.console import Console

from splitbrain.contracts.errors import UsageError
from splitbrain.harness.cli.session import judging_session
from splitbrain.harness.console.standard_streams import write_bytes
from splitbrain.harness.console.waiting import JUDGING, Waiting, unseen
from splitbrain.harness.judge.bare_history import judge_history
from splitbrain.harness.pool.limits import JOBS_MAX, MEMORY_BUDGET_MIB, TIME_BUDGET_S, Limits
from splitbrain.harness.pool.warm_workers import processors, warm_workers
from splitbrain.harness.report.bare_report import page_at
from splitbrain.harness.report.summary import show
from splitbrain.history.identity import stand_in


class BareHistory(msgspec.Struct, frozen=True):
    """How a history without a run is to be read and judged."""

    model: str
    #: None: guessed.
    history_format: str | None = None
    skip_broken: bool = False
    #: Where to write the page, None for none.
    report: Path | None = None
    #: Parts at work at the same time; None: as many as there are processors for this process.
    jobs: int | None = None


def check_bare(path: Path, bare: BareHistory, console: Console, *, as_json: bool) -> int:
    """Judge a bare history and print the verdict; returns the exit code.

    Raises:
        HarnessError: the history cannot be read.
        UsageError: there is no such file or model, or an option makes no sense.
    """
    if not path.exists():
        raise UsageError(f"there is no {path}", "Name a run folder or a history file")
    if bare.jobs is not None and not 1 <= bare.jobs <= JOBS_MAX:
        raise UsageError(
            f"--jobs cannot be {bare.jobs}", f"Choose a number between 1 and {JOBS_MAX}"
        )
    limits = Limits(TIME_BUDGET_S, MEMORY_BUDGET_MIB, bare.jobs or processors())
    page = None if bare.report is None else page_at(bare.report, path)
    # Nothing but the results may stand beside JSON.
    during = unseen if as_json else Waiting(console).during
    with warm_workers(path, limits) as warm, judging_session(console) as session, session.judging():
        with during(JUDGING):
            results = judge_history(
                path,
                bare.model,
                bare.history_format,
                limits,
                session.given_up,
                skip_broken=bare.skip_broken,
                page=page,
                warm=warm,
            )
        if bare.report is not None and bare.report.is_file():
            session.say(f"report written to {bare.report}")
    if as_json:
        write_bytes(msgspec.json.encode(results, enc_hook=stand_in) + b"\n")
    else:
        show(results, console)
    return results.exit_code
