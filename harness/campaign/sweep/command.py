"""What ``splitbrain sim`` does: checks what it was asked for, sweeps, and says what came of it.

Source: design, sections 6 and 9.
"""

import re
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import msgspec
from rich.console import Console

from splitbrain.contracts.errors import UsageError
from splitbrain.contracts.names import DEFAULT_SYSTEM
from splitbrain.contracts.scenario import SEED_MAX
from splitbrain.harness.campaign.sweep.one_world import run_world
from splitbrain.harness.campaign.sweep.sweep import Sweep, SweepOrder
from splitbrain.harness.campaign.sweep.sweep_display import SweepDisplay
from splitbrain.harness.campaign.sweep.sweep_summary import show_hashes, show_summary
from splitbrain.harness.campaign.sweep.trial import Trial, try_seed
from splitbrain.harness.console.interrupts import stopped_in_order
from splitbrain.harness.console.stop import Stop
from splitbrain.harness.run.options import (
    check_bugs,
    check_runs_folder,
    check_simulated,
    chosen_state_machine,
)

#: More worker processes than any machine has use for.
JOBS_MAX = 256
_RANGE = re.compile(r"(-?\d+):(-?\d+)")
_WRITE_RANGE = "Write --seeds FIRST:END, such as 0:1000; END itself is not run"


class SimOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What ``splitbrain sim`` was asked for."""

    #: FIRST:END; None: none were named.
    seeds: str | None = None
    #: One world as data, instead of seeds.
    scenario: Path | None = None
    #: A failed run in containers near whose schedule seeds are tried.
    like: Path | None = None
    jobs: int = 1
    system: str = DEFAULT_SYSTEM
    bugs: tuple[str, ...] = ()
    #: None: the usual one of the system.
    state_machine: str | None = None
    fail_fast: bool = False
    trace_hash: bool = False
    coverage: bool = False
    beyond_promise: bool = False
    runs_folder: Path = Path("runs")
    check_share: float = 0.05
    keep: int = 100


def run_sim(options: SimOptions, console: Console) -> int:
    """Run one scenario, or sweep; returns the exit code.

    Raises:
        UsageError: something does not exist or does not fit.
        HarnessError: no worker process could be started, or no folder made.
    """
    if options.like is not None:
        return _run_like(options, options.like, console)
    if options.scenario is None:
        return run_sweep(options, console)
    # What a scenario says itself, and what only a sweep has.
    _refuse_beside(
        options,
        (
            "seeds",
            "bugs",
            "state_machine",
            "system",
            "beyond_promise",
            "jobs",
            "fail_fast",
            "check_share",
            "coverage",
        ),
        "--scenario, which is one world and says all of it",
    )
    _check_numbers(options)
    check_runs_folder(options.runs_folder)
    return run_world(
        options.scenario,
        console,
        options.runs_folder if options.keep else None,
        with_hash=options.trace_hash,
    )


def _run_like(options: SimOptions, run: Path, console: Console) -> int:
    """Look for a seed near a run; returns the exit code."""
    from splitbrain.harness.campaign.sweep import like_command

    _refuse_beside(
        options,
        (
            "scenario",
            "bugs",
            "state_machine",
            "system",
            "beyond_promise",
            "fail_fast",
            "trace_hash",
            "keep",
            "coverage",
        ),
        "--like, which has all of it from the run and keeps the first seed that fails alike",
    )
    seeds = like_command.SEEDS if options.seeds is None else seed_range(options.seeds)
    _check_numbers(options)
    usual = SimOptions()
    runs_folder = None if options.runs_folder == usual.runs_folder else options.runs_folder
    if runs_folder is not None:
        check_runs_folder(runs_folder)
    return like_command.run_like(run, console, seeds, jobs=options.jobs, runs_folder=runs_folder)


def _refuse_beside(options: SimOptions, names: Sequence[str], what: str) -> None:
    """Refuse options that do not fit another one.

    Raises:
        UsageError: names the first of them.
    """
    usual = SimOptions()
    for name in names:
        if getattr(options, name) != getattr(usual, name):
            option = "bug" if name == "bugs" else name.replace("_", "-")
            raise UsageError(f"--{option} does not fit {what}", "Leave one of them out")


def seed_range(text: str | None) -> range:
    """``A:B`` as the seeds from A up to B, B itself not included.

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
    """What the sweep is to do.

    Raises:
        UsageError: something does not exist or does not fit.
    """
    seeds = seed_range(options.seeds)
    _check_numbers(options)
    check_runs_folder(options.runs_folder)
    _check_system(options)
    trial = Trial(
        system=options.system,
        bugs=options.bugs,
        state_machine=options.state_machine,
        beyond_promise=options.beyond_promise,
        runs_folder=str(options.runs_folder.absolute()),
    )
    return SweepOrder(
        seeds=seeds,
        try_seed=partial(try_seed, trial),
        jobs=options.jobs,
        check_share=options.check_share,
        fail_fast=options.fail_fast,
        keep_max=options.keep,
        keeps_hashes=options.trace_hash,
    )


def run_sweep(
    options: SimOptions,
    console: Console,
    *,
    sweep: Sweep | None = None,
) -> int:
    """Sweep, show it, and return the exit code.

    Args:
        options: what was asked for.
        console: where it is shown.
        sweep: what to carry out instead of what the options say; for tests.

    Raises:
        UsageError: something does not exist or does not fit.
        HarnessError: no worker process could be started.
    """
    if sweep is None:
        sweep = Sweep(order_of(options), Stop())
    order, stop = sweep.order, sweep.stop
    with stopped_in_order(stop, left="left at once; run folders of failures found so far stay."):
        display = SweepDisplay(
            console, title_of(options, order), len(order.seeds), sweep.tally, order.keep_max
        )
        with display:
            sweep.carry_out(display.took)
        elapsed_s = display.elapsed_s
    is_whole = not stop.is_set() and not sweep.is_cut_short
    show_summary(sweep.tally, options, order, console, elapsed_s, interrupted=stop.is_set())
    if options.trace_hash:
        show_hashes(sweep.tally, console)
    return sweep.tally.exit_code(is_whole=is_whole)


def title_of(options: SimOptions, order: SweepOrder) -> str:
    """The line above the sweep."""
    bugs = f", with {', '.join(options.bugs)}" if options.bugs else ""
    above = f", {options.state_machine}" if options.state_machine else ""
    promise = ", beyond the promise" if options.beyond_promise else ""
    jobs = "1 process" if order.jobs == 1 else f"{order.jobs} processes"
    return (
        f"splitbrain sim {options.system}, seeds {order.seeds.start} to {order.seeds.stop - 1}"
        f"{above}{bugs}{promise}, {jobs}"
    )


def _check_numbers(options: SimOptions) -> None:
    if not 1 <= options.jobs <= JOBS_MAX:
        raise UsageError(
            f"--jobs cannot be {options.jobs}", f"Choose a number between 1 and {JOBS_MAX}"
        )
    # Not a number compares with nothing and is refused too.
    if not 0.0 <= options.check_share <= 1.0:
        raise UsageError(
            f"--check-share cannot be {options.check_share:g}", "Choose a number between 0 and 1"
        )
    if options.keep < 0:
        raise UsageError(f"--keep cannot be {options.keep}", "Choose a number of at least 0")


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
