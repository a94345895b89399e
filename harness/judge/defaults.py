"""Defaults of ``splitbrain test`` for options that a recorded plan leaves open.

Known for plans of this version only: another version may have had others, and an option left out of
a command line must mean the same there.
"""

from splitbrain.contracts.errors import UsageError
from splitbrain.contracts.experiment import Experiment
from splitbrain.harness.folder.tool_version import tool_version
from splitbrain.history.plan import Plan
from splitbrain.systems.registry import system
from splitbrain.workloads.workload import workload


def defaults_of(plan: Plan) -> Experiment | None:
    """Return the defaults of the plan's tool version; None if that is not this version."""
    if plan.tool_version != tool_version():
        return None
    name = plan.experiment.system
    return Experiment(
        system=name,
        workload_options=_workload_options(plan.workload),
        state_machine=_state_machine(name),
    )


def _state_machine(name: str) -> str | None:
    try:
        return next(iter(system(name).state_machines), None)
    except UsageError:
        return None


def _workload_options(name: str) -> dict[str, object]:
    try:
        return workload(name, seed=0, slots=1, readers=frozenset(), options={}).options()
    except UsageError:
        return {}  # a plan of another origin names all its options
