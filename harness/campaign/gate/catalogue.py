"""All figures that a policy may name, of verdicts and of Spark, and the values of its conditions.

``violations`` and ``lost_commits`` leave out what a quarantine covers. A figure of verdicts needs
``results.json`` or a ledger alone; ``needs_spark`` tells the others apart.
"""

from collections.abc import Sequence
from typing import Final

from splitbrain.checker.names import checker_names
from splitbrain.contracts.errors import UsageError
from splitbrain.contracts.figure import RUN_DIMENSIONS, Condition, Dimension, Figure
from splitbrain.contracts.nearest import or_nearest
from splitbrain.contracts.runtime import SIMULATED
from splitbrain.harness.folder.simulation_record import INVARIANTS
from splitbrain.harness.judge import node_health, record_health
from splitbrain.nemesis.kinds import kind_names
from splitbrain.runtimes.registry import runtime_names
from splitbrain.spark_analysis.figure_catalogue import SPARK_FIGURES
from splitbrain.systems import registry as systems
from splitbrain.workloads.workload import workload_names

_BY_CHECKER: Final[tuple[Dimension, ...]] = (*RUN_DIMENSIONS, "checker")
_BY_FAULT: Final[tuple[Dimension, ...]] = (*RUN_DIMENSIONS, "fault")


def _runs(name: str, meaning: str, *, bad: bool) -> Figure:
    return Figure(
        name=name,
        unit="count",
        better="lower" if bad else "higher",
        over="all runs",
        meaning=meaning,
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
    _runs("runs", "runs, whatever came of them", bad=False),
    _runs("runs_valid", "runs that are valid and not vacuous", bad=False),
    _runs("runs_invalid", "runs in which a checker found a violation", bad=True),
    _runs("runs_unknown", "runs in which nothing was found and a checker was undecided", bad=True),
    _runs("runs_vacuous", "runs that prove nothing", bad=True),
    _runs("runs_failed", "runs whose harness failed, or that nobody has judged", bad=True),
    _runs("runs_flaky", "runs that failed, and whose replay did not", bad=True),
    _runs("seeds", "different seeds among the valid runs", bad=False),
    _runs(
        "canaries_missed",
        "planted-bug runs that did not fail, of cells in which too few did",
        bad=True,
    ),
    Figure(
        name="valid_share",
        unit="share",
        better="higher",
        over="all runs",
        meaning="share of the runs that are valid and not vacuous",
        samples_of="runs",
    ),
    Figure(
        name="violations",
        unit="count",
        better="lower",
        over="all runs",
        meaning="checkers that said invalid, of each run; quarantined ones apart",
        dimensions=_BY_CHECKER,
        samples_of="runs",
    ),
    Figure(
        name="violations_quarantined",
        unit="count",
        better="lower",
        over="all runs",
        meaning="checkers that said invalid, of each run, in a failure that is quarantined",
        dimensions=_BY_CHECKER,
        samples_of="runs",
    ),
    Figure(
        name="failures_new",
        unit="count",
        better="lower",
        over="all runs",
        meaning="fingerprints that the baseline did not meet; quarantined ones apart",
        samples_of="runs",
    ),
    Figure(
        name="undecided",
        unit="count",
        better="lower",
        over="all runs",
        meaning="checkers that said unknown, of each run",
        dimensions=_BY_CHECKER,
        samples_of="runs",
    ),
    Figure(
        name="lost_commits",
        unit="count",
        better="lower",
        over="all runs that the checker lost-commits judged",
        meaning="acknowledged changes that are gone; those of quarantined failures apart",
        samples_of="judged runs",
    ),
    Figure(
        name="faults",
        unit="count",
        better="higher",
        over="all runs",
        meaning="faults that were injected",
        dimensions=_BY_FAULT,
        samples_of="runs",
    ),
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
    """Whether Spark computes it."""
    return name in _OF_SPARK


def figure_named(name: str) -> Figure:
    """The figure of that name; ``latency_p99`` is short for ``latency_p99_ms``.

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
    """Hold a condition's value against what exists; versions and operations may be anything.

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
            ours = (node_health.CHECKER_NAME, record_health.CHECKER_NAME, INVARIANTS)
            return (*checker_names(), *ours)
        case "version" | "operation":
            return ()
