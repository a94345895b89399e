"""Catalogue of figures that a policy may name, and of the values of its conditions.

``violations`` and ``lost_commits`` leave out quarantined failures. A figure of verdicts needs
``results.json`` or a ledger alone; ``needs_spark`` tells the others apart.
"""

from collections.abc import Sequence
from typing import Final

from splitbrain.checker.names import checker_names
from splitbrain.contracts.errors import UsageError
from splitbrain.contracts.figure import RUN_DIMENSIONS, Better, Condition, Dimension, Figure, Unit
from splitbrain.contracts.nearest import or_nearest
from splitbrain.contracts.runtime import SIMULATED
from splitbrain.harness.folder.results import NODE_CHECKER, RECORD_CHECKER
from splitbrain.harness.folder.simulation_record import INVARIANTS
from splitbrain.nemesis.kinds import kind_names
from splitbrain.runtimes.registry import runtime_names
from splitbrain.spark_analysis.figure_catalogue import SPARK_FIGURES
from splitbrain.systems import registry as systems
from splitbrain.workloads.workload import workload_names

_BY_CHECKER: Final[tuple[Dimension, ...]] = (*RUN_DIMENSIONS, "checker")
_BY_FAULT: Final[tuple[Dimension, ...]] = (*RUN_DIMENSIONS, "fault")


def _runs(
    name: str,
    better: Better,
    meaning: str,
    dimensions: tuple[Dimension, ...] = RUN_DIMENSIONS,
    unit: Unit = "count",
    over: str = "all runs",
    samples_of: str = "runs",
) -> Figure:
    return Figure(
        name=name,
        unit=unit,
        better=better,
        over=over,
        meaning=meaning,
        dimensions=dimensions,
        samples_of=samples_of,
    )


def _faults(name: str, meaning: str) -> Figure:
    return Figure(
        name=name,
        unit="share",
        better="higher",
        over="all faults of all runs",
        meaning=meaning,
        dimensions=_BY_FAULT,
        samples_of="faults",
        samples_min=10,
    )


VERDICT_FIGURES: Final = (
    _runs("runs", "higher", "runs, whatever came of them"),
    _runs("runs_valid", "higher", "runs that are valid and not vacuous"),
    _runs("runs_invalid", "lower", "runs in which a checker found a violation"),
    _runs("runs_unknown", "lower", "runs in which nothing was found and a checker was undecided"),
    _runs("runs_vacuous", "lower", "runs that prove nothing"),
    _runs("runs_failed", "lower", "runs whose harness failed, or that nobody has judged"),
    _runs("runs_flaky", "lower", "runs that failed, and whose replay did not"),
    _runs("seeds", "higher", "different seeds among the valid runs"),
    _runs(
        "canaries_missed",
        "lower",
        "runs that should fail and did not, of cells in which too few did",
    ),
    _runs(
        "valid_share",
        "higher",
        "share of the runs that are valid and not vacuous",
        unit="share",
    ),
    _runs(
        "violations",
        "lower",
        "checkers that said invalid, of each run; quarantined ones apart",
        _BY_CHECKER,
    ),
    _runs(
        "violations_quarantined",
        "lower",
        "checkers that said invalid, of each run, in a failure that is quarantined",
        _BY_CHECKER,
    ),
    _runs(
        "failures_new",
        "lower",
        "fingerprints that the baseline did not meet; quarantined ones apart",
    ),
    _runs(
        "anomalies_allowed",
        "lower",
        "violations that checkers found and the system documents",
        _BY_CHECKER,
        over="all runs, if the results of all are there",
    ),
    _runs("undecided", "lower", "checkers that said unknown, of each run", _BY_CHECKER),
    _runs(
        "lost_commits",
        "lower",
        "acknowledged changes that are gone; those of quarantined failures apart",
        over="all runs that the checker lost-commits judged",
        samples_of="judged runs",
    ),
    _runs("faults", "higher", "faults that were injected", _BY_FAULT),
    _faults("faults_applied", "share of the planned faults whose target existed"),
    _faults("faults_verified", "share of the injected faults that were seen to bite"),
    _faults("faults_healed", "share of the injected faults that were seen to be gone"),
    _faults("faults_noticed", "share of the faults that took effect that the system noticed"),
    _runs("elections", "neither", "leader epochs with a leader", over="all runs that tell"),
    _runs(
        "unavailability_max_ms",
        "lower",
        "longest time without an acknowledged write while clients were working",
        unit="ms",
        over="the worst run",
    ),
)


