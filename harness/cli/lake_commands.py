"""The commands that turn runs into tables, as they stand on the command line.

``analyze`` and ``ingest``. Everything heavy is imported by the command that needs it.
"""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from splitbrain.contracts.errors import UsageError
from splitbrain.harness.cli.command_app import TABLES, Json, OfLakes, OfRun, command
from splitbrain.harness.console.standard_streams import output
from splitbrain.history.spark_extra import require_spark

_LAKE = "runs/lake"


@command(
    "analyze",
    TABLES,
    "analyze runs/latest",
    "analyze --lake runs/lake --report across --since 2026-11-21",
)
def analyze_command(
    run: Annotated[Path | None, OfRun] = None,
    *more: Annotated[Path, Parameter(negative=""), OfRun],
    lake: Annotated[str | None, OfLakes] = None,
    report: Annotated[Path | None, OfLakes] = None,
    since: Annotated[str | None, OfLakes] = None,
    parts: Annotated[bool, Parameter(negative="")] = False,
    json: Json = False,
) -> int:
    """Run the Spark analysis of run folders again, or look at all runs of a lake together.

    Args:
        run: Run folder, or runs/latest, to be judged with the new figures; none to look at a lake
            alone.
        more: Further run folders.
        lake: Folder or URI of a lake that the runs are then put into; see 'splitbrain ingest'.
        report: Then look at all runs of the lake: matrix, failures, flaky ones and trends go into
            this folder, as index.html, summary.md and across.json.
        since: Failures since then are held against those before, such as 2026-11-21T22:00 (UTC); by
            default since the last day with a run.
        parts: For histories that no longer fit one process: have Spark's workers judge
            linearizability part by part, and transactions key by key, and nothing else. Ends with 0
            valid, 1 invalid, 2 unknown.
        json: Print the answer as one line of JSON; everything else goes to standard error.
    """
    require_spark("An analysis")
    console = output(as_json=json)
    from splitbrain.harness.campaign.lake import check_lake, ingest_after
    from splitbrain.harness.cli.commands import analyze

    if run is None and report is None:
        raise UsageError(
            "no run is named", "Name a run folder, or --lake and --report for all runs"
        )
    if parts:
        from splitbrain.harness.judge.part_verdicts import judge_parts

        if run is None or lake is not None or report is not None or since is not None:
            raise UsageError(
                "--parts judges run folders, and nothing else", "Name run folders, without a lake"
            )
        return judge_parts((run, *more), console)
    if report is None and since is not None:
        raise UsageError("--since says nothing without --report", "Name a folder with --report")
    if report is not None and lake is None:
        raise UsageError("--report looks at a lake, and none is named", "Name one with --lake")
    if lake is not None:
        check_lake(lake)
    code = 0
    if run is not None:
        code = analyze((run, *more), console)
        if lake is not None:
            ingest_after((run, *more), lake, console)
    if report is not None and lake is not None:
        from splitbrain.harness.report.across.command import look_across

        look_across(lake, since, report, console)
    return code


@command(
    "ingest",
    TABLES,
    "ingest runs --lake runs/lake",
    "ingest --compact --clean",
)
def ingest_command(
    folder: Path | None = None,
    *more: Annotated[Path, Parameter(negative="")],
    lake: Annotated[str, OfLakes] = _LAKE,
    compact: Annotated[bool, OfLakes, Parameter(negative="")] = False,
    clean: Annotated[bool, OfLakes, Parameter(negative="")] = False,
    json: Json = False,
) -> int:
    """Put runs into a lake: Parquet tables of any number of runs, for Spark and others.

    The seeds of sweeps go there too ('splitbrain sim --output'). Runs that are in it already and
    have not changed are left alone. Damaged and unfinished runs are taken as far as they go, and
    marked.

    Args:
        folder: Run folder, or a folder with runs or sweeps anywhere below it; without one,
            --compact and --clean work on the lake as it is.
        more: Further folders.
        lake: Folder or URI of the lake, anything that Spark can open: runs/lake, hdfs://name/lake,
            s3a://bucket/lake.
        compact: Then merge small files into large ones, so that queries over many runs are fast.
        clean: Then remove what aborted ingests and superseded runs left, if it is older than a day.
        json: Print the answer as one line of JSON; everything else goes to standard error.
    """
    require_spark("A lake")
    console = output(as_json=json)
    from splitbrain.harness.campaign.lake import LakeWork, ingest

    folders = () if folder is None else (folder, *more)
    if not (folders or compact or clean):
        next_step = "Name a run folder, or a folder with runs or sweeps below it"
        raise UsageError("no folder is named", next_step)
    return ingest(LakeWork(folders, lake, compact=compact, clean=clean), console)
