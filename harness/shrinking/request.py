"""What ``splitbrain shrink`` was asked for, and which of the two searches does it.

A run with a scenario is a simulated one and is shrunk exactly; every other one by running smaller
plans of it. Options that only the other search has are refused.
"""

from pathlib import Path

import msgspec
from rich.console import Console

from contracts.errors import UsageError
from harness.simulation.record import SIMULATED
from harness.store import find_run
from history.plan import decode_plan
from history.run_folder import RunFolder


class ShrinkRequest(msgspec.Struct, frozen=True, kw_only=True):
    """The command line; None: not given."""

    run: Path
    any_failure: bool = False
    replays: int | None = None
    tries: int | None = None
    at_least: int | None = None
    runs: int | None = None
    time_limit: float | None = None
    pinned: bool = False
    simulate: bool | None = None
    keep_tries: bool = False
    runs_folder: Path | None = None
    save_test: Path | None = None


#: Options that only one of the searches has.
_OF_SIMULATED = ("replays", "save_test")
_OF_REAL = ("tries", "at_least", "runs", "pinned", "simulate", "keep_tries")


def shrink(request: ShrinkRequest, console: Console) -> int:
    """Shrink a run; returns the exit code.

    Raises:
        UsageError: the run cannot be shrunk, or an option does not fit.
        HarnessError: it does not fail again, or nothing can be run.
    """
    folder = find_run(request.run)
    if _is_simulated(folder):
        return _shrink_simulated(request, console)
    _refuse(
        request,
        _OF_SIMULATED,
        f"{request.run}, which is no simulated run",
        "Leave it out; --runs limits the runs in containers, and `splitbrain sim --like RUN` "
        "looks for the failure in simulation",
    )
    from harness.shrinking.command import (
        AT_LEAST,
        RUNS_MAX,
        SECONDS_MAX,
        TRIES,
        SearchOptions,
        shrink_real_run,
    )

    tries = TRIES if request.tries is None else request.tries
    options = SearchOptions(
        run=request.run,
        any_failure=request.any_failure,
        tries=tries,
        at_least=min(AT_LEAST, max(1, tries)) if request.at_least is None else request.at_least,
        runs_max=RUNS_MAX if request.runs is None else request.runs,
        time_limit_s=SECONDS_MAX if request.time_limit is None else request.time_limit,
        pinned=request.pinned,
        simulate=request.simulate is not False,
        keep_tries=request.keep_tries,
        runs_folder=request.runs_folder,
    )
    return shrink_real_run(options, console)


def _shrink_simulated(request: ShrinkRequest, console: Console) -> int:
    _refuse(
        request,
        _OF_REAL,
        f"{request.run}, which is a simulated run and comes out the same every time",
        "Leave it out; --replays limits the search",
    )
    from harness.simulation.shrink_command import (
        REPLAYS_MAX,
        SECONDS_MAX,
        ShrinkOptions,
        shrink_run,
    )

    options = ShrinkOptions(
        run=request.run,
        any_failure=request.any_failure,
        replays_max=REPLAYS_MAX if request.replays is None else request.replays,
        time_limit_s=SECONDS_MAX if request.time_limit is None else request.time_limit,
        runs_folder=request.runs_folder,
        save_test=request.save_test,
    )
    return shrink_run(options, console)


def _is_simulated(folder: RunFolder) -> bool:
    """Whether it is shrunk as a world; a broken plan is told by whoever needs it."""
    if folder.scenario.exists() or folder.simulation.exists():
        return True
    try:
        return decode_plan(folder.plan.read_bytes()).runtime == SIMULATED
    except (OSError, ValueError, RecursionError):
        return False


def _refuse(request: ShrinkRequest, names: tuple[str, ...], what: str, next_step: str) -> None:
    usual = ShrinkRequest(run=request.run)
    for name in names:
        if getattr(request, name) != getattr(usual, name):
            option = name.replace("_", "-")
            if name == "simulate" and request.simulate is False:
                option = "no-simulate"
            raise UsageError(f"--{option} does not fit {what}", next_step)
