"""The command ``splitbrain sim``: checks its options, sweeps, and reports.

Source: design, sections 6 and 9.
"""

import re
from functools import partial
from pathlib import Path

import msgspec
from rich.console import Console

from splitbrain.contracts.errors import UsageError
from splitbrain.contracts.scenario import SEED_MAX
from splitbrain.harness.campaign.sweep.one_world import run_world
from splitbrain.harness.campaign.sweep.options import SimOptions
from splitbrain.harness.campaign.sweep.sweep import Sweep, SweepOrder
from splitbrain.harness.campaign.sweep.sweep_display import SweepDisplay
from splitbrain.harness.campaign.sweep.sweep_summary import show_hashes, show_summary
from splitbrain.harness.campaign.sweep.trial import try_seed
from splitbrain.harness.console.interrupts import stopped_in_order
from splitbrain.harness.console.stop import Stop
from splitbrain.harness.run.options import (
    check_bugs,
    check_runs_folder,
    check_simulated,
    chosen_state_machine,
)
from splitbrain.history.options import refuse_unfit

_RANGE = re.compile(r"(-?\d+):(-?\d+)")
_WRITE_RANGE = "Write --seeds FIRST:END, such as 0:1000; END itself is not run"


def run_sim(options: SimOptions, console: Console) -> int:
    """Run one scenario, or sweep; return the exit code.

    Raises:
        UsageError: something does not exist or does not fit.
        HarnessError: no worker process could be started, or no folder made.
    """
    if options.like is not None:
        return _run_like(options, options.like, console)
    if options.scenario is None:
        return run_sweep(Sweep(order_of(options), Stop()), console)
    # Refuses options that a scenario has itself, and options of sweeps.
    refuse_unfit(
        options,
        "scenario",
        "--scenario, which is one world and says all of it",
        "Leave one of them out",
    )
    check_runs_folder(options.runs_folder)
    return run_world(
        options.scenario,
        console,
        options.runs_folder if options.keep else None,
        with_hash=options.trace_hash,
    )


def _run_like(options: SimOptions, run: Path, console: Console) -> int:
    from splitbrain.harness.campaign.sweep import like_command

    refuse_unfit(
        options,
        "like",
        "--like, which has all of it from the run and keeps the first seed that fails alike",
        "Leave one of them out",
    )
    seeds = like_command.SEEDS if options.seeds is None else seed_range(options.seeds)
    usual = SimOptions().runs_folder
    runs_folder = None if options.runs_folder == usual else options.runs_folder
    if runs_folder is not None:
        check_runs_folder(runs_folder)
    return like_command.run_like(run, console, seeds, jobs=options.jobs, runs_folder=runs_folder)


def seed_range(text: str | None) -> range:
    """Read ``A:B`` as the seeds from A up to B, B itself not included.

    Raises:
        UsageError: it is missing, no range, is empty, or has a seed that cannot be.
    """
    if text is None:
        raise UsageError(
            "--seeds is missing",
            "Write --seeds FIRST:END, such as --seeds 0:1000, or name one world with --scenario "
            "FILE",
        )
    found = _RANGE.fullmatch(text.strip())
    if found is None:
        raise UsageError(f"--seeds cannot be {text!r}", _WRITE_RANGE)
    first, end = int(found[1]), int(found[2])
    if first < 0 or end > SEED_MAX:
        raise UsageError(
            f"--seeds {text} names a seed outside of 0 to {SEED_MAX:,}",
            _WRITE_RANGE,
        )
    if end <= first:
        raise UsageError(
            f"--seeds {text} is empty: {end} does not come after {first}", _WRITE_RANGE
        )
    return range(first, end)


def order_of(options: SimOptions) -> SweepOrder:
    """Return the sweep's order; raise UsageError if something does not exist or fit."""
    seeds = seed_range(options.seeds)
    check_runs_folder(options.runs_folder)
    _check_system(options)
    options = msgspec.structs.replace(options, runs_folder=options.runs_folder.absolute())
    return SweepOrder(options=options, seeds=seeds, try_seed=partial(try_seed, options))


def run_sweep(sweep: Sweep, console: Console) -> int:
    """Sweep, show it, and return the exit code.

    Raises:
        HarnessError: no worker process could be started.
    """
    order, stop = sweep.order, sweep.stop
    with stopped_in_order(stop, left="left at once; run folders of failures found so far stay."):
        display = SweepDisplay(
            console, title_of(order), len(order.seeds), sweep.tally, order.options.keep
        )
        with display:
            sweep.carry_out(display.took)
        elapsed_s = display.elapsed_s
    is_whole = not stop.is_set() and not sweep.is_cut_short
    show_summary(sweep.tally, order, console, elapsed_s, interrupted=stop.is_set())
    if order.options.trace_hash:
        show_hashes(sweep.tally, console)
    return sweep.tally.exit_code(is_whole=is_whole)


def title_of(order: SweepOrder) -> str:
    """Return the line above the sweep."""
    options = order.options
    bugs = f", with {', '.join(options.bugs)}" if options.bugs else ""
    above = f", {options.state_machine}" if options.state_machine else ""
    promise = ", beyond the promise" if options.beyond_promise else ""
    jobs = "1 process" if options.jobs == 1 else f"{options.jobs} processes"
    return (
        f"splitbrain sim {options.system}, seeds {order.seeds.start} to {order.seeds.stop - 1}"
        f"{above}{bugs}{promise}, {jobs}"
    )


def _check_system(options: SimOptions) -> None:
    from splitbrain.contracts.nearest import or_nearest
    from splitbrain.systems.registry import names, system

    if options.system not in names():
        raise UsageError(
            f"there is no system called {options.system!r}",
            or_nearest(options.system, names(), "systems"),
        )
    chosen = system(options.system)
    check_bugs(options.bugs, chosen)
    chosen_state_machine(options.state_machine, chosen)
    check_simulated(chosen)
