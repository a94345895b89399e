"""Runs of a plan of ``splitbrain test`` in a simulated world: one plan, two worlds.

The operations come from the same sub-seed and the schedule is the same; only the moments within the
system differ, and here they repeat exactly. A quiet world otherwise: no message is lost and no disk
is slow but by the plan's faults. Judged, reported and analysed as any other run. The folder is
written after the run: nothing in a simulation may touch a disk. Source: design, sections 2 and 9.
"""

from collections.abc import Sequence

import msgspec
from rich.console import Console

from splitbrain.contracts.errors import CapabilityError
from splitbrain.contracts.experiment import Experiment
from splitbrain.contracts.fault import Fault
from splitbrain.contracts.runtime import SIMULATED, SIMULATED_CAPABILITIES, SIMULATED_LACKS
from splitbrain.contracts.scenario import LoadOptions, RecoveryOptions, Scenario
from splitbrain.contracts.simulation import SimulatedSystem
from splitbrain.harness.console.console_lines import say
from splitbrain.harness.console.waiting import Waiting
from splitbrain.harness.folder.scenario_rules import CLIENTS_MAX
from splitbrain.harness.folder.simulation_outcome import SimulationOutcome
from splitbrain.harness.folder.store import create_run
from splitbrain.harness.run.options import PlannedTest, check_simulated
from splitbrain.harness.run.plan_record import plan_of
from splitbrain.harness.run.progress import fault_sentence, phase_sentence, stamped_line
from splitbrain.harness.run.run_clock import NANOSECONDS
from splitbrain.harness.run.runner import RunOutcome
from splitbrain.harness.run.world.folder import course, runtime_versions, write_run
from splitbrain.history.plan import Plan
from splitbrain.nemesis.fault_options import BEYOND_PROMISE
from splitbrain.nemesis.plan import refuse_what_cannot_be_had

_US_PER_S = 1_000_000
#: Time of the nodes to agree after the last heal, as in containers, where none is promised.
PATIENCE_US = 60_000_000
#: Operations above which a run is refused: all of its history is held in memory.
OPERATIONS_MAX = 5_000_000
#: Operations up to which the story of a run is kept for the timeline.
STORY_OPERATIONS_MAX = 50_000


def scenario_of(test: PlannedTest) -> Scenario:
    """Return the world of a plan; every fault strikes at its planned time."""
    return _record_of(test.experiment, test.schedule, len(test.observers))


def record_of_plan(plan: Plan, faults: Sequence[Fault]) -> Scenario:
    """Return a recorded plan with these faults, as the record that searches and worlds share."""
    return _record_of(plan.experiment, faults, len(plan.observers))


def _record_of(experiment: Experiment, faults: Sequence[Fault], observers: int) -> Scenario:
    options = experiment.workload_options.items()
    limit_s = experiment.recovery_limit_s
    record = Scenario(
        system=experiment.system,
        seed=experiment.seed,
        nodes=experiment.nodes,
        bugs=experiment.bugs,
        settings=experiment.settings,
        load=LoadOptions(
            workload=experiment.workload or "",
            workload_options={name: str(value) for name, value in options},
            clients=experiment.concurrency,
            rate=experiment.rate,
            timeout_us=max(1, round(experiment.operation_timeout_s * _US_PER_S)),
        ),
        faults=tuple(faults),
        beyond_promise=any(fault.options.get(BEYOND_PROMISE) for fault in faults),
        load_us=round(experiment.time_limit_s * _US_PER_S),
        recovery=RecoveryOptions(
            patience_us=PATIENCE_US if limit_s is None else max(1, round(limit_s * _US_PER_S))
        ),
    )
    if experiment.state_machine is None:
        return record
    return msgspec.structs.replace(
        record, state_machine=experiment.state_machine, observers=observers
    )


