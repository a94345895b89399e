"""Catalogue of figures that a policy may name, and of the values of its conditions.

``violations`` and ``lost_commits`` leave out quarantined failures. A figure of verdicts needs
``results.json`` or a ledger alone; ``needs_spark`` tells the others apart.
"""

from collections.abc import Sequence
from typing import Final

from splitbrain.checker.names import checker_names
from splitbrain.contracts.errors import UsageError
from splitbrain.contracts.figure import RUN_DIMENSIONS, Better, Condition, Dimension, Figure
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


def _counted(
    name: str, meaning: str, better: Better, dimensions: tuple[Dimension, ...] = RUN_DIMENSIONS
) -> Figure:
    return Figure(
        name=name,
        unit="count",
        better=better,
        over="all runs",
        meaning=meaning,
        dimensions=dimensions,
        samples_of="runs",
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
    _counted("runs", "runs, whatever came of them", "higher"),
    _counted("runs_valid", "runs that are valid and not vacuous", "higher"),
    _counted("runs_invalid", "runs in which a checker found a violation", "lower"),
    _counted(
        "runs_unknown", "runs in which nothing was found and a checker was undecided", "lower"
    ),
    _counted("runs_vacuous", "runs that prove nothing", "lower"),
    _counted("runs_failed", "runs whose harness failed, or that nobody has judged", "lower"),
    _counted("runs_flaky", "runs that failed, and whose replay did not", "lower"),
    _counted("seeds", "different seeds among the valid runs", "higher"),
    _counted(
        "canaries_missed",
        "planted-bug runs that did not fail, of cells in which too few did",
        "lower",
    ),
    Figure(
        name="valid_share",
        unit="share",
        better="higher",
        over="all runs",
        meaning="share of the runs that are valid and not vacuous",
        samples_of="runs",
    ),
    _counted(
        "violations",
        "checkers that said invalid, of each run; quarantined ones apart",
        "lower",
        _BY_CHECKER,
    ),
    _counted(
        "violations_quarantined",
        "checkers that said invalid, of each run, in a failure that is quarantined",
        "lower",
        _BY_CHECKER,
    ),
    _counted(
        "failures_new",
        "fingerprints that the baseline did not meet; quarantined ones apart",
        "lower",
    ),
    _counted("undecided", "checkers that said unknown, of each run", "lower", _BY_CHECKER),
    Figure(
        name="lost_commits",
        unit="count",
        better="lower",
        over="all runs that the checker lost-commits judged",
        meaning="acknowledged changes that are gone; those of quarantined failures apart",
        samples_of="judged runs",
    ),
    _counted("faults", "faults that were injected", "higher", _BY_FAULT),
    _faults("faults_applied", "share of the planned faults whose target existed"),
    _faults("faults_verified", "share of the injected faults that were seen to bite"),
    _faults("faults_healed", "share of the injected faults that were seen to be gone"),
    _faults("faults_noticed", "share of the faults that took effect that the system noticed"),
    Figure(
        name="elections",
        unit="count",
        better="neither",
        over="all runs that tell",
        meaning="leader epochs with a leader",
        samples_of="runs",
    ),
    Figure(
        name="unavailability_max_ms",
        unit="ms",
        better="lower",
        over="the worst run",
        meaning="longest time without an acknowledged write while clients were working",
        samples_of="runs",
    ),
)

FIGURES: Final[dict[str, Figure]] = {
    figure.name: figure for figure in (*VERDICT_FIGURES, *SPARK_FIGURES)
}
#: Figures that have no meaning without a baseline.
COMPARING: Final = frozenset({"failures_new"})
_OF_SPARK: Final = frozenset(figure.name for figure in SPARK_FIGURES)
_MS: Final = "_ms"


def needs_spark(name: str) -> bool:
    """Return whether Spark computes the figure."""
    return name in _OF_SPARK


def figure_named(name: str) -> Figure:
    """Return the figure of that name; ``latency_p99`` is short for ``latency_p99_ms``.

    Raises:
        UsageError: there is none.
    """
    figure = FIGURES.get(name) or FIGURES.get(name + _MS)
    if figure is None:
        raise UsageError(
            f"there is no figure called {name!r}", or_nearest(name, FIGURES, "figures")
        )
    return figure


def refuse_unknown_value(condition: Condition) -> None:
    """Refuse a condition's value that does not exist; versions and operations may be anything.

    Raises:
        UsageError: there is nothing of that name.
    """
    known = _known_values(condition.dimension)
    if known and condition.value not in known:
        raise UsageError(
            f"there is no {condition.dimension} called {condition.value!r}",
            or_nearest(condition.value, known, f"{condition.dimension}s"),
        )


def _known_values(dimension: Dimension) -> Sequence[str]:
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
        case "version" | "operation":
            return ()
