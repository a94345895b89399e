"""From what the user asks for to a run that can be started.

Names are resolved, the plan is drawn, and what is missing is refused. Starts nothing and writes
nothing.
"""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import partial
from pathlib import Path
from typing import Final

import msgspec

from splitbrain.contracts.errors import CapabilityError, UsageError
from splitbrain.contracts.experiment import Experiment
from splitbrain.contracts.fault import Fault
from splitbrain.contracts.names import NodeName
from splitbrain.contracts.nearest import or_nearest
from splitbrain.contracts.runtime import (
    DISK_CAPABILITIES,
    STANDING,
    Capability,
    DeploymentSpec,
    Runtime,
)
from splitbrain.contracts.simulation import SimulatedSystem
from splitbrain.contracts.system import System
from splitbrain.harness.run.drawn_settings import settled_settings
from splitbrain.harness.run.load.routes import reader_slots
from splitbrain.harness.run.plan_choice import (
    check_settled,
    failover_ms,
    notices_ms,
    noticing_of,
    plan_faults,
    plan_file_of,
)
from splitbrain.harness.run.violation_watch import refuse_unwatchable
from splitbrain.history.options import check_numbers
from splitbrain.history.plan import Noticing, sub_seeds, voters
from splitbrain.nemesis.plan import needs, refuse_what_cannot_be_had
from splitbrain.nemesis.targets import LAGGARD
from splitbrain.systems.registry import names as system_names
from splitbrain.systems.registry import system_option
from splitbrain.workloads.workload import Workload, workload, workload_names

LIMIT_CAPABILITIES: Final[frozenset[Capability]] = frozenset({"cpu", "memory"})
#: Capabilities for which nodes are equipped when they are deployed.
EQUIPMENT: Final[frozenset[Capability]] = frozenset(
    {"clock", *DISK_CAPABILITIES, *LIMIT_CAPABILITIES}
)


class TestOptions(msgspec.Struct, frozen=True, kw_only=True):
    """An experiment that is to be run, and where its folder is made."""

    __test__ = False  # not a test case, whatever pytest makes of its name

    experiment: Experiment
    runs_folder: Path = Path("runs")
    #: Keep the nodes' data folders also when the verdict is valid.
    keep_data: bool = False
    #: Run folder that is replayed, and its schedule, which is then used as it is.
    replay_of: str | None = None
    pinned: bool = False
    schedule: tuple[Fault, ...] | None = None
    #: Content of the plan file that stands for the schedule; None: of the one that is named.
    plan_file: str | None = None


class PlannedTest(msgspec.Struct, frozen=True, kw_only=True):
    """All of a run but where its nodes live."""

    #: As asked for; of the experiment what was left open is settled.
    options: TestOptions
    system: System
    workload: Workload
    #: Those that vote.
    nodes: tuple[NodeName, ...]
    #: Those besides them.
    observers: tuple[NodeName, ...]
    sub_seeds: dict[str, int]
    schedule: tuple[Fault, ...]
    noticing: Noticing | None = None

    @property
    def experiment(self) -> Experiment:
        """Return the experiment that is run."""
        return self.options.experiment

    @property
    def all_nodes(self) -> tuple[NodeName, ...]:
        """Those that vote, then the others."""
        return (*self.nodes, *self.observers)

    @property
    def asked_observers(self) -> tuple[NodeName, ...]:
        """Return the nodes besides those that vote that clients ask."""
        return self.observers if self.system.observers_serve else ()


class PreparedTest(PlannedTest, frozen=True, kw_only=True):
    """A run that can be started."""

    runtime: Runtime


def prepare(
    options: TestOptions, system: System, make_runtime: Callable[[], Runtime]
) -> PreparedTest:
    """Check the options against each other and draw the schedule.

    The runtime is made last: a wrong option is told also where there is no engine.

    Raises:
        UsageError: something does not exist or does not fit.
        CapabilityError: the runtime cannot carry out the plan.
        HarnessError: what the runtime needs does not answer.
    """
    test = plan_test(options, system)
    runtime = make_runtime()
    refuse_faults(test.schedule, system, runtime)
    return PreparedTest(
        runtime=runtime, **{name: getattr(test, name) for name in PlannedTest.__struct_fields__}
    )


