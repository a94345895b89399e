"""The commands around the runs, as they stand on the command line.

``suite``, ``nightly``, ``clean``, ``systems`` and ``doctor``. Everything heavy is imported by the
command that needs it. Source: design, section 6.
"""

from pathlib import Path
from typing import Annotated

from splitbrain.contracts.errors import UsageError
from splitbrain.harness.cli.command_app import Whole, app
from splitbrain.harness.console.standard_streams import output


@app.command(name="suite")
def suite_command(
    file: Path | None = None,
    *,
    time_budget: str | None = None,
    jobs: Annotated[int | None, Whole] = None,
    night_seed: Annotated[int | None, Whole] = None,
    fresh: bool = False,
    report_only: bool = False,
    runs_folder: Path = Path("runs"),
    ledger: Path | None = None,
) -> int:
    """Run a matrix of tests, one night at a time; goes on with a night that was cut short.

    Parameters
    ----------
    file
        Suite file (.toml); with --report-only it may be left out.
    time_budget
        What the night may take: 90, 90s, 45m or 8h; by default what the file says.
    jobs
        Runs at the same time; by default what the file says.
    night_seed
        Draw fresh seeds from this, to repeat a night; drawn and printed if not given.
    fresh
        Begin a new night although the last one is not over.
    report_only
        Print what the ledger says of the last night and of all; run nothing.
    runs_folder
        Where the nights' folders are made, below suites/.
    ledger
        The ledger; by default ledger.jsonl in the folder of runs.
    """
    from splitbrain.harness.campaign.suite.command import SuiteOptions, report, run_suite

    options = SuiteOptions(
        runs_folder=runs_folder,
        ledger=ledger,
        time_budget=time_budget,
        jobs=jobs,
        night_seed=night_seed,
        fresh=fresh,
    )
    if report_only:
        return report(file, options, output())
    if file is None:
        raise UsageError("no suite file is named", "Name one, such as bench/suites/nightly.toml")
    return run_suite(file, options, output())


@app.command(name="nightly")
def nightly_command(
    file: Path,
    *,
    time_budget: str | None = None,
    fresh: bool = False,
    runs_folder: Path = Path("runs"),
) -> int:
    """Run a suite's night, put its runs into a lake and hold them against a policy: one answer.

    Killed at any point, the same command goes on. A night whose planted bugs went unseen is void.

    Parameters
    ----------
    file
        Nightly file (.toml); docs/nightly.md says what may stand in it.
    time_budget
        What all of it may take: 90, 90s, 45m or 8h; by default what the file says.
    fresh
        Begin a new night although the last one is not over.
    runs_folder
        Where the nights' folders are made, below suites/ and nightly/.
    """
    from splitbrain.harness.campaign.nightly.command import NightlyOptions, run_nightly

    options = NightlyOptions(runs_folder=runs_folder, time_budget=time_budget, fresh=fresh)
    return run_nightly(file, options, output())


@app.command(name="clean")
def clean_command() -> int:
    """Remove what dead runs left behind: containers, networks, volumes. Living runs are spared."""
    from splitbrain.harness.campaign.cleaning import clean

    return clean(output())


@app.command(name="systems")
def systems_command(*, json: bool = False) -> int:
    """List the systems that can be tested, with their workloads and planted bugs.

    Parameters
    ----------
    json
        Print the list as JSON.
    """
    from splitbrain.harness.cli.systems_list import list_systems

    return list_systems(output(), as_json=json)


@app.command(name="doctor")
def doctor_command(
    *, json: bool = False, spark: bool = False, runs_folder: Path = Path("runs")
) -> int:
    """Say what this machine can do, and what to do about what it cannot.

    Parameters
    ----------
    json
        Print the findings as JSON.
    spark
        Start a Spark session too, which takes some seconds.
    runs_folder
        Where run folders are to be made.
    """
    from splitbrain.harness.cli.doctor import doctor

    return doctor(output(), as_json=json, spark=spark, runs_folder=runs_folder)
