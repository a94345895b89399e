"""The commands ``sim`` and ``shrink`` as they stand on the command line.

Everything heavy is imported by the command that needs it. Source: design, section 6.
"""

from pathlib import Path
from typing import Annotated

from splitbrain.contracts.names import DEFAULT_SYSTEM
from splitbrain.harness.cli.command_app import Number, Repeatable, Whole, app
from splitbrain.harness.console.standard_streams import output


@app.command(name="sim")
def sim_command(
    *,
    seeds: str | None = None,
    scenario: Path | None = None,
    like: Path | None = None,
    jobs: Annotated[int, Whole] = 1,
    system: str = DEFAULT_SYSTEM,
    bug: Annotated[list[str] | None, Repeatable] = None,
    state_machine: str | None = None,
    fail_fast: bool = False,
    trace_hash: bool = False,
    coverage: bool = False,
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
    state_machine
        What stands above the nodes' log, as ``splitbrain systems`` lists it.
    fail_fast
        End with the first seed that fails.
    trace_hash
        Print one line a seed at the end, seed and trace hash.
    coverage
        Show which faults met nodes of which role, in which phase of the leader epoch, under which
        workload, and what was never tried.
    beyond_promise
        Let faults also do what the system does not promise to survive.
    runs_folder
        Where the run folders of failing seeds are made.
    check_share
        Share of the seeds that are run twice and compared.
    keep
        Failures of which a run folder is kept, at most.
    """
    from splitbrain.harness.campaign.sweep.command import SimOptions, run_sim

    options = SimOptions(
        seeds=seeds,
        scenario=scenario,
        like=like,
        jobs=jobs,
        system=system,
        bugs=tuple(bug or ()),
        state_machine=state_machine,
        fail_fast=fail_fast,
        trace_hash=trace_hash,
        coverage=coverage,
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
    replays: Annotated[int | None, Whole] = None,
    tries: Annotated[int | None, Whole] = None,
    at_least: Annotated[int | None, Whole] = None,
    runs: Annotated[int | None, Whole] = None,
    time_limit: Annotated[float | None, Number] = None,
    pinned: bool = False,
    simulate: bool | None = None,
    keep_tries: bool = False,
    runs_folder: Path | None = None,
    save_test: Path | None = None,
) -> int:
    """Make a run that failed as small as it can be while it fails in the same way.

    A simulated run is shrunk exactly. In containers smaller plans are run, several times each; what
    the failure looks like in simulation, where the system has one, shows where to begin.

    Parameters
    ----------
    run
        Run folder of a run that failed, or runs/latest.
    any_failure
        Take any failure for the same one.
    replays
        Smaller simulated runs that are tried, at most; 5000 if not given.
    tries
        How often a plan is run in containers; 3 if not given.
    at_least
        How many of these runs must fail with the same verdict; 2 if not given.
    runs
        Runs in containers, at most; 60 if not given.
    time_limit
        Seconds that the search may take; 600 if not given, in containers 3600.
    pinned
        In containers, hit the nodes that were hit, instead of whoever leads this time.
    simulate
        Begin in simulation with a run in containers; by default where that can be.
    keep_tries
        Keep the run folder of every run in containers.
    runs_folder
        Where the folder of the small run is made; by default beside the recorded one.
    save_test
        Write the small simulated run as a test to this file, test_*.py.
    """
    from splitbrain.harness.campaign.shrinking.command import shrink
    from splitbrain.harness.campaign.shrinking.options import ShrinkOptions

    options = ShrinkOptions(
        run=run,
        any_failure=any_failure,
        replays=replays,
        tries=tries,
        at_least=at_least,
        runs=runs,
        time_limit=time_limit,
        pinned=pinned,
        simulate=simulate,
        keep_tries=keep_tries,
        runs_folder=runs_folder,
        save_test=save_test,
    )
    return shrink(options, output())