def refuse_faults(schedule: Sequence[Fault], system: System, runtime: Runtime) -> None:
    """Refuse what this system on this runtime cannot have done to it.

    Raises:
        CapabilityError: says which fault, and why.
    """
    capabilities: frozenset[Capability] = runtime.capabilities()
    if system.members(runtime) is not None:
        capabilities = frozenset({*capabilities, "membership"})
    elif "membership" in needs(schedule):
        raise CapabilityError(
            "change the membership",
            f"system {system.name}",
            "its adapter has no request for that",
            "Leave remove-member out of --nemesis; `splitbrain docs faults/members` names the "
            "systems that have one",
        )
    refuse_what_cannot_be_had(schedule, capabilities, runtime.name)
    if not system.tells_events_at_once:
        _refuse_what_needs_events(schedule, system.name)
    if (
        "power" in needs(schedule)
        and runtime.cuts_power_by_durable_lengths
        and not system.declares_durable_lengths
    ):
        raise CapabilityError(
            "plan the fault power",
            f"system {system.name} on runtime {runtime.name}",
            "its nodes do not tell what they have flushed, and have no disks of their own here to "
            "lose the rest",
            "Use --runtime docker, where nodes have disks, or leave power out of --nemesis",
        )


def plan_test(options: TestOptions, system: System) -> PlannedTest:
    """Check the options against each other and draw the schedule, whatever is to run it.

    Raises:
        UsageError: something does not exist or does not fit.
    """
    experiment = options.experiment
    check_numbers(experiment)
    check_runs_folder(options.runs_folder)
    # A system that has rules of its own (``check_options``) may say nothing of this one.
    if experiment.runtime == STANDING:
        system.check_runtime(experiment.runtime)
    system.experiment = experiment
    state_machine = chosen_state_machine(experiment.state_machine, system)
    chosen = chosen_workload(experiment.workload, system, state_machine)
    experiment = msgspec.structs.replace(
        experiment,
        state_machine=state_machine,
        workload=chosen,
        workload_options={**system.workload_options(chosen), **experiment.workload_options},
        settings=settled_settings(experiment.settings, system, experiment.seed),
    )
    system.experiment = experiment
    check_bugs(experiment.bugs, system)
    if experiment.settings:  # of which a tempo may be made
        system.check_options(experiment)
    nodes = voters(experiment.nodes)
    seeds = sub_seeds(experiment.seed)
    faults, draw, plan_file = options.schedule, None, options.plan_file
    if faults is None:
        nemesis, plan_file = plan_file_of(experiment.nemesis)
        experiment = msgspec.structs.replace(experiment, nemesis=nemesis)
        plan = partial(
            plan_faults,
            experiment.nemesis,
            nodes,
            seeds["nemesis"],
            timeout_ms=round(experiment.operation_timeout_s * 1000),
            failover_ms=failover_ms(system, experiment.settings),
            observers=tuple(system.observers(experiment)),
            notices_ms=notices_ms(system),
            names_leaders=system.names_leaders,
            plan_file=plan_file,
        )
        faults, settings = plan(round(experiment.time_limit_s * 1000))
        draw = _faults_of(plan)
        own = _own_settings(settings, experiment, system)
        if not experiment.settings:
            system.experiment = experiment = msgspec.structs.replace(experiment, settings=own)
    check_settled(experiment, faults, system)
    observers = tuple(system.observers(experiment))
    asked = observers if system.observers_serve else ()
    made = _workload(experiment, nodes, asked, seeds["workload"])
    refuse_unwatchable(experiment, made.checkers)
    return PlannedTest(
        options=msgspec.structs.replace(options, experiment=experiment, plan_file=plan_file),
        system=system,
        workload=made,
        nodes=nodes,
        observers=observers,
        sub_seeds=seeds,
        schedule=faults,
        noticing=noticing_of(system, faults, experiment.time_limit_s, draw),
    )


def _workload(
    experiment: Experiment,
    nodes: Sequence[NodeName],
    observers: Sequence[NodeName],
    seed: int,
) -> Workload:
    return workload(
        experiment.workload or "",
        seed=seed,
        slots=experiment.concurrency,
        readers=reader_slots(nodes, experiment.concurrency, observers),
        options={name: str(value) for name, value in experiment.workload_options.items()},
    )


def _faults_of(
    plan: Callable[[int], tuple[Sequence[Fault], object]],
) -> Callable[[int], Sequence[Fault]]:
    return lambda time_limit_ms: plan(time_limit_ms)[0]


def equipped(spec: DeploymentSpec, needed: AbstractSet[Capability]) -> DeploymentSpec:
    """Return the same deployment with what these capabilities must have prepared.

    Disks of their own, clocks and control groups cost something and change how nodes run, so that a
    run without such faults has none of them.
    """
    needed &= EQUIPMENT
    if needed & DISK_CAPABILITIES:
        spec = msgspec.structs.replace(spec, disks="own")
    if "clock" in needed:
        spec = msgspec.structs.replace(spec, clocks="own")
    if needed & LIMIT_CAPABILITIES:
        spec = msgspec.structs.replace(spec, limits="own")
    return spec


