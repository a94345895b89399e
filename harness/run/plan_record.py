"""Makes and writes the plan record of a run; see ``history.plan`` for what it holds."""

import datetime as dt
import hashlib
from collections.abc import Mapping
from typing import Any

import msgspec

from splitbrain.contracts.experiment import Experiment
from splitbrain.contracts.names import RunId
from splitbrain.contracts.system import System
from splitbrain.harness.folder.atomic_file import write_atomically
from splitbrain.harness.folder.plan_checkers import (
    allowed_anomalies,
    checker_options,
    own_checkers,
    reads_speak_for,
    unusable_checkers,
    usable_checkers,
)
from splitbrain.harness.folder.refusals import tell_refusal
from splitbrain.harness.folder.tool_version import tool_commit, tool_version
from splitbrain.harness.run.options import PlannedTest
from splitbrain.history.plan import AppliedPatch, Plan, encode_plan, sub_seeds, voters
from splitbrain.history.run_folder import RunFolder
from splitbrain.patched.loading import file_name, installed_patches
from splitbrain.systems.registry import file_of, versions_of
from splitbrain.workloads.workload import Workload


def plan_of(test: PlannedTest, name: str, run_id: RunId) -> Plan:
    """Return the plan of a test that is about to run; the runtime's versions are not known yet."""
    return new_plan(
        msgspec.structs.replace(test.experiment, workload_options=test.workload.options()),
        test.system,
        test.workload,
        test=name,
        run_id=run_id,
        observers=test.observers,
        planned_faults=len(test.schedule),
        noticing=test.noticing,
        replay_of=test.options.replay_of,
        pinned=test.options.pinned,
        plan_file=test.options.plan_file,
    )


def new_plan(
    experiment: Experiment,
    system: System,
    workload: Workload,
    not_asked: Mapping[str, str] | None = None,
    **others: Any,
) -> Plan:
    """Return the plan of a run that begins now, with ``others`` among its fields.

    ``not_asked``: checkers of the workload that can say nothing of this run, each with the reason.
    """
    not_asked = not_asked or {}
    every = (*workload.checkers, *own_checkers(system, experiment))
    checkers = [name for name in every if name not in not_asked]
    return Plan(
        experiment=experiment,
        system_file=file_of(experiment.system),
        system_versions=versions_of(system),
        patches=_patches(system, experiment),
        declares_state_events=system.declares_state_events,
        declares_committed_logs=system.declares_committed_logs,
        reads_speak_for=reads_speak_for(system),
        record_forms=dict(system.record_forms),
        log_patterns=tuple(system.log_patterns),
        nodes=voters(experiment.nodes),
        functions=dict(workload.functions),
        checkers=usable_checkers(checkers, system),
        allowed=allowed_anomalies(system),
        checker_options=checker_options(system, experiment),
        checkers_not_run={**unusable_checkers(workload.checkers, system), **not_asked},
        sub_seeds=sub_seeds(experiment.seed),
        started_at=dt.datetime.now(dt.UTC).isoformat(timespec="milliseconds"),
        tool_version=tool_version(),
        tool_commit=tool_commit(),
        **others,
    )


def _patches(system: System, experiment: Experiment) -> tuple[AppliedPatch, ...]:
    own = [(file_name(patch), patch.text, False) for patch in installed_patches()]
    bugs = [(name, text, True) for name, text in system.planted_patches(experiment).items()]
    return tuple(
        AppliedPatch(name=name, digest=_digest(text), text=text, is_planted=is_planted)
        for name, text, is_planted in (*own, *bugs)
    )


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def write_plan(folder: RunFolder, plan: Plan) -> None:
    """Write ``plan.json``, whole or not at all.

    Raises:
        HarnessError: the disk refuses.
    """
    with tell_refusal("write the plan", folder.plan):
        write_atomically(folder.plan, encode_plan(plan))
