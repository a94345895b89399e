"""The values that a condition of a threshold may name, so that a misspelt one is told at once."""

from collections.abc import Sequence

from splitbrain.checker.registry import checker_names
from splitbrain.contracts.errors import UsageError
from splitbrain.contracts.figure import Condition, Dimension
from splitbrain.contracts.runtime import SIMULATED
from splitbrain.harness.folder.simulation_record import INVARIANTS
from splitbrain.harness.judge import node_health, record_health
from splitbrain.nemesis.kinds import kind_names
from splitbrain.nemesis.nearest import or_nearest
from splitbrain.runtimes.registry import runtime_names
from splitbrain.systems import registry as systems
from splitbrain.workloads.workload import workload_names


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
