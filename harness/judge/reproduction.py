"""The line that makes a run again on any machine, as its results have it.

Looks at the plan and at what a simulated run recorded of itself; ``history.plan`` writes the words.
"""

from contextlib import suppress

import msgspec

from splitbrain.contracts.errors import UNREADABLE, UsageError
from splitbrain.contracts.experiment import Experiment
from splitbrain.contracts.scenario import Scenario
from splitbrain.harness.folder.scenario_text import scenario_words
from splitbrain.harness.folder.tool_version import this_tool, tool_version
from splitbrain.harness.judge.evidence_loader import RunRecord
from splitbrain.history.plan import Plan, code_words, reproduce_command, reproduce_line
from splitbrain.history.reproduce_line import line_of, tool_words
from splitbrain.systems.registry import system
from splitbrain.workloads.workload import workload


def line_of_run(record: RunRecord) -> str:
    """Return the line that makes the run again on any machine.

    A world that a seed draws is drawn again. Any other that has no plan but its scenario travels
    within the line, and so does a replay in simulation: the replayed run may be gone.
    """
    plan, root = record.plan, record.folder.root
    if plan is None:
        # Nothing can make it again; this judges it, wherever its folder has been taken.
        return line_of(["splitbrain", "check", f"{root.parent.name}/{root.name}"], this_tool())
    drawn_by = () if record.simulation is None else record.simulation.drawn_by
    if drawn_by:
        return reproduce_line(plan, ["splitbrain", *drawn_by, *code_words(plan)])
    if record.is_drawn or (record.is_simulated and plan.replay_of is not None):
        return _replay_of_world(record, plan)
    return reproduce_command(plan, defaults_of(plan))


def _replay_of_world(record: RunRecord, plan: Plan) -> str:
    path = record.folder.scenario.absolute()
    words = ["splitbrain", "replay", "--scenario", str(path)]
    with suppress(OSError, *UNREADABLE):
        scenario = msgspec.json.decode(path.read_bytes(), type=Scenario)
        made_by = tool_words(plan.tool_version, plan.tool_commit)
        words = scenario_words(scenario, made_by, str(path))
    return reproduce_line(plan, [*words, *code_words(plan)])


def defaults_of(plan: Plan) -> Experiment | None:
    """Return the defaults of ``splitbrain test``; another version may have had others: None."""
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