_BY_SEED: Final[tuple[Dimension, ...]] = ("system", "workload")


def _seeds(
    name: str,
    better: Better,
    meaning: str,
    dimensions: tuple[Dimension, ...] = _BY_SEED,
    unit: Unit = "count",
) -> Figure:
    return _runs(name, better, meaning, dimensions, unit, "all seeds of all sweeps", "seeds")


SEED_FIGURES: Final = (
    _seeds("seeds_run", "higher", "different worlds that were run, whatever came of them"),
    _seeds(
        "seeds_failed",
        "lower",
        "worlds in which an invariant or a checker found a violation; quarantined ones apart",
        (*_BY_SEED, "checker", "fingerprint"),
    ),
    _seeds(
        "seeds_failed_share",
        "lower",
        "share of them among the worlds that were run",
        (*_BY_SEED, "checker", "fingerprint"),
        "share",
    ),
    _seeds("seeds_undecided", "lower", "worlds of which a checker could say nothing"),
    _seeds(
        "seeds_broken",
        "lower",
        "worlds that could not be run, or came out differently when they were run again",
        ("system",),
    ),
    _seeds("seeds_not_run", "lower", "seeds that were asked for and never tried", ("system",)),
)

FIGURES: Final[dict[str, Figure]] = {
    figure.name: figure for figure in (*VERDICT_FIGURES, *SEED_FIGURES, *SPARK_FIGURES)
}
#: Figures that have no meaning without a baseline.
COMPARING: Final = frozenset({"failures_new"})
_OF_SPARK: Final = frozenset(figure.name for figure in SPARK_FIGURES)
_OF_SEEDS: Final = frozenset(figure.name for figure in SEED_FIGURES)


def needs_spark(name: str) -> bool:
    """Return whether Spark computes the figure."""
    return name in _OF_SPARK


def is_of_seeds(name: str) -> bool:
    """Return whether the figure is over the seeds of sweeps."""
    return name in _OF_SEEDS


def figure_named(name: str) -> Figure:
    """Return a figure; ``latency_p99`` is short for ``latency_p99_ms``; raise UsageError."""
    figure = FIGURES.get(name) or FIGURES.get(f"{name}_ms")
    if figure is None:
        next_step = or_nearest(name, FIGURES, "figures")
        raise UsageError(f"there is no figure called {name!r}", next_step)
    return figure


def refuse_unknown_value(condition: Condition) -> None:
    """Refuse a value that does not exist, with a UsageError; versions may be anything."""
    dimension, value = condition.dimension, condition.value
    values = _values_of(dimension)
    if values and value not in values:
        next_step = or_nearest(value, values, f"{dimension}s")
        raise UsageError(f"there is no {dimension} called {value!r}", next_step)


def _values_of(dimension: Dimension) -> Sequence[str]:
    """Return all values; none where any text may be one."""
    match dimension:
        case "system":
            return systems.names()
        case "workload":
            return workload_names()
        case "runtime":
            return sorted({*runtime_names(), SIMULATED})
        case "fault":
            return kind_names()
        case "checker":
            ours = (NODE_CHECKER, RECORD_CHECKER, INVARIANTS)
            return (*checker_names(), *ours)
        case "version" | "operation" | "fingerprint":
            return ()
