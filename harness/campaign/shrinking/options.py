"""The command line of ``splitbrain shrink``, and the way of searching that fits a run.

A simulated run is replayed exactly; for any other one smaller plans are run, k times of n. Options
of the other way are refused.
"""

from pathlib import Path
from typing import Annotated, Final

import msgspec

from splitbrain.contracts.experiment import Option
from splitbrain.contracts.runtime import SIMULATED
from splitbrain.history.options import check_numbers, refuse_unfit
from splitbrain.history.run_folder import RunFolder

_EXACT: Final = ("exact",)
_BY_RUNS: Final = ("runs",)


class ShrinkOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The command line of ``splitbrain shrink``; None: not given."""

    run: Annotated[
        Path, Option("Run folder of a run that failed, or runs/latest.", is_positional=True)
    ]
    system: Annotated[
        str | None,
        Option(
            "The run's system, where it is one of a file: path/to/file.py:Class.",
            group="System",
        ),
    ] = None
    any_failure: Annotated[
        bool,
        Option(
            "Take any failure for the same one.",
            group="Search",
        ),
    ] = False
    replays: Annotated[
        int | None,
        Option(
            "Smaller simulated runs that are tried, at most; 5000 if not given.",
            1,
            only=_EXACT,
            group="Search",
        ),
    ] = None
    tries: Annotated[
        int | None,
        Option(
            "How often a plan is run in containers; 3 if not given.",
            1,
            only=_BY_RUNS,
            group="Search",
        ),
    ] = None
    at_least: Annotated[
        int | None,
        Option(
            "How many of these runs must fail with the same verdict; 2 if not given.",
            1,
            only=_BY_RUNS,
            group="Search",
        ),
    ] = None
    runs: Annotated[
        int | None,
        Option(
            "Runs in containers, at most; 60 if not given.",
            1,
            only=_BY_RUNS,
            group="Search",
        ),
    ] = None
    time_limit_s: Annotated[
        float | None,
        Option(
            "How long the search may take; 10m if not given, in containers 1h.",
            above=0,
            unit="of seconds",
            group="Search",
        ),
    ] = None
    pinned: Annotated[
        bool,
        Option(
            "In containers, hit the nodes that were hit, instead of whoever leads this time.",
            only=_BY_RUNS,
            group="Search",
        ),
    ] = False
    simulate: Annotated[
        bool | None,
        Option(
            "Begin in simulation with a run in containers; by default where that can be.",
            only=_BY_RUNS,
            group="Search",
        ),
    ] = None
    keep_tries: Annotated[
        bool,
        Option(
            "Keep the run folder of every run in containers.",
            only=_BY_RUNS,
            group="Results",
        ),
    ] = False
    runs_folder: Annotated[
        Path | None,
        Option(
            "Where the folder of the small run is made; by default beside the recorded one.",
            group="Results",
        ),
    ] = None
    save_test: Annotated[
        Path | None,
        Option(
            "Write the small simulated run as a test to this file, test_*.py.",
            only=_EXACT,
            group="Results",
        ),
    ] = None


class Limits(msgspec.Struct, frozen=True):
    """Limits of a search."""

    tries: int
    seconds: float
    #: Noun for one try.
    called: str


#: Defaults of each way.
EXACT_LIMITS: Final = Limits(5_000, 600.0, "replay")
RUN_LIMITS: Final = Limits(60, 3_600.0, "run")


def is_simulated(folder: RunFolder) -> bool:
    """Return whether it is shrunk as a world; a broken plan is reported by its later readers."""
    from splitbrain.history.plan import decode_plan

    if folder.scenario.exists() or folder.simulation.exists():
        return True
    try:
        return decode_plan(folder.plan.read_bytes()).experiment.runtime == SIMULATED
    except (OSError, ValueError, RecursionError):
        return False


def exact_limits(options: ShrinkOptions) -> Limits:
    """Return the limits of a search among simulated worlds; raise UsageError for a bad option."""
    mismatch = f"{options.run}, which is a simulated run and comes out the same every time"
    refuse_unfit(options, "exact", mismatch, "Leave it out; --replays limits the search")
    return search_limits(options, options.replays, EXACT_LIMITS)


def search_limits(options: ShrinkOptions, tries: int | None, usual: Limits) -> Limits:
    """Return the limits of a search; raise UsageError for a bad value."""
    check_numbers(options)
    limits = Limits(
        usual.tries if tries is None else tries,
        usual.seconds if options.time_limit_s is None else options.time_limit_s,
        usual.called,
    )
    if options.runs_folder is not None:
        from splitbrain.harness.run.options import check_runs_folder

        check_runs_folder(options.runs_folder)
    return limits
