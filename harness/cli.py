"""The command line: what the user wants, and the exit code that says what came of it.

Source: design, section 6.

Errors for users are one sentence without a traceback. Everything heavy is imported by the command
that needs it, so that a wrong option is answered at once. It is longer than 400 lines because
each option stands in it three times: in the signature, in the help, and where it is handed
on.
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from contracts.errors import UsageError
from harness.command_end import EXIT_BAD_USAGE, exit_code_of
from harness.standard_streams import finish_output, output, prepare_streams
from harness.tool_version import tool_version
from harness.usage_words import number, whole_number
from history.errors import HistoryError
from systems.registry import DEFAULT_SYSTEM

_MODEL = "cas-register"

app = App(
    name="splitbrain",
    help="Find the bugs that consensus systems have only under failure.",
    version=tool_version,
    version_flags=["--version"],
    # Ended by Ctrl-C means an exit code of ours and a sentence, never 130 in silence.
    suppress_keyboard_interrupt=False,
)

_Repeatable = Parameter(negative="", consume_multiple=False)
_Whole = Parameter(converter=whole_number)
_Number = Parameter(converter=number)


@app.command(name="test")
def run_test_command(
    *,
    system: str = DEFAULT_SYSTEM,
    workload: str = "register",
    nemesis: str = "partition,pause,kill",
    nodes: Annotated[int, _Whole] = 3,
    time_limit: Annotated[float, _Number] = 60.0,
    seed: Annotated[int | None, _Whole] = None,
    runtime: str = "docker",
    concurrency: Annotated[int, _Whole] = 10,
    rate: Annotated[float, _Number] = 200.0,
    operation_timeout: Annotated[float, _Number] = 1.0,
    bug: Annotated[list[str] | None, _Repeatable] = None,
    setting: Annotated[list[str] | None, _Repeatable] = None,
    workload_option: Annotated[list[str] | None, _Repeatable] = None,
    runs_folder: Path = Path("runs"),
    keep_data: bool = False,
    analyze: bool = True,
) -> int:
    """Run a system under load and faults, and judge what clients saw.

    Parameters
    ----------
    system
        System under test; 'splitbrain systems' lists them.
    workload
        What clients do: register or set.
    nemesis
        Faults as kind[:target], comma-separated (partition:leader,kill); or a scripted plan, a
        plan file (.json, .toml), or none.
        Kinds: black-hole, bridge, clock-drift, clock-jump, clock-strobe, cpu, crash-loop,
        cut-then-kill, delay, disk-error, disk-stall, duplicate, flap, flip, full-disk, kill,
        loss, majorities-ring, memory, minority-third, one-way-in, one-way-out, partial,
        partition, pause, power, rate, reorder, reset, restart, restore, rolling-restart,
        terminate, truncate, wipe.
        Targets: leader, follower, last-leader, laggard, random:K, halves, all, or a node's name.
        Scripted plans: isolate-leader, isolate-leader-8s, isolate-leader-again, leader-kill,
        leader-pause, raft-figure-8, stale-leader, partial-partition, power-loss-of-all,
        rolling-restart-with-a-laggard, leader-cut-then-killed.
    nodes
        Number of nodes.
    time_limit
        Seconds of load.
    seed
        Master seed; drawn and printed if not given.
    runtime
        Where nodes live: docker, local (processes of this machine, no engine needed), or
        simulated (a virtual clock in one thread; exact, and over in seconds).
    concurrency
        Worker slots, about half of them pinned to one node each.
    rate
        Operations per second over all slots.
    operation_timeout
        Seconds after which an operation's outcome is unknown.
    bug
        Planted bug to switch on; repeatable.
    setting
        NAME=VALUE, a setting of the system by its own name; repeatable.
    workload_option
        NAME=VALUE, an option of the workload; repeatable.
    runs_folder
        Where run folders are made.
    keep_data
        Keep the nodes' data folders also when the verdict is valid.
    analyze
        Run the Spark analysis after the run.
    """
    from harness.commands import run_and_judge
    from harness.options import TestOptions

    options = TestOptions(
        system=system,
        workload=workload,
        workload_options=_pairs("--workload-option", workload_option),
        nemesis=nemesis,
        nodes=nodes,
        time_limit_s=time_limit,
        seed=_drawn_seed() if seed is None else seed,
        runtime=runtime,
        concurrency=concurrency,
        rate=rate,
        operation_timeout_s=operation_timeout,
        bugs=tuple(bug or ()),
        settings=_pairs("--setting", setting),
        runs_folder=runs_folder,
        keep_data=keep_data,
    )
    return run_and_judge(options, output(), analyze=analyze)


@app.command(name="check")
def check_command(
    path: Path,
    *,
    model: str | None = None,
    history_format: Annotated[str | None, Parameter(name="--format")] = None,
    json: bool = False,
    analyze: bool = True,
) -> int:
    """Judge a run folder, finished or dead, or a bare history of any origin.

    Parameters
    ----------
    path
        Run folder or history file.
    model
        What a bare history is judged against: register, cas-register, kv, set, set-full or
        set-full:stale-reads-allowed; by default cas-register.
    history_format
        jsonl, edn or jepsen-log; guessed where it can be.
    json
        Print the results as JSON.
    analyze
        Run the Spark analysis of a run folder where it is missing.
    """
    from checker.registry import history_checker
    from harness.commands import check

    history_checker(model or _MODEL)
    if path.is_dir() and (model or history_format):
        option = "--model" if model else "--format"
        raise UsageError(
            f"{option} is for bare histories, and {path} is a folder",
            "Leave it out: a run folder is judged as its plan says",
        )
    try:
        return check(path, model or _MODEL, history_format, output(), as_json=json, analyze=analyze)
    except HistoryError as error:
        if not path.is_dir():
            # A file that the user names is part of the request; a run folder is our own work.
            error.exit_code = EXIT_BAD_USAGE
        raise


@app.command(name="analyze")
def analyze_command(run: Path) -> int:
    """Run the Spark analysis of a run folder again, and judge it with the new figures.

    Parameters
    ----------
    run
        Run folder, or runs/latest.
    """
    from harness.commands import analyze

    return analyze(run, output())


@app.command(name="replay")
def replay_command(
    run: Path,
    *,
    pinned: bool = False,
    times: Annotated[int, _Whole] = 1,
    runtime: str | None = None,
    runs_folder: Path | None = None,
    analyze: bool = True,
    trace: bool = False,
    from_step: Annotated[int | None, _Whole] = None,
    until_step: Annotated[int | None, _Whole] = None,
) -> int:
    """Run a recorded plan again: the same operations and the same schedule.

    A simulated run is replayed exactly, step by step, and must come to the same.

    Parameters
    ----------
    run
        Run folder, or runs/latest.
    pinned
        Hit the nodes that were hit, instead of whoever leads this time.
    times
        How often; the number of invalid ones is reported.
    runtime
        Another runtime than the recorded one.
    runs_folder
        Where the new run folders are made; by default beside the recorded one.
    analyze
        Run the Spark analysis after each run.
    trace
        Print what happened inside of a simulated run, one line each.
    from_step
        First step of the trace.
    until_step
        End a simulated run after this step.
    """
    from harness.commands import replay
    from harness.simulation.replay_options import ReplayOptions

    if times < 1:
        raise UsageError(f"--times cannot be {times}", "Choose a number of at least 1")
    return replay(
        run,
        output(),
        pinned=pinned,
        times=times,
        runtime=runtime,
        runs_folder=runs_folder,
        analyze=analyze,
        exact=ReplayOptions(times=times, trace=trace, from_step=from_step, until_step=until_step),
    )


@app.command(name="sim")
def sim_command(
    *,
    seeds: str,
    jobs: Annotated[int, _Whole] = 1,
    system: str = DEFAULT_SYSTEM,
    bug: Annotated[list[str] | None, _Repeatable] = None,
    fail_fast: bool = False,
    trace_hash: bool = False,
    beyond_promise: bool = False,
    runs_folder: Path = Path("runs"),
    check_share: Annotated[float, _Number] = 0.05,
    keep: Annotated[int, _Whole] = 100,
) -> int:
    """Sweep seeds through an exact simulation: each draws its own world, load and faults.

    Parameters
    ----------
    seeds
        FIRST:END, such as 0:1000; END itself is not run.
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
    from harness.simulation.command import SimOptions, run_sweep

    options = SimOptions(
        seeds=seeds,
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
    return run_sweep(options, output())


@app.command(name="shrink")
def shrink_command(
    run: Path,
    *,
    any_failure: bool = False,
    replays: Annotated[int, _Whole] = 5_000,
    time_limit: Annotated[float, _Number] = 600.0,
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


@app.command(name="suite")
def suite_command(
    file: Path | None = None,
    *,
    time_budget: str | None = None,
    jobs: Annotated[int | None, _Whole] = None,
    night_seed: Annotated[int | None, _Whole] = None,
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
    from harness.suite.command import SuiteOptions, report, run_suite

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


@app.command(name="clean")
def clean_command() -> int:
    """Remove what dead runs left behind: containers, networks, volumes. Living runs are spared."""
    from harness.cleaning import clean

    return clean(output())


@app.command(name="systems")
def systems_command(*, json: bool = False) -> int:
    """List the systems that can be tested, with their workloads and planted bugs.

    Parameters
    ----------
    json
        Print the list as JSON.
    """
    from harness.systems_list import list_systems

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
    from harness.doctor import doctor

    return doctor(output(), as_json=json, spark=spark, runs_folder=runs_folder)


def main(arguments: Sequence[str] | None = None) -> None:
    """Entry point of the ``splitbrain`` command; ends the process with its exit code."""
    prepare_streams()
    code = run(sys.argv[1:] if arguments is None else arguments)
    finish_output()
    sys.exit(code)


def run(arguments: Sequence[str]) -> int:
    """Run one command line and return its exit code; prints one sentence for any error."""
    return exit_code_of(
        lambda: app(
            list(arguments),
            exit_on_error=False,
            print_error=False,
            result_action="return_value",
        ),
        arguments,
        [name for name in app if not name.startswith("-")],
    )


def _pairs(option: str, values: list[str] | None) -> dict[str, str]:
    pairs: dict[str, str] = {}
    for text in values or ():
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise UsageError(f"{option} {text!r} is no pair", f"Write {option} NAME=VALUE")
        if name in pairs:
            raise UsageError(f"{option} sets {name!r} twice", "Give it once")
        pairs[name] = value
    return pairs


def _drawn_seed() -> int:
    """A small seed, easy to read aloud; it stands in the plan."""
    import secrets

    return secrets.randbelow(1_000_000)


if __name__ == "__main__":
    main()
