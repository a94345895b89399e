"""The command line of ``splitbrain shrink``, and how each run is asked about.

A run with a scenario is a simulated one and is replayed exactly; of every other one smaller plans
are run, k times of n. Options that only the other way has are refused.
"""

from pathlib import Path
from typing import Final

import msgspec

from splitbrain.contracts.errors import UsageError
from splitbrain.contracts.runtime import SIMULATED
from splitbrain.harness.run.options import check_runs_folder
from splitbrain.history.plan import decode_plan
from splitbrain.history.run_folder import RunFolder
from splitbrain.nemesis.k_of_n import Asking


class ShrinkOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The command line; None: not given."""

    run: Path
    #: Take any failure for the same one.
    any_failure: bool = False
    replays: int | None = None
    tries: int | None = None
    at_least: int | None = None
    runs: int | None = None
    time_limit: float | None = None
    #: Hit the nodes that were hit.
    pinned: bool = False
    #: Look for the failure in simulation first.
    simulate: bool | None = None
    #: Keep every try's run folder.
    keep_tries: bool = False
    #: Where folders are made; None: beside the run's test.
    runs_folder: Path | None = None
    #: A test file to be written.
    save_test: Path | None = None


class Limits(msgspec.Struct, frozen=True):
    """Limits of a search."""

    tries: int
    seconds: float
    #: How a try is called.
    called: str


#: Of each way, unless somebody says otherwise.
EXACT_LIMITS: Final = Limits(5_000, 600.0, "replay")
RUN_LIMITS: Final = Limits(60, 3_600.0, "run")
ASKING: Final = Asking(tries=3, at_least=2)

#: Options that only one of the ways has.
_OF_SIMULATED: Final = ("replays", "save_test")
_OF_REAL: Final = ("tries", "at_least", "runs", "pinned", "simulate", "keep_tries")


def is_simulated(folder: RunFolder) -> bool:
    """Whether it is shrunk as a world; a broken plan is told by whoever needs it."""
    if folder.scenario.exists() or folder.simulation.exists():
        return True
    try:
        return decode_plan(folder.plan.read_bytes()).runtime == SIMULATED
    except (OSError, ValueError, RecursionError):
        return False


def exact_limits(options: ShrinkOptions) -> Limits:
    """Limits of a search among simulated worlds.

    Raises:
        UsageError: an option does not fit such a search, or cannot have its value.
    """
    _refuse(
        options,
        _OF_REAL,
        f"{options.run}, which is a simulated run and comes out the same every time",
        "Leave it out; --replays limits the search",
    )
    return _limits(options, options.replays, EXACT_LIMITS)


def run_limits(options: ShrinkOptions) -> tuple[Limits, Asking]:
    """Limits of a search on a real runtime, and how often a plan must fail.

    Raises:
        UsageError: an option does not fit such a search, or cannot have its value.
    """
    _refuse(
        options,
        _OF_SIMULATED,
        f"{options.run}, which is no simulated run",
        "Leave it out; --runs limits the runs in containers, and `splitbrain sim --like RUN` "
        "looks for the failure in simulation",
    )
    tries = ASKING.tries if options.tries is None else options.tries
    at_least = min(ASKING.at_least, max(1, tries))
    asking = Asking(tries, at_least if options.at_least is None else options.at_least)
    _check_count("--tries", asking.tries)
    _check_count("--at-least", asking.at_least)
    limits = _limits(options, options.runs, RUN_LIMITS)
    if asking.at_least > asking.tries:
        raise UsageError(
            f"--at-least {asking.at_least} of --tries {asking.tries} can never fail",
            f"Choose at most --at-least {asking.tries}",
        )
    return limits, asking


def _limits(options: ShrinkOptions, tries: int | None, usual: Limits) -> Limits:
    limits = Limits(
        usual.tries if tries is None else tries,
        usual.seconds if options.time_limit is None else options.time_limit,
        usual.called,
    )
    _check_count(f"--{usual.called}s", limits.tries)
    # Not a number compares with nothing and is refused too.
    if not limits.seconds > 0:
        raise UsageError(
            f"--time-limit cannot be {limits.seconds:g}", "Choose a number of seconds above 0"
        )
    if options.runs_folder is not None:
        check_runs_folder(options.runs_folder)
    return limits


def _check_count(name: str, value: int) -> None:
    if value < 1:
        raise UsageError(f"{name} cannot be {value}", "Choose a number of at least 1")


def _refuse(options: ShrinkOptions, names: tuple[str, ...], what: str, next_step: str) -> None:
    usual = ShrinkOptions(run=options.run)
    for name in names:
        if getattr(options, name) != getattr(usual, name):
            option = name.replace("_", "-")
            if name == "simulate" and options.simulate is False:
                option = "no-simulate"
            raise UsageError(f"--{option} does not fit {what}", next_step)
