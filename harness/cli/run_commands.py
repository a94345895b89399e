"""The commands that make and judge runs, as they stand on the command line.

``test``, ``check`` and ``replay``. Everything heavy is imported by the command that
needs it, so that a wrong option is answered at once. Source: design, section 6.
"""

import os
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from splitbrain.contracts.errors import UsageError
from splitbrain.contracts.names import DEFAULT_SYSTEM
from splitbrain.harness.cli.command_app import Number, Repeatable, Whole, app
from splitbrain.harness.cli.command_end import EXIT_BAD_USAGE
from splitbrain.harness.console.standard_streams import output
from splitbrain.history.errors import HistoryError

_MODEL = "cas-register"


@app.command(name="test")
def run_test_command(
    *,
    system: str = DEFAULT_SYSTEM,
    state_machine: str | None = None,
    workload: str | None = None,
    nemesis: str = "partition,pause,kill",
    nodes: Annotated[int, Whole] = 3,
    time_limit: Annotated[float, Number] = 60.0,
    seed: Annotated[int | None, Whole] = None,
    runtime: str = "docker",
    concurrency: Annotated[int, Whole] = 10,
    rate: Annotated[float, Number] = 200.0,
    operation_timeout: Annotated[float, Number] = 1.0,
    bug: Annotated[list[str] | None, Repeatable] = None,
    setting: Annotated[list[str] | None, Repeatable] = None,
    workload_option: Annotated[list[str] | None, Repeatable] = None,
    runs_folder: Path = Path("runs"),
    keep_data: bool = False,
    analyze: bool | None = None,
) -> int:
    """Run a system under load and faults, and judge what clients saw.

    Parameters
    ----------
    system
        System under test; 'splitbrain systems' lists them.
    state_machine
        What stands above the system's log, where it has a choice: registers or metadata.
    workload
        What clients do: register, set or topics; by default what is usual for the system.
    nemesis
        Faults as kind[:target], comma-separated (partition:leader,kill); or a scripted plan, a
        plan file (.json, .toml), or none.
        Kinds: black-hole, bridge, clock-drift, clock-jump, clock-strobe, cpu, crash-loop,
        cut-then-kill, delay, disk-error, disk-stall, duplicate, flap, flip, full-disk, kill,
        loss, majorities-ring, memory, minority-third, one-way-in, one-way-out, partial,
        partition, pause, power, rate, reorder, reset, restart, restore, rolling-restart,
        slow-link, terminate, truncate, wipe.
        With --runtime simulated also: disconnect, fsync-fails, read-errors, rename-fails,
        roll-back, rot-checkpoint, rot-identity, rot-log, rot-mark, rot-state, slow-disk,
        write-fails.
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
        Run the Spark analysis after the run; by default unless it is a simulated one.
    """
    from splitbrain.harness.cli.commands import run_and_judge
    from splitbrain.harness.run.options import TestOptions

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
        state_machine=state_machine,
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
    skip_broken: bool = False,
    report: Path | None = None,
    jobs: Annotated[int | None, Whole] = None,
    json: bool = False,
    analyze: bool | None = None,
) -> int:
    """Judge a run folder, finished or dead, or a bare history of any origin.

    Parameters
    ----------
    path
        Run folder or history file.
    model
        What a bare history is judged against: register, cas-register, multi-register, kv, counter,
        set, fifo-queue, unordered-queue, mutex, fenced-register, topics, set-full,
        set-full:stale-reads-allowed, counter-bounds, bank, bank:negative-balances-allowed,
        queue-totals, queue-totals:duplicates-allowed, unique-ids, sessions or fencing; by
        default cas-register. Or a model of one's own:
        path/to/file.py:Name.
    history_format
        jsonl, edn, jepsen-log, kv, parquet or etcd-robustness; guessed where it can be.
    skip_broken
        Leave broken lines of a bare history out: the verdict is then at most unknown, and the
        provisional one of what is left stands beside it.
    report
        File to write a page to that shows what was found in a bare history.
    jobs
        Parts of a bare history judged at the same time; by default as many as there are
        processors.
    json
        Print the results as JSON.
    analyze
        Run the Spark analysis of a run folder; by default unless the run is a simulated one.
    """
    from splitbrain.history.formats import is_history_folder

    is_run = path.is_dir() and not is_history_folder(path)
    if not is_run:
        # Nothing here multiplies matrices, and a process of one thread can be copied.
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    _require_model(model or _MODEL)
    given = {
        "--model": model,
        "--format": history_format,
        "--skip-broken": skip_broken,
        "--report": report,
        "--jobs": jobs,
    }
    option = next((name for name, value in given.items() if value not in (None, False)), None)
    if is_run:
        if option is not None:
            raise UsageError(
                f"{option} is for bare histories, and {path} is a folder",
                "Leave it out: a run folder is judged as its plan says",
            )
        from splitbrain.harness.cli.commands import check

        return check(path, output(), as_json=json, analyze=analyze)
    # Apart from the commands around runs, which take ten times as long to load.
    from splitbrain.harness.cli.bare_command import BareHistory, check_bare

    bare = BareHistory(model or _MODEL, history_format, skip_broken, report, jobs)
    try:
        return check_bare(path, bare, output(), as_json=json)
    except HistoryError as error:
        # A file that the user names is part of the request; a run folder is our own work.
        error.exit_code = EXIT_BAD_USAGE
        raise


def _require_model(model: str) -> None:
    """Refuse a model that does not exist before anything is looked at.

    Raises:
        UsageError: there is none, or a user's own cannot be loaded.
    """
    from splitbrain.checker.names import history_checker
    from splitbrain.harness.judge.own_models import make_known

    make_known(model)
    history_checker(model)


@app.command(name="replay")
def replay_command(
    run: Path | None = None,
    *,
    scenario: Path | None = None,
    pinned: bool = False,
    times: Annotated[int, Whole] = 1,
    runtime: str | None = None,
    runs_folder: Path | None = None,
    analyze: bool | None = None,
    trace: bool = False,
    from_step: Annotated[int | None, Whole] = None,
    until_step: Annotated[int | None, Whole] = None,
) -> int:
    """Run a recorded plan again: the same operations and the same schedule.

    A simulated run is replayed exactly, step by step, and must come to the same.

    Parameters
    ----------
    run
        Run folder, or runs/latest.
    scenario
        Instead of a run, a simulated world that is run as it is, such as an edited scenario.json.
    pinned
        Hit the nodes that were hit, instead of whoever leads this time.
    times
        How often; the number that failed with the same verdict is reported.
    runtime
        Another runtime than the recorded one.
    runs_folder
        Where the new run folders are made; by default beside the recorded one.
    analyze
        Run the Spark analysis after each run; by default unless it is a simulated one.
    trace
        Print what happened inside of a simulated run, one line each.
    from_step
        First step of the trace.
    until_step
        End a simulated run after this step.
    """
    from splitbrain.harness.campaign.replaying.options import ReplayOptions
    from splitbrain.harness.cli.replay import replay

    options = ReplayOptions(
        run=run,
        scenario=scenario,
        pinned=pinned,
        times=times,
        runtime=runtime,
        runs_folder=runs_folder,
        analyze=analyze,
        trace=trace,
        from_step=from_step,
        until_step=until_step,
    )
    return replay(options, output())


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
