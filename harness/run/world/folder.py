"""Writes the run folder of a simulated run, whole, once the run is over.

The same files as a run in containers leaves; besides, the scenario, what only a simulation knows,
and the story for the timeline. ``metrics.jsonl`` and ``leaders.jsonl`` are empty: nobody looked
from outside. Nothing is written while the run goes on: a simulation touches no disk.
"""

import platform
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from splitbrain.contracts.experiment import Experiment
from splitbrain.contracts.fault import Fault
from splitbrain.contracts.names import RunId
from splitbrain.contracts.runtime import SIMULATED
from splitbrain.contracts.scenario import Scenario
from splitbrain.contracts.system import System
from splitbrain.harness.folder.atomic_file import write_atomically
from splitbrain.harness.folder.manifest import open_manifest, write_manifest
from splitbrain.harness.folder.plan_checkers import checkers_not_asked, workload_of
from splitbrain.harness.folder.refusals import tell_refusal
from splitbrain.harness.folder.scenario_file import encode_scenario
from splitbrain.harness.folder.simulation_outcome import JudgedOutcome, SimulationOutcome
from splitbrain.harness.folder.simulation_record import DRAWN, encode_record, record_of
from splitbrain.harness.folder.store import create_run
from splitbrain.harness.run.log_collection import write_committed_log
from splitbrain.harness.run.plan_record import new_plan, write_plan
from splitbrain.history.course import Phase
from splitbrain.history.plan import Plan, voters
from splitbrain.history.run_folder import RunFolder

_US_PER_S = 1_000_000
#: Steps that every folder has, whatever the run tells of its course.
_LAST_STEPS = ("stopped", "collected", "torn-down")


def keep_sweep_run(
    judged: JudgedOutcome,
    runs_folder: Path,
    *,
    kind: str = "sim",
    shrunk_from: str | None = None,
    like: str | None = None,
    drawn_by: tuple[str, ...] = (),
) -> Path:
    """Make the run folder of a seed that failed in a sweep, or of a smaller one.

    ``kind`` is how the test is called, before the system's name; the run is a smaller one than
    ``shrunk_from``, its schedule is near that of the run ``like`` in containers, and the words
    ``drawn_by`` of the command line draw its world again.

    Raises:
        HarnessError: the folder cannot be made or written.
    """
    from splitbrain.systems.registry import system

    outcome = judged.outcome
    scenario = outcome.scenario
    name = f"{kind}-{scenario.system}-{scenario.load.workload}"
    with create_run(runs_folder, name, scenario.seed) as living:
        plan = plan_of_scenario(
            scenario, name, living.run_id, system(scenario.system), checkers_not_asked(outcome)
        )
        write_run(
            living.folder,
            plan,
            outcome,
            judged=judged,
            shrunk_from=shrunk_from,
            like=like,
            drawn_by=drawn_by,
        )
        return living.folder.root


def plan_of_scenario(
    scenario: Scenario, name: str, run_id: RunId, system: System, not_asked: Mapping[str, str]
) -> Plan:
    """Return the plan of a drawn or shrunk world; its faults stand in ``scenario.json`` alone.

    ``not_asked`` are the checkers of its load that can say nothing of it, each with the reason.
    """
    load = scenario.load
    is_usual = scenario.state_machine in system.state_machines[:1]
    experiment = Experiment(
        system=scenario.system,
        state_machine=None if is_usual else scenario.state_machine,
        bugs=scenario.bugs,
        settings=scenario.settings,
        runtime=SIMULATED,
        nodes=scenario.nodes,
        workload=load.workload,
        workload_options=dict(load.workload_options),
        nemesis=DRAWN,
        seed=scenario.seed,
        time_limit_s=scenario.load_us / _US_PER_S,
        concurrency=load.clients,
        rate=load.rate,
        operation_timeout_s=load.timeout_us / _US_PER_S,
    )
    return new_plan(
        experiment,
        system,
        workload_of(load),
        not_asked,
        test=name,
        run_id=run_id,
        runtime_versions=runtime_versions(),
        planned_faults=len(scenario.faults),
    )


def runtime_versions() -> dict[str, str]:
    """Return the versions of a simulated run; its trace is the same on every version of Python."""
    return {SIMULATED: "virtual clock", "python": platform.python_version()}


def write_run(
    folder: RunFolder,
    plan: Plan,
    outcome: SimulationOutcome,
    *,
    judged: JudgedOutcome | None = None,
    schedule: Iterable[Fault] | None = None,
    shrunk_from: str | None = None,
    untold: str | None = None,
    like: str | None = None,
    drawn_by: tuple[str, ...] = (),
) -> None:
    """Write everything into a folder that the caller has made and locked, and seal it.

    ``judged`` is given where somebody has asked the checkers of outcomes; the ``schedule`` is by
    default the scenario's; ``untold`` says why the run has no story. Others as ``keep_sweep_run``.

    Raises:
        HarnessError: the disk refuses.
    """
    planned = scheduled(outcome.scenario) if schedule is None else tuple(schedule)
    write_plan(folder, plan)
    open_manifest(folder)
    with tell_refusal("write the run folder", folder.root):
        write_atomically(folder.scenario, encode_scenario(outcome.scenario))
        _write_lines(folder.schedule, (*planned, *outcome.struck))
        _write_lines(folder.history, outcome.events)
        _write_lines(folder.faults, outcome.faults)
        _write_lines(folder.phases, course(outcome))
        _write_lines(folder.metrics, ())
        _write_lines(folder.leaders, ())
        _write_nodes(folder, outcome)
        if outcome.story:
            _write_lines(folder.timeline, story(outcome))
        record = record_of(
            outcome, judged, shrunk_from, untold=untold, like=like, drawn_by=drawn_by
        )
        write_atomically(folder.simulation, encode_record(record))
    write_manifest(folder)


def scheduled(scenario: Scenario) -> tuple[Fault, ...]:
    """Return the scenario's faults as lines of a schedule, in the order of their index."""
    return tuple(sorted(scenario.faults, key=lambda fault: fault.index))


def course(outcome: SimulationOutcome) -> tuple[Phase, ...]:
    """The steps of the run, ended as those of a run in order: nothing is left of a simulation."""
    # A violation is the system's failure; "failed" tells of the harness's.
    left_out = {"failed"} if outcome.has_converged else {"failed", "converged"}
    phases = [phase for phase in outcome.phases if phase.phase not in left_out]
    end_ns = max([outcome.virtual_us * 1000, *(phase.time for phase in phases)])
    reached = {phase.phase for phase in phases}
    if not phases:
        phases.append(Phase(0, "load-started"))
    phases += [
        Phase(end_ns, step, events=len(outcome.events))
        for step in _LAST_STEPS
        if step not in reached
    ]
    return tuple(phases)


def story(outcome: SimulationOutcome) -> list[Any]:
    """Return the records of the timeline in the order of their time."""
    records: list[Any] = list(outcome.story)
    return sorted(records, key=lambda record: record.time)


def _write_nodes(folder: RunFolder, outcome: SimulationOutcome) -> None:
    names = [*voters(outcome.scenario.nodes), *outcome.state_events, *outcome.committed_logs]
    for node in dict.fromkeys(names):
        folder.node(node).mkdir(parents=True, exist_ok=True)
        _write_lines(folder.state_events(node), outcome.state_events.get(node, ()))
        log = outcome.committed_logs.get(node)
        if log is not None:
            write_committed_log(folder.committed_log(node), log)


def _write_lines(path: Path, records: Iterable[object]) -> None:
    path.write_bytes(b"".join(msgspec.json.encode(record) + b"\n" for record in records))