def _refuse_what_needs_events(schedule: Iterable[Fault], system: str) -> None:
    for fault in schedule:
        what = f"target {LAGGARD}" if fault.target == LAGGARD else "wait for an event"
        if fault.waits_for_node or fault.target == LAGGARD:
            raise CapabilityError(
                f"plan the fault {fault.kind}, {what}",
                f"system {system}",
                "its nodes tell no state events as they happen",
                "Give the fault an at_ms instead, and another target.",
            )


def check_runs_folder(runs_folder: Path) -> None:
    """Refuse a place where no run folder can be made, before anything is started.

    Raises:
        UsageError: says why not there.
    """
    there = runs_folder.absolute()
    while not there.exists() and there != there.parent:
        there = there.parent
    problem = ""
    if not there.is_dir():
        problem = (
            "is no folder" if there == runs_folder.absolute() else f"lies below a file, {there}"
        )
    elif not os.access(there, os.W_OK | os.X_OK):
        problem = "cannot be written"
    if problem:
        raise UsageError(
            f"the folder of runs {str(runs_folder)!r} {problem}",
            "Choose another place with --runs-folder",
        )


def chosen_state_machine(name: str | None, system: System) -> str | None:
    """Return the state machine above the system's log: the chosen one, else the usual one.

    Raises:
        UsageError: the system has no such state machine, or none to choose.
    """
    if name is None:
        return next(iter(system.state_machines), None)
    if not system.state_machines:
        raise UsageError(
            f"the system {system.name!r} has no choice of state machines",
            "Leave --state-machine out",
        )
    if name not in system.state_machines:
        raise UsageError(
            f"the system {system.name!r} has no state machine {name!r}",
            or_nearest(name, system.state_machines, "state machines"),
        )
    return name


def chosen_workload(name: str | None, system: System, state_machine: str | None) -> str:
    """Return the name of the workload: the chosen one, else the usual one.

    Raises:
        UsageError: there is no such workload, or it does not fit what stands above the log.
    """
    fitting = system.workloads(state_machine)
    if name is None:
        return fitting[0]
    if name not in workload_names():
        raise UsageError(
            f"there is no workload called {name!r}", or_nearest(name, workload_names(), "workloads")
        )
    if name in fitting:
        return name
    others = [other for other in system.state_machines if name in system.workloads(other)]
    if state_machine is not None and others:
        raise UsageError(
            f"the workload {name!r} does not fit the state machine {state_machine!r}",
            f"Choose --state-machine {others[0]}, or the workload {' or '.join(fitting)}",
        )
    raise UsageError(
        f"the system {system.name!r} does not serve the workload {name!r}",
        f"It serves: {', '.join(fitting)}",
    )


def check_bugs(bugs: tuple[str, ...], system: System) -> None:
    """Refuse planted bugs that the system does not have, or that are named twice.

    Raises:
        UsageError: says which.
    """
    for place, bug in enumerate(bugs):
        if bug in bugs[:place]:
            raise UsageError(f"the bug {bug!r} is named twice", "Name each --bug once")
        if bug not in system.planted_bugs:
            raise UsageError(
                f"the system {system.name!r} has no planted bug {bug!r}",
                or_nearest(bug, system.planted_bugs, "planted bugs"),
            )


def check_simulated(system: System) -> SimulatedSystem:
    """Return the maker of a system's nodes in simulated worlds; refuse a system without.

    Raises:
        UsageError: it only runs in containers.
    """
    simulation = system.simulation()
    if simulation is None:
        named = system_option(system.name) or f" --system {system.name}"
        raise UsageError(
            f"the system {system.name!r} has no simulated nodes",
            f"Run it in containers: `splitbrain test{named} --runtime docker`",
        )
    return simulation


def _own_settings(
    settings: Mapping[str, Mapping[str, str]], experiment: Experiment, system: System
) -> dict[str, str]:
    """Return a plan file's settings for the system that is run.

    Those for a system that does not exist are refused: they would do nothing.
    """
    systems = {*system_names(), system.name}
    for name in settings:
        if name not in systems:
            raise UsageError(
                f"the plan {experiment.nemesis!r} has settings for {name!r}, which is no system",
                or_nearest(name, systems, "systems"),
            )
    return settled_settings(settings.get(system.name, {}), system, experiment.seed)