def check_plan(test: PlannedTest) -> SimulatedSystem:
    """Refuse plans that no simulated world can carry out, before anything is run.

    Raises:
        UsageError: the system has no simulated nodes.
        CapabilityError: the plan is not for such worlds.
    """
    system = check_simulated(test.system)
    refuse_what_cannot_be_had(
        test.schedule, SIMULATED_CAPABILITIES, SIMULATED, because=SIMULATED_LACKS
    )
    happenings = {*system.happenings, *system.happenings_undrawn}
    for fault in test.schedule:
        if fault.when and fault.waits_for_node and fault.when.on not in happenings:
            raise CapabilityError(
                f"wait for {fault.when.on}",
                f"runtime {SIMULATED}",
                "no node tells of it in a simulated world",
                "Wait for something else, or choose another --runtime.",
            )
    experiment = test.experiment
    if experiment.concurrency > CLIENTS_MAX:
        target = f"--concurrency {experiment.concurrency}"
        problem = f"one thread does the work of at most {CLIENTS_MAX:,} of them"
        next_step = "Choose fewer, or another --runtime."
        raise CapabilityError("simulate the clients", target, problem, next_step)
    if experiment.rate * experiment.time_limit_s > OPERATIONS_MAX:
        target = f"--rate {experiment.rate:g} for --time-limit {experiment.time_limit_s:g}"
        most = f"takes at most {OPERATIONS_MAX:,} operations"
        problem = f"a simulated run is held in memory, and {most}"
        next_step = "Choose a lower rate, less time, or another --runtime."
        raise CapabilityError("simulate the load", target, problem, next_step)
    return system


def run_planned(test: PlannedTest, console: Console) -> RunOutcome:
    """Run a plan and write its folder.

    Raises:
        UsageError: the system has no simulated nodes.
        CapabilityError: no simulated world can carry out the plan.
        HarnessError: the run folder cannot be made or written.
    """
    from splitbrain.harness.run.world.simulate import simulate

    system = check_plan(test)
    scenario = scenario_of(test)
    name = f"{test.system.name}-{test.workload.name}"
    say(console, f"splitbrain {name}, seed {test.experiment.seed}, simulated")
    untold = why_untold(test)
    with Waiting(console).during(f"simulating {test.experiment.time_limit_s:g} s"):
        outcome = simulate(scenario, system, is_recording=untold is None)
    for line in lines_of(outcome):
        say(console, line)
    if untold is not None:
        say(console, untold)
    with create_run(test.options.runs_folder, name, test.experiment.seed) as living:
        plan = msgspec.structs.replace(
            plan_of(test, name, living.run_id), runtime_versions=runtime_versions()
        )
        write_run(living.folder, plan, outcome, schedule=test.schedule, untold=untold)
    return RunOutcome(living.folder, None, interrupted=False, loaded=True)


def lines_of(outcome: SimulationOutcome) -> list[str]:
    """Return the course of a run as a run in containers prints it, with virtual times."""
    # Where a violation ended the world, the rest of the course is no part of its story.
    phases = course(outcome) if outcome.violation is None else outcome.phases
    moments = [(phase.time, phase_sentence(phase)) for phase in phases if phase.phase != "failed"]
    moments += [(event.time, fault_sentence(event)) for event in outcome.faults]
    moments += [
        (event.time or 0, f"{event.node} leads epoch {event.epoch}")
        for events in outcome.state_events.values()
        for event in events
        if event.kind == "role" and event.role == "leader"
    ]
    if (violation := outcome.violation) is not None:
        where = f"{violation.invariant} violated in step {violation.step:,}"
        sentence = f"{where}: {violation.problem}; the world ends here"
        moments.append((violation.time_us * 1000, sentence))
    # Equal times keep their order: a step before the faults that it begins.
    moments.sort(key=lambda moment: moment[0])
    return [stamped_line(time / NANOSECONDS, sentence) for time, sentence in moments]


def why_untold(test: PlannedTest) -> str | None:
    """Return why a run's messages are not kept for the timeline; None: they are.

    A timeline of more messages than a browser can show helps nobody, and takes memory.
    """
    operations = round(test.experiment.rate * test.experiment.time_limit_s)
    if operations <= STORY_OPERATIONS_MAX:
        return None
    return (
        f"The timeline of messages is left out: the plan has {operations:,} operations, and it is "
        f"kept up to {STORY_OPERATIONS_MAX:,}; `splitbrain replay RUN --trace --from-step N "
        "--until-step M` tells any part of it."
    )
