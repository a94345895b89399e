"""The values that a condition of a threshold may name, so that a misspelt one is told at once."""

from collections.abc import Sequence

from checker.registry import checker_names
from contracts.errors import UsageError
from contracts.figure import Condition, Dimension
from contracts.runtime import SIMULATED
from harness import node_health, record_health
from harness.simulation.record import INVARIANTS
from nemesis.kinds import kind_names
from nemesis.nearest import or_nearest
from runtimes.registry import runtime_names
from systems import registry as systems
from workloads.workload import workload_names


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
