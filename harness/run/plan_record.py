"""Makes and writes the plan record of a run; see ``history.plan`` for what it holds."""

import datetime as dt

from splitbrain.contracts.names import RunId
from splitbrain.harness.folder.atomic_file import write_atomically
from splitbrain.harness.folder.plan_checkers import (
    reads_speak_for,
    unusable_checkers,
    usable_checkers,
)
from splitbrain.harness.folder.refusals import tell_refusal
from splitbrain.harness.folder.tool_version import tool_commit, tool_version
from splitbrain.harness.run.options import PlannedTest
from splitbrain.history.plan import Plan, encode_plan
from splitbrain.history.run_folder import RunFolder


def plan_of(test: PlannedTest, name: str, run_id: RunId) -> Plan:
    """The plan of a test that is about to run; the runtime's versions are not known yet."""
    options = test.options
    return Plan(
        run_id=run_id,
        test=name,
        system=test.system.name,
        bugs=options.bugs,
        settings=options.settings,
        state_machine=test.system_options.state_machine,
        system_versions=test.system.versions(),
        declares_state_events=test.system.declares_state_events,
        declares_committed_logs=test.system.declares_committed_logs,
        reads_speak_for=reads_speak_for(test.system),
        runtime=test.runtime_name,
        nodes=test.nodes,
        observers=test.observers,
        workload=test.workload.name,
        workload_options=test.workload.options(),
        functions=dict(test.workload.functions),
        checkers=usable_checkers(test.workload.checkers, test.system),
        checkers_not_run=unusable_checkers(test.workload.checkers, test.system),
        nemesis=options.nemesis,
        planned_faults=len(test.schedule),
        seed=options.seed,
        sub_seeds=test.sub_seeds,
        time_limit_s=options.time_limit_s,
        concurrency=options.concurrency,
        rate=options.rate,
        operation_timeout_s=options.operation_timeout_s,
        started_at=dt.datetime.now(dt.UTC).isoformat(timespec="milliseconds"),
        tool_version=tool_version(),
        tool_commit=tool_commit(),
        replay_of=options.replay_of,
        pinned=options.pinned,
    )


def write_plan(folder: RunFolder, plan: Plan) -> None:
    """Write ``plan.json``, whole or not at all.

    Raises:
        HarnessError: the disk refuses.
    """
    with tell_refusal("write the plan", folder.plan):
        write_atomically(folder.plan, encode_plan(plan))
