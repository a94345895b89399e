"""The commands ``sim`` and ``shrink`` as they stand on the command line.

Everything heavy is imported by the command that needs it. Source: design, section 6.
"""

from pathlib import Path
from typing import Annotated

from harness.command_app import Number, Repeatable, Whole, app
from harness.standard_streams import output
from systems.registry import DEFAULT_SYSTEM


@app.command(name="sim")
def sim_command(
    *,
    seeds: str | None = None,
    scenario: Path | None = None,
    like: Path | None = None,
    jobs: Annotated[int, Whole] = 1,
    system: str = DEFAULT_SYSTEM,
    bug: Annotated[list[str] | None, Repeatable] = None,
    fail_fast: bool = False,
    trace_hash: bool = False,
    beyond_promise: bool = False,
    runs_folder: Path = Path("runs"),
    check_share: Annotated[float, Number] = 0.05,
    keep: Annotated[int, Whole] = 100,
) -> int:
    """Sweep seeds through an exact simulation: each draws its own world, load and faults.

    Parameters
    ----------
    seeds
        FIRST:END, such as 0:1000; END itself is not run.
    scenario
        Instead of seeds, one world: a scenario.json, as it is or edited.
    like
        Folder of a failed run in containers: worlds near its schedule are tried until one fails
        with the same verdict; --seeds is 0:200 if not given.
    jobs
        Worker processes.
    system
        System to be simulated.
    bug
        Planted bug to switch on; repeatable.
    fail_fast
        End with the first seed that fails.
    trace_hash
        Print one line a seed at the end, seed and trace hash.
    beyond_promise
        Let faults also do what the system does not promise to survive.
    runs_folder
        Where the run folders of failing seeds are made.
    check_share
        Share of the seeds that are run twice and compared.
    keep
        Failures of which a run folder is kept, at most.
    """
    from harness.simulation.command import SimOptions, run_sim

    options = SimOptions(
        seeds=seeds,
        scenario=scenario,
        like=like,
        jobs=jobs,
        system=system,
        bugs=tuple(bug or ()),
        fail_fast=fail_fast,
        trace_hash=trace_hash,
        beyond_promise=beyond_promise,
        runs_folder=runs_folder,
        check_share=check_share,
        keep=keep,
    )
    return run_sim(options, output())


@app.command(name="shrink")
def shrink_command(
    run: Path,
    *,
    any_failure: bool = False,
    replays: Annotated[int, Whole] = 5_000,
    time_limit: Annotated[float, Number] = 600.0,
    runs_folder: Path | None = None,
    save_test: Path | None = None,
) -> int:
    """Make a simulated run that failed as small as it can be while it fails in the same way.

    Parameters
    ----------
    run
        Run folder of a simulated run that failed, or runs/latest.
    any_failure
        Take any failure for the same one.
    replays
        Smaller runs that are tried, at most.
    time_limit
        Seconds that the search may take.
    runs_folder
        Where the folder of the small run is made; by default beside the recorded one.
    save_test
        Write the small run as a test to this file, test_*.py.
    """
    from harness.simulation.shrink_command import ShrinkOptions, shrink_run

    options = ShrinkOptions(
        run=run,
        any_failure=any_failure,
        replays_max=replays,
        time_limit_s=time_limit,
        runs_folder=runs_folder,
        save_test=save_test,
    )
    return shrink_run(options, output())
