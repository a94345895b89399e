"""The command line of ``splitbrain sim``.

There are three ways: ``seeds`` sweeps, ``scenario`` runs one world, ``like`` looks near a run.
"""

from pathlib import Path
from typing import Annotated

import msgspec

from splitbrain.contracts.experiment import TIME_LIMIT_S_MAX, Option
from splitbrain.contracts.names import DEFAULT_SYSTEM
from splitbrain.history.options import given

#: More worker processes than any machine has use for.
JOBS_MAX = 256
#: Seeds of a sweep that only its time limit ends.
SEEDS_WITHIN_TIME = range(1_000_000)
#: Ways of the command that options fit.
_SEEDS, _SCENARIO, _LIKE = ("seeds",), ("scenario",), ("like",)
_SEARCHES, _WORLDS = _SEEDS + _LIKE, _SEEDS + _SCENARIO


class SimOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options of ``splitbrain sim``; pickles."""

    seeds: Annotated[
        range | None,
        Option(
            "One seed, or FIRST:END, such as 0:1000; END itself is not run.",
            only=_SEARCHES,
            group="Worlds",
        ),
    ] = None
    scenario: Annotated[
        str | None,
        Option(
            "Instead of seeds, one world: a scenario.json, as it is or edited, or the blob:... "
            "of a line that reproduces a failure.",
            only=_SCENARIO,
            group="Worlds",
        ),
    ] = None
    like: Annotated[
        Path | None,
        Option(
            "Folder of a failed run in containers: worlds near its schedule are tried until one "
            "fails with the same verdict; --seeds is 0:200 if not given.",
            only=_LIKE,
            group="Worlds",
        ),
    ] = None
    #: None: all.
    world: Annotated[
        str | None,
        Option(
            "Only worlds with these traits, such as voters=5,snapshots,fault=rot; other seeds are "
            "skipped. `splitbrain docs simulation` lists the traits.",
            only=_SEEDS,
            group="Worlds",
        ),
    ] = None
    jobs: Annotated[
        int,
        Option(
            "Worker processes.",
            1,
            JOBS_MAX,
            only=_SEARCHES,
            group="Results",
        ),
    ] = 1
    system: Annotated[
        str,
        Option(
            "System to be simulated.",
            only=_SEARCHES,
            group="System",
        ),
    ] = DEFAULT_SYSTEM
    bugs: Annotated[
        tuple[str, ...],
        Option(
            "Planted bug to switch on; repeatable.",
            only=_SEEDS,
            group="System",
        ),
    ] = ()
    #: None: the usual one of the system.
    state_machine: Annotated[
        str | None,
        Option(
            "What stands above the nodes' log, as splitbrain systems lists it.",
            only=_SEEDS,
            group="System",
        ),
    ] = None
    fail_fast: Annotated[
        bool,
        Option(
            "End with the first seed that fails.",
            only=_SEEDS,
            group="Results",
        ),
    ] = False
    #: None: until the last seed.
    time_limit_s: Annotated[
        float | None,
        Option(
            "How long seeds are given out: 300, 5m or 1h30m; those under way then end. Without "
            "--seeds from seed 0 on.",
            above=0,
            most=TIME_LIMIT_S_MAX,
            unit="of seconds",
            only=_SEEDS,
            group="Results",
        ),
    ] = None
    trace_hash: Annotated[
        bool,
        Option(
            "Print one line a seed at the end, seed and trace hash.",
            only=_WORLDS,
            group="Results",
        ),
    ] = False
    coverage: Annotated[
        bool,
        Option(
            "Show which faults hit nodes of which role, in which phase of the leader epoch, under "
            "which workload, and what was never tried.",
            only=_SEEDS,
            group="Results",
        ),
    ] = False
    beyond_promise: Annotated[
        bool,
        Option(
            "Let faults also do what the system does not promise to survive.",
            only=_SEEDS,
            group="Worlds",
        ),
    ] = False
    runs_folder: Annotated[
        Path,
        Option(
            "Where the run folders of failing seeds are made.",
            group="Results",
        ),
    ] = Path("runs")
    output: Annotated[
        Path | None,
        Option(
            "Folder that gets seeds.jsonl, sweep.json, junit.xml and summary.md, also of a clean "
            "sweep; each failure that is kept is judged, and gets its report.",
            only=_SEEDS,
            group="Results",
        ),
    ] = None
    check_share: Annotated[
        float,
        Option(
            "Share of the seeds that are run twice and compared.",
            0,
            1,
            only=_SEARCHES,
            group="Results",
        ),
    ] = 0.05
    keep: Annotated[
        int,
        Option(
            "Failures of which a run folder is kept, at most.",
            0,
            only=_WORLDS,
            group="Results",
        ),
    ] = 100


#: Options that decide the world of a seed.
_OF_WORLDS = ("bugs", "state_machine", "beyond_promise")


def seed_words(options: SimOptions, seed: int) -> tuple[str, ...]:
    """Return the words of `splitbrain` that draw the world of one seed of a sweep again."""
    from splitbrain.systems.registry import file_of

    words = ["sim", "--seed", str(seed)]
    if options.system != DEFAULT_SYSTEM:
        words += ["--system", file_of(options.system) or options.system]
    for field in given(options):
        if field.name in _OF_WORLDS:
            words += field.words(getattr(options, field.name))
    return tuple(words)
